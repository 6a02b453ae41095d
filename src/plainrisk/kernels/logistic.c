/* One pass of the mean logistic loss over rows: scores, losses, residuals and their sums by level, a tile at a time. */

#include <math.h>
#include <string.h>

#include "shared.h"
#include "sums.h"

#define LANES 8 /* losses are added in this many sums side by side, on every processor in the same order */

/* exp(-a) for a >= 0, to about one unit in the last place; below 1e-307 it is 0. */
static inline double exp_minus(double a) {
    const double log2_e = 1.4426950408889634, ln2_high = 6.93147180369123816490e-01, ln2_low = 1.90821492927058770002e-10;
    const double round_here = 6755399441055744.0; /* 1.5 * 2^52: adding it rounds to a whole number */
    double x = -(a < 707.0 ? a : 707.0);
    double shifted = x * log2_e + round_here;
    double k = shifted - round_here;
    double r = (x - k * ln2_high) - k * ln2_low;
    double p = 1.0 / 6227020800.0; /* 1/13!; |r| < 0.35, so the next term is below 1e-17 */
    p = p * r + 1.0 / 479001600.0;
    p = p * r + 1.0 / 39916800.0;
    p = p * r + 1.0 / 3628800.0;
    p = p * r + 1.0 / 362880.0;
    p = p * r + 1.0 / 40320.0;
    p = p * r + 1.0 / 5040.0;
    p = p * r + 1.0 / 720.0;
    p = p * r + 1.0 / 120.0;
    p = p * r + 1.0 / 24.0;
    p = p * r + 1.0 / 6.0;
    p = p * r + 0.5;
    p = p * r + 1.0;
    p = p * r + 1.0;
    int64_t bits, whole;
    memcpy(&bits, &p, sizeof bits);
    memcpy(&whole, &shifted, sizeof whole);
    bits += (int64_t)((uint64_t)whole << 52);
    memcpy(&p, &bits, sizeof p);
    return a < 707.0 ? p : a == a ? 0.0 : a;
}

/* log(1 + u) for 0 <= u <= 1, as 2 artanh(u / (2 + u)), to about one unit in the last place. */
static inline double log_one_plus(double u) {
    double z = u / (2.0 + u), s = z * z;
    double p = 1.0 / 33.0; /* s <= 1/9, so the next term is below 2e-17 */
    p = p * s + 1.0 / 31.0;
    p = p * s + 1.0 / 29.0;
    p = p * s + 1.0 / 27.0;
    p = p * s + 1.0 / 25.0;
    p = p * s + 1.0 / 23.0;
    p = p * s + 1.0 / 21.0;
    p = p * s + 1.0 / 19.0;
    p = p * s + 1.0 / 17.0;
    p = p * s + 1.0 / 15.0;
    p = p * s + 1.0 / 13.0;
    p = p * s + 1.0 / 11.0;
    p = p * s + 1.0 / 9.0;
    p = p * s + 1.0 / 7.0;
    p = p * s + 1.0 / 5.0;
    p = p * s + 1.0 / 3.0;
    return 2.0 * (z + z * (s * p));
}

/* From scores to losses and residuals: loss = w log(1 + exp(s)) - t s, residual = w p - t. */
FOR_EVERY_PROCESSOR
static void weighted_losses(const double *score, const double *weight, const double *positive, double *loss,
                            double *residual, Py_ssize_t rows) {
    for (Py_ssize_t i = 0; i < rows; i++) {
        double s = score[i];
        double u = exp_minus(fabs(s));
        double softplus = (s > 0.0 ? s : 0.0) + log_one_plus(u);
        double p = (s >= 0.0 ? 1.0 : u) / (1.0 + u);
        loss[i] = weight[i] * softplus - positive[i] * s;
        residual[i] = weight[i] * p - positive[i];
    }
}

/* The same where every w is 1, in two pieces: the loss is loss + log(factor), factor between 1 and 2. */
FOR_EVERY_PROCESSOR
static void plain_losses(const double *score, const double *positive, double *loss, double *factor, double *residual,
                         Py_ssize_t rows) {
    for (Py_ssize_t i = 0; i < rows; i++) {
        double s = score[i];
        double u = exp_minus(fabs(s));
        double v = 1.0 + u;
        factor[i] = v;
        loss[i] = (s > 0.0 ? s : 0.0) - positive[i] * s;
        residual[i] = (s >= 0.0 ? 1.0 : u) / v - positive[i];
    }
}

