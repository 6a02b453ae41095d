/* Sums over rows by joint code: what the solvers need of the rows.

   Every sum adds its rows in their order, as numpy's bincount does, so both give the same bits. Several joint codes of one
   byte are served in one loop, because additions to one table need not wait for those to another. */

#include <string.h>

#include "sums.h"

#define TOGETHER 4 /* joint codes served in one loop */

/* Run a body with Code as the unsigned type of ITEM_SIZE bytes. */
#define BY_ITEM_SIZE(ITEM_SIZE, BODY)                                                                                  \
    if ((ITEM_SIZE) == 1) {                                                                                            \
        typedef uint8_t Code;                                                                                          \
        BODY;                                                                                                          \
    } else if ((ITEM_SIZE) == 2) {                                                                                     \
        typedef uint16_t Code;                                                                                         \
        BODY;                                                                                                          \
    } else {                                                                                                           \
        typedef uint32_t Code;                                                                                         \
        BODY;                                                                                                          \
    }

/* ---- reading the arguments */

int open_codes(PyObject *sequence, Py_ssize_t rows, Arrays *out) {
    if (open_arrays(sequence, 0, out)) return 0;
    for (Py_ssize_t k = 0; k < out->count; k++) {
        const Py_buffer *codes = &out->each[k];
        const int is_code = codes->itemsize == 1 || codes->itemsize == 2 || codes->itemsize == 4;
        if (!is_code || codes->ndim != 1 || codes->len != rows * codes->itemsize)
            return refuse("a joint code must be one unsigned integer of 1, 2 or 4 bytes per row");
    }
    return 1;
}

FOR_EVERY_PROCESSOR
static uint32_t largest_byte(const uint8_t *codes, Py_ssize_t rows) {
    uint8_t most = 0;
    for (Py_ssize_t i = 0; i < rows; i++) most = codes[i] > most ? codes[i] : most;
    return most;
}

static uint32_t largest_code(const Py_buffer *codes) {
    const Py_ssize_t rows = codes->len / codes->itemsize;
    uint32_t most = 0;
    if (codes->itemsize == 1) return largest_byte(codes->buf, rows);
    BY_ITEM_SIZE(codes->itemsize, {
        const Code *code = codes->buf;
        for (Py_ssize_t i = 0; i < rows; i++) most = code[i] > most ? code[i] : most;
    });
    return most;
}

/* Whether every code is below the number of entries, of which there are some if there are rows. */
static int codes_fit(const Py_buffer *codes, Py_ssize_t entries) {
    if (codes->len == 0 || (codes->itemsize == 1 && entries > UINT8_MAX)) return 1;
    return (Py_ssize_t)largest_code(codes) < entries || refuse("a joint code is beyond its table");
}

int open_tables(PyObject *sequence, int writable, const Arrays *codes, Arrays *out) {
    if (open_arrays(sequence, writable, out)) return 0;
    if (out->count != codes->count) return refuse("there must be one table per joint code");
    for (Py_ssize_t k = 0; k < out->count; k++) {
        if (out->each[k].itemsize != sizeof(double)) return refuse("a table must hold doubles");
        if (!codes_fit(&codes->each[k], out->each[k].len / (Py_ssize_t)sizeof(double))) return 0;
    }
    return 1;
}

/* ---- look-ups and sums over a tile */

/* How many joint codes in a row, at most TOGETHER, are bytes. */
static Py_ssize_t bytes_together(const Py_buffer *codes, Py_ssize_t count) {
    Py_ssize_t k = 0;
    while (k < count && k < TOGETHER && codes[k].itemsize == 1) k++;
    return k;
}

static inline void look_up_bytes(double *score, const Py_buffer *codes, const Py_buffer *tables, const int count,
                                 Py_ssize_t start, Py_ssize_t rows) {
    const uint8_t *code[TOGETHER];
    const double *table[TOGETHER];
    for (int k = 0; k < count; k++) code[k] = (const uint8_t *)codes[k].buf + start, table[k] = tables[k].buf;
    for (Py_ssize_t i = 0; i < rows; i++) {
        double sum = score[i];
        for (int k = 0; k < count; k++) sum += table[k][code[k][i]];
        score[i] = sum;
    }
}

