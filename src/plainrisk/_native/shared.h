/* What the files of the compiled kernels share. Only Python's stable interface is used, and no header of numpy:
   arrays come and go as plain buffers, so one build serves every Python from 3.11 on. */

#ifndef PLAINRISK_SHARED_H
#define PLAINRISK_SHARED_H

#define PY_SSIZE_T_CLEAN
#define Py_LIMITED_API 0x030B0000
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

/* A column of numbers, stored in one piece or not. */
typedef struct {
    char *data;
    Py_ssize_t stride, size; /* bytes from a row to the next, and of a number */
    char kind;               /* f, i or u: floats, integers, integers without a sign */
} Column;

typedef struct {
    Py_ssize_t count;
    Column *each;
    double *room; /* for the tiles of those that are far, FAR_ROWS each; NULL if none is */
} Columns;

#define FAR_ROWS 128   /* in a tile, where columns are copied from afar */
#define MOST_ROWS 2048 /* in a tile otherwise: the longer a column is read, the better it is foreseen */

int read_columns(const Arrays *arrays, Py_ssize_t rows, Columns *out);
void free_columns(Columns *columns);
int in_one_piece(const Column *column);
int is_far(const Column *column);
void lay_out(const Columns *columns, Py_ssize_t start, Py_ssize_t rows);
const double *tile_of(const Columns *columns, Py_ssize_t k, Py_ssize_t start, Py_ssize_t rows, double *copy);

int refuse(const char *why); /* sets an exception and returns 0 */
int no_memory(void);         /* the same */

PyObject *kernel_add_scores(PyObject *module, PyObject *args);
PyObject *kernel_block_step(PyObject *module, PyObject *args);
PyObject *kernel_block_sums(PyObject *module, PyObject *args);
PyObject *kernel_cell_counts(PyObject *module, PyObject *args);
PyObject *kernel_cell_sums(PyObject *module, PyObject *args);
PyObject *kernel_code_numbers(PyObject *module, PyObject *args);
PyObject *kernel_code_scores(PyObject *module, PyObject *args);
PyObject *kernel_code_singles(PyObject *module, PyObject *args);
PyObject *kernel_count_codes(PyObject *module, PyObject *args);
PyObject *kernel_curvatures(PyObject *module, PyObject *args);
PyObject *kernel_dense_newton(PyObject *module, PyObject *args);
PyObject *kernel_fold_counts(PyObject *module, PyObject *args);
PyObject *kernel_fold_cuts(PyObject *module, PyObject *args);
PyObject *kernel_fold_order(PyObject *module, PyObject *args);
PyObject *kernel_level_map(PyObject *module, PyObject *args);
PyObject *kernel_level_sums(PyObject *module, PyObject *args);
PyObject *kernel_list_cells(PyObject *module, PyObject *args);
PyObject *kernel_logistic(PyObject *module, PyObject *args);
PyObject *kernel_look_up(PyObject *module, PyObject *args);
PyObject *kernel_look_up_risks(PyObject *module, PyObject *args);
PyObject *kernel_mark_cells(PyObject *module, PyObject *args);
PyObject *kernel_minimise_in_box(PyObject *module, PyObject *args);
PyObject *kernel_solve_factored(PyObject *module, PyObject *args);
PyObject *kernel_newton(PyObject *module, PyObject *args);
PyObject *kernel_number_cells(PyObject *module, PyObject *args);
PyObject *kernel_pack(PyObject *module, PyObject *args);
PyObject *kernel_pack_seen(PyObject *module, PyObject *args);
PyObject *kernel_pair_sums(PyObject *module, PyObject *args);
PyObject *kernel_read_levels(PyObject *module, PyObject *args);
PyObject *kernel_shuffle(PyObject *module, PyObject *args);
PyObject *kernel_sample(PyObject *module, PyObject *args);
PyObject *kernel_tree_cuts(PyObject *module, PyObject *args);

#endif
