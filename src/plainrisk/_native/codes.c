/* Levels and scores of numbers, by one search.

   Cuts, ascending, divide the number line into cells: the cell of a number is how many cuts lie below it, and NaN has a
   cell of its own after the last. A table with an entry per cell says what a number becomes, a level or a score. So a cell
   is between 0 and the number of cuts + 1 whatever the data hold, and tables are checked to have that many entries before
   the rows are read. */

#include "shared.h"

#define ROWS 512    /* in a tile: its numbers and cells stay in the nearest caches */
#define FEW_CUTS 32 /* up to here, comparing with each cut beats a binary search */

/* ---- a tile of rows */

/* Comparisons and cells are 64 bits wide, so that the loops become vector instructions. */
FOR_EVERY_PROCESSOR
static void compare_with_each(const double *restrict x, Py_ssize_t rows, const double *restrict cuts, Py_ssize_t count,
                              int64_t *restrict cell) {
    Py_ssize_t k = 0;
    for (; k + 4 <= count; k += 4) {
        const double a = cuts[k], b = cuts[k + 1], c = cuts[k + 2], d = cuts[k + 3];
        for (Py_ssize_t i = 0; i < rows; i++)
            cell[i] += (int64_t)(x[i] > a) + (int64_t)(x[i] > b) + (int64_t)(x[i] > c) + (int64_t)(x[i] > d);
    }
    for (; k < count; k++)
        for (Py_ssize_t i = 0; i < rows; i++) cell[i] += x[i] > cuts[k];
}

/* A binary search without branches, one step of all rows after the other. */
FOR_EVERY_PROCESSOR
static void search(const double *restrict x, Py_ssize_t rows, const double *restrict cuts, Py_ssize_t count,
                   int64_t *restrict cell) {
    for (Py_ssize_t left = count; left > 1; left -= left / 2) {
        int64_t half = left / 2;
        for (Py_ssize_t i = 0; i < rows; i++) cell[i] += x[i] > cuts[cell[i] + half - 1] ? half : 0;
    }
    for (Py_ssize_t i = 0; i < rows; i++) cell[i] += x[i] > cuts[cell[i]];
}

FOR_EVERY_PROCESSOR
static void find_cells(const double *restrict x, Py_ssize_t rows, const double *cuts, Py_ssize_t count,
                       int64_t *restrict cell) {
    for (Py_ssize_t i = 0; i < rows; i++) cell[i] = 0;
    if (count <= FEW_CUTS) compare_with_each(x, rows, cuts, count, cell);
    else search(x, rows, cuts, count, cell);
    for (Py_ssize_t i = 0; i < rows; i++) cell[i] = x[i] != x[i] ? count + 1 : cell[i];
}

FOR_EVERY_PROCESSOR
static void add_values(double *restrict score, const int64_t *restrict cell, const double *restrict table,
                       Py_ssize_t rows) {
    for (Py_ssize_t i = 0; i < rows; i++) score[i] += table[cell[i]];
}

/* A column of numbers of any type, stored in one piece or not. */
typedef struct {
    const char *data;
    Py_ssize_t stride, size; /* bytes from a row to the next, and of a number */
    char kind;               /* f, i or u: floats, integers, integers without a sign */
} Numbers;

#define COPY(TYPE)                                                                                                     \
    for (Py_ssize_t i = 0; i < rows; i++) copy[i] = (double)*(const TYPE *)(from + i * stride)

/* The rows of a tile as doubles in one piece: where they lie, or else in `copy`. */
static const double *read_tile(const Numbers *column, Py_ssize_t start, Py_ssize_t rows, double *restrict copy) {
    Py_ssize_t stride = column->stride;
    const char *from = column->data + start * stride;
    switch (column->kind * 16 + (int)column->size) {
    case 'f' * 16 + 8:
        if (stride == sizeof(double)) return (const double *)from;
        COPY(double);
        break;
    case 'f' * 16 + 4: COPY(float); break;
    case 'i' * 16 + 1: COPY(int8_t); break;
    case 'i' * 16 + 2: COPY(int16_t); break;
    case 'i' * 16 + 4: COPY(int32_t); break;
    case 'i' * 16 + 8: COPY(int64_t); break;
    case 'u' * 16 + 1: COPY(uint8_t); break;
    case 'u' * 16 + 2: COPY(uint16_t); break;
    case 'u' * 16 + 4: COPY(uint32_t); break;
    default: COPY(uint64_t);
    }
    return copy;
}

/* ---- the arguments, none of which is trusted */

static char kind_of(const char *format) {
    if (format == NULL || format[0] == 0 || format[1] != 0) return 0; /* also numbers in another byte order */
    switch (format[0]) {
    case 'd': case 'f': return 'f';
    case 'b': case 'h': case 'i': case 'l': case 'q': return 'i';
    case '?': case 'B': case 'H': case 'I': case 'L': case 'Q': return 'u';
    default: return 0;
    }
}

static int read_numbers(const Py_buffer *buffer, Py_ssize_t rows, Numbers *out) {
    char kind = kind_of(buffer->format);
    if (kind == 0 || buffer->ndim != 1 || buffer->shape[0] != rows)
        return refuse("a column must have one number per row, of a type that is known here");
    *out = (Numbers){buffer->buf, buffer->strides[0], buffer->itemsize, kind};
    return 1;
}

static Py_ssize_t doubles(const Py_buffer *buffer) { return buffer->len / (Py_ssize_t)sizeof(double); }

/* ---- codes of a column */

