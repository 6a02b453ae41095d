/* Numeric columns of rows, for other kernels. */

#ifndef PLAINRISK_DENSE_H
#define PLAINRISK_DENSE_H

#include "shared.h"

#define SUMS 8 /* numbers are added in this many sums side by side, on every processor in the same order */

/* Column j of a matrix, at most TILE rows of it: where it lies, or a copy in one piece. */
const double *dense_column(const Py_buffer *dense, Py_ssize_t j, Py_ssize_t start, Py_ssize_t rows, double *copy);

double sum_of_products(const double *a, const double *b, Py_ssize_t rows);

/* To the first row of an (n, n) table add value * column, below it value * column * column, of at most TILE rows; the
   columns are the last. */
void add_dense_pairs(const double *values, const Py_buffer *dense, Py_ssize_t start, Py_ssize_t rows, double *table,
                     Py_ssize_t n);

#endif
