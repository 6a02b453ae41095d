/* Levels and scores of numbers, by one search.

   Cuts, ascending, divide the number line into cells: the cell of a number is how many cuts lie below it, and NaN has a
   cell of its own after the last. A table with an entry per cell says what a number becomes, a level or a score. So a cell
   is between 0 and the number of cuts + 1 whatever the data hold, and tables are checked to have that many entries before
   the rows are read. */

#include <math.h>

#include "shared.h"

#define ROWS 504    /* in a tile. Of a power of two, the columns of a copy would compete for the same lines of the cache */
#define GROUP 8     /* columns of a matrix copied together: a line of memory holds as many doubles */
#define FEW_CUTS 16 /* up to here, comparing with each cut beats a binary search */

/* Ask for memory that the next tile will read, in the second-level cache: the first has no space for it. */
#if defined(__GNUC__)
#define FETCH(ADDRESS) __builtin_prefetch((const void *)(ADDRESS), 0, 2)
#else
#define FETCH(ADDRESS) (void)(ADDRESS)
#endif

static Py_ssize_t doubles(const Py_buffer *buffer) { return buffer->len / (Py_ssize_t)sizeof(double); }

/* ---- a tile of rows */

/* The last cut below a number decides. There is no branch, and with a count that the compiler knows all cuts and entries
   stay in registers. An entry is read before the choice: a choice whether to read would be a branch. */
#define COMPARE(COUNT)                                                                                                 \
    for (Py_ssize_t i = 0; i < rows; i++) {                                                                            \
        double at = x[i], value = entry[0];                                                                            \
        for (int k = 0; k < (COUNT); k++) {                                                                            \
            double above = entry[k + 1];                                                                               \
            value = at > cut[k] ? above : value;                                                                       \
        }                                                                                                              \
        sum[i] += at != at ? missing : value;                                                                          \
    }

FOR_EVERY_PROCESSOR
static void compare_with_each(const double *restrict x, Py_ssize_t rows, const double *restrict cuts, Py_ssize_t count,
                              const double *restrict table, double *restrict sum) {
    double cut[FEW_CUTS], entry[FEW_CUTS + 1], missing = table[count + 1];
    entry[0] = table[0];
    for (Py_ssize_t k = 0; k < FEW_CUTS; k++) {
        cut[k] = k < count ? cuts[k] : (double)INFINITY; /* nothing is above it */
        entry[k + 1] = k < count ? table[k + 1] : 0;
    }
    if (count <= 4) COMPARE(4)
    else if (count <= 8) COMPARE(8)
    else COMPARE(FEW_CUTS)
}

/* A binary search without branches, one step of all rows after the other. */
FOR_EVERY_PROCESSOR
static void search(const double *restrict x, Py_ssize_t rows, const double *restrict cuts, Py_ssize_t count,
                   const double *restrict table, double *restrict sum) {
    int64_t cell[ROWS];
    for (Py_ssize_t i = 0; i < rows; i++) cell[i] = 0;
    for (Py_ssize_t left = count; left > 1; left -= left / 2) {
        int64_t half = left / 2;
        for (Py_ssize_t i = 0; i < rows; i++) cell[i] += x[i] > cuts[cell[i] + half - 1] ? half : 0;
    }
    for (Py_ssize_t i = 0; i < rows; i++) {
        int64_t at = cell[i] + (x[i] > cuts[cell[i]]);
        sum[i] += table[x[i] != x[i] ? count + 1 : at];
    }
}

