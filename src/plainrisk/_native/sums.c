/* Sums over rows by the levels of packs: what the solvers need of the rows.

   Every sum adds its rows in their order, as numpy's bincount does, so both give the same bits. Several packs are
   served in one loop, because additions to one of them need not wait for those to another. */

#include <string.h>

#include "shared.h"
#include "sums.h"

#define FOUR 4 /* packs in one loop */

int is_pack(const Py_buffer *pack, Py_ssize_t rows) {
    const int is_code = pack->itemsize == 1 || pack->itemsize == 2 || pack->itemsize == 4;
    if (!is_code || pack->ndim != 1 || pack->len != rows * pack->itemsize) {
        PyErr_SetString(PyExc_ValueError, "a pack must have one small integer per row");
        return 0;
    }
    return 1;
}

/* How many packs, at most FOUR, hold bytes: they are served in one loop. */
static Py_ssize_t bytes_together(const Py_buffer *packs, Py_ssize_t count) {
    Py_ssize_t k = 0;
    while (k < count && k < FOUR && packs[k].itemsize == 1) k++;
    return k;
}

/* ---- score += table[pack], for every pack */

static inline void look_up_bytes(double *score, const Py_buffer *packs, const Py_buffer *tables, const int count,
                                 Py_ssize_t start, Py_ssize_t rows) {
    const uint8_t *code[FOUR];
    const double *table[FOUR];
    for (int k = 0; k < count; k++) code[k] = (const uint8_t *)packs[k].buf + start, table[k] = tables[k].buf;
    for (Py_ssize_t i = 0; i < rows; i++) {
        double sum = score[i];
        for (int k = 0; k < count; k++) sum += table[k][code[k][i]];
        score[i] = sum;
    }
}

void look_up_tile(double *score, const Py_buffer *packs, const Py_buffer *tables, Py_ssize_t count, Py_ssize_t start,
                  Py_ssize_t rows) {
    for (Py_ssize_t k = 0, some; k < count; k += some) {
        const double *table = tables[k].buf;
        some = bytes_together(packs + k, count - k);
        if (some == 4) look_up_bytes(score, packs + k, tables + k, 4, start, rows);
        if (some == 3) look_up_bytes(score, packs + k, tables + k, 3, start, rows);
        if (some == 2) look_up_bytes(score, packs + k, tables + k, 2, start, rows);
        if (some > 1) continue;
        some = 1;
        BY_ITEM_SIZE(packs[k].itemsize, {
            const Code *pack = (const Code *)packs[k].buf + start;
            for (Py_ssize_t i = 0; i < rows; i++) score[i] += table[pack[i]];
        });
    }
}

PyObject *kernel_look_up(PyObject *module, PyObject *args) {
    Py_buffer score;
    PyObject *pack_list, *table_list;
    (void)module;
    if (!PyArg_ParseTuple(args, "w*OO", &score, &pack_list, &table_list)) return NULL;
    Arrays packs = {0, NULL}, tables = {0, NULL};
    Py_ssize_t rows = score.len / (Py_ssize_t)sizeof(double);
    int good = open_arrays(pack_list, 0, &packs) == 0 && open_arrays(table_list, 0, &tables) == 0;
    if (good && packs.count != tables.count) {
        PyErr_SetString(PyExc_ValueError, "as many tables as packs are needed");
        good = 0;
    }
    for (Py_ssize_t k = 0; good && k < packs.count; k++) good = is_pack(&packs.each[k], rows);
    if (good) {
        Py_BEGIN_ALLOW_THREADS;
        for (Py_ssize_t start = 0; start < rows; start += TILE) {
            Py_ssize_t n = rows - start < TILE ? rows - start : TILE;
            look_up_tile((double *)score.buf + start, packs.each, tables.each, packs.count, start, n);
        }
        Py_END_ALLOW_THREADS;
    }
    close_arrays(&packs);
    close_arrays(&tables);
    PyBuffer_Release(&score);
    if (!good) return NULL;
    Py_RETURN_NONE;
}

/* ---- sums[pack] += values, for every pack */

static inline void sum_bytes(const double *values, const Py_buffer *packs, const Py_buffer *sums, const int count,
                             Py_ssize_t start, Py_ssize_t rows) {
    const uint8_t *code[FOUR];
    double *sum[FOUR];
    for (int k = 0; k < count; k++) code[k] = (const uint8_t *)packs[k].buf + start, sum[k] = sums[k].buf;
    for (Py_ssize_t i = 0; i < rows; i++) {
        double value = values == NULL ? 1.0 : values[i];
        for (int k = 0; k < count; k++) sum[k][code[k][i]] += value;
    }
}

void level_sums_tile(const double *values, const Py_buffer *packs, const Py_buffer *sums, Py_ssize_t count,
                     Py_ssize_t start, Py_ssize_t rows) {
    for (Py_ssize_t k = 0, some; k < count; k += some) {
        double *sum = sums[k].buf;
        some = bytes_together(packs + k, count - k);
        if (some == 4) sum_bytes(values, packs + k, sums + k, 4, start, rows);
        if (some == 3) sum_bytes(values, packs + k, sums + k, 3, start, rows);
        if (some == 2) sum_bytes(values, packs + k, sums + k, 2, start, rows);
        if (some > 1) continue;
        some = 1;
        BY_ITEM_SIZE(packs[k].itemsize, {
            const Code *pack = (const Code *)packs[k].buf + start;
            for (Py_ssize_t i = 0; i < rows; i++) sum[pack[i]] += values == NULL ? 1.0 : values[i];
        });
    }
}

PyObject *kernel_level_sums(PyObject *module, PyObject *args) {
    PyObject *value_array, *pack_list, *sum_list;
    Py_buffer values = {0};
    (void)module;
    if (!PyArg_ParseTuple(args, "OOO", &value_array, &pack_list, &sum_list)) return NULL;
    Arrays packs = {0, NULL}, sums = {0, NULL};
    int weighted = value_array != Py_None;
    int good = (!weighted || PyObject_GetBuffer(value_array, &values, PyBUF_C_CONTIGUOUS) == 0) &&
               open_arrays(pack_list, 0, &packs) == 0 && open_arrays(sum_list, 1, &sums) == 0;
    if (good && packs.count != sums.count) {
        PyErr_SetString(PyExc_ValueError, "as many sums as packs are needed");
        good = 0;
    }
    Py_ssize_t rows = weighted        ? values.len / (Py_ssize_t)sizeof(double)
                      : packs.count ? packs.each[0].len / packs.each[0].itemsize
                                      : 0;
    for (Py_ssize_t k = 0; good && k < packs.count; k++) good = is_pack(&packs.each[k], rows);
    if (good) {
        Py_BEGIN_ALLOW_THREADS;
        for (Py_ssize_t start = 0; start < rows; start += TILE) {
            Py_ssize_t n = rows - start < TILE ? rows - start : TILE;
            const double *tile = weighted ? (const double *)values.buf + start : NULL;
            level_sums_tile(tile, packs.each, sums.each, packs.count, start, n);
        }
        Py_END_ALLOW_THREADS;
    }
    close_arrays(&packs);
    close_arrays(&sums);
    if (values.obj != NULL) PyBuffer_Release(&values);
    if (!good) return NULL;
    Py_RETURN_NONE;
}