/* The sum of log(factor): logarithms of products, of at most TILE / LANES factors. What is left over is too little to
   multiply, and its logarithm is taken from what the score says: of a few rows it is exact however small it is. */
FOR_EVERY_PROCESSOR
static double add_logs(const double *factor, const double *score, Py_ssize_t rows) {
    double lane[LANES], total = 0.0;
    Py_ssize_t i = 0;
    for (int j = 0; j < LANES; j++) lane[j] = 1.0;
    for (; i + LANES <= rows; i += LANES)
        for (int j = 0; j < LANES; j++) lane[j] *= factor[i + j];
    for (; i < rows; i++) total += log_one_plus(exp_minus(fabs(score[i])));
    for (int j = 0; j < LANES; j++) total += log(lane[j]);
    return total;
}

/* p (1 - p) in place of every score */
FOR_EVERY_PROCESSOR
static void curvatures(double *score, Py_ssize_t rows) {
    for (Py_ssize_t i = 0; i < rows; i++) {
        double u = exp_minus(fabs(score[i]));
        double v = 1.0 + u;
        score[i] = u / (v * v);
    }
}

PyObject *kernel_curvature(PyObject *module, PyObject *args) {
    Py_buffer score;
    (void)module;
    if (!PyArg_ParseTuple(args, "w*", &score)) return NULL;
    Py_BEGIN_ALLOW_THREADS;
    curvatures(score.buf, score.len / (Py_ssize_t)sizeof(double));
    Py_END_ALLOW_THREADS;
    PyBuffer_Release(&score);
    Py_RETURN_NONE;
}

static double add_up(const double *values, Py_ssize_t rows) {
    double lane[LANES] = {0.0}, total = 0.0;
    Py_ssize_t i = 0;
    for (; i + LANES <= rows; i += LANES)
        for (int j = 0; j < LANES; j++) lane[j] += values[i + j];
    for (; i < rows; i++) total += values[i];
    for (int j = 0; j < LANES; j++) total += lane[j];
    return total;
}

typedef struct {
    Arrays packs, tables, sums;
    Py_buffer positive, weight;
    Py_buffer dense, slopes, slope_sums; /* numeric columns; their coefficients; sums of residual * column */
    double intercept, loss, residual;
} Pass;

static Py_ssize_t n_slopes(const Pass *pass) { return pass->slopes.len / (Py_ssize_t)sizeof(double); }

/* The numeric columns of a tile, one after the other. */
static void copy_dense(const Pass *pass, double *column, Py_ssize_t start, Py_ssize_t rows) {
    const Py_ssize_t by_row = pass->dense.strides[0], by_column = pass->dense.strides[1];
    for (Py_ssize_t j = 0; j < n_slopes(pass); j++) {
        const char *from = (const char *)pass->dense.buf + start * by_row + j * by_column;
        for (Py_ssize_t i = 0; i < rows; i++) memcpy(&column[j * TILE + i], from + i * by_row, sizeof(double));
    }
}

FOR_EVERY_PROCESSOR
static void add_dense(const Pass *pass, const double *column, double *score, Py_ssize_t rows) {
    const double *slope = pass->slopes.buf;
    for (Py_ssize_t j = 0; j < n_slopes(pass); j++)
        for (Py_ssize_t i = 0; i < rows; i++) score[i] += column[j * TILE + i] * slope[j];
}

FOR_EVERY_PROCESSOR
static void sum_dense(const Pass *pass, const double *column, const double *residual, Py_ssize_t rows) {
    double *sum = pass->slope_sums.buf, product[TILE];
    for (Py_ssize_t j = 0; j < n_slopes(pass); j++) {
        for (Py_ssize_t i = 0; i < rows; i++) product[i] = column[j * TILE + i] * residual[i];
        sum[j] += add_up(product, rows);
    }
}

/* The outcomes of a tile as doubles: where they lie, or a copy. */
static const double *outcomes(const Pass *pass, Py_ssize_t start, Py_ssize_t rows, double *copy) {
    if (pass->positive.itemsize != 1) return (const double *)pass->positive.buf + start;
    const uint8_t *given = (const uint8_t *)pass->positive.buf + start;
    for (Py_ssize_t i = 0; i < rows; i++) copy[i] = given[i];
    return copy;
}

