/* What the files of the compiled kernels share. Only Python's stable interface is used, and no header of numpy:
   arrays come and go as plain buffers, so one build serves every Python from 3.11 on. */

#ifndef PLAINRISK_SHARED_H
#define PLAINRISK_SHARED_H

#define PY_SSIZE_T_CLEAN
#define Py_LIMITED_API 0x030B0000
#include <Python.h>

#include <stdint.h>

/* Loops over rows are compiled for several generations of processors, and the best is picked when the module loads.
   Results do not depend on it: no operation is reordered or contracted (see -ffp-contract in pyproject.toml). */
#if defined(__GNUC__) && !defined(__clang__) && defined(__x86_64__) && defined(__gnu_linux__)
#define FOR_EVERY_PROCESSOR __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define FOR_EVERY_PROCESSOR
#endif

#define MOST_ARRAYS 4096 /* in one sequence of arrays */
#define TILE 1024        /* rows worked on at a time: what is read and written stays in the first-level cache */

/* The buffers of a sequence of arrays. */
typedef struct {
    Py_ssize_t count;
    Py_buffer *each;
} Arrays;

int open_arrays(PyObject *sequence, int writable, Arrays *out);
void close_arrays(Arrays *arrays);

PyObject *kernel_cell_sums(PyObject *module, PyObject *args);
PyObject *kernel_curvature(PyObject *module, PyObject *args);
PyObject *kernel_level_sums(PyObject *module, PyObject *args);
PyObject *kernel_logistic(PyObject *module, PyObject *args);
PyObject *kernel_look_up(PyObject *module, PyObject *args);
PyObject *kernel_pack(PyObject *module, PyObject *args);
PyObject *kernel_pair_sums(PyObject *module, PyObject *args);
PyObject *kernel_text_codes(PyObject *module, PyObject *args);

#endif
