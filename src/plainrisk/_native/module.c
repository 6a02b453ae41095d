/* The module itself, and how it reads its arguments. */

#include "shared.h"

void close_arrays(Arrays *arrays) {
    for (Py_ssize_t k = 0; k < arrays->count; k++) PyBuffer_Release(&arrays->each[k]);
    PyMem_Free(arrays->each);
    arrays->each = NULL;
    arrays->count = 0;
}

/* Open the buffers of a sequence of arrays; on failure an exception is set and nothing stays open. */
static int open_buffers(PyObject *sequence, int flags, Arrays *out) {
    out->count = 0;
    out->each = NULL;
    Py_ssize_t wanted = PySequence_Size(sequence);
    if (wanted < 0) return -1;
    if (wanted > MOST_ARRAYS) {
        PyErr_SetString(PyExc_ValueError, "too many arrays");
        return -1;
    }
    out->each = PyMem_Calloc(wanted ? (size_t)wanted : 1, sizeof(Py_buffer));
    if (out->each == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    for (Py_ssize_t k = 0; k < wanted; k++) {
        PyObject *item = PySequence_GetItem(sequence, k);
        int failed = item == NULL || PyObject_GetBuffer(item, &out->each[k], flags);
        Py_XDECREF(item);
        if (failed) {
            close_arrays(out);
            return -1;
        }
        out->count++;
    }
    return 0;
}

int open_arrays(PyObject *sequence, int writable, Arrays *out) {
    return open_buffers(sequence, PyBUF_C_CONTIGUOUS | (writable ? PyBUF_WRITABLE : 0), out);
}

int open_columns(PyObject *sequence, int writable, Arrays *out) {
    return open_buffers(sequence, writable ? PyBUF_RECORDS : PyBUF_RECORDS_RO, out);
}

int refuse(const char *why) {
    PyErr_SetString(PyExc_ValueError, why);
    return 0;
}

int no_memory(void) {
    PyErr_NoMemory();
    return 0;
}

static PyMethodDef methods[] = {
    {"add_scores", kernel_add_scores, METH_VARARGS,
     "add_scores(rows, scores, targets, columns, cuts, tables): scores[targets[k]] += tables[k][cell of columns[k]]"},
    {"code_numbers", kernel_code_numbers, METH_VARARGS, "code_numbers(x, cuts, levels, out): out = levels[cell of x]"},
    {"level_sums", kernel_level_sums, METH_VARARGS,
     "level_sums(values or None, codes, rows, sums): sums[k][codes[k]] += values"},
    {"logistic", kernel_logistic, METH_VARARGS,
     "logistic(intercept, offset or None, codes, tables, positive, weight or None, sums, residual or None, curvature or None):\n"
     "the summed loss and the sum of the residuals; sums[k][codes[k]] += residual"},
    {"look_up", kernel_look_up, METH_VARARGS,
     "look_up(score, codes, tables): score += tables[k][codes[k]], for every k"},
    {"pair_sums", kernel_pair_sums, METH_VARARGS,
     "pair_sums(values or None, [first], others, rows, codes of the first, tables): tables[k][first, others[k]] += values"},
    {"tree_cuts", kernel_tree_cuts, METH_VARARGS,
     "tree_cuts(rows, good, bad, cuts, min_rows, entropy): the number of cuts; their positions are filled in"},
    {NULL, NULL, 0, NULL},
};

/* The version of the package that the module was built for: another version's module is not used. */
#define TEXT_OF(x) #x
#define TEXT(x) TEXT_OF(x)

static int set_version(PyObject *module) {
    return PyModule_AddStringConstant(module, "VERSION", TEXT(PLAINRISK_VERSION));
}

/* Slots that later versions of Python know, with their numbers there: headers of an earlier one do not name them.
   The module keeps no state at all, so every interpreter may have its own lock, or none. */
#define MULTIPLE_INTERPRETERS 3 /* since 3.12; 2: each with a lock of its own */
#define GIL 4                   /* since 3.13; 1: not used */

static PyModuleDef_Slot slots[4] = {{Py_mod_exec, set_version}};

static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT, "_compiled", NULL, 0, methods, slots, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit__compiled(void) {
    int used = 1;
    if (Py_Version >= 0x030C0000) slots[used++] = (PyModuleDef_Slot){MULTIPLE_INTERPRETERS, (void *)2};
    if (Py_Version >= 0x030D0000) slots[used++] = (PyModuleDef_Slot){GIL, (void *)1};
    return PyModuleDef_Init(&definition);
}