void look_up_tile(double *score, const Py_buffer *codes, const Py_buffer *tables, Py_ssize_t count, Py_ssize_t start,
                  Py_ssize_t rows) {
    for (Py_ssize_t k = 0, some; k < count; k += some) {
        const double *table = tables[k].buf;
        some = bytes_together(codes + k, count - k);
        if (some == TOGETHER) {
            look_up_bytes(score, codes + k, tables + k, TOGETHER, start, rows);
            continue;
        }
        some = 1;
        BY_ITEM_SIZE(codes[k].itemsize, {
            const Code *code = (const Code *)codes[k].buf + start;
            for (Py_ssize_t i = 0; i < rows; i++) score[i] += table[code[i]];
        });
    }
}

static inline void sum_bytes(const double *values, const Py_buffer *codes, const Py_buffer *sums, const int count,
                             Py_ssize_t start, Py_ssize_t rows) {
    const uint8_t *code[TOGETHER];
    double *sum[TOGETHER];
    for (int k = 0; k < count; k++) code[k] = (const uint8_t *)codes[k].buf + start, sum[k] = sums[k].buf;
    for (Py_ssize_t i = 0; i < rows; i++) {
        double value = values == NULL ? 1.0 : values[i];
        for (int k = 0; k < count; k++) sum[k][code[k][i]] += value;
    }
}

void level_sums_tile(const double *values, const Py_buffer *codes, const Py_buffer *sums, Py_ssize_t count,
                     Py_ssize_t start, Py_ssize_t rows) {
    for (Py_ssize_t k = 0, some; k < count; k += some) {
        double *sum = sums[k].buf;
        some = bytes_together(codes + k, count - k);
        if (some == TOGETHER) {
            sum_bytes(values, codes + k, sums + k, TOGETHER, start, rows);
            continue;
        }
        some = 1;
        BY_ITEM_SIZE(codes[k].itemsize, {
            const Code *code = (const Code *)codes[k].buf + start;
            for (Py_ssize_t i = 0; i < rows; i++) sum[code[i]] += values == NULL ? 1.0 : values[i];
        });
    }
}

/* ---- look_up(score, codes, tables): score += tables[k][codes[k]] */

PyObject *kernel_look_up(PyObject *module, PyObject *args) {
    Py_buffer score;
    PyObject *code_list, *table_list;
    Arrays codes = {0, NULL}, tables = {0, NULL};
    (void)module;
    if (!PyArg_ParseTuple(args, "w*OO", &score, &code_list, &table_list)) return NULL;
    const Py_ssize_t rows = score.len / (Py_ssize_t)sizeof(double);
    int good = open_codes(code_list, rows, &codes) && open_tables(table_list, 0, &codes, &tables);
    if (good) {
        Py_BEGIN_ALLOW_THREADS;
        for (Py_ssize_t start = 0; start < rows; start += TILE) {
            Py_ssize_t n = rows - start < TILE ? rows - start : TILE;
            look_up_tile((double *)score.buf + start, codes.each, tables.each, codes.count, start, n);
        }
        Py_END_ALLOW_THREADS;
    }
    close_arrays(&codes);
    close_arrays(&tables);
    PyBuffer_Release(&score);
    if (!good) return NULL;
    Py_RETURN_NONE;
}

/* ---- level_sums(values, codes, rows, sums): sums[k][codes[k]] += values */

PyObject *kernel_level_sums(PyObject *module, PyObject *args) {
    PyObject *value_array, *code_list, *sum_list;
    Py_buffer values = {0};
    Arrays codes = {0, NULL}, sums = {0, NULL};
    Py_ssize_t rows;
    (void)module;
    if (!PyArg_ParseTuple(args, "OOnO", &value_array, &code_list, &rows, &sum_list)) return NULL;
    int good = value_array == Py_None || PyObject_GetBuffer(value_array, &values, PyBUF_C_CONTIGUOUS) == 0;
    if (good && values.obj != NULL && values.len != rows * (Py_ssize_t)sizeof(double))
        good = refuse("one double per row is needed");
    good = good && open_codes(code_list, rows, &codes) && open_tables(sum_list, 1, &codes, &sums);
    if (good) {
        Py_BEGIN_ALLOW_THREADS;
        for (Py_ssize_t start = 0; start < rows; start += TILE) {
            Py_ssize_t n = rows - start < TILE ? rows - start : TILE;
            const double *tile = values.buf == NULL ? NULL : (const double *)values.buf + start;
            level_sums_tile(tile, codes.each, sums.each, codes.count, start, n);
        }
        Py_END_ALLOW_THREADS;
    }
    close_arrays(&codes);
    close_arrays(&sums);
    if (values.obj != NULL) PyBuffer_Release(&values);
    if (!good) return NULL;
    Py_RETURN_NONE;
}

