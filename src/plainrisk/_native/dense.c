/* Sums over rows of numeric columns, by pairs of them. */

#include <string.h>

#include "dense.h"
#include "sums.h"

#define APART 24 /* numbers between tiles: at the same place of a page, they would be in each other's way */

const double *dense_column(const Py_buffer *dense, Py_ssize_t j, Py_ssize_t start, Py_ssize_t rows, double *copy) {
    const Py_ssize_t by_row = dense->strides[0];
    const char *from = (const char *)dense->buf + start * by_row + j * dense->strides[1];
    if (by_row == sizeof(double)) return (const double *)(const void *)from;
    for (Py_ssize_t i = 0; i < rows; i++) memcpy(&copy[i], from + i * by_row, sizeof(double));
    return copy;
}

FOR_EVERY_PROCESSOR
double sum_of_products(const double *a, const double *b, Py_ssize_t rows) {
    double lane[SUMS] = {0.0}, total = 0.0;
    Py_ssize_t i = 0;
    for (; i + SUMS <= rows; i += SUMS)
        for (int j = 0; j < SUMS; j++) lane[j] += a[i + j] * b[i + j];
    for (; i < rows; i++) total += a[i] * b[i];
    for (int j = 0; j < SUMS; j++) total += lane[j];
    return total;
}

/* The same of one, or of the product of two, with four columns: their sums need not wait for each other. */
#if defined(__GNUC__)
typedef double Lanes __attribute__((vector_size(SUMS * sizeof(double)), aligned(sizeof(double)), may_alias));

FOR_EVERY_PROCESSOR
static void four_sums(const double *a, const double *b, const double *const *columns, Py_ssize_t rows, double *out) {
    const double *p = columns[0], *q = columns[1], *r = columns[2], *s = columns[3];
    Lanes one = {0.0}, two = {0.0}, three = {0.0}, four = {0.0};
    double total[4] = {0.0};
    Py_ssize_t i = 0;
    for (; i + SUMS <= rows; i += SUMS) {
        Lanes x = *(const Lanes *)(a + i);
        if (b != NULL) x *= *(const Lanes *)(b + i);
        one += x * *(const Lanes *)(p + i);
        two += x * *(const Lanes *)(q + i);
        three += x * *(const Lanes *)(r + i);
        four += x * *(const Lanes *)(s + i);
    }
    for (; i < rows; i++)
        for (int k = 0; k < 4; k++) total[k] += (b == NULL ? a[i] : a[i] * b[i]) * columns[k][i];
    for (int j = 0; j < SUMS; j++) {
        total[0] += one[j];
        total[1] += two[j];
        total[2] += three[j];
        total[3] += four[j];
    }
    memcpy(out, total, sizeof total);
}
#else
static void four_sums(const double *a, const double *b, const double *const *columns, Py_ssize_t rows, double *out) {
    double product[TILE];
    for (Py_ssize_t i = 0; b != NULL && i < rows; i++) product[i] = a[i] * b[i];
    for (int k = 0; k < 4; k++) out[k] = sum_of_products(b == NULL ? a : product, columns[k], rows);
}
#endif

void sums_of_products(const double *a, const double *b, const double *const *columns, Py_ssize_t count, Py_ssize_t rows,
                      double *out) {
    const double *some[4];
    double sums[4];
    for (Py_ssize_t k = 0; k < count; k += 4) {
        const Py_ssize_t left = count - k < 4 ? count - k : 4;
        for (Py_ssize_t j = 0; j < 4; j++) some[j] = columns[k + (j < left ? j : 0)];
        four_sums(a, b, some, rows, sums);
        memcpy(out + k, sums, (size_t)left * sizeof(double));
    }
}

void add_dense_pairs(const double *values, const double *const *columns, Py_ssize_t count, Py_ssize_t rows,
                     double *table, double *sums) {
    const Py_ssize_t n = 1 + count;
    sums_of_products(values, NULL, columns, count, rows, sums);
    for (Py_ssize_t j = 0; j < count; j++) table[1 + j] += sums[j];
    for (Py_ssize_t j = 0; j < count; j++) {
        sums_of_products(values, columns[j], columns, j + 1, rows, sums);
        for (Py_ssize_t k = 0; k <= j; k++) {
            table[(1 + j) * n + 1 + k] += sums[k];
            if (k < j) table[(1 + k) * n + 1 + j] += sums[k];
        }
    }
}

/* ---- columns by themselves */

static int is_coded(const Numbers *numbers, Py_ssize_t k) { return numbers->tables.each[k].len > 0; }

static int make_room(Numbers *numbers, Py_ssize_t rows) {
    const size_t count = (size_t)numbers->columns.count, tile = (size_t)(rows < TILE ? rows : TILE) + APART;
    numbers->tile = PyMem_Malloc((count + 1) * sizeof(double *));
    numbers->room = PyMem_Malloc((count * tile + count + 1) * sizeof(double));
    if (numbers->tile == NULL || numbers->room == NULL) return no_memory();
    numbers->sums = numbers->room + count * tile;
    return 1;
}

int open_numbers(PyObject *columns, PyObject *tables, Py_ssize_t rows, Numbers *out) {
    if (open_columns(columns, 0, &out->columns) || open_arrays(tables, 0, &out->tables)) return 0;
    int good = out->columns.count == out->tables.count;
    for (Py_ssize_t k = 0; good && k < out->columns.count; k++) {
        const Py_buffer *column = &out->columns.each[k];
        const Py_ssize_t size = column->itemsize;
        good = column->ndim == 1 && column->shape[0] == rows && out->tables.each[k].itemsize == sizeof(double);
        if (is_coded(out, k)) good = good && (size == 1 || size == 2 || size == 4) && column->strides[0] == size;
        else good = good && size == sizeof(double);
    }
    if (!good) return refuse("the columns, their tables and the rows do not fit each other");
    return make_room(out, rows);
}

void close_numbers(Numbers *numbers) {
    PyMem_Free(numbers->tile);
    PyMem_Free(numbers->room);
    close_arrays(&numbers->columns);
    close_arrays(&numbers->tables);
}

void find_tile(const Numbers *numbers, Py_ssize_t start, Py_ssize_t rows) {
    double *room = numbers->room;
    for (Py_ssize_t k = 0; k < numbers->columns.count; k++, room += rows + APART) {
        const Py_buffer *column = &numbers->columns.each[k];
        const double *table = numbers->tables.each[k].buf;
        const Py_ssize_t stride = column->strides[0];
        const char *from = (const char *)column->buf + start * stride;
        numbers->tile[k] = room;
        if (is_coded(numbers, k)) {
            BY_ITEM_SIZE(column->itemsize, {
                const Code *codes = (const Code *)(const void *)from;
                for (Py_ssize_t i = 0; i < rows; i++) room[i] = table[codes[i]];
            });
        } else if (stride == sizeof(double))
            numbers->tile[k] = (const double *)(const void *)from;
        else
            for (Py_ssize_t i = 0; i < rows; i++) memcpy(&room[i], from + i * stride, sizeof(double));
    }
}
