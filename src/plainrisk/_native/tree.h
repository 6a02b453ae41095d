/* The best-first tree on one feature. */

#ifndef PLAINRISK_TREE_H
#define PLAINRISK_TREE_H

#include "cuts.h"

/* Some rows, and their best cut; without one they are a leaf. */
typedef struct {
    Range range;
    Sums cut;
    int has_cut;
    double gain, left_impurity, right_impurity;
    float lower, upper; /* the values on both sides of the cut */
} Node;

/* Split the best node again and again; write the values on both sides of every cut, in the order of the cuts made. The
   heap has room for two nodes per split, and two more. */
Py_ssize_t grow_tree(const Splitter *s, Py_ssize_t splits, Node *heap, float *lower, float *upper);

/* Want the segments that will be opened, nearly all of them. */
void foresee_tree(Splitter splitter, Py_ssize_t splits, Node *heap, float *lower, float *upper);

#endif
