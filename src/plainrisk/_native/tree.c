/* The best-first tree on one feature: which node is split next. Every quantity that decides is computed in the
   precision and the order of encode/tree.py, which says why. */

#include <float.h>
#include <math.h>
#include <stdlib.h>

#include "tree.h"

#define PURE DBL_EPSILON /* a node of at most this impurity is a leaf */

static Node make_node(const Splitter *s, Sums start, Sums end, double impurity) {
    const Places *p = s->places;
    Node node = {.range = {start, end}};
    if (impurity <= PURE) return node;
    Best best = best_cut(s, &node.range);
    if (!best.found) return node;
    Sums cut = best.cut, total = at_segment(p, p->segments);
    double weight = rows_below(end) - rows_below(start);
    double wl = rows_below(cut) - rows_below(start), wr = rows_below(end) - rows_below(cut);
    double left = impurity_of(s, start, cut), right = impurity_of(s, cut, end);
    double gain = (weight / rows_below(total)) * (impurity - (wr / weight * right) - (wl / weight * left));
    if (gain + PURE < 0.0) return node;
    node.cut = cut;
    node.has_cut = 1;
    node.gain = gain;
    node.left_impurity = left;
    node.right_impurity = right;
    node.lower = best.lower;
    node.upper = best.upper;
    return node;
}

/* A binary heap with the largest gain on top. Which of two equal gains comes first depends on every move, as
   encode/tree.py says. */
static void rise(Node *heap, Py_ssize_t hole, Node node) {
    while (hole > 0 && heap[(hole - 1) / 2].gain < node.gain) {
        heap[hole] = heap[(hole - 1) / 2];
        hole = (hole - 1) / 2;
    }
    heap[hole] = node;
}

static Node pop(Node *heap, Py_ssize_t *size) {
    Node last = heap[--*size], top = heap[0];
    if (*size == 0) return last;
    Py_ssize_t hole = 0, child;
    while ((child = 2 * hole + 2) < *size) {
        if (heap[child].gain < heap[child - 1].gain) child--;
        heap[hole] = heap[child];
        hole = child;
    }
    if (child == *size) {
        heap[hole] = heap[child - 1];
        hole = child - 1;
    }
    rise(heap, hole, last);
    return top;
}

/* Split the best node again and again; write the values on both sides of every cut, in the order of the cuts made. */
static Py_ssize_t grow(const Splitter *s, Py_ssize_t splits, Node *heap, float *lower, float *upper) {
    const Places *p = s->places;
    Py_ssize_t cuts = 0, size = 1;
    Sums none = {0.0, 0.0}, all = at_segment(p, p->segments);
    if (rows_below(all) < 2.0 || splits < 1) return 0;
    heap[0] = make_node(s, none, all, impurity_of(s, none, all));
    while (size > 0) {
        Node node = pop(heap, &size);
        if (!node.has_cut) continue;
        lower[cuts] = node.lower;
        upper[cuts++] = node.upper;
        if (cuts == splits) break;
        Node left = make_node(s, node.range.start, node.cut, node.left_impurity);
        Node right = make_node(s, node.cut, node.range.end, node.right_impurity);
        rise(heap, size++, left);
        rise(heap, size++, right);
    }
    return cuts;
}

Py_ssize_t grow_tree(const Splitter *s, Py_ssize_t splits, Node *heap, float *lower, float *upper) {
    return grow(s, splits, heap, lower, upper);
}

void foresee_tree(Splitter splitter, Py_ssize_t splits, Node *heap, float *lower, float *upper) {
    if (splitter.places->segments == 1) return;
    splitter.foresee = 1;
    splitter.margin = 2;
    grow(&splitter, splits, heap, lower, upper);
}

/* Gather in one pass over the rows what will be opened, nearly all of it. */
static void foresee(Splitter splitter, Py_ssize_t splits, Node *heap, float *lower, float *upper) {
    Places *p = splitter.places;
    if (p->segments == 1) return;
    splitter.foresee = 1;
    splitter.margin = 2;
    grow(&splitter, splits, heap, lower, upper);
    gather_wanted(p);
    for (Py_ssize_t k = 0; k < p->segments; k++) p->state[k] &= ~WANTED;
}

