/* Levels of rows from the floats of a column, and how many rows have each level, by outcome. */

#include <stdlib.h>
#include <string.h>

#include "reading.h"
#include "shared.h"

#define FEW_EDGES 32 /* up to here, comparing with each beats a binary search */

FOR_EVERY_PROCESSOR
static void compare_with_each(const float *x, Py_ssize_t n, const float *edge, Py_ssize_t edges, int32_t *code) {
    Py_ssize_t k = 0;
    for (; k + 4 <= edges; k += 4) {
        float a = edge[k], b = edge[k + 1], c = edge[k + 2], d = edge[k + 3];
        for (Py_ssize_t i = 0; i < n; i++) code[i] += (x[i] > a) + (x[i] > b) + (x[i] > c) + (x[i] > d);
    }
    for (; k < edges; k++)
        for (Py_ssize_t i = 0; i < n; i++) code[i] += x[i] > edge[k];
}

static void search(const float *x, Py_ssize_t n, const float *edge, Py_ssize_t edges, int32_t *code) {
    for (Py_ssize_t i = 0; i < n; i++) {
        Py_ssize_t low = 0, size = edges;
        while (size > 0) {
            Py_ssize_t half = size / 2;
            int above = x[i] > edge[low + half]; /* false for what is no number */
            low = above ? low + half + 1 : low;
            size = above ? size - half - 1 : half;
        }
        code[i] += (int32_t)low;
    }
}

/* The level of rows outside the order, 0 for the others; none is above the last. */
FOR_EVERY_PROCESSOR
static void code_outside(const float *x, Py_ssize_t n, int32_t ordered, int32_t last, int32_t *code) {
    for (Py_ssize_t i = 0; i < n; i++) {
        uint32_t bits;
        memcpy(&bits, &x[i], sizeof bits);
        int32_t level = ordered - 1 + (int32_t)(bits & PAYLOAD);
        level = level < last ? level : last;
        code[i] = x[i] != x[i] ? level : 0;
    }
}

static void code_tile(const float *x, Py_ssize_t n, const float *edge, Py_ssize_t edges, int32_t last, int32_t *code) {
    code_outside(x, n, (int32_t)edges + 1, last, code);
    if (edges <= FEW_EDGES) compare_with_each(x, n, edge, edges, code);
    else search(x, n, edge, edges, code);
}

/* Four tables in turn: an addition need not wait for the one before. */
static void count_bytes(const uint8_t *code, const uint8_t *outcome, Py_ssize_t n, uint32_t (*table)[512]) {
    Py_ssize_t i = 0;
    for (; i + 4 <= n; i += 4)
        for (int j = 0; j < 4; j++) table[j][2 * code[i + j] + (outcome[i + j] & 1)]++;
    for (; i < n; i++) table[0][2 * code[i] + (outcome[i] & 1)]++;
}

/* Add the rows of a tile to the counts; codes beyond the last level are counted with it. */
static void count_tile(const void *codes, Py_ssize_t item, const uint8_t *outcome, Py_ssize_t n, uint32_t (*table)[512],
                       int64_t *counts, Py_ssize_t levels) {
    if (item == 1) {
        count_bytes(codes, outcome, n, table);
        return;
    }
    for (Py_ssize_t i = 0; i < n; i++) {
        Py_ssize_t level = ((const uint16_t *)codes)[i];
        counts[2 * (level < levels ? level : levels - 1) + (outcome[i] & 1)]++;
    }
}

static void add_tables(const uint32_t (*table)[512], int64_t *counts, Py_ssize_t levels) {
    for (Py_ssize_t k = 0; k < 512; k++) {
        Py_ssize_t at = k / 2 < levels ? k : 2 * (levels - 1) + k % 2;
        for (int j = 0; j < 4; j++) counts[at] += table[j][k];
    }
}

/* Whether there is a code and an outcome per row, and a count per level and outcome, at least one level. */
static int fits(const Py_buffer *codes, const Py_buffer *outcome, const Py_buffer *counts, Py_ssize_t rows) {
    int good = (codes->itemsize == 1 || codes->itemsize == 2) && codes->len == rows * codes->itemsize;
    good = good && outcome->len == rows && rows < INT32_MAX && counts->itemsize == sizeof(int64_t);
    good = good && counts->len > 0 && counts->len % (Py_ssize_t)(2 * sizeof(int64_t)) == 0;
    if (!good)
        PyErr_SetString(PyExc_ValueError, "a small code and an outcome per row, and two counts per level are needed");
    return good;
}

