/* The trees of one feature without each fold in turn. Rows are counted by segment and fold once, and where any of the
   trees looks closer they are sorted once. */

#include <stdlib.h>

#include "tree.h"

#define MOST_COUNTS 2097152 /* segments times folds */
#define WIDEST_TABLE 16777216
#define NARROW_TABLE 2048 /* whole numbers of which it does not matter whether they occur */
#define NARROW 0.015625f /* in such a range hardly two values are far enough apart to be separated */

typedef struct {
    Places all;
    Facts facts;
    Py_ssize_t folds, values; /* whole numbers that may occur, 0 if they are not known */
    float *value;             /* (values) ascending */
    int32_t *inside;          /* (folds, stride, class): rows of every fold by segment or value */
    int32_t *total;           /* (stride, class): by value */
    Py_ssize_t stride;        /* segments or values, and one more for rows without a number */
} Dealt;

/* How far above the lowest every whole number is; `width` if there is none. */
FOR_EVERY_PROCESSOR
static void place_tile(const float *x, Py_ssize_t n, float low, int32_t width, int32_t *place) {
    for (Py_ssize_t i = 0; i < n; i++) {
        float v = x[i] == x[i] ? x[i] : low;
        int32_t above = (int32_t)(v - low);
        place[i] = x[i] == x[i] ? above : width;
    }
}

static void count_tile(const Dealt *d, Py_ssize_t start, Py_ssize_t n, const int32_t *place, int32_t *inside) {
    const Places *all = &d->all;
    const uint8_t *outcome = all->outcome + start;
    if (all->wide)
        for (Py_ssize_t i = 0; i < n; i++) {
            Py_ssize_t fold = ((const uint16_t *)all->fold)[start + i];
            inside[2 * (fold * d->stride + place[i]) + (outcome[i] & 1)]++;
        }
    else
        for (Py_ssize_t i = 0; i < n; i++) {
            Py_ssize_t fold = ((const uint8_t *)all->fold)[start + i];
            inside[2 * (fold * d->stride + place[i]) + (outcome[i] & 1)]++;
        }
}

/* Number the values that occur, by how far they are above the lowest. */
static Py_ssize_t number_values(const Dealt *d, int32_t *number, int32_t width) {
    int32_t place[TILE], values = 0;
    for (Py_ssize_t start = 0; start < d->all.n; start += TILE) {
        Py_ssize_t n = d->all.n - start < TILE ? d->all.n - start : TILE;
        place_tile(d->all.x + start, n, d->facts.low, width, place);
        for (Py_ssize_t i = 0; i < n; i++) number[place[i]] = 1;
    }
    for (int32_t v = 0; v < width; v++) number[v] = number[v] ? values++ : -1;
    number[width] = values;
    return values;
}

static int make_table(Dealt *d, const int32_t *number, int32_t width) {
    d->stride = d->values + 1;
    d->value = malloc((size_t)d->stride * sizeof(float));
    d->inside = calloc((size_t)(d->folds * d->stride), 2 * sizeof(int32_t));
    d->total = calloc((size_t)d->stride, 2 * sizeof(int32_t));
    if (d->value == NULL || d->inside == NULL || d->total == NULL) return -1;
    for (int32_t v = 0; v < width; v++)
        if (number == NULL || number[v] >= 0)
            d->value[number == NULL ? v : number[v]] = (float)((double)d->facts.low + (double)v);
    return 0;
}

static void count_values(Dealt *d, const int32_t *number, int32_t width) {
    int32_t place[TILE];
    for (Py_ssize_t start = 0; start < d->all.n; start += TILE) {
        Py_ssize_t n = d->all.n - start < TILE ? d->all.n - start : TILE;
        place_tile(d->all.x + start, n, d->facts.low, width, place);
        if (number != NULL)
            for (Py_ssize_t i = 0; i < n; i++) place[i] = number[place[i]];
        count_tile(d, start, n, place, d->inside);
    }
    for (Py_ssize_t k = 0; k < d->folds; k++)
        for (Py_ssize_t v = 0; v < 2 * d->stride; v++) d->total[v] += d->inside[2 * k * d->stride + v];
}