/* Add the table's entry of each number, at most ROWS of them. */
static void add_entries(const double *x, Py_ssize_t rows, const Py_buffer *cuts, const Py_buffer *table, double *sum) {
    Py_ssize_t count = doubles(cuts);
    if (count <= FEW_CUTS) compare_with_each(x, rows, cuts->buf, count, table->buf, sum);
    else search(x, rows, cuts->buf, count, table->buf, sum);
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

/* Neighbors in a matrix of doubles that is stored row by row share their lines of memory, so they are copied together,
   and the lines of the next tile are asked for in time. */
static int are_neighbors(const Numbers *columns, Py_ssize_t count) {
    if (count < GROUP) return 0;
    for (int k = 0; k < GROUP; k++) {
        const Numbers *column = &columns[k];
        if (column->kind != 'f' || column->size != sizeof(double) || column->stride != columns->stride) return 0;
    }
    return columns->stride > (Py_ssize_t)sizeof(double);
}

static void copy_neighbors(const Numbers *columns, Py_ssize_t start, Py_ssize_t rows, double (*restrict copy)[ROWS]) {
    Py_ssize_t stride = columns->stride;
    const char *from[GROUP];
    for (int k = 0; k < GROUP; k++) from[k] = columns[k].data + start * stride;
    for (Py_ssize_t i = 0; i < rows; i++) {
        FETCH((uintptr_t)from[0] + (uintptr_t)((i + ROWS) * stride));
        for (int k = 0; k < GROUP; k++) copy[k][i] = *(const double *)(from[k] + i * stride);
    }
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

/* ---- codes of a column */

static void code_rows(const Numbers *x, const Py_buffer *cuts, const Py_buffer *levels, Py_buffer *out, Py_ssize_t all) {
    double copy[ROWS], level[ROWS];
    for (Py_ssize_t start = 0; start < all; start += ROWS) {
        Py_ssize_t rows = all - start < ROWS ? all - start : ROWS;
        for (Py_ssize_t i = 0; i < rows; i++) level[i] = 0;
        add_entries(read_tile(x, start, rows, copy), rows, cuts, levels, level);
        if (out->itemsize == 1)
            for (Py_ssize_t i = 0; i < rows; i++) ((uint8_t *)out->buf)[start + i] = (uint8_t)level[i];
        else
            for (Py_ssize_t i = 0; i < rows; i++) ((uint16_t *)out->buf)[start + i] = (uint16_t)level[i];
    }
}

/* Whether there is a level for every cell, and each is a code that the result can hold. */
static int levels_fit(const Py_buffer *cuts, const Py_buffer *levels, const Py_buffer *out) {
    const double *level = levels->buf, most = out->itemsize == 1 ? UINT8_MAX : UINT16_MAX;
    if ((out->itemsize != 1 && out->itemsize != 2) || cuts->itemsize != sizeof(double) ||
        levels->itemsize != sizeof(double) || doubles(levels) != doubles(cuts) + 2)
        return refuse("cuts, a level for every cell and a small code per row are needed");
    for (Py_ssize_t k = 0; k < doubles(levels); k++)
        if (!(level[k] >= 0 && level[k] <= most)) return refuse("a level is too large for its code");
    return 1;
}

PyObject *kernel_code_numbers(PyObject *module, PyObject *args) {
    PyObject *column;
    Py_buffer x, cuts, levels, out;
    Numbers numbers;
    (void)module;
    if (!PyArg_ParseTuple(args, "Oy*y*w*", &column, &cuts, &levels, &out)) return NULL;
    int opened = PyObject_GetBuffer(column, &x, PyBUF_RECORDS_RO) == 0;
    Py_ssize_t rows = out.len / (out.itemsize ? out.itemsize : 1);
    int good = opened && levels_fit(&cuts, &levels, &out) && read_numbers(&x, rows, &numbers);
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
    double copy[GROUP][ROWS];
    const int64_t *target = terms->targets.buf;
    for (Py_ssize_t start = 0; start < all; start += ROWS) {
        Py_ssize_t rows = all - start < ROWS ? all - start : ROWS, copied = 0;
        for (Py_ssize_t k = 0; k < terms->columns.count; k++) {
            const Numbers *column = &terms->numbers[k];
            double *score = (double *)terms->scores.each[target[k]].buf + start;
            if (k >= copied && are_neighbors(column, terms->columns.count - k)) {
                copy_neighbors(column, start, rows, copy);
                copied = k + GROUP;
            }
            const double *x = k < copied ? copy[k + GROUP - copied] : read_tile(column, start, rows, copy[0]);
            add_entries(x, rows, &terms->cuts.each[k], &terms->tables.each[k], score);
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
