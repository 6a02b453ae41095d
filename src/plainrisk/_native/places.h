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

#define MOST_SEGMENTS 16384

enum { WANTED = 1, GATHERED = 2, OPEN = 4, SORTED = 8 };

#define TAG_BITS 17 /* of a row to be sorted, below its key: its fold, and its outcome last */

/* Rows in segments of neighbouring values. Segment k holds those from good[k] + bad[k] to good[k + 1] + bad[k + 1] in
   their order; its groups are known once it is open. The rows outside a fold are a view of all rows: its segments are
   those of all rows in which some are left. */
typedef struct Places {
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
    const void *fold;           /* (n): of every row, or NULL */
    int wide;                   /* folds are of two bytes, not one */
    struct Places *all;         /* of a view: all rows, else NULL */
    int32_t *source;            /* of a view: (segments) which of all rows' each is */
    int64_t without;            /* of a view: the fold that is left out, else -1 */
} Places;

/* A number whose order is that of the values. */
static inline uint32_t key_of(float x) {
    uint32_t bits;
    x += 0.0f; /* -0.0 becomes 0.0 */
    memcpy(&bits, &x, sizeof bits);
    return bits ^ ((uint32_t)((int32_t)bits >> 31) | 0x80000000u);
}

static inline uint32_t fold_of(const Places *places, Py_ssize_t i) {
    if (places->fold == NULL) return 0;
    return places->wide ? ((const uint16_t *)places->fold)[i] : ((const uint8_t *)places->fold)[i];
}

/* A row to be sorted. */
static inline uint64_t row_of(const Places *places, Py_ssize_t i) {
    uint32_t tag = fold_of(places, i) << 1 | (places->outcome[i] & 1);
    return (uint64_t)key_of(places->x[i]) << TAG_BITS | tag;
}

int make_places(Places *places, const float *x, const uint8_t *outcome, Py_ssize_t n, Py_ssize_t many, Py_ssize_t few);
Facts facts_of(const float *x, Py_ssize_t n);
int is_table(const float *x, Py_ssize_t n, Facts facts, float widest); /* whole numbers of a narrow range */
int make_room(Places *places, Py_ssize_t segments, Py_ssize_t groups);
int cut_into_segments(Places *places, Facts facts, Py_ssize_t few);
void gather_wanted(Places *places);
void open_segment(Places *places, Py_ssize_t k);
void add_group(Groups *open, float first, float last, int32_t good, int32_t bad);
void free_places(Places *places);

#endif
