/* How the codes of packs stand for levels, and how levels become columns, for other kernels. */

#ifndef PLAINRISK_LEVELS_H
#define PLAINRISK_LEVELS_H

#include "shared.h"

typedef struct {
    Py_ssize_t size, features; /* codes of the pack, and features in it */
    Py_ssize_t first, levels;  /* where its levels begin among all, and how many they are */
    Py_ssize_t place, columns; /* the same of its columns */
    const int32_t *members;    /* (size, features): the level of each feature that a code stands for */
} Pack;

typedef struct {
    Arrays packs, members;
    Py_buffer starts, columns, weights; /* level i adds weights[j] to columns[j], for starts[i] <= j < starts[i + 1] */
    Py_ssize_t n_levels, n_columns, rows;
    Pack *each;
} LevelMap;

/* Read (packs, members, starts, columns, weights), or all but packs if they are NULL; on failure an exception is set, and `close_level_map` is due anyway. */
int open_level_map(PyObject *packs, PyObject *map, Py_ssize_t rows, Py_ssize_t n_columns, LevelMap *out);
void close_level_map(LevelMap *map);

/* scores[i] = what level i adds, given the columns' coefficients */
void score_levels(const LevelMap *map, const double *coefficients, double *scores);

/* sums[j] += what the levels' sums come to in column j */
void add_columns(const LevelMap *map, const double *by_level, double *sums);

#endif
