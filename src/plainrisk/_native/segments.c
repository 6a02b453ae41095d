/* Very many rows of one feature, of which few are ever sorted. They are counted in buckets of neighbouring numbers, and
   the buckets joined to segments of about equally many rows. The rows of a segment are gathered when it is wanted. */

#include <float.h>
#include <stdlib.h>
#include <string.h>

#include "places.h"

#define SAMPLE 4096 /* rows that tell whether the values are skewed */

/* Which bucket a number is in: never a lower one for a higher number. Buckets are equally wide in the numbers
   themselves, or where these are skewed in their bits, which is nearly their logarithm. No number is in the last. */
typedef struct {
    float low, scale; /* scale 0: by bits */
    uint32_t first;
    int shift;
    int size;
} Grid;

FOR_EVERY_PROCESSOR
static void find_buckets(const float *x, Py_ssize_t n, Grid grid, uint16_t *bucket) {
    if (grid.scale > 0.0f)
        for (Py_ssize_t i = 0; i < n; i++) {
            float v = x[i] == x[i] ? x[i] : grid.low;
            int32_t at = (int32_t)((v - grid.low) * grid.scale);
            bucket[i] = (uint16_t)(x[i] == x[i] ? at : grid.size);
        }
    else
        for (Py_ssize_t i = 0; i < n; i++)
            bucket[i] = (uint16_t)(x[i] == x[i] ? (key_of(x[i]) - grid.first) >> grid.shift : (uint32_t)grid.size);
}

/* The chance, up to a constant, that two rows of a sample share one of about a thousand buckets. */
static double crowding(const float *x, Py_ssize_t n, Grid grid) {
    uint32_t count[1025] = {0};
    uint16_t bucket[SAMPLE];
    double sum = 0.0;
    find_buckets(x, n, grid, bucket);
    for (Py_ssize_t i = 0; i < n; i++)
        if (bucket[i] < grid.size) count[(size_t)bucket[i] * 1024 / (size_t)grid.size]++;
    for (int k = 0; k < 1024; k++) sum += (double)count[k] * count[k];
    return sum;
}

static Grid choose_grid(const float *x, Py_ssize_t n, Facts facts) {
    float some[SAMPLE] = {0};
    Py_ssize_t step = n / SAMPLE + 1, found = 0;
    Grid by_bits = {facts.low, 0.0f, key_of(facts.low), 0, facts.rows < 262144 ? 16383 : 65535}, by_width = by_bits;
    while ((key_of(facts.high) - by_bits.first) >> by_bits.shift >= (uint32_t)by_bits.size) by_bits.shift++;
    by_width.scale = (float)(by_width.size - 1) / (facts.high - facts.low);
    if (!(by_width.scale > 0.0f && by_width.scale <= FLT_MAX)) return by_bits;
    for (Py_ssize_t i = 0; i < n; i += step) some[found++] = x[i];
    return crowding(some, found, by_width) <= crowding(some, found, by_bits) ? by_width : by_bits;
}

/* Count the rows of every bucket, by class, and remember each row's. */
static void count_buckets(const Places *places, Grid grid, uint32_t (*count)[2]) {
    for (Py_ssize_t start = 0; start < places->n; start += TILE) {
        Py_ssize_t stop = start + TILE < places->n ? start + TILE : places->n;
        find_buckets(places->x + start, stop - start, grid, places->bucket + start);
        for (Py_ssize_t i = start; i < stop; i++) count[places->bucket[i]][places->outcome[i] & 1]++;
    }
}

static void join_buckets(Places *places, const uint32_t (*count)[2], Py_ssize_t least) {
    Py_ssize_t k = 0;
    int32_t good = 0, bad = 0;
    for (int b = 0; b < places->buckets; b++) {
        good += (int32_t)count[b][0];
        bad += (int32_t)count[b][1];
        places->segment[b] = (uint16_t)k;
        if (good + bad - places->good[k] - places->bad[k] < least) continue;
        k++;
        places->good[k] = good;
        places->bad[k] = bad;
    }
    if (good + bad > places->good[k] + places->bad[k]) k++;
    places->good[k] = good;
    places->bad[k] = bad;
    places->segments = k;
}

static size_t most_rows(const Places *places) {
    int32_t most = 0;
    for (Py_ssize_t k = 0; k < places->segments; k++) {
        int32_t rows = places->good[k + 1] + places->bad[k + 1] - places->good[k] - places->bad[k];
        most = rows > most ? rows : most;
    }
    return (size_t)most;
}

int cut_into_segments(Places *places, Facts facts, Py_ssize_t few) {
    Grid grid = choose_grid(places->x, places->n, facts);
    Py_ssize_t least = facts.rows / MOST_SEGMENTS + 1; /* rows of a segment, but for the last */
    if (least < few) least = few;
    uint32_t(*count)[2] = calloc((size_t)grid.size + 1, sizeof *count);
    places->buckets = grid.size;
    places->bucket = malloc((size_t)places->n * sizeof(uint16_t));
    places->segment = malloc((size_t)grid.size * (sizeof(uint16_t) + 1) + 1);
    places->rows = malloc((size_t)facts.rows * sizeof(uint64_t)); /* only what is gathered will be touched */
    int failed = make_room(places, facts.rows / least + 1, facts.rows) || !count || !places->bucket || !places->segment ||
                 !places->rows;
    if (!failed) {
        count_buckets(places, grid, count);
        join_buckets(places, (const uint32_t(*)[2])count, least);
        places->room = malloc(most_rows(places) * sizeof(uint64_t));
    }
    free(count);
    return failed || places->room == NULL ? -1 : 0;
}

/* A view wants what it wants of all rows. */
static void gather_for(Places *view) {
    for (Py_ssize_t k = 0; k < view->segments; k++)
        if (view->state[k] == WANTED && !(view->all->state[view->source[k]] & GATHERED))
            view->all->state[view->source[k]] = WANTED;
    gather_wanted(view->all);
}

/* Put the rows of all segments that are wanted into their places, in one pass. */
void gather_wanted(Places *places) {
    if (places->all != NULL) {
        gather_for(places);
        return;
    }
    uint8_t *wanted = (uint8_t *)(places->segment + places->buckets);
    int32_t *next = places->next;
    int any = 0;
    for (Py_ssize_t k = 0; k < places->segments; k++) {
        next[k] = places->good[k] + places->bad[k];
        any |= places->state[k] == WANTED;
    }
    if (!any) return;
    for (int b = 0; b < places->buckets; b++) {
        uint16_t k = places->segment[b];
        wanted[b] = k < places->segments && places->state[k] == WANTED;
    }
    wanted[places->buckets] = 0;
    for (Py_ssize_t start = 0; start < places->n; start += TILE) {
        Py_ssize_t stop = start + TILE < places->n ? start + TILE : places->n, found = 0, hit[TILE];
        for (Py_ssize_t i = start; i < stop; i++) {
            hit[found] = i;
            found += wanted[places->bucket[i]];
        }
        for (Py_ssize_t j = 0; j < found; j++) {
            Py_ssize_t i = hit[j];
            places->rows[next[places->segment[places->bucket[i]]]++] = row_of(places, i);
        }
    }
    for (Py_ssize_t k = 0; k < places->segments; k++)
        if (places->state[k] == WANTED) places->state[k] |= GATHERED;
}
