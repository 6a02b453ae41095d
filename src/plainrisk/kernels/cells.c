/* Codes of several features as one number: packs of a few levels, and cells of a whole row. */

#include <string.h>

#include "shared.h"
#include "sums.h"

/* ---- out = places[0][codes[0]] + places[1][codes[1]] + ... */

PyObject *kernel_pack(PyObject *module, PyObject *args) {
    PyObject *code_list, *place_list;
    Py_buffer out;
    Arrays codes = {0, NULL}, places = {0, NULL};
    (void)module;
    if (!PyArg_ParseTuple(args, "OOw*", &code_list, &place_list, &out)) return NULL;
    Py_ssize_t rows = out.len / out.itemsize;
    int good = open_arrays(code_list, 0, &codes) == 0 && open_arrays(place_list, 0, &places) == 0;
    if (good && codes.count != places.count) {
        PyErr_SetString(PyExc_ValueError, "as many places as codes are needed");
        good = 0;
    }
    if (good && out.itemsize != 1 && out.itemsize != 2 && out.itemsize != 4)
        good = refuse("packs must be of one, two or four bytes");
    for (Py_ssize_t k = 0; good && k < codes.count; k++) {
        good = is_pack(&codes.each[k], rows) && places.each[k].itemsize == out.itemsize;
        if (!good && !PyErr_Occurred()) PyErr_SetString(PyExc_ValueError, "places and packs must be of one type");
    }
    if (good) {
        Py_BEGIN_ALLOW_THREADS;
        memset(out.buf, 0, (size_t)out.len);
        for (Py_ssize_t start = 0; start < rows; start += TILE) {
            Py_ssize_t n = rows - start < TILE ? rows - start : TILE;
            for (Py_ssize_t k = 0; k < codes.count; k++)
                BY_ITEM_SIZE(out.itemsize, {
                    Code *packed = (Code *)out.buf + start;
                    const Code *place = places.each[k].buf;
                    BY_ITEM_SIZE(codes.each[k].itemsize, {
                        const Code *code = (const Code *)codes.each[k].buf + start;
                        for (Py_ssize_t i = 0; i < n; i++) packed[i] += place[code[i]];
                    });
                });
        }
        Py_END_ALLOW_THREADS;
    }
    close_arrays(&codes);
    close_arrays(&places);
    PyBuffer_Release(&out);
    if (!good) return NULL;
    Py_RETURN_NONE;
}

/* ---- the cells of rows */

#define NO_CELL "a row has a code beyond the size of its pack"

FOR_EVERY_PROCESSOR
static void add_bytes(const uint8_t *code, Py_ssize_t n, uint32_t stride, uint32_t *cell) {
    for (Py_ssize_t i = 0; i < n; i++) cell[i] += code[i] * stride;
}

FOR_EVERY_PROCESSOR
static int all_below(const uint32_t *cell, Py_ssize_t n, uint32_t grid) {
    uint32_t beyond = 0;
    for (Py_ssize_t i = 0; i < n; i++) beyond |= cell[i] >= grid;
    return !beyond;
}

/* The cells of some rows; whether there are so many. */
static int find_cells(const Arrays *packs, const int64_t *strides, Py_ssize_t start, Py_ssize_t n, Py_ssize_t grid,
                      uint32_t *cell) {
    memset(cell, 0, (size_t)n * sizeof *cell);
    for (Py_ssize_t k = 0; k < packs->count; k++) {
        const Py_buffer *pack = &packs->each[k];
        uint32_t stride = (uint32_t)strides[k];
        if (pack->itemsize == 1) add_bytes((const uint8_t *)pack->buf + start, n, stride, cell);
        else
            BY_ITEM_SIZE(pack->itemsize, {
                const Code *code = (const Code *)pack->buf + start;
                for (Py_ssize_t i = 0; i < n; i++) cell[i] += (uint32_t)code[i] * stride;
            });
    }
    return all_below(cell, n, (uint32_t)grid);
}

/* ---- counts[cell, outcome] += 1 */

static int counts_fit(const Arrays *packs, const Py_buffer *strides, const Py_buffer *outcome,
                      const Py_buffer *counts) {
    int good = strides->len == packs->count * (Py_ssize_t)sizeof(int64_t) && outcome->itemsize == 1 &&
               counts->itemsize == sizeof(uint32_t) && counts->len % (Py_ssize_t)(2 * sizeof(uint32_t)) == 0 &&
               outcome->len < INT32_MAX && counts->len / 8 < INT32_MAX;
    if (!good) return refuse("packs, strides, outcomes and counts do not fit each other");
    for (Py_ssize_t k = 0; good && k < packs->count; k++) good = is_pack(&packs->each[k], outcome->len);
    return good;
}

