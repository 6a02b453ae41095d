/* Sums by level over a tile of rows, for other kernels. */

#ifndef PLAINRISK_SUMS_H
#define PLAINRISK_SUMS_H

#include "shared.h"

/* Run a body with Code as the type of so many bytes. */
#define BY_ITEM_SIZE(ITEM_SIZE, BODY)                                                                                  \
    switch (ITEM_SIZE) {                                                                                               \
    case 1: {                                                                                                          \
        typedef uint8_t Code;                                                                                          \
        BODY;                                                                                                          \
    } break;                                                                                                           \
    case 2: {                                                                                                          \
        typedef uint16_t Code;                                                                                         \
        BODY;                                                                                                          \
    } break;                                                                                                           \
    default: {                                                                                                         \
        typedef uint32_t Code;                                                                                         \
        BODY;                                                                                                          \
    } break;                                                                                                           \
    }

/* Whether a buffer has one small integer per row; if not, an exception is set. */
int is_pack(const Py_buffer *pack, Py_ssize_t rows);

/* score[i] += tables[k][packs[k][start + i]], one pack after the other */
void look_up_tile(double *score, const Py_buffer *packs, const Py_buffer *tables, Py_ssize_t count, Py_ssize_t start,
                  Py_ssize_t rows);

/* sums[k][packs[k][start + i]] += values[i], one row after the other; without values every row counts 1 */
void level_sums_tile(const double *values, const Py_buffer *packs, const Py_buffer *sums, Py_ssize_t count,
                     Py_ssize_t start, Py_ssize_t rows);

#endif
