/* Sums over rows of numeric columns, by pairs of them. */

#include <string.h>

#include "dense.h"

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

void add_dense_pairs(const double *values, const Py_buffer *dense, Py_ssize_t start, Py_ssize_t rows, double *table,
                     Py_ssize_t n) {
    const Py_ssize_t count = dense->shape[1], first = n - count;
    double one[TILE], other[TILE], product[TILE];
    for (Py_ssize_t j = 0; j < count; j++) {
        const double *column = dense_column(dense, j, start, rows, one);
        for (Py_ssize_t i = 0; i < rows; i++) product[i] = values[i] * column[i];
        table[first + j] += sum_of_products(values, column, rows);
        for (Py_ssize_t k = 0; k <= j; k++) {
            double sum = sum_of_products(product, dense_column(dense, k, start, rows, other), rows);
            table[(first + j) * n + first + k] += sum;
            if (k < j) table[(first + k) * n + first + j] += sum;
        }
    }
}