PyObject *kernel_cell_counts(PyObject *module, PyObject *args) {
    PyObject *pack_list;
    Py_buffer strides, outcome, counts;
    Arrays packs = {0, NULL};
    (void)module;
    if (!PyArg_ParseTuple(args, "Oy*y*w*", &pack_list, &strides, &outcome, &counts)) return NULL;
    int good = open_arrays(pack_list, 0, &packs) == 0 && counts_fit(&packs, &strides, &outcome, &counts);
    if (good) {
        uint32_t(*count)[2] = counts.buf;
        const uint8_t *positive = outcome.buf;
        Py_BEGIN_ALLOW_THREADS;
        for (Py_ssize_t start = 0; good && start < outcome.len; start += TILE) {
            uint32_t cell[TILE];
            Py_ssize_t n = outcome.len - start < TILE ? outcome.len - start : TILE;
            good = find_cells(&packs, strides.buf, start, n, counts.len / 8, cell);
            for (Py_ssize_t i = 0; good && i < n; i++) count[cell[i]][positive[start + i] & 1]++;
        }
        Py_END_ALLOW_THREADS;
        if (!good) refuse(NO_CELL);
    }
    close_arrays(&packs);
    PyBuffer_Release(&strides);
    PyBuffer_Release(&outcome);
    PyBuffer_Release(&counts);
    if (!good) return NULL;
    Py_RETURN_NONE;
}

/* ---- total[cell] += weight, hits[cell] += positive */

typedef struct {
    Arrays packs;
    Py_buffer strides, positive, weight, total, hits;
} Cells;

static void close_cells(Cells *cells) {
    Py_buffer *each[] = {&cells->strides, &cells->positive, &cells->weight, &cells->total, &cells->hits};
    for (size_t k = 0; k < sizeof each / sizeof *each; k++)
        if (each[k]->obj != NULL) PyBuffer_Release(each[k]);
    close_arrays(&cells->packs);
}

static int cells_fit(const Cells *cells, Py_ssize_t rows) {
    int good = cells->strides.len == cells->packs.count * (Py_ssize_t)sizeof(int64_t) &&
               cells->total.len == cells->hits.len && cells->total.len / 8 < INT32_MAX &&
               (cells->positive.itemsize == 1 || cells->positive.itemsize == sizeof(double)) &&
               (cells->weight.obj == NULL || cells->weight.len == rows * (Py_ssize_t)sizeof(double));
    if (!good) PyErr_SetString(PyExc_ValueError, "packs, strides, weights and sums do not fit each other");
    for (Py_ssize_t k = 0; good && k < cells->packs.count; k++) good = is_pack(&cells->packs.each[k], rows);
    return good;
}

static int add_cells(const Cells *cells, Py_ssize_t rows) {
    uint32_t cell[TILE];
    double *total = cells->total.buf, *hits = cells->hits.buf;
    const double *weight = cells->weight.obj == NULL ? NULL : cells->weight.buf;
    Py_ssize_t grid = cells->total.len / (Py_ssize_t)sizeof(double);
    int bytes = cells->positive.itemsize == 1;
    for (Py_ssize_t start = 0; start < rows; start += TILE) {
        Py_ssize_t n = rows - start < TILE ? rows - start : TILE;
        if (!find_cells(&cells->packs, cells->strides.buf, start, n, grid, cell)) return 0;
        for (Py_ssize_t i = 0; i < n; i++) {
            total[cell[i]] += weight == NULL ? 1.0 : weight[start + i];
            hits[cell[i]] += bytes ? ((const uint8_t *)cells->positive.buf)[start + i]
                                   : ((const double *)cells->positive.buf)[start + i];
        }
    }
    return 1;
}

PyObject *kernel_cell_sums(PyObject *module, PyObject *args) {
    PyObject *packs, *strides, *positive, *weight, *total, *hits;
    Cells cells;
    memset(&cells, 0, sizeof cells);
    (void)module;
    if (!PyArg_ParseTuple(args, "OOOOOO", &packs, &strides, &positive, &weight, &total, &hits)) return NULL;
    const int out = PyBUF_C_CONTIGUOUS | PyBUF_WRITABLE;
    int good = open_arrays(packs, 0, &cells.packs) == 0 &&
               PyObject_GetBuffer(strides, &cells.strides, PyBUF_C_CONTIGUOUS) == 0 &&
               PyObject_GetBuffer(positive, &cells.positive, PyBUF_C_CONTIGUOUS) == 0 &&
               (weight == Py_None || PyObject_GetBuffer(weight, &cells.weight, PyBUF_C_CONTIGUOUS) == 0) &&
               PyObject_GetBuffer(total, &cells.total, out) == 0 && PyObject_GetBuffer(hits, &cells.hits, out) == 0;
    Py_ssize_t rows = good ? cells.positive.len / cells.positive.itemsize : 0;
    good = good && cells_fit(&cells, rows);
    if (good) {
        Py_BEGIN_ALLOW_THREADS;
        good = add_cells(&cells, rows);
        Py_END_ALLOW_THREADS;
        if (!good) refuse(NO_CELL);
    }
    close_cells(&cells);
    if (!good) return NULL;
    Py_RETURN_NONE;
}
