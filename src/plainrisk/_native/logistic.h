/* A pass of the logistic loss over rows, for other kernels. */

#ifndef PLAINRISK_LOGISTIC_H
#define PLAINRISK_LOGISTIC_H

#include "dense.h"
#include "levels.h"

typedef struct {
    LevelMap map;
    Py_buffer point, gradient; /* the intercept and the coefficients, and their sums of residual * column */
    Py_buffer positive, weight, dense;
    Py_buffer bend, codes;     /* curvatures of the rows, and their sums by the codes of all packs */
    Py_ssize_t n_dense;        /* numeric columns: the last ones */
    Py_buffer *tables, *sums;  /* of the codes of every pack: scores, and sums of residuals or curvatures */
    double *memory;
    size_t n_memory;
    double loss;
} Pass;

/* Room for tables and sums, or for tables if `sums` is given; an exception is set if there is none. */
int make_pass_room(Pass *pass, double *sums);

void score_codes(Pass *pass);                   /* from coefficients to codes, and all sums to 0 */
void add_rows(Pass *pass);                      /* losses, residuals by codes, and curvatures if there is room */
double sum_bends(Pass *pass);                   /* curvatures that are there, by codes and in all */
/* Losses of rows of numbers. To the gradient is added residual * column, to the table of (1 + columns)^2, unless it is
   NULL, curvature * column * column; column 0 is 1. */
void add_numbers(Pass *pass, const Numbers *numbers, double *table);
void codes_to_columns(Pass *pass, double *out); /* out += what the sums by codes come to in every column */

#endif
