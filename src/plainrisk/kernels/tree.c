/* The best-first tree on one feature: which node is split next. Every quantity that decides is computed in the
   precision and the order of encode/tree.py, which says why. */

#include <float.h>
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

PyObject *kernel_tree_cuts(PyObject *module, PyObject *args) {
    Py_buffer x, bad, lower, upper;
    Py_ssize_t min_rows, many, few, cuts = -1;
    int entropy_wanted;
    (void)module;
    if (!PyArg_ParseTuple(args, "y*y*w*w*npnn", &x, &bad, &lower, &upper, &min_rows, &entropy_wanted, &many, &few))
        return NULL;
    Py_ssize_t rows = x.len / (Py_ssize_t)sizeof(float), splits = lower.len / (Py_ssize_t)sizeof(float);
    int good = x.itemsize == sizeof(float) && bad.itemsize == 1 && bad.len == rows && lower.len == upper.len;
    good = good && rows < INT32_MAX && min_rows > 0;
    if (good) {
        Places places;
        Splitter splitter = {&places, entropy_wanted, min_rows, 0, 0};
        Py_BEGIN_ALLOW_THREADS;
        Node *heap = malloc(((size_t)splits * 2 + 2) * sizeof(Node));
        if (make_places(&places, x.buf, bad.buf, rows, many, few) == 0 && heap != NULL) {
            foresee(splitter, splits, heap, lower.buf, upper.buf);
            cuts = grow(&splitter, splits, heap, lower.buf, upper.buf);
        }
        free_places(&places);
        free(heap);
        Py_END_ALLOW_THREADS;
    }
    PyBuffer_Release(&x);
    PyBuffer_Release(&bad);
    PyBuffer_Release(&lower);
    PyBuffer_Release(&upper);
    if (!good) {
        PyErr_SetString(PyExc_ValueError,
                        "one float and one outcome per row, and as many lower as upper values are needed");
        return NULL;
    }
    return cuts < 0 ? PyErr_NoMemory() : PyLong_FromSsize_t(cuts);
}