/* Count whole numbers of a narrow range, if they are few; without memory, return -1. */
static int tabulate(Dealt *d) {
    Py_ssize_t widest = d->facts.rows < WIDEST_TABLE / 8 ? 8 * d->facts.rows : WIDEST_TABLE;
    if (!is_table(d->all.x, d->all.n, d->facts, (float)widest)) return 0;
    int32_t width = (int32_t)(d->facts.high - d->facts.low) + 1, *number = NULL;
    int failed = 0;
    if (width <= NARROW_TABLE) d->values = width;
    else {
        number = calloc((size_t)width + 1, sizeof(int32_t));
        if (number == NULL) return -1;
        d->values = number_values(d, number, width);
    }
    if (d->values * d->folds > MOST_COUNTS) d->values = 0;
    if (d->values > 0 && !(failed = make_table(d, number, width))) count_values(d, number, width);
    free(number);
    return failed;
}

static void count_segments(Dealt *d) {
    const Places *all = &d->all;
    int32_t place[TILE];
    for (Py_ssize_t start = 0; start < all->n; start += TILE) {
        Py_ssize_t n = all->n - start < TILE ? all->n - start : TILE;
        for (Py_ssize_t i = 0; i < n; i++) {
            int bucket = all->bucket[start + i], none = bucket == all->buckets;
            int32_t segment = all->segment[none ? 0 : bucket];
            place[i] = none ? (int32_t)all->segments : segment;
        }
        count_tile(d, start, n, place, d->inside);
    }
}

static int deal(Dealt *d, Py_ssize_t many, Py_ssize_t few) {
    Places *all = &d->all;
    Py_ssize_t rows = d->facts.rows, least = rows / (MOST_COUNTS / d->folds + 1) + 1;
    float width = d->facts.high - d->facts.low;
    if (tabulate(d)) return -1;
    if (d->values > 0) return 0;
    /* A segment of all rows is sorted as a whole. */
    few = rows < many || width <= NARROW ? rows : few > least ? few : least;
    if (cut_into_segments(all, d->facts, few)) return -1;
    d->stride = all->segments + 1;
    d->inside = calloc((size_t)(d->folds * d->stride), 2 * sizeof(int32_t));
    if (d->inside == NULL) return -1;
    count_segments(d);
    return 0;
}

/* ---- the rows outside a fold */

static void leave_out_values(const Dealt *d, const int32_t *inside, Places *view) {
    int32_t good = 0, bad = 0;
    for (Py_ssize_t v = 0; v < d->values; v++) {
        int32_t g = d->total[2 * v] - inside[2 * v], b = d->total[2 * v + 1] - inside[2 * v + 1];
        if (g + b == 0) continue;
        good += g;
        bad += b;
        add_group(&view->open, d->value[v], d->value[v], good, bad);
    }
    view->segments = 1;
    view->good[1] = good;
    view->bad[1] = bad;
    view->group[0] = 0;
    view->groups[0] = (int32_t)view->open.count;
    view->state[0] = OPEN;
}

static void leave_out_rows(const Dealt *d, const int32_t *inside, Places *view) {
    const Places *all = &d->all;
    int32_t good = 0, bad = 0;
    Py_ssize_t s = 0;
    for (Py_ssize_t k = 0; k < all->segments; k++) {
        int32_t g = all->good[k + 1] - all->good[k] - inside[2 * k];
        int32_t b = all->bad[k + 1] - all->bad[k] - inside[2 * k + 1];
        if (g + b == 0) continue; /* every segment of a view has rows */
        view->source[s] = (int32_t)k;
        view->state[s++] = 0;
        good += g;
        bad += b;
        view->good[s] = good;
        view->bad[s] = bad;
    }
    view->segments = s;
}

static void leave_out(Dealt *d, Py_ssize_t fold, Places *view) {
    view->without = fold;
    view->open.count = 0;
    const int32_t *inside = d->inside + 2 * fold * d->stride;
    if (d->values > 0) leave_out_values(d, inside, view);
    else leave_out_rows(d, inside, view);
}

/* ---- one tree after the other */

static void want_foreseen(Places *view) {
    for (Py_ssize_t k = 0; k < view->segments; k++)
        if (view->state[k] & WANTED) view->all->state[view->source[k]] = WANTED;
}

static void grow_trees(Dealt *d, Splitter splitter, Py_ssize_t splits, Node *heap, float *lower, float *upper,
                       int64_t *found) {
    Places *view = splitter.places;
    if (d->values == 0) {
        for (Py_ssize_t k = 0; k < d->folds; k++) {
            leave_out(d, k, view);
            foresee_tree(splitter, splits, heap, lower, upper);
            want_foreseen(view);
        }
        gather_wanted(&d->all);
    }
    for (Py_ssize_t k = 0; k < d->folds; k++) {
        leave_out(d, k, view);
        found[k] = grow_tree(&splitter, splits, heap, lower + k * splits, upper + k * splits);
    }
}

