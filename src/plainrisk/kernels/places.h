/* The values of one feature in ascending order, with the rows of each class below every place where they may be cut. */

#ifndef PLAINRISK_PLACES_H
#define PLAINRISK_PLACES_H

#include <string.h>

#include "shared.h"

#define GAP 1e-7f /* neighbours nearer than this are never separated; the sum is rounded to float */

/* A group is a run of neighbouring values that no cut may separate. Counts go up to the end of the group. */
typedef struct {
    Py_ssize_t count;
    float *first, *last;
    int32_t *good, *bad;
} Groups;

/* What is known of the rows that have a number. */
typedef struct {
    Py_ssize_t rows;
    float low, high;
} Facts;

enum { WANTED = 1, GATHERED = 2, OPEN = 4 };

/* Rows in segments of neighbouring values. Segment k holds those from good[k] + bad[k] to good[k + 1] + bad[k + 1] in
   their order; its groups are known once it is open. */
typedef struct {
    const float *x; /* (n): all rows */
    const uint8_t *outcome;
    Py_ssize_t n;
    Py_ssize_t segments;
    int32_t *good, *bad;     /* (segments + 1): rows of each class below a segment */
    int32_t *group, *groups; /* (segments): the first group of a segment, and how many */
    int32_t *state, *next;   /* (segments): what was done with it; where its next row is put */
    Groups open;             /* groups of all open segments */
    uint64_t *rows, *room;   /* rows of each segment that is gathered, and room to sort one */
    int buckets;
    uint16_t *bucket, *segment; /* (n): of every row; (buckets): of every bucket */
} Places;

/* A number whose order is that of the values. */
static inline uint32_t key_of(float x) {
    uint32_t bits;
    x += 0.0f; /* -0.0 becomes 0.0 */
    memcpy(&bits, &x, sizeof bits);
    return bits ^ ((uint32_t)((int32_t)bits >> 31) | 0x80000000u);
}

/* A row to be sorted: the key, and the outcome as last bit. */
static inline uint64_t row_of(float x, uint8_t outcome) { return (uint64_t)key_of(x) << 1 | (outcome & 1); }

int make_places(Places *places, const float *x, const uint8_t *outcome, Py_ssize_t n, Py_ssize_t many, Py_ssize_t few);
int make_room(Places *places, Py_ssize_t segments, Py_ssize_t groups);
int cut_into_segments(Places *places, Facts facts, Py_ssize_t few);
void gather_wanted(Places *places);
void open_segment(Places *places, Py_ssize_t k);
void free_places(Places *places);

#endif
