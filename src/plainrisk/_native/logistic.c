/* The logistic loss of rows, its gradient by joint code, and curvatures, a tile of rows at a time.

   With score s, total weight w and positive weight t of a row, and p = 1 / (1 + exp(-s)):

       loss = w log(1 + exp(s)) - t s      residual = w p - t      curvature = w p (1 - p)

   The exponential and the logarithm are our own, so that the compiler can vectorize them; they agree with the C library's
   to about one unit in the last place. */

#include <math.h>
#include <string.h>

#include "sums.h"

#define LANES 8 /* partial sums, so that additions need not wait for each other */

/* exp(-a) for a >= 0, to about one unit in the last place; below 1e-307 it is 0. */
static inline double exp_minus(double a) {
    const double log2_e = 1.4426950408889634, ln2_high = 6.93147180369123816490e-01, ln2_low = 1.90821492927058770002e-10;
    const double round_here = 6755399441055744.0; /* 1.5 * 2^52: adding it rounds to a whole number */
    double x = -(a < 707.0 ? a : 707.0);
    double shifted = x * log2_e + round_here;
    double k = shifted - round_here;
    double r = (x - k * ln2_high) - k * ln2_low;
    double p = 2.5110049204818658e-08; /* |r| < 0.35: interpolates exp at Chebyshev points with an error below 2e-17 */
    p = p * r + 2.763265472252779e-07;
    p = p * r + 2.755724088722987e-06;
    p = p * r + 2.4801485441561313e-05;
    p = p * r + 0.00019841269890076403;
    p = p * r + 0.0013888888952352863;
    p = p * r + 0.008333333333319589;
    p = p * r + 0.04166666666648795;
    p = p * r + 0.1666666666666668;
    p = p * r + 0.5000000000000019;
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
    double p = 0.08082022805971766; /* s <= 1/9: (artanh(z) / z - 1) / s, in the same way */
    p = p * s + 0.04400369243072337;
    p = p * s + 0.06000536404795356;
    p = p * s + 0.06657072104827468;
    p = p * s + 0.07692785032479312;
    p = p * s + 0.09090894718066429;
    p = p * s + 0.11111111358713932;
    p = p * s + 0.1428571428355438;
    p = p * s + 0.20000000000007292;
    p = p * s + 0.3333333333333333;
    return 2.0 * (z + z * (s * p));
}

FOR_EVERY_PROCESSOR
static void losses(const double *restrict score, const double *restrict weight, const double *restrict positive,
                   double *restrict loss, double *restrict residual, double *restrict curvature, Py_ssize_t rows) {
    for (Py_ssize_t i = 0; i < rows; i++) {
        double s = score[i];
        double u = exp_minus(fabs(s)), v = 1.0 + u;
        loss[i] = weight[i] * ((s > 0.0 ? s : 0.0) + log_one_plus(u)) - positive[i] * s;
        residual[i] = weight[i] * ((s >= 0.0 ? 1.0 : u) / v) - positive[i];
        curvature[i] = weight[i] * (u / (v * v));
    }
}

FOR_EVERY_PROCESSOR
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
    Py_buffer offset, positive, weight, residual, curvature; /* one double per row; all but positive may be None */
    Arrays codes, tables, sums;
    Py_ssize_t rows;
} Pass;

/* The outcomes of a tile as doubles: where they lie, or a copy. */
static const double *outcomes(const Pass *pass, Py_ssize_t start, Py_ssize_t rows, double *copy) {
    if (pass->positive.itemsize == sizeof(double)) return (const double *)pass->positive.buf + start;
    const uint8_t *given = (const uint8_t *)pass->positive.buf + start;
    for (Py_ssize_t i = 0; i < rows; i++) copy[i] = given[i];
    return copy;
}

static void run(const Pass *pass, double intercept, double *loss_sum, double *residual_sum) {
    double score[TILE], loss[TILE], residual[TILE], curvature[TILE], copy[TILE], ones[TILE];
    for (Py_ssize_t i = 0; i < TILE; i++) ones[i] = 1.0;
    for (Py_ssize_t start = 0; start < pass->rows; start += TILE) {
        const Py_ssize_t n = pass->rows - start < TILE ? pass->rows - start : TILE;
        const double *offset = pass->offset.buf, *weight = pass->weight.buf;
        for (Py_ssize_t i = 0; i < n; i++) score[i] = intercept + (offset == NULL ? 0.0 : offset[start + i]);
        look_up_tile(score, pass->codes.each, pass->tables.each, pass->codes.count, start, n);
        losses(score, weight == NULL ? ones : weight + start, outcomes(pass, start, n, copy), loss, residual, curvature, n);
        *loss_sum += add_up(loss, n);
        *residual_sum += add_up(residual, n);
        level_sums_tile(residual, pass->codes.each, pass->sums.each, pass->codes.count, start, n);
        if (pass->residual.buf != NULL) memcpy((double *)pass->residual.buf + start, residual, (size_t)n * sizeof(double));
        if (pass->curvature.buf != NULL) memcpy((double *)pass->curvature.buf + start, curvature, (size_t)n * sizeof(double));
    }
}

/* Open an array of doubles, or nothing for None; whether that went well. */
static int open_doubles(PyObject *array, int writable, Py_ssize_t rows, Py_buffer *out) {
    if (array == Py_None) return 1;
    if (PyObject_GetBuffer(array, out, PyBUF_C_CONTIGUOUS | (writable ? PyBUF_WRITABLE : 0))) return 0;
    return out->len == rows * (Py_ssize_t)sizeof(double) || refuse("one double per row is needed");
}

static int open_pass(PyObject *args, double *intercept, Pass *pass) {
    PyObject *offset, *codes, *tables, *positive, *weight, *sums, *residual, *curvature;
    if (!PyArg_ParseTuple(args, "dOOOOOOOO", intercept, &offset, &codes, &tables, &positive, &weight, &sums, &residual,
                          &curvature) ||
        PyObject_GetBuffer(positive, &pass->positive, PyBUF_C_CONTIGUOUS))
        return 0;
    if (pass->positive.itemsize != 1 && pass->positive.itemsize != sizeof(double))
        return refuse("outcomes are bytes or doubles");
    pass->rows = pass->positive.len / pass->positive.itemsize;
    return open_doubles(offset, 0, pass->rows, &pass->offset) && open_doubles(weight, 0, pass->rows, &pass->weight) &&
           open_doubles(residual, 1, pass->rows, &pass->residual) &&
           open_doubles(curvature, 1, pass->rows, &pass->curvature) && open_codes(codes, pass->rows, &pass->codes) &&
           open_tables(tables, 0, &pass->codes, &pass->tables) && open_tables(sums, 1, &pass->codes, &pass->sums);
}

PyObject *kernel_logistic(PyObject *module, PyObject *args) {
    Pass pass;
    double intercept, loss = 0.0, residual = 0.0;
    memset(&pass, 0, sizeof pass);
    (void)module;
    int good = open_pass(args, &intercept, &pass);
    if (good) {
        Py_BEGIN_ALLOW_THREADS;
        run(&pass, intercept, &loss, &residual);
        Py_END_ALLOW_THREADS;
    }
    close_arrays(&pass.codes);
    close_arrays(&pass.tables);
    close_arrays(&pass.sums);
    Py_buffer *each[] = {&pass.offset, &pass.positive, &pass.weight, &pass.residual, &pass.curvature};
    for (size_t k = 0; k < sizeof each / sizeof *each; k++)
        if (each[k]->obj != NULL) PyBuffer_Release(each[k]);
    return good ? Py_BuildValue("dd", loss, residual) : NULL;
}
