/* A quadratic of few variables, minimised in a box by block principal pivoting: guess which bounds hold, solve for the
   rest by Cholesky, move all variables on the wrong side at once. What does not end soon, or is nearly singular, is left
   to the caller, who has a slower way that always ends. */

#include <math.h>
#include <string.h>

#include "box.h"

enum { LOWER = -1, FREE = 0, UPPER = 1 };

#define PATIENCE 3 /* rounds in a row without fewer variables on the wrong side */

/* gradient = H d + g */
FOR_EVERY_PROCESSOR
static void slope(const Box *box) {
    memcpy(box->gradient, box->g, (size_t)box->n * sizeof(double));
    for (Py_ssize_t k = 0; k < box->n; k++) {
        double d = box->d[k];
        const double *row = box->H + k * box->n; /* also the column, since H is symmetric */
        if (d == 0.0) continue;
        for (Py_ssize_t i = 0; i < box->n; i++) box->gradient[i] += d * row[i];
    }
}

/* Cholesky, column by column; whether every pivot was more than rounding. */
FOR_EVERY_PROCESSOR
static int factorise(const Box *box) {
    const Py_ssize_t m = box->m;
    double *L = box->factor, *column = box->column;
    for (Py_ssize_t i = 0; i < m; i++)
        for (Py_ssize_t j = 0; j <= i; j++) L[i * m + j] = box->H[box->at[i] * box->n + box->at[j]];
    for (Py_ssize_t k = 0; k < m; k++) {
        double diagonal = box->H[box->at[k] * (box->n + 1)], pivot = L[k * m + k];
        if (!(pivot >= box->flat * diagonal) || !(pivot > 0.0) || !(pivot < INFINITY)) return 0;
        double root = sqrt(pivot);
        L[k * m + k] = root;
        for (Py_ssize_t i = k + 1; i < m; i++) column[i] = L[i * m + k] /= root;
        for (Py_ssize_t i = k + 1; i < m; i++) {
            double weight = column[i], *row = L + i * m;
            for (Py_ssize_t j = k + 1; j <= i; j++) row[j] -= weight * column[j];
        }
    }
    return 1;
}

/* x = (L L')^-1 x */
static void solve(const double *L, double *x, Py_ssize_t m) {
    for (Py_ssize_t i = 0; i < m; i++) {
        double sum = x[i];
        for (Py_ssize_t j = 0; j < i; j++) sum -= L[i * m + j] * x[j];
        x[i] = sum / L[i * m + i];
    }
    for (Py_ssize_t i = m - 1; i >= 0; i--) {
        double value = x[i] /= L[i * m + i];
        for (Py_ssize_t j = 0; j < i; j++) x[j] -= L[i * m + j] * value;
    }
}

/* The minimum if the bounds of `state` hold; whether it could be found. */
static int solve_free(Box *box) {
    box->m = 0;
    for (Py_ssize_t i = 0; i < box->n; i++) {
        box->d[i] = box->state[i] == LOWER ? box->lower[i] : box->state[i] == UPPER ? box->upper[i] : 0.0;
        if (box->state[i] == FREE) box->at[box->m++] = i;
    }
    slope(box);
    for (Py_ssize_t k = 0; k < box->m; k++) box->x[k] = -box->gradient[box->at[k]];
    if (!factorise(box)) return 0;
    solve(box->factor, box->x, box->m);
    for (Py_ssize_t k = 0; k < box->m; k++) box->d[box->at[k]] = box->x[k];
    slope(box);
    return 1;
}

/* Move all variables that are on the wrong side; how many they were. */
static Py_ssize_t move(Box *box, int really) {
    Py_ssize_t count = 0;
    for (Py_ssize_t i = 0; i < box->n; i++) {
        int8_t state = box->state[i];
        double d = box->d[i], gradient = box->gradient[i];
        int wrong = state == FREE    ? d < box->lower[i] || d > box->upper[i]
                    : state == LOWER ? gradient < -box->tolerance
                                     : gradient > box->tolerance;
        count += wrong;
        if (wrong && really) box->state[i] = state != FREE ? FREE : d < box->lower[i] ? LOWER : UPPER;
    }
    return count;
}

int minimise_box(Box *box) {
    Py_ssize_t best = box->n + 1;
    int patience = PATIENCE;
    double largest = 1e-300;
    for (Py_ssize_t i = 0; i < box->n; i++) {
        largest = fabs(box->g[i]) > largest ? fabs(box->g[i]) : largest;
        box->state[i] = box->lower[i] == 0.0 && box->g[i] > 0.0   ? LOWER
                        : box->upper[i] == 0.0 && box->g[i] < 0.0 ? UPPER
                                                                  : FREE;
    }
    box->tolerance = 1e-14 * largest;
    while (solve_free(box)) {
        Py_ssize_t count = move(box, 0);
        if (count == 0) return 1;
        if (count < best) {
            best = count;
            patience = PATIENCE;
        } else if (patience-- == 0)
            return 0;
        move(box, 1);
    }
    return 0;
}

int make_box_room(Box *box) {
    const size_t n = (size_t)box->n + 1;
    box->gradient = PyMem_Malloc(3 * n * sizeof(double));
    box->at = PyMem_Malloc(n * sizeof(Py_ssize_t));
    if (box->gradient == NULL || box->at == NULL) return no_memory();
    box->x = box->gradient + n;
    box->column = box->gradient + 2 * n;
    return 1;
}

void free_box_room(Box *box) {
    PyMem_Free(box->gradient);
    PyMem_Free(box->at);
}

/* ---- reading the arguments */

PyObject *kernel_minimise_in_box(PyObject *module, PyObject *args) {
    Py_buffer H, g, lower, upper, d, state, factor;
    Box box = {0};
    (void)module;
    if (!PyArg_ParseTuple(args, "y*y*y*y*w*w*w*d", &H, &g, &lower, &upper, &d, &state, &factor, &box.flat)) return NULL;
    box.n = state.len;
    const Py_ssize_t bytes = box.n * (Py_ssize_t)sizeof(double);
    int good = g.len == bytes && lower.len == bytes && upper.len == bytes && d.len == bytes && H.len == bytes * box.n &&
               factor.len == H.len;
    if (!good) refuse("the matrix, the vectors and the bounds do not fit each other");
    good = good && make_box_room(&box);
    int done = 0;
    if (good) {
        box.H = H.buf, box.g = g.buf, box.lower = lower.buf, box.upper = upper.buf;
        box.d = d.buf, box.state = state.buf, box.factor = factor.buf;
        Py_BEGIN_ALLOW_THREADS;
        done = minimise_box(&box);
        Py_END_ALLOW_THREADS;
    }
    free_box_room(&box);
    Py_buffer *each[] = {&H, &g, &lower, &upper, &d, &state, &factor};
    for (size_t k = 0; k < sizeof each / sizeof *each; k++) PyBuffer_Release(each[k]);
    return good ? PyBool_FromLong(done) : NULL;
}

PyObject *kernel_solve_factored(PyObject *module, PyObject *args) {
    Py_buffer factor, x;
    (void)module;
    if (!PyArg_ParseTuple(args, "y*w*", &factor, &x)) return NULL;
    const Py_ssize_t m = x.len / (Py_ssize_t)sizeof(double);
    int good = (m > 0 && factor.len == m * x.len) || refuse("the factor and the vector do not fit each other");
    if (good) solve(factor.buf, x.buf, m);
    PyBuffer_Release(&factor);
    PyBuffer_Release(&x);
    if (!good) return NULL;
    Py_RETURN_NONE;
}