static void code_column(const Py_buffer *x, const Py_buffer *edge, const uint8_t *outcome, Py_buffer *codes,
                        Py_buffer *counts) {
    uint32_t table[4][512] = {{0}};
    Py_ssize_t rows = x->len / (Py_ssize_t)sizeof(float), edges = edge->len / (Py_ssize_t)sizeof(float);
    Py_ssize_t levels = counts->len / (Py_ssize_t)(2 * sizeof(int64_t));
    for (Py_ssize_t start = 0; start < rows; start += TILE) {
        Py_ssize_t n = rows - start < TILE ? rows - start : TILE;
        int32_t code[TILE];
        char *out = (char *)codes->buf + start * codes->itemsize;
        code_tile((const float *)x->buf + start, n, edge->buf, edges, (int32_t)levels - 1, code);
        if (codes->itemsize == 1)
            for (Py_ssize_t i = 0; i < n; i++) ((uint8_t *)out)[i] = (uint8_t)code[i];
        else
            for (Py_ssize_t i = 0; i < n; i++) ((uint16_t *)out)[i] = (uint16_t)code[i];
        count_tile(out, codes->itemsize, outcome + start, n, table, counts->buf, levels);
    }
    add_tables((const uint32_t(*)[512])table, counts->buf, levels);
}

static int column_fits(const Py_buffer *x, const Py_buffer *edge, const Py_buffer *outcome, const Py_buffer *codes,
                       const Py_buffer *counts) {
    Py_ssize_t edges = edge->len / (Py_ssize_t)sizeof(float);
    Py_ssize_t levels = counts->len / (Py_ssize_t)(2 * sizeof(int64_t));
    if (x->itemsize != sizeof(float) || edge->itemsize != sizeof(float)) return refuse("floats are needed");
    if (!fits(codes, outcome, counts, x->len / (Py_ssize_t)sizeof(float))) return 0;
    if (levels <= edges || levels > (codes->itemsize == 1 ? 256 : 65536))
        return refuse("more levels than edges are needed, and codes that can hold them");
    return 1;
}

PyObject *kernel_code_singles(PyObject *module, PyObject *args) {
    PyObject *list[4];
    Py_buffer outcome;
    (void)module;
    if (!PyArg_ParseTuple(args, "OOy*OO", &list[0], &list[1], &outcome, &list[2], &list[3])) return NULL;
    Arrays arrays[4] = {{0, NULL}, {0, NULL}, {0, NULL}, {0, NULL}};
    Arrays *x = &arrays[0], *edges = &arrays[1], *codes = &arrays[2], *counts = &arrays[3];
    int good = 1;
    for (int k = 0; good && k < 4; k++) good = open_arrays(list[k], k > 1, &arrays[k]) == 0;
    if (good && (edges->count != x->count || codes->count != x->count || counts->count != x->count))
        good = refuse("edges, codes and counts are needed for every column");
    for (Py_ssize_t k = 0; good && k < x->count; k++)
        good = column_fits(&x->each[k], &edges->each[k], &outcome, &codes->each[k], &counts->each[k]);
    if (good) {
        Py_BEGIN_ALLOW_THREADS;
        for (Py_ssize_t k = 0; k < x->count; k++)
            code_column(&x->each[k], &edges->each[k], outcome.buf, &codes->each[k], &counts->each[k]);
        Py_END_ALLOW_THREADS;
    }
    for (int k = 0; k < 4; k++) close_arrays(&arrays[k]);
    PyBuffer_Release(&outcome);
    if (!good) return NULL;
    Py_RETURN_NONE;
}

PyObject *kernel_count_codes(PyObject *module, PyObject *args) {
    Py_buffer outcome, codes, counts;
    (void)module;
    if (!PyArg_ParseTuple(args, "y*y*w*", &codes, &outcome, &counts)) return NULL;
    Py_ssize_t rows = codes.len / (codes.itemsize ? codes.itemsize : 1);
    Py_ssize_t levels = counts.len / (Py_ssize_t)(2 * sizeof(int64_t));
    int good = fits(&codes, &outcome, &counts, rows);
    if (good) {
        Py_BEGIN_ALLOW_THREADS;
        uint32_t table[4][512] = {{0}};
        count_tile(codes.buf, codes.itemsize, outcome.buf, rows, table, counts.buf, levels);
        add_tables((const uint32_t(*)[512])table, counts.buf, levels);
        Py_END_ALLOW_THREADS;
    }
    PyBuffer_Release(&outcome);
    PyBuffer_Release(&codes);
    PyBuffer_Release(&counts);
    if (!good) return NULL;
    Py_RETURN_NONE;
}