/* ---- pair_sums(values, first, others, sizes, tables): tables[k][first, others[k]] += values */

/* Add the values to the table of two joint codes; `width` is the number of codes of the second. */
static void sum_pairs(const double *values, const Py_buffer *first, const Py_buffer *second, Py_ssize_t width,
                      double *table, Py_ssize_t rows) {
    BY_ITEM_SIZE(first->itemsize, {
        const Code *a = first->buf;
        if (second->itemsize == 1) {
            const uint8_t *b = second->buf;
            for (Py_ssize_t i = 0; i < rows; i++) table[a[i] * width + b[i]] += values == NULL ? 1.0 : values[i];
        } else if (second->itemsize == 2) {
            const uint16_t *b = second->buf;
            for (Py_ssize_t i = 0; i < rows; i++) table[a[i] * width + b[i]] += values == NULL ? 1.0 : values[i];
        } else {
            const uint32_t *b = second->buf;
            for (Py_ssize_t i = 0; i < rows; i++) table[a[i] * width + b[i]] += values == NULL ? 1.0 : values[i];
        }
    });
}

/* Whether every table is as large as the numbers of codes say, and holds every code; fills in the widths. */
static int pairs_fit(const Arrays *first, const Arrays *others, Py_ssize_t height, const Arrays *tables, Py_ssize_t *width) {
    if (tables->count != others->count || height < 1) return refuse("there must be one table per pair of joint codes");
    if (!codes_fit(&first->each[0], height)) return 0;
    for (Py_ssize_t k = 0; k < others->count; k++) {
        const Py_ssize_t row = height * (Py_ssize_t)sizeof(double);
        if (tables->each[k].itemsize != sizeof(double) || tables->each[k].len % row)
            return refuse("a table of pairs must hold as many rows of doubles as the first joint code has codes");
        width[k] = tables->each[k].len / row;
        if (!codes_fit(&others->each[k], width[k])) return 0;
    }
    return 1;
}

PyObject *kernel_pair_sums(PyObject *module, PyObject *args) {
    PyObject *value_array, *first_list, *other_list, *table_list;
    Py_buffer values = {0};
    Arrays first = {0, NULL}, others = {0, NULL}, tables = {0, NULL};
    Py_ssize_t rows, height, *width = NULL;
    (void)module;
    if (!PyArg_ParseTuple(args, "OOOnnO", &value_array, &first_list, &other_list, &rows, &height, &table_list)) return NULL;
    int good = value_array == Py_None || PyObject_GetBuffer(value_array, &values, PyBUF_C_CONTIGUOUS) == 0;
    if (good && values.obj != NULL && values.len != rows * (Py_ssize_t)sizeof(double))
        good = refuse("one double per row is needed");
    good = good && open_codes(first_list, rows, &first) && open_codes(other_list, rows, &others) &&
           open_arrays(table_list, 1, &tables) == 0;
    if (good && first.count != 1) good = refuse("one first joint code is needed");
    width = PyMem_Malloc(((size_t)others.count + 1) * sizeof(Py_ssize_t));
    if (good && width == NULL) good = no_memory();
    good = good && pairs_fit(&first, &others, height, &tables, width);
    if (good) {
        Py_BEGIN_ALLOW_THREADS;
        for (Py_ssize_t k = 0; k < others.count; k++)
            sum_pairs(values.buf, &first.each[0], &others.each[k], width[k], tables.each[k].buf, rows);
        Py_END_ALLOW_THREADS;
    }
    PyMem_Free(width);
    close_arrays(&first);
    close_arrays(&others);
    close_arrays(&tables);
    if (values.obj != NULL) PyBuffer_Release(&values);
    if (!good) return NULL;
    Py_RETURN_NONE;
}
