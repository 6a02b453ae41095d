/* Columns of numbers, read once: into levels, or into floats from which bins are found and levels then made. */

#include <string.h>

#include "reading.h"
#include "shared.h"

#define ROWS 512 /* read at a time; no less than FAR_ROWS */

enum { GREATER, LESS, EQUAL, MISSING, ALWAYS };        /* comparisons of a rule */
enum { HAS_INFINITY = 1, TOO_LARGE = 2, HALFWAY = 4 }; /* what a column may hold that needs care */

/* Whether the next four comparisons of a rule are alike. */
static int four_greater(const double *rule, Py_ssize_t left) {
    for (int j = 0; j < 4; j++)
        if (left < 4 || (int)rule[3 * j] != GREATER) return 0;
    return 1;
}

/* Add up what the comparisons of a rule give for each number: (comparison, number, by) three after three. */
FOR_EVERY_PROCESSOR
static void add_steps(const double *x, Py_ssize_t n, const double *rule, Py_ssize_t steps, int64_t *code) {
    for (Py_ssize_t i = 0; i < n; i++) code[i] = 0;
    for (Py_ssize_t k = 0; k < steps; k++) {
        while (four_greater(rule + 3 * k, steps - k)) {
            const double a = rule[3 * k + 1], b = rule[3 * k + 4], c = rule[3 * k + 7], d = rule[3 * k + 10];
            const int64_t by_a = (int64_t)rule[3 * k + 2], by_b = (int64_t)rule[3 * k + 5];
            const int64_t by_c = (int64_t)rule[3 * k + 8], by_d = (int64_t)rule[3 * k + 11];
            for (Py_ssize_t i = 0; i < n; i++)
                code[i] += (x[i] > a ? by_a : 0) + (x[i] > b ? by_b : 0) + (x[i] > c ? by_c : 0) + (x[i] > d ? by_d : 0);
            k += 4;
        }
        if (k == steps) break;
        double value = rule[3 * k + 1];
        int64_t by = (int64_t)rule[3 * k + 2];
        switch ((int)rule[3 * k]) {
        case GREATER:
            for (Py_ssize_t i = 0; i < n; i++) code[i] += x[i] > value ? by : 0;
            break;
        case LESS:
            for (Py_ssize_t i = 0; i < n; i++) code[i] += x[i] < value ? by : 0;
            break;
        case EQUAL:
            for (Py_ssize_t i = 0; i < n; i++) code[i] += x[i] == value ? by : 0;
            break;
        case MISSING:
            for (Py_ssize_t i = 0; i < n; i++) code[i] += x[i] != x[i] ? by : 0;
            break;
        default:
            for (Py_ssize_t i = 0; i < n; i++) code[i] += by;
        }
    }
}

/* What of a tile needs care; whether a float is large enough matters to measurements alone, whose code is 0. */
FOR_EVERY_PROCESSOR
static int find_flags(const double *x, const int64_t *code, Py_ssize_t n) {
    int64_t flags = 0;
    for (Py_ssize_t i = 0; i < n; i++) {
        int64_t size; /* the bits of a double without its sign count upwards with it */
        memcpy(&size, &x[i], sizeof size);
        size &= INT64_MAX;
        flags |= size == 0x7FF0000000000000 ? HAS_INFINITY : 0;
        flags |= (size >= 0x47EFFFFFF0000000) & (code[i] == 0) ? TOO_LARGE : 0; /* would be rounded to infinity */
        flags |= (size & 0x1FFFFFFF) == 0x10000000 ? HALFWAY : 0;               /* may be rounded either way */
    }
    return (int)flags;
}

/* Measurements as floats; the codes of others as what is no number. In steps of one width each: only such loops are
   made of vectors. */
