/* Rows taken at random, each with a chance of its own. */

#include "levels.h"
#include "sums.h"

#include <string.h>

/* A number in [0, 1) that looks random but is always the same for a row. */
static double lot(uint64_t row) {
    uint64_t z = (row + 1) * 0x9E3779B97F4A7C15u;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return (double)((z ^ (z >> 31)) >> 11) * 0x1p-53;
}

/* chance = max(chance, floor[pack]) */
static void lift(double *chance, const Py_buffer *pack, const double *floor, Py_ssize_t start, Py_ssize_t rows) {
    BY_ITEM_SIZE(pack->itemsize, {
        const Code *code = (const Code *)pack->buf + start;
        for (Py_ssize_t i = 0; i < rows; i++) {
            double least = floor[code[i]];
            chance[i] = least > chance[i] ? least : chance[i];
        }
    });
}

PyObject *kernel_sample(PyObject *module, PyObject *args) {
    PyObject *pack_list, *floor_list;
    Py_buffer rows, weights;
    double share;
    Py_ssize_t first, taken = 0;
    Arrays packs = {0, NULL}, floors = {0, NULL};
    (void)module;
    if (!PyArg_ParseTuple(args, "OOdnw*w*", &pack_list, &floor_list, &share, &first, &rows, &weights)) return NULL;
    const Py_ssize_t n = rows.len / (Py_ssize_t)sizeof(int64_t);
    int good = open_arrays(pack_list, 0, &packs) == 0 && open_arrays(floor_list, 0, &floors) == 0;
    if (good && (packs.count != floors.count || weights.len != n * (Py_ssize_t)sizeof(double)))
        good = refuse("as many floors as packs, and room for every row are needed");
    for (Py_ssize_t k = 0; good && k < packs.count; k++) good = is_pack(&packs.each[k], n);
    if (good) {
        Py_BEGIN_ALLOW_THREADS;
        double chance[TILE];
        for (Py_ssize_t start = 0; start < n; start += TILE) {
            Py_ssize_t count = n - start < TILE ? n - start : TILE;
            for (Py_ssize_t i = 0; i < count; i++) chance[i] = share;
            for (Py_ssize_t k = 0; k < packs.count; k++)
                lift(chance, &packs.each[k], floors.each[k].buf, start, count);
            for (Py_ssize_t i = 0; i < count; i++) {
                ((int64_t *)rows.buf)[taken] = start + i;
                ((double *)weights.buf)[taken] = 1.0 / chance[i];
                taken += lot((uint64_t)(first + start + i)) < chance[i];
            }
        }
        Py_END_ALLOW_THREADS;
    }
    close_arrays(&packs);
    close_arrays(&floors);
    PyBuffer_Release(&rows);
    PyBuffer_Release(&weights);
    return good ? PyLong_FromSsize_t(taken) : NULL;
}
