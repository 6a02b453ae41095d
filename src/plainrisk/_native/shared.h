/* What the files of the compiled kernels share. Only Python's stable interface is used, and no header of numpy:
   arrays come and go as plain buffers, so one build serves every Python from 3.11 on. The build defines
   Py_LIMITED_API where Python has that interface (see setup.py). */

#ifndef PLAINRISK_SHARED_H
#define PLAINRISK_SHARED_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <float.h>
#include <stdint.h>

#if FLT_EVAL_METHOD != 0
#error "doubles must be computed as doubles; without this module numpy does the work"
#endif

/* Loops over rows are compiled for several generations of processors, and the best is picked when the module loads.
   Results do not depend on it: no operation is reordered or contracted (see setup.py). */
#if defined(__GNUC__) && !defined(__clang__) && defined(__x86_64__) && defined(__gnu_linux__)
#define FOR_EVERY_PROCESSOR __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define FOR_EVERY_PROCESSOR
#endif

#define MOST_ARRAYS (1 << 20) /* in one sequence of arrays */
#define TILE 1024        /* rows worked on at a time: what is read and written stays in the first-level cache */

/* The buffers of a sequence of arrays. */
typedef struct {
    Py_ssize_t count;
    Py_buffer *each;
} Arrays;

int open_arrays(PyObject *sequence, int writable, Arrays *out);  /* each in one piece */
int open_columns(PyObject *sequence, int writable, Arrays *out); /* each with any stride */
void close_arrays(Arrays *arrays);

int refuse(const char *why); /* sets an exception and returns 0 */
int no_memory(void);         /* the same */

PyObject *kernel_add_scores(PyObject *module, PyObject *args);
PyObject *kernel_code_numbers(PyObject *module, PyObject *args);
PyObject *kernel_level_sums(PyObject *module, PyObject *args);
PyObject *kernel_logistic(PyObject *module, PyObject *args);
PyObject *kernel_look_up(PyObject *module, PyObject *args);
PyObject *kernel_pair_sums(PyObject *module, PyObject *args);
PyObject *kernel_tree_cuts(PyObject *module, PyObject *args);

#endif