static int cut_folds(Dealt *d, Splitter splitter, Py_ssize_t splits, Py_ssize_t many, Py_ssize_t few, float *lower,
                     float *upper, int64_t *found) {
    Places view = {.without = -1, .all = &d->all};
    Node *heap = malloc(((size_t)splits * 2 + 2) * sizeof(Node));
    int failed = heap == NULL || deal(d, many, few);
    Py_ssize_t segments = d->values > 0 ? 1 : d->all.segments, groups = d->values > 0 ? d->values : d->facts.rows;
    failed = failed || make_room(&view, segments, groups);
    if (!failed) failed = (view.source = malloc((size_t)segments * sizeof(int32_t))) == NULL;
    if (!failed) {
        splitter.places = &view;
        grow_trees(d, splitter, splits, heap, lower, upper, found);
    }
    free(view.source);
    free_places(&view);
    free_places(&d->all);
    free(d->inside);
    free(d->total);
    free(d->value);
    free(heap);
    return failed;
}

/* ---- what Python calls */

enum { X, BAD, FOLD, LOWER, UPPER, FOUND, ARRAYS };

static int folds_fit(const Py_buffer *b, Py_ssize_t rows, Py_ssize_t folds) {
    int good = b[X].itemsize == sizeof(float) && b[BAD].itemsize == 1 && b[BAD].len == rows && rows < INT32_MAX;
    good = good && (b[FOLD].itemsize == 1 || b[FOLD].itemsize == 2) && b[FOLD].len == rows * b[FOLD].itemsize && b[LOWER].len == b[UPPER].len;
    good = good && folds > 0 && folds <= 65536 && b[FOUND].itemsize == sizeof(int64_t);
    return good && b[LOWER].itemsize == sizeof(float) && b[LOWER].len % (folds * (Py_ssize_t)sizeof(float)) == 0;
}

FOR_EVERY_PROCESSOR
static int folds_are_below(const Py_buffer *fold, Py_ssize_t rows, Py_ssize_t folds) {
    const uint8_t *byte = fold->buf;
    const uint16_t *two = fold->buf;
    uint8_t most_byte = 0;
    uint16_t most_two = 0;
    if (fold->itemsize == 1)
        for (Py_ssize_t i = 0; i < rows; i++) most_byte = byte[i] > most_byte ? byte[i] : most_byte;
    else
        for (Py_ssize_t i = 0; i < rows; i++) most_two = two[i] > most_two ? two[i] : most_two;
    return most_byte < folds && most_two < folds;
}

PyObject *kernel_fold_cuts(PyObject *module, PyObject *args) {
    Py_buffer b[ARRAYS];
    Py_ssize_t min_rows, many, few;
    int entropy_wanted, failed = 0;
    (void)module;
    if (!PyArg_ParseTuple(args, "y*y*y*w*w*w*npnn", &b[X], &b[BAD], &b[FOLD], &b[LOWER], &b[UPPER], &b[FOUND],
                          &min_rows, &entropy_wanted, &many, &few))
        return NULL;
    Py_ssize_t rows = b[X].len / (Py_ssize_t)sizeof(float), folds = b[FOUND].len / (Py_ssize_t)sizeof(int64_t);
    int good = folds_fit(b, rows, folds) && min_rows > 0;
    if (good) {
        Dealt dealt = {.all = {.x = b[X].buf, .outcome = b[BAD].buf, .n = rows, .without = -1}, .folds = folds};
        Splitter splitter = {NULL, entropy_wanted, min_rows, 0, 0};
        dealt.all.fold = b[FOLD].buf;
        dealt.all.wide = b[FOLD].itemsize == 2;
        Py_BEGIN_ALLOW_THREADS;
        dealt.facts = facts_of(b[X].buf, rows);
        good = folds_are_below(&b[FOLD], rows, folds);
        memset(b[FOUND].buf, 0, (size_t)b[FOUND].len);
        if (good && dealt.facts.rows > 0)
            failed = cut_folds(&dealt, splitter, b[LOWER].len / (folds * (Py_ssize_t)sizeof(float)), many, few,
                               b[LOWER].buf, b[UPPER].buf, b[FOUND].buf);
        Py_END_ALLOW_THREADS;
    }
    for (int k = 0; k < ARRAYS; k++) PyBuffer_Release(&b[k]);
    if (failed) return PyErr_NoMemory();
    if (!good) refuse("a float, an outcome and a fold per row are needed, and room for the cuts of every fold");
    if (!good) return NULL;
    Py_RETURN_NONE;
}
