/* The best-first classification tree on one feature, from running sums: which cut is best, which node is split next.

   Every quantity that decides is computed in the precision and the order of scikit-learn's tree; tree.py, the same in
   numpy, says why each matters. */

#include <float.h>
#include <math.h>
#include <string.h>

#include "shared.h"

#define PURE DBL_EPSILON /* a node of at most this impurity is a leaf */
#define BLOCK 512        /* candidates evaluated at once, so that the loop over them can be vectorized */

typedef struct {
    const int64_t *rows;     /* running sums below each candidate cut, from 0 to all: rows, */
    const double *good, *bad; /* and the weight of each class */
    Py_ssize_t count;
    int entropy; /* the impurity, else gini */
    int64_t min_rows;
} Sums;

/* The candidates from `start` to `end`, and the best cut between them; cut 0 marks a leaf. */
typedef struct {
    Py_ssize_t start, end, cut;
    double gain, left_impurity, right_impurity;
} Node;

static double share(double p) {
    /* 0 log 0 is 0. The logarithm is divided by ln 2, not log2: their last bits differ. */
    return p * (log(p > DBL_MIN ? p : DBL_MIN) / 0.6931471805599453);
}

static double impurity(const Sums *s, Py_ssize_t from, Py_ssize_t to) {
    double good = s->good[to] - s->good[from], bad = s->bad[to] - s->bad[from], weight = good + bad;
    if (s->entropy) return -share(good / weight) - share(bad / weight);
    return 1.0 - (good * good + bad * bad) / (weight * weight);
}

static double weight_of(const Sums *s, Py_ssize_t from, Py_ssize_t to) {
    return (s->good[to] - s->good[from]) + (s->bad[to] - s->bad[from]);
}

/* The decrease of impurity up to constants of the node, for the cuts from `first` on. */
FOR_EVERY_PROCESSOR
static void gini_gains(const Sums *s, const Node *node, Py_ssize_t first, Py_ssize_t n, double *restrict gain) {
    const double good0 = s->good[node->start], bad0 = s->bad[node->start];
    const double good1 = s->good[node->end], bad1 = s->bad[node->end];
    const double *good = s->good + first, *bad = s->bad + first;
    for (Py_ssize_t i = 0; i < n; i++) {
        double gl = good[i] - good0, bl = bad[i] - bad0, gr = good1 - good[i], br = bad1 - bad[i];
        double wl = gl + bl, wr = gr + br;
        double left = 1.0 - (gl * gl + bl * bl) / (wl * wl), right = 1.0 - (gr * gr + br * br) / (wr * wr);
        gain[i] = -wr * right - wl * left;
    }
}

static void gains(const Sums *s, const Node *node, Py_ssize_t first, Py_ssize_t n, double *gain) {
    if (!s->entropy) {
        gini_gains(s, node, first, n, gain);
        return;
    }
    for (Py_ssize_t i = 0; i < n; i++) {
        const Py_ssize_t cut = first + i;
        double left = impurity(s, node->start, cut), right = impurity(s, cut, node->end);
        gain[i] = -weight_of(s, cut, node->end) * right - weight_of(s, node->start, cut) * left;
    }
}

/* The first candidate from `low` up to `high` below which there are at least `rows` rows. */
static Py_ssize_t first_with(const Sums *s, Py_ssize_t low, Py_ssize_t high, int64_t rows) {
    while (low < high) {
        Py_ssize_t middle = low + (high - low) / 2;
        if (s->rows[middle] < rows) low = middle + 1;
        else high = middle;
    }
    return low;
}

/* The leftmost best cut of a node; 0 if there is none. */
static Py_ssize_t best_cut(const Sums *s, const Node *node) {
    double gain[BLOCK], best = -INFINITY;
    Py_ssize_t found = 0;
    const Py_ssize_t from = first_with(s, node->start, node->end, s->rows[node->start] + s->min_rows);
    const Py_ssize_t to = first_with(s, from, node->end, s->rows[node->end] - s->min_rows + 1);
    for (Py_ssize_t first = from; first < to; first += BLOCK) {
        const Py_ssize_t n = to - first < BLOCK ? to - first : BLOCK;
        gains(s, node, first, n, gain);
        for (Py_ssize_t i = 0; i < n; i++) /* not a number loses every comparison */
            if (gain[i] > best) best = gain[i], found = first + i;
    }
    return found;
}

static Node make_node(const Sums *s, Py_ssize_t start, Py_ssize_t end, double own) {
    Node node = {start, end, 0, 0.0, 0.0, 0.0};
    const Py_ssize_t cut = own <= PURE ? 0 : best_cut(s, &node);
    if (cut == 0) return node;
    const double weight = weight_of(s, start, end), total = weight_of(s, 0, s->count - 1);
    const double wl = weight_of(s, start, cut), wr = weight_of(s, cut, end);
    const double left = impurity(s, start, cut), right = impurity(s, cut, end);
    const double gain = (weight / total) * (own - (wr / weight * right) - (wl / weight * left));
    if (gain + PURE < 0.0) return node;
    return (Node){start, end, cut, gain, left, right};
}

/* A binary heap with the largest gain on top. Which of two equal gains comes first depends on every move; tree.py says
   how they go. */
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

/* Split the best node again and again; write the cuts in the order they are made and return their number. */
static Py_ssize_t grow(const Sums *s, Py_ssize_t splits, Node *heap, int64_t *cuts) {
    Py_ssize_t made = 0, size = 1;
    heap[0] = make_node(s, 0, s->count - 1, impurity(s, 0, s->count - 1));
    while (size > 0) {
        const Node node = pop(heap, &size);
        if (node.cut == 0) continue;
        cuts[made++] = node.cut;
        if (made == splits) break;
        const Node left = make_node(s, node.start, node.cut, node.left_impurity);
        const Node right = make_node(s, node.cut, node.end, node.right_impurity);
        rise(heap, size++, left);
        rise(heap, size++, right);
    }
    return made;
}

/* tree_cuts(rows, good, bad, cuts, min_rows, entropy): fills in positions of cuts and returns how many there are */
PyObject *kernel_tree_cuts(PyObject *module, PyObject *args) {
    Py_buffer rows, good, bad, cuts;
    Py_ssize_t min_rows, made = 0;
    int entropy;
    Node *heap = NULL;
    (void)module;
    if (!PyArg_ParseTuple(args, "y*y*y*w*np", &rows, &good, &bad, &cuts, &min_rows, &entropy)) return NULL;
    const Py_ssize_t count = rows.len / (Py_ssize_t)sizeof(int64_t), splits = cuts.len / (Py_ssize_t)sizeof(int64_t);
    int fits = count >= 2 && splits >= 1 && min_rows >= 1 && good.len == rows.len && bad.len == rows.len;
    if (!fits) refuse("running sums of one length, room for a cut and at least one row are needed");
    if (fits) heap = PyMem_Malloc(((size_t)splits * 2 + 2) * sizeof(Node));
    if (fits && heap == NULL) fits = no_memory();
    if (fits) {
        const Sums sums = {rows.buf, good.buf, bad.buf, count, entropy, min_rows};
        Py_BEGIN_ALLOW_THREADS;
        made = grow(&sums, splits, heap, cuts.buf);
        Py_END_ALLOW_THREADS;
    }
    PyMem_Free(heap);
    Py_buffer *each[] = {&rows, &good, &bad, &cuts};
    for (size_t k = 0; k < sizeof each / sizeof *each; k++) PyBuffer_Release(each[k]);
    return fits ? PyLong_FromSsize_t(made) : NULL;
}
