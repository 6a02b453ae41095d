/* From the rows of one feature to places: whole numbers are tabulated, few rows sorted, many cut into segments. */

#include <float.h>
#include <stdlib.h>
#include <string.h>

#include "places.h"

#define LANES 16
#define WIDEST_TABLE 16777216
#define WIDE 0.015625f /* in a narrower range hardly two values are far enough apart to be separated */

static float value_of(uint64_t row) {
    uint32_t key = (uint32_t)(row >> TAG_BITS);
    uint32_t bits = key ^ ((uint32_t)((int32_t)~key >> 31) | 0x80000000u);
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* ---- sorting by digits, the lowest first */

static void sort_few(uint64_t *rows, Py_ssize_t n) {
    for (Py_ssize_t i = 1; i < n; i++) {
        uint64_t row = rows[i];
        Py_ssize_t j = i;
        for (; j > 0 && rows[j - 1] > row; j--) rows[j] = rows[j - 1];
        rows[j] = row;
    }
}

static void sort_digit(const uint64_t *from, uint64_t *to, Py_ssize_t n, int shift, int width) {
    uint32_t start[2048], mask = (1u << width) - 1, below = 0;
    memset(start, 0, (mask + 1) * sizeof *start);
    for (Py_ssize_t i = 0; i < n; i++) start[from[i] >> shift & mask]++;
    for (uint32_t d = 0; d <= mask; d++) {
        uint32_t count = start[d];
        start[d] = below;
        below += count;
    }
    for (Py_ssize_t i = 0; i < n; i++) to[start[from[i] >> shift & mask]++] = from[i];
}

/* Sort rows by their keys; the result is in one of the two arrays. */
static uint64_t *sort_rows(uint64_t *rows, uint64_t *room, Py_ssize_t n) {
    uint64_t differ = 0;
    int low = TAG_BITS, high = TAG_BITS; /* the order of tags does not matter */
    if (n <= 24) {
        sort_few(rows, n);
        return rows;
    }
    for (Py_ssize_t i = 1; i < n; i++) differ |= rows[i] ^ rows[0];
    while (differ >> high > 1) high++;
    while (low < high && !(differ >> low & 1)) low++;
    if (differ >> TAG_BITS == 0) return rows;
    int bits = high - low + 1, widest = n < 1024 ? 7 : n < 8192 ? 9 : 11;
    int passes = (bits + widest - 1) / widest, width = (bits + passes - 1) / passes;
    for (int p = 0; p < passes; p++) {
        uint64_t *swap = rows;
        sort_digit(rows, room, n, low + p * width, width);
        rows = room;
        room = swap;
    }
    return rows;
}

/* ---- groups */

void add_group(Groups *open, float first, float last, int32_t good, int32_t bad) {
    Py_ssize_t k = open->count++;
    open->first[k] = first;
    open->last[k] = last;
    open->good[k] = good;
    open->bad[k] = bad;
}

/* The rows of a segment in their order, which for a view is found once, and may be known. */
static const uint64_t *sorted_rows(Places *places, Py_ssize_t k, Py_ssize_t *n) {
    Places *from = places->all == NULL ? places : places->all;
    if (places->all != NULL) k = places->source[k];
    Py_ssize_t start = (Py_ssize_t)from->good[k] + from->bad[k];
    uint64_t *rows = from->rows + start;
    *n = (Py_ssize_t)from->good[k + 1] + from->bad[k + 1] - start;
    if (from->state[k] & SORTED) return rows;
    const uint64_t *sorted = sort_rows(rows, from->room, *n);
    if (places->all == NULL) return sorted;
    if (sorted != rows) memcpy(rows, sorted, (size_t)*n * sizeof *rows);
    from->state[k] |= SORTED;
    return rows;
}

static inline int is_left_out(const Places *places, uint64_t row) {
    return (int64_t)(row >> 1 & ((1u << (TAG_BITS - 1)) - 1)) == places->without;
}

/* Some of the segment's rows are in it. */
void open_segment(Places *places, Py_ssize_t k) {
    int32_t good = places->good[k], bad = places->bad[k];
    Py_ssize_t n, i = 0;
    const uint64_t *rows = sorted_rows(places, k, &n);
    while (i < n - 1 && is_left_out(places, rows[i])) i++;
    float first = value_of(rows[i]), last = first;
    uint64_t key = rows[i] >> TAG_BITS;
    places->group[k] = (int32_t)places->open.count;
    for (; i < n; i++) {
        if (is_left_out(places, rows[i])) continue;
        if (rows[i] >> TAG_BITS != key) {
            float value = value_of(rows[i]);
            if (value > last + GAP) {
                add_group(&places->open, first, last, good, bad);
                first = value;
            }
            last = value;
            key = rows[i] >> TAG_BITS;
        }
        bad += rows[i] & 1;
        good += !(rows[i] & 1);
    }
    add_group(&places->open, first, last, good, bad);
    places->groups[k] = (int32_t)(places->open.count - places->group[k]);
    places->state[k] = OPEN;
}

/* ---- what there is to know before */

FOR_EVERY_PROCESSOR
Facts facts_of(const float *x, Py_ssize_t n) {
    Facts facts = {0, FLT_MAX, -FLT_MAX};
    float low[LANES], high[LANES];
    int32_t rows[LANES] = {0};
    Py_ssize_t i = 0;
    for (int j = 0; j < LANES; j++) low[j] = FLT_MAX, high[j] = -FLT_MAX;
    for (; i + LANES <= n; i += LANES)
        for (int j = 0; j < LANES; j++) {
            float v = x[i + j];
            low[j] = v < low[j] ? v : low[j]; /* false for what is no number */
            high[j] = v > high[j] ? v : high[j];
            rows[j] += v == v;
        }
    for (; i < n; i++) {
        low[0] = x[i] < low[0] ? x[i] : low[0];
        high[0] = x[i] > high[0] ? x[i] : high[0];
        rows[0] += x[i] == x[i];
    }
    for (int j = 0; j < LANES; j++) {
        facts.low = low[j] < facts.low ? low[j] : facts.low;
        facts.high = high[j] > facts.high ? high[j] : facts.high;
        facts.rows += rows[j];
    }
    return facts;
}

/* Whether every number of a tile is whole; all lie between the bounds, which an int can hold. */
FOR_EVERY_PROCESSOR
static int all_whole(const float *x, Py_ssize_t n, float low) {
    int32_t odd = 0;
    for (Py_ssize_t i = 0; i < n; i++) {
        float v = x[i] == x[i] ? x[i] : low;
        odd |= (float)(int32_t)v != v;
    }
    return !odd;
}

int is_table(const float *x, Py_ssize_t n, Facts facts, float widest) {
    float width = facts.high - facts.low;
    Py_ssize_t start = 0;
    if (!(width < widest && facts.low >= -1e9f && facts.high <= 1e9f)) return 0;
    while (start < n && all_whole(x + start, n - start < TILE ? n - start : TILE, facts.low)) start += TILE;
    return start >= n;
}

/* ---- one segment, open from the start */

int make_room(Places *places, Py_ssize_t segments, Py_ssize_t groups) {
    size_t s = (size_t)segments + 1, g = (size_t)groups;
    places->segments = segments;
    places->good = calloc(6 * s, sizeof(int32_t));
    places->open.first = malloc(4 * g * sizeof(float));
    if (places->good == NULL || places->open.first == NULL) return -1;
    places->bad = places->good + s;
    places->group = places->bad + s;
    places->groups = places->group + s;
    places->state = places->groups + s;
    places->next = places->state + s;
    places->open.last = places->open.first + g;
    places->open.good = (int32_t *)(places->open.last + g);
    places->open.bad = places->open.good + g;
    return 0;
}

static int tabulate(Places *places, Facts facts) {
    const float *x = places->x;
    const uint8_t *bad = places->outcome;
    size_t width = (size_t)(facts.high - facts.low) + 1;
    /* Two tables in turn, if they are small: an addition need not wait for the one before. */
    size_t second = width < 16384 ? 2 * width : 0;
    uint32_t *count = calloc(2 * width + second, sizeof(uint32_t)), *other = count + second;
    Py_ssize_t i = 0, distinct = 0;
    if (count == NULL) return -1;
    for (; i + 2 <= places->n; i += 2) {
        if (x[i] == x[i]) count[2 * (uint32_t)(x[i] - facts.low) + (bad[i] & 1)]++;
        if (x[i + 1] == x[i + 1]) other[2 * (uint32_t)(x[i + 1] - facts.low) + (bad[i + 1] & 1)]++;
    }
    if (i < places->n && x[i] == x[i]) count[2 * (uint32_t)(x[i] - facts.low) + (bad[i] & 1)]++;
    for (size_t v = 0; v < second; v++) count[v] += other[v];
    for (size_t v = 0; v < width; v++) distinct += count[2 * v] + count[2 * v + 1] > 0;
    int failed = make_room(places, 1, distinct);
    for (size_t v = 0; !failed && v < width; v++) {
        if (count[2 * v] + count[2 * v + 1] == 0) continue;
        float value = (float)((double)facts.low + (double)v);
        places->good[1] += (int32_t)count[2 * v];
        places->bad[1] += (int32_t)count[2 * v + 1];
        add_group(&places->open, value, value, places->good[1], places->bad[1]);
    }
    if (!failed) {
        places->groups[0] = (int32_t)places->open.count;
        places->state[0] = OPEN;
    }
    free(count);
    return failed;
}

static int sort_all(Places *places, Facts facts) {
    places->rows = malloc((size_t)facts.rows * sizeof(uint64_t));
    if (make_room(places, 1, facts.rows) || places->rows == NULL) return -1;
    uint64_t *room = (uint64_t *)(void *)places->open.first; /* that of groups, which come later */
    Py_ssize_t at = 0;
    for (Py_ssize_t i = 0; i < places->n; i++) {
        if (places->x[i] != places->x[i]) continue;
        room[at++] = row_of(places, i);
        places->bad[1] += places->outcome[i] & 1;
    }
    if (sort_rows(room, places->rows, at) == room) memcpy(places->rows, room, (size_t)at * sizeof *room);
    places->good[1] = (int32_t)at - places->bad[1];
    places->state[0] = SORTED;
    open_segment(places, 0);
    return 0;
}

/* Make the places of the rows that have a number; without memory, return -1. From `many` rows on they are in segments
   of no less than `few`. */
int make_places(Places *places, const float *x, const uint8_t *outcome, Py_ssize_t n, Py_ssize_t many, Py_ssize_t few) {
    Facts facts = facts_of(x, n);
    *places = (Places){.x = x, .outcome = outcome, .n = n, .without = -1};
    if (facts.rows == 0) return make_room(places, 1, 1);
    float width = facts.high - facts.low;
    if (is_table(x, n, facts, (float)(facts.rows < WIDEST_TABLE ? facts.rows : WIDEST_TABLE))) return tabulate(places, facts);
    if (facts.rows < many || width <= WIDE) return sort_all(places, facts);
    return cut_into_segments(places, facts, few);
}

void free_places(Places *places) {
    free(places->good);
    free(places->open.first);
    free(places->rows);
    free(places->room);
    free(places->bucket);
    free(places->segment);
}
