/* Numeric columns of rows, for other kernels. */

#ifndef PLAINRISK_DENSE_H
#define PLAINRISK_DENSE_H

#include "shared.h"

#define SUMS 8 /* numbers are added in this many sums side by side, on every processor in the same order */

/* Column j of a matrix, at most TILE rows of it: where it lies, or a copy in one piece. */
const double *dense_column(const Py_buffer *dense, Py_ssize_t j, Py_ssize_t start, Py_ssize_t rows, double *copy);

double sum_of_products(const double *a, const double *b, Py_ssize_t rows);

/* Sums of a * column, or of a * b * column unless b is NULL, of at most TILE rows. */
void sums_of_products(const double *a, const double *b, const double *const *columns, Py_ssize_t count, Py_ssize_t rows,
                      double *out);

/* To the first row of a table of (1 + count)^2 add value * column, below it value * column * column, of at most TILE
   rows; column 0 is 1, and its own column is left to the caller. `sums` is room for one number per column. */
void add_dense_pairs(const double *values, const double *const *columns, Py_ssize_t count, Py_ssize_t rows,
                     double *table, double *sums);

/* Columns of numbers by themselves: each as doubles, or as codes of those in its table. */
typedef struct {
    Arrays columns, tables; /* the table of doubles is empty */
    const double **tile;    /* at most TILE rows of every column, each in one piece */
    double *room, *sums;    /* for tiles that do not lie in one piece, and for a number per column */
} Numbers;

/* Open them; if they do not fit or there is no room, an exception is set. */
int open_numbers(PyObject *columns, PyObject *tables, Py_ssize_t rows, Numbers *out);
void close_numbers(Numbers *numbers);
void find_tile(const Numbers *numbers, Py_ssize_t start, Py_ssize_t rows);

#endif