static void run(Pass *pass, double *columns, Py_ssize_t rows) {
    double score[TILE], loss[TILE], residual[TILE], factor[TILE], copy[TILE];
    const double *weight = pass->weight.obj == NULL ? NULL : pass->weight.buf;
    for (Py_ssize_t start = 0; start < rows; start += TILE) {
        Py_ssize_t n = rows - start < TILE ? rows - start : TILE;
        for (Py_ssize_t i = 0; i < n; i++) score[i] = pass->intercept;
        look_up_tile(score, pass->packs.each, pass->tables.each, pass->packs.count, start, n);
        if (pass->dense.obj != NULL) {
            copy_dense(pass, columns, start, n);
            add_dense(pass, columns, score, n);
        }
        const double *positive = outcomes(pass, start, n, copy);
        if (weight == NULL) {
            plain_losses(score, positive, loss, factor, residual, n);
            pass->loss += add_up(loss, n) + add_logs(factor, score, n);
        } else {
            weighted_losses(score, weight + start, positive, loss, residual, n);
            pass->loss += add_up(loss, n);
        }
        pass->residual += add_up(residual, n);
        level_sums_tile(residual, pass->packs.each, pass->sums.each, pass->packs.count, start, n);
        if (pass->dense.obj != NULL) sum_dense(pass, columns, residual, n);
    }
}

static int fits(Pass *pass, Py_ssize_t rows) {
    int good = pass->packs.count == pass->tables.count && pass->packs.count == pass->sums.count &&
               (pass->positive.itemsize == 1 || pass->positive.itemsize == sizeof(double)) &&
               (pass->weight.obj == NULL || pass->weight.len == rows * (Py_ssize_t)sizeof(double)) &&
               pass->slopes.len == pass->slope_sums.len && pass->dense.len == rows * pass->slopes.len &&
               (pass->dense.obj == NULL ||
                (pass->dense.ndim == 2 && pass->dense.shape[0] == rows && pass->dense.shape[1] == n_slopes(pass)));
    if (!good) PyErr_SetString(PyExc_ValueError, "packs, tables, sums and weights do not fit each other");
    for (Py_ssize_t k = 0; good && k < pass->packs.count; k++) good = is_pack(&pass->packs.each[k], rows);
    return good;
}

static void close_pass(Pass *pass) {
    Py_buffer *each[] = {&pass->positive, &pass->weight, &pass->dense, &pass->slopes, &pass->slope_sums};
    for (size_t k = 0; k < sizeof each / sizeof *each; k++)
        if (each[k]->obj != NULL) PyBuffer_Release(each[k]);
    close_arrays(&pass->packs);
    close_arrays(&pass->tables);
    close_arrays(&pass->sums);
}

/* Open an array unless it is None; whether that went well. */
static int open_one(PyObject *array, int flags, Py_buffer *out) {
    return array == Py_None || PyObject_GetBuffer(array, out, PyBUF_C_CONTIGUOUS | flags) == 0;
}

PyObject *kernel_logistic(PyObject *module, PyObject *args) {
    PyObject *packs, *tables, *sums, *positive, *weight, *dense, *slopes, *slope_sums;
    Pass pass;
    memset(&pass, 0, sizeof pass);
    (void)module;
    if (!PyArg_ParseTuple(args, "dOOOOOOOO", &pass.intercept, &packs, &tables, &positive, &weight, &sums, &dense, &slopes,
                          &slope_sums))
        return NULL;
    int good = open_arrays(packs, 0, &pass.packs) == 0 && open_arrays(tables, 0, &pass.tables) == 0 &&
               open_arrays(sums, 1, &pass.sums) == 0 && PyObject_GetBuffer(positive, &pass.positive, PyBUF_C_CONTIGUOUS) == 0 &&
               open_one(weight, 0, &pass.weight) && (dense == Py_None || PyObject_GetBuffer(dense, &pass.dense, PyBUF_STRIDED_RO) == 0) && open_one(slopes, 0, &pass.slopes) &&
               open_one(slope_sums, PyBUF_WRITABLE, &pass.slope_sums);
    Py_ssize_t rows = good ? pass.positive.len / pass.positive.itemsize : 0;
    good = good && fits(&pass, rows);
    double *columns = good ? PyMem_Malloc((size_t)(n_slopes(&pass) + 1) * TILE * sizeof(double)) : NULL;
    if (good && columns == NULL) good = no_memory();
    if (good) {
        Py_BEGIN_ALLOW_THREADS;
        run(&pass, columns, rows);
        Py_END_ALLOW_THREADS;
    }
    PyMem_Free(columns);
    close_pass(&pass);
    return good ? Py_BuildValue("dd", pass.loss, pass.residual) : NULL;
}