/* The cuts of one feature, at most so many; -1 without memory. */
static Py_ssize_t cut(const Py_buffer *x, const uint8_t *bad, Splitter splitter, Py_ssize_t splits, float *lower,
                      float *upper, Py_ssize_t many, Py_ssize_t few) {
    Places places;
    Py_ssize_t cuts = -1;
    Node *heap = malloc(((size_t)splits * 2 + 2) * sizeof(Node));
    splitter.places = &places;
    if (make_places(&places, x->buf, bad, x->len / (Py_ssize_t)sizeof(float), many, few) == 0 && heap != NULL) {
        foresee(splitter, splits, heap, lower, upper);
        cuts = grow(&splitter, splits, heap, lower, upper);
    }
    free_places(&places);
    free(heap);
    return cuts;
}

/* Whether there are floats and outcomes for every row, and room for the cuts of every column. */
static int cuts_fit(const Arrays *columns, const Py_buffer *bad, const Py_buffer *lower, const Py_buffer *upper,
                    const Py_buffer *splits, Py_ssize_t most) {
    int good = bad->itemsize == 1 && bad->len < INT32_MAX && lower->len == upper->len;
    good = good && splits->itemsize == sizeof(int64_t);
    good = good && splits->len == columns->count * (Py_ssize_t)sizeof(int64_t);
    good = good && lower->len == columns->count * most * (Py_ssize_t)sizeof(float);
    for (Py_ssize_t k = 0; good && k < columns->count; k++) {
        const Py_buffer *x = &columns->each[k];
        int64_t wanted = ((const int64_t *)splits->buf)[k];
        good = x->itemsize == sizeof(float) && x->len == bad->len * (Py_ssize_t)sizeof(float);
        good = good && wanted >= 0 && wanted <= most;
    }
    return good || refuse("one float and one outcome per row, and room for the cuts of every column are needed");
}

PyObject *kernel_tree_cuts(PyObject *module, PyObject *args) {
    PyObject *column_list;
    Py_buffer bad, lower, upper, splits;
    Py_ssize_t min_rows, many, few;
    int entropy_wanted, enough = 1;
    (void)module;
    if (!PyArg_ParseTuple(args, "Oy*w*w*w*npnn", &column_list, &bad, &lower, &upper, &splits, &min_rows,
                          &entropy_wanted, &many, &few))
        return NULL;
    Arrays columns = {0, NULL};
    int good = open_arrays(column_list, 0, &columns) == 0;
    Py_ssize_t most = columns.count ? lower.len / (columns.count * (Py_ssize_t)sizeof(float)) : 0;
    good = good && cuts_fit(&columns, &bad, &lower, &upper, &splits, most);
    if (good && min_rows < 1) good = refuse("at least one row is needed on both sides of a cut");
    if (good) {
        Splitter splitter = {NULL, entropy_wanted, min_rows, 0, 0};
        int64_t *wanted = splits.buf;
        Py_BEGIN_ALLOW_THREADS;
        for (Py_ssize_t k = 0; enough && k < columns.count; k++) {
            float *below = (float *)lower.buf + k * most, *above = (float *)upper.buf + k * most;
            wanted[k] = cut(&columns.each[k], bad.buf, splitter, (Py_ssize_t)wanted[k], below, above, many, few);
            enough = wanted[k] >= 0;
            for (Py_ssize_t i = enough ? (Py_ssize_t)wanted[k] : most; i < most; i++) below[i] = above[i] = INFINITY;
        }
        Py_END_ALLOW_THREADS;
        good = enough || no_memory();
    }
    close_arrays(&columns);
    Py_buffer *each[] = {&bad, &lower, &upper, &splits};
    for (size_t k = 0; k < sizeof each / sizeof *each; k++) PyBuffer_Release(each[k]);
    if (!good) return NULL;
    Py_RETURN_NONE;
}
