/* Rows in the order of their folds. */

#include <string.h>

#include "shared.h"

/* Count the rows of every fold; whether each fold is one of so many. */
static int count_folds(const void *fold, Py_ssize_t item, Py_ssize_t rows, Py_ssize_t folds, int64_t *end) {
    memset(end, 0, (size_t)folds * sizeof *end);
    for (Py_ssize_t i = 0; i < rows; i++) {
        Py_ssize_t k = item == 1 ? ((const uint8_t *)fold)[i] : ((const uint16_t *)fold)[i];
        if (k >= folds) return 0;
        end[k]++;
    }
    return 1;
}

/* Every fold's rows, in their order; `end` grows from where a fold starts to where it ends. */
static void put_in_order(const void *fold, Py_ssize_t item, Py_ssize_t rows, Py_ssize_t folds, int64_t *end,
                         int64_t *order) {
    int64_t start = 0;
    for (Py_ssize_t k = 0; k < folds; k++) {
        int64_t size = end[k];
        end[k] = start;
        start += size;
    }
    if (item == 1)
        for (Py_ssize_t i = 0; i < rows; i++) order[end[((const uint8_t *)fold)[i]]++] = i;
    else
        for (Py_ssize_t i = 0; i < rows; i++) order[end[((const uint16_t *)fold)[i]]++] = i;
}

PyObject *kernel_fold_order(PyObject *module, PyObject *args) {
    Py_buffer fold, order, end;
    (void)module;
    if (!PyArg_ParseTuple(args, "y*w*w*", &fold, &order, &end)) return NULL;
    Py_ssize_t item = fold.itemsize, rows = order.len / (Py_ssize_t)sizeof(int64_t);
    Py_ssize_t folds = end.len / (Py_ssize_t)sizeof(int64_t);
    int good = (item == 1 || item == 2) && fold.len == rows * item;
    good = good && order.itemsize == sizeof(int64_t) && end.itemsize == sizeof(int64_t);
    if (good) {
        Py_BEGIN_ALLOW_THREADS;
        good = count_folds(fold.buf, item, rows, folds, end.buf);
        if (good) put_in_order(fold.buf, item, rows, folds, end.buf, order.buf);
        Py_END_ALLOW_THREADS;
    }
    PyBuffer_Release(&fold);
    PyBuffer_Release(&order);
    PyBuffer_Release(&end);
    if (!good) refuse("a fold and a place in the order per row are needed, and an end per fold");
    if (!good) return NULL;
    Py_RETURN_NONE;
}
