/* Sums for every pair of columns, for other kernels. */

#ifndef PLAINRISK_PAIRS_H
#define PLAINRISK_PAIRS_H

#include "levels.h"

typedef struct {
    Py_buffer values, own; /* of the rows, or of none; and their sums by the codes of one pack */
    Py_buffer out;         /* a square of all columns */
    Py_ssize_t width;      /* from a row of it to the next */
    LevelMap map;
    Py_buffer given; /* room for what follows, or none */
    size_t room;     /* for one table */
    double *own_memory, *table, *by_code, *by_level, *half;
} Pairs;

/* Room for the packs from first to last with those after them; an exception is set if there is none. */
int make_pair_room(Pairs *pairs, Py_ssize_t first, Py_ssize_t last);
void free_pair_room(Pairs *pairs);

/* Add all packs with each other and with themselves. `own` has room for the sums by the codes of every pack: of several
   packs they are filled, of one they must be there. */
void add_all_pairs(const Pairs *pairs, const Py_buffer *own);

#endif