static void code_rows(const Numbers *x, const Py_buffer *cuts, const Py_buffer *levels, Py_buffer *out, Py_ssize_t all) {
    double copy[ROWS];
    int64_t cell[ROWS];
    for (Py_ssize_t start = 0; start < all; start += ROWS) {
        Py_ssize_t rows = all - start < ROWS ? all - start : ROWS;
        find_cells(read_tile(x, start, rows, copy), rows, cuts->buf, doubles(cuts), cell);
        if (out->itemsize == 1)
            for (Py_ssize_t i = 0; i < rows; i++) ((uint8_t *)out->buf)[start + i] = ((uint8_t *)levels->buf)[cell[i]];
        else
            for (Py_ssize_t i = 0; i < rows; i++) ((uint16_t *)out->buf)[start + i] = ((uint16_t *)levels->buf)[cell[i]];
    }
}

PyObject *kernel_code_numbers(PyObject *module, PyObject *args) {
    PyObject *column;
    Py_buffer x, cuts, levels, out;
    Numbers numbers;
    (void)module;
    if (!PyArg_ParseTuple(args, "Oy*y*w*", &column, &cuts, &levels, &out)) return NULL;
    int opened = PyObject_GetBuffer(column, &x, PyBUF_RECORDS_RO) == 0, good = opened;
    Py_ssize_t rows = out.len / (out.itemsize ? out.itemsize : 1);
    if (good && ((out.itemsize != 1 && out.itemsize != 2) || levels.itemsize != out.itemsize || cuts.itemsize != sizeof(double) ||
                 levels.len != (doubles(&cuts) + 2) * levels.itemsize))
        good = refuse("cuts, a level for every cell and a small code per row are needed");
    good = good && read_numbers(&x, rows, &numbers);
    if (good) {
        Py_BEGIN_ALLOW_THREADS;
        code_rows(&numbers, &cuts, &levels, &out, rows);
        Py_END_ALLOW_THREADS;
    }
    if (opened) PyBuffer_Release(&x);
    PyBuffer_Release(&cuts);
    PyBuffer_Release(&levels);
    PyBuffer_Release(&out);
    if (!good) return NULL;
    Py_RETURN_NONE;
}

/* ---- scores of many columns */

typedef struct {
    Arrays scores, columns, cuts, tables;
    Py_buffer targets; /* which score every column is added to */
    Numbers *numbers;
} Terms;

static void add_terms(const Terms *terms, Py_ssize_t all) {
    double copy[ROWS];
    int64_t cell[ROWS];
    const int64_t *target = terms->targets.buf;
    for (Py_ssize_t start = 0; start < all; start += ROWS) {
        Py_ssize_t rows = all - start < ROWS ? all - start : ROWS;
        for (Py_ssize_t k = 0; k < terms->columns.count; k++) {
            const Py_buffer *cuts = &terms->cuts.each[k];
            double *score = (double *)terms->scores.each[target[k]].buf + start;
            find_cells(read_tile(&terms->numbers[k], start, rows, copy), rows, cuts->buf, doubles(cuts), cell);
            add_values(score, cell, terms->tables.each[k].buf, rows);
        }
    }
}

static int terms_fit(const Terms *terms, Py_ssize_t rows) {
    Py_ssize_t count = terms->columns.count;
    if (terms->cuts.count != count || terms->tables.count != count || terms->targets.itemsize != sizeof(int64_t) ||
        terms->targets.len != count * (Py_ssize_t)sizeof(int64_t))
        return refuse("a score, cuts and a table are needed for every column");
    for (Py_ssize_t k = 0; k < terms->scores.count; k++) {
        Numbers score = {NULL, 0, 0, 0};
        if (!read_numbers(&terms->scores.each[k], rows, &score)) return 0;
        if (score.kind != 'f' || score.size != sizeof(double) || (rows > 1 && score.stride != sizeof(double)))
            return refuse("a score must be float64 in one piece");
    }
    for (Py_ssize_t k = 0; k < count; k++) {
        const Py_buffer *cuts = &terms->cuts.each[k], *table = &terms->tables.each[k];
        int64_t target = ((const int64_t *)terms->targets.buf)[k];
        if (target < 0 || target >= terms->scores.count) return refuse("a column is added to a score that is not there");
        if (cuts->itemsize != sizeof(double) || table->itemsize != sizeof(double) || doubles(table) != doubles(cuts) + 2)
            return refuse("a table must have one float64 per cell");
        if (!read_numbers(&terms->columns.each[k], rows, &terms->numbers[k])) return 0;
    }
    return 1;
}

static int open_terms(PyObject *const *lists, Py_ssize_t rows, Terms *out) {
    if (open_columns(lists[0], 1, &out->scores) || open_columns(lists[1], 0, &out->columns) ||
        open_arrays(lists[2], 0, &out->cuts) || open_arrays(lists[3], 0, &out->tables))
        return 0;
    out->numbers = PyMem_Calloc((size_t)out->columns.count + 1, sizeof(Numbers));
    return out->numbers == NULL ? no_memory() : terms_fit(out, rows);
}

PyObject *kernel_add_scores(PyObject *module, PyObject *args) {
    PyObject *lists[4];
    Terms terms = {{0, NULL}, {0, NULL}, {0, NULL}, {0, NULL}, {0}, NULL};
    Py_ssize_t rows;
    (void)module;
    if (!PyArg_ParseTuple(args, "nOy*OOO", &rows, &lists[0], &terms.targets, &lists[1], &lists[2], &lists[3])) return NULL;
    int good = open_terms(lists, rows, &terms);
    if (good) {
        Py_BEGIN_ALLOW_THREADS;
        add_terms(&terms, rows);
        Py_END_ALLOW_THREADS;
    }
    PyMem_Free(terms.numbers);
    close_arrays(&terms.scores);
    close_arrays(&terms.columns);
    close_arrays(&terms.cuts);
    close_arrays(&terms.tables);
    PyBuffer_Release(&terms.targets);
    if (!good) return NULL;
    Py_RETURN_NONE;
}