FOR_EVERY_PROCESSOR
static void to_singles(const double *x, const int64_t *code, Py_ssize_t n, uint32_t *out) {
    float single[ROWS];
    uint32_t outside[ROWS];
    for (Py_ssize_t i = 0; i < n; i++) single[i] = (float)x[i];
    for (Py_ssize_t i = 0; i < n; i++) outside[i] = (uint32_t)code[i];
    memcpy(out, single, (size_t)n * sizeof *out);
    for (Py_ssize_t i = 0; i < n; i++) {
        uint32_t level = outside[i] & PAYLOAD, is_outside = level ? UINT32_MAX : 0;
        out[i] = (out[i] & ~is_outside) | ((OUTSIDE | level) & is_outside);
    }
}

static int read_rows(const double *x, const Py_buffer *rule, Py_buffer *out, Py_ssize_t start, Py_ssize_t n) {
    int64_t code[ROWS];
    add_steps(x, n, rule->buf, rule->len / (Py_ssize_t)(3 * sizeof(double)), code);
    if (out->itemsize == sizeof(float)) to_singles(x, code, n, (uint32_t *)out->buf + start);
    else if (out->itemsize == 1)
        for (Py_ssize_t i = 0; i < n; i++) ((uint8_t *)out->buf)[start + i] = (uint8_t)code[i];
    else
        for (Py_ssize_t i = 0; i < n; i++) ((uint16_t *)out->buf)[start + i] = (uint16_t)code[i];
    return find_flags(x, code, n);
}

static void read_all(const Columns *columns, Py_ssize_t rows, const Arrays *rules, Arrays *outs, uint8_t *flags) {
    double copy[ROWS];
    Py_ssize_t step = columns->room == NULL ? ROWS : FAR_ROWS;
    for (Py_ssize_t start = 0; start < rows; start += step) {
        Py_ssize_t n = rows - start < step ? rows - start : step;
        lay_out(columns, start, n);
        for (Py_ssize_t k = 0; k < columns->count; k++) {
            const double *x = tile_of(columns, k, start, n, copy);
            flags[k] |= (uint8_t)read_rows(x, &rules->each[k], &outs->each[k], start, n);
        }
    }
}

/* The rows, the same of every result; -1 if the arguments do not fit together. */
static Py_ssize_t rows_of(const Arrays *columns, const Arrays *rules, const Arrays *outs, Py_ssize_t flags) {
    Py_ssize_t rows = 0;
    if (rules->count != columns->count || outs->count != columns->count || flags != columns->count) return -1;
    for (Py_ssize_t k = 0; k < columns->count; k++) {
        const Py_buffer *out = &outs->each[k], *rule = &rules->each[k];
        if (out->itemsize != 1 && out->itemsize != 2 && out->itemsize != 4) return -1;
        if (rule->itemsize != sizeof(double) || rule->len % (Py_ssize_t)(3 * sizeof(double))) return -1;
        if (k > 0 && out->len / out->itemsize != rows) return -1;
        rows = out->len / out->itemsize;
    }
    return rows;
}

PyObject *kernel_read_levels(PyObject *module, PyObject *args) {
    PyObject *column_list, *rule_list, *out_list;
    Py_buffer flags;
    (void)module;
    if (!PyArg_ParseTuple(args, "OOOw*", &column_list, &rule_list, &out_list, &flags)) return NULL;
    Arrays arrays = {0, NULL}, rules = {0, NULL}, outs = {0, NULL};
    Columns columns = {0, NULL, NULL};
    int good = open_columns(column_list, 0, &arrays) == 0 && open_arrays(rule_list, 0, &rules) == 0 &&
               open_arrays(out_list, 1, &outs) == 0;
    Py_ssize_t rows = good ? rows_of(&arrays, &rules, &outs, flags.len) : 0;
    if (rows < 0) good = refuse("a rule, an array for the result and a flag are needed for every column");
    good = good && read_columns(&arrays, rows, &columns);
    if (good) {
        Py_BEGIN_ALLOW_THREADS;
        read_all(&columns, rows, &rules, &outs, flags.buf);
        Py_END_ALLOW_THREADS;
    }
    free_columns(&columns);
    close_arrays(&arrays);
    close_arrays(&rules);
    close_arrays(&outs);
    PyBuffer_Release(&flags);
    if (!good) return NULL;
    Py_RETURN_NONE;
}
