/* The trees of one feature without each fold in turn. Rows are counted by segment and fold once, and where any of the
   trees looks closer they are sorted once. */

#include <stdlib.h>

#include "tree.h"

#define MOST_COUNTS 2097152 /* segments times folds */
#define WIDEST_TABLE 16777216
#define NARROW 0.015625f /* in such a range hardly two values are far enough apart to be separated */

typedef struct {
    Places all;
    Facts facts;
    Py_ssize_t folds, values; /* distinct whole numbers, 0 if they are not known */
    float *value;             /* (values) ascending */
    int32_t *inside;          /* (folds, segments or values, class): rows of every fold */
    int32_t *total;           /* (values, class) */
} Dealt;

/* Number the values that occur; without memory, return -1. */
static int number_values(Dealt *d, int32_t *place, Py_ssize_t width) {
    const Places *all = &d->all;
    Py_ssize_t values = 0;
    for (Py_ssize_t i = 0; i < all->n; i++)
        if (all->x[i] == all->x[i]) place[(int32_t)(all->x[i] - d->facts.low)] = 1;
    for (Py_ssize_t v = 0; v < width; v++) values += place[v];
    if (values * d->folds > MOST_COUNTS) return 0;
    d->value = malloc((size_t)values * sizeof(float));
    d->inside = calloc((size_t)(d->folds * values), 2 * sizeof(int32_t));
    d->total = calloc((size_t)values, 2 * sizeof(int32_t));
    if (d->value == NULL || d->inside == NULL || d->total == NULL) return -1;
    for (Py_ssize_t v = 0; v < width; v++) {
        if (!place[v]) continue;
        d->value[d->values] = (float)((double)d->facts.low + (double)v);
        place[v] = (int32_t)d->values++;
    }
    return 0;
}

static void count_values(Dealt *d, const int32_t *place) {
    const Places *all = &d->all;
    for (Py_ssize_t i = 0; i < all->n; i++) {
        if (all->x[i] != all->x[i]) continue;
        Py_ssize_t at = (Py_ssize_t)fold_of(all, i) * d->values + place[(int32_t)(all->x[i] - d->facts.low)];
        d->inside[2 * at + (all->outcome[i] & 1)]++;
    }
    for (Py_ssize_t k = 0; k < d->folds; k++)
        for (Py_ssize_t v = 0; v < 2 * d->values; v++) d->total[v] += d->inside[2 * k * d->values + v];
}

/* Count whole numbers of a narrow range, if they are few. */
static int tabulate(Dealt *d) {
    Py_ssize_t widest = d->facts.rows < WIDEST_TABLE / 8 ? 8 * d->facts.rows : WIDEST_TABLE;
    if (!is_table(d->all.x, d->all.n, d->facts, (float)widest)) return 0;
    Py_ssize_t width = (Py_ssize_t)(d->facts.high - d->facts.low) + 1;
    int32_t *place = calloc((size_t)width, sizeof(int32_t));
    int failed = place == NULL || number_values(d, place, width);
    if (!failed && d->values > 0) count_values(d, place);
    free(place);
    return failed;
}

static void count_segments(Dealt *d) {
    const Places *all = &d->all;
    for (Py_ssize_t i = 0; i < all->n; i++) {
        if (all->bucket[i] == all->buckets) continue; /* no number */
        Py_ssize_t at = (Py_ssize_t)fold_of(all, i) * all->segments + all->segment[all->bucket[i]];
        d->inside[2 * at + (all->outcome[i] & 1)]++;
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
    d->inside = calloc((size_t)(d->folds * all->segments), 2 * sizeof(int32_t));
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
    if (d->values > 0) leave_out_values(d, d->inside + 2 * fold * d->values, view);
    else leave_out_rows(d, d->inside + 2 * fold * d->all.segments, view);
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
    good = good && b[FOLD].itemsize <= 2 && b[FOLD].len == rows * b[FOLD].itemsize && b[LOWER].len == b[UPPER].len;
    good = good && folds > 0 && folds <= 65536 && b[FOUND].itemsize == sizeof(int64_t);
    return good && b[LOWER].itemsize == sizeof(float) && b[LOWER].len % (folds * (Py_ssize_t)sizeof(float)) == 0;
}

static int folds_are_below(const Places *places, Py_ssize_t folds) {
    uint32_t most = 0;
    for (Py_ssize_t i = 0; i < places->n; i++) most = fold_of(places, i) > most ? fold_of(places, i) : most;
    return most < folds;
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
        good = folds_are_below(&dealt.all, folds);
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
