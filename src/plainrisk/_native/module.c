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
    {"block_step", kernel_block_step, METH_VARARGS,
     "block_step(point, gradient, lower, upper, corner, border, ridge, widths, blocks, steps, changes, d, longest): d is filled"},
    {"block_sums", kernel_block_sums, METH_VARARGS,
     "block_sums(values or None, packs, map, sums, widths, blocks): sums += values * column, and squares by pack"},
    {"cell_counts", kernel_cell_counts, METH_VARARGS,
     "cell_counts(packs, strides, outcome, counts): counts[cell, outcome] += 1"},
    {"cell_sums", kernel_cell_sums, METH_VARARGS,
     "cell_sums(packs, strides, positive, weight or None, total, hits): total[cell] += weight, hits[cell] += positive"},
    {"code_numbers", kernel_code_numbers, METH_VARARGS, "code_numbers(x, cuts, levels, out): out = levels[cell of x]"},
    {"code_scores", kernel_code_scores, METH_VARARGS,
     "code_scores(coefficients, map, levels, codes): the scores of all levels, and of the codes of all packs"},
    {"code_singles", kernel_code_singles, METH_VARARGS,
     "code_singles(singles, edges, outcome, codes, counts): the levels of all rows, and rows by level and outcome, of "
     "every column"},
    {"count_codes", kernel_count_codes, METH_VARARGS, "count_codes(codes, outcome, counts): rows by level and outcome"},
    {"curvatures", kernel_curvatures, METH_VARARGS,
     "curvatures(point, packs, map, weight or None, dense or None, bend, codes): bend = weight * p (1 - p), codes += bend"},
    {"dense_newton", kernel_dense_newton, METH_VARARGS,
     "dense_newton(point, positive, weight or None, columns, tables, gradient, table or None): loss; gradient += residual * "
     "column, table += weight * p (1 - p) * column * column, of 1 and the columns; a column with a table is of its codes"},
    {"fold_counts", kernel_fold_counts, METH_VARARGS,
     "fold_counts(codes, outcome, ends, counts): rows by fold, level and outcome, where each fold's stand together"},
    {"fold_cuts", kernel_fold_cuts, METH_VARARGS,
     "fold_cuts(x, bad, fold, lower, upper, found, min_rows, entropy, many, few): tree_cuts without each fold in turn"},
    {"fold_order", kernel_fold_order, METH_VARARGS,
     "fold_order(fold, order, ends): the rows of every fold, one fold after the other, and where each ends"},
    {"level_map", kernel_level_map, METH_VARARGS,
     "level_map(features, given, members, starts, columns, weights): the number of entries; what a map is made of is filled"},
    {"level_sums", kernel_level_sums, METH_VARARGS, "level_sums(values, packs, sums): sums[k][packs[k]] += values"},
    {"list_cells", kernel_list_cells, METH_VARARGS,
     "list_cells(counts, sizes, codes, total, hits): of the cells with rows the code of each pack, all rows and hits"},
    {"logistic", kernel_logistic, METH_VARARGS,
     "logistic(point, packs, map, positive, weight or None, dense or None, gradient): loss; gradient += residual * column"},
    {"look_up", kernel_look_up, METH_VARARGS, "look_up(score, packs, tables): score += sum of tables[k][packs[k]]"},
    {"look_up_risks", kernel_look_up_risks, METH_VARARGS,
     "look_up_risks(start, packs, tables, out): out = 1 / (1 + exp(-score)), of start + sum of tables[k][packs[k]]"},
    {"mark_cells", kernel_mark_cells, METH_VARARGS,
     "mark_cells(packs, strides, bits): how many cells have rows; their bits are set"},
    {"minimise_in_box", kernel_minimise_in_box, METH_VARARGS,
     "minimise_in_box(H, g, lower, upper, d, state, factor, flat): whether d, state and factor hold the minimum"},
    {"solve_factored", kernel_solve_factored, METH_VARARGS, "solve_factored(factor, x): solve factor factor' x = x"},
    {"newton", kernel_newton, METH_VARARGS,
     "newton(point, packs, map, positive, weight or None, columns, tables, ridge, lower, upper, total, tolerance, "
     "settled, gradient, history, flat, is_far): the number of steps, 0 if it did not end well, and the objective; point and gradient are filled"},
    {"number_cells", kernel_number_cells, METH_VARARGS,
     "number_cells(packs, strides, bits, used, out): used are the cells of the bits, out which of them is that of every row"},
    {"pack", kernel_pack, METH_VARARGS, "pack(codes, places, out): out = sum of places[k][codes[k]]"},
    {"pack_seen", kernel_pack_seen, METH_VARARGS,
     "pack_seen(codes, seen, members, out): the codes of several features in one, and the levels each of them stands for"},
    {"pair_sums", kernel_pair_sums, METH_VARARGS,
     "pair_sums(values or None, packs, map, first, own, out, room): out[columns of a pack, columns from it on] += values"},
    {"read_levels", kernel_read_levels, METH_VARARGS,
     "read_levels(columns, rules, outs, flags): levels, or floats with levels in the bits of NaN; what needs care"},
    {"shuffle", kernel_shuffle, METH_VARARGS,
     "shuffle(cards, key, used): the words of a Mersenne twister's key that are used then"},
    {"sample", kernel_sample, METH_VARARGS,
     "sample(packs, floors, share, first, rows, weights): how many rows were taken; rows and weights are filled"},
    {"tree_cuts", kernel_tree_cuts, METH_VARARGS,
     "tree_cuts(columns, bad, lower, upper, splits, min_rows, entropy, many, few): of every column the values beside "
     "each cut, then infinity; splits, at most so many, becomes their number"},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT, "_compiled", NULL, 0, methods, NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit__compiled(void) { return PyModuleDef_Init(&definition); }
