/* A quadratic g'd + d'Hd/2 of few variables in a box, for other kernels. */

#ifndef PLAINRISK_BOX_H
#define PLAINRISK_BOX_H

#include "shared.h"

typedef struct {
    Py_ssize_t n, m; /* variables, and free ones */
    const double *H, *g, *lower, *upper;
    double *d;                /* where it is least */
    int8_t *state;            /* -1 at the lower bound, 0 free, 1 at the upper bound */
    double *factor;           /* (m, m): of the free variables, in its lower triangle; room for (n, n) */
    double flat;              /* a pivot of less than this share of its diagonal entry is rounding */
    double *gradient, *x;     /* of all variables, and of the free ones */
    double *column;           /* of the factor, in one piece */
    Py_ssize_t *at;           /* where the free variables are */
    double tolerance;
} Box;

/* Room for gradient, x, column and at; an exception is set if there is none. */
int make_box_room(Box *box);
void free_box_room(Box *box);

/* Find the minimum; whether that could be done. */
int minimise_box(Box *box);

#endif
