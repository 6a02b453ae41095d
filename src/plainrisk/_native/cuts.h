/* The best cut of a node of the tree on one feature. */

#ifndef PLAINRISK_CUTS_H
#define PLAINRISK_CUTS_H

#include "places.h"

/* Rows of each class below a place. */
typedef struct {
    double good, bad;
} Sums;

/* The rows between two places. */
typedef struct {
    Sums start, end;
} Range;

typedef struct {
    Places *places;
    int entropy;         /* the impurity, else gini */
    Py_ssize_t min_rows; /* on both sides of a cut */
    int foresee;         /* open no segments, take the best of the cuts between them */
    Py_ssize_t margin;   /* segments that are wanted beside a promising one */
} Splitter;

typedef struct {
    double gain; /* up to constants of the range */
    int found;
    Sums cut;
    float lower, upper; /* the values on both sides */
} Best;

static inline double rows_below(Sums at) { return at.good + at.bad; }

static inline Sums at_segment(const Places *p, Py_ssize_t k) { return (Sums){p->good[k], p->bad[k]}; }

double impurity_of(const Splitter *s, Sums from, Sums to);
Best best_cut(const Splitter *s, const Range *range);

#endif
