/* One step of L-BFGS in a box, from a Hessian in blocks: see `plainrisk.solve.approach`. */

#include <math.h>
#include <string.h>

#include "shared.h"

#define LITTLE 1e-3 /* of a step's curvature: what is left of it in the free variables says nothing */
#define FLAT 1e-11  /* a pivot of less than this share of its diagonal entry is rounding */
#define DAMPING 1e-6 /* added to the diagonal of blocks, relative to each entry: columns of a block may say the same */

typedef struct {
    Py_buffer point, gradient, lower, upper, corner, border, ridge, widths, blocks, steps, changes, d;
    Py_ssize_t n, remembered, n_blocks, widest;
    double *memory, *free, *q, *share, *curvature, *x, *factor; /* free is 1 where no bound holds a variable, else 0 */
    Py_ssize_t *at;
} Step;

static const double *numbers(const Py_buffer *buffer) { return buffer->buf; }

/* Of the free variables. */
static double product(const double *a, const double *b, const double *free, Py_ssize_t n) {
    double sum = 0.0;
    for (Py_ssize_t i = 0; i < n; i++) sum += a[i] * b[i] * free[i];
    return sum;
}

static void add_scaled(double *to, const double *from, double factor, const double *free, Py_ssize_t n) {
    for (Py_ssize_t i = 0; i < n; i++) to[i] += factor * from[i] * free[i];
}

/* Cholesky of the m variables `at` of a block; one that says nothing the others do not say gets an endless pivot, so it
   stays where it is. */
static void factorise(const Step *step, const double *block, const double *border, const double *ridge,
                      Py_ssize_t width, Py_ssize_t m) {
    const double corner = *numbers(&step->corner);
    double *L = step->factor;
    for (Py_ssize_t i = 0; i < m; i++)
        for (Py_ssize_t j = 0; j <= i; j++) {
            const Py_ssize_t a = step->at[i], b = step->at[j];
            double entry = block[a * width + b] - border[a] * border[b] / corner;
            if (i == j) entry += DAMPING * entry + ridge[a];
            double sum = entry;
            for (Py_ssize_t k = 0; k < j; k++) sum -= L[i * m + k] * L[j * m + k];
            L[i * m + j] = j < i ? sum / L[j * m + j] : sum > FLAT * entry && sum > 0.0 ? sqrt(sum) : INFINITY;
        }
}

static void substitute(const Step *step, Py_ssize_t m) {
    const double *L = step->factor;
    double *x = step->x;
    for (Py_ssize_t i = 0; i < m; i++) {
        for (Py_ssize_t j = 0; j < i; j++) x[i] -= L[i * m + j] * x[j];
        x[i] /= L[i * m + i];
    }
    for (Py_ssize_t i = m - 1; i >= 0; i--) {
        x[i] /= L[i * m + i];
        for (Py_ssize_t j = 0; j < i; j++) x[j] -= L[i * m + j] * x[i];
    }
}

/* d = H^-1 q in the free variables */
static void solve_blocks(const Step *step) {
    const double corner = *numbers(&step->corner), *border = numbers(&step->border), *block = numbers(&step->blocks);
    const double *q = step->q + 1, *free = step->free + 1, *ridge = numbers(&step->ridge);
    double *d = (double *)step->d.buf + 1, rest = step->q[0];
    const int64_t *widths = step->widths.buf;
    for (Py_ssize_t k = 0; k < step->n_blocks; k++) {
        const Py_ssize_t width = (Py_ssize_t)widths[k];
        Py_ssize_t m = 0;
        for (Py_ssize_t i = 0; i < width; i++) {
            d[i] = 0.0;
            if (free[i] == 0.0) continue;
            step->x[m] = q[i] - border[i] * (step->q[0] / corner);
            step->at[m++] = i;
        }
        factorise(step, block, border, ridge, width, m);
        substitute(step, m);
        for (Py_ssize_t i = 0; i < m; i++) {
            d[step->at[i]] = step->x[i];
            rest -= border[step->at[i]] * step->x[i];
        }
        d += width, q += width, free += width, border += width, ridge += width, block += width * width;
    }
    *(double *)step->d.buf = rest / corner;
}

/* The two loops of L-BFGS. */
static void direction(const Step *step) {
    const Py_ssize_t n = step->n;
    const double *free = step->free;
    double *d = step->d.buf;
    int used = 0;
    for (Py_ssize_t i = 0; i < n; i++) step->q[i] = -numbers(&step->gradient)[i] * free[i];
    for (Py_ssize_t k = step->remembered - 1; k >= 0; k--) {
        const double *s = numbers(&step->steps) + k * n, *y = numbers(&step->changes) + k * n;
        double whole = 0.0;
        for (Py_ssize_t i = 0; i < n; i++) whole += s[i] * y[i];
        step->curvature[k] = product(s, y, free, n);
        if (!(step->curvature[k] > LITTLE * whole)) {
            step->curvature[k] = 0.0;
            continue;
        }
        step->share[k] = product(s, step->q, free, n) / step->curvature[k];
        add_scaled(step->q, y, -step->share[k], free, n);
        used = 1;
    }
    solve_blocks(step);
    /* the blocks of features that go together all pull the same way */
    for (Py_ssize_t i = 0; !used && i < n; i++) d[i] /= sqrt((double)step->n_blocks);
    for (Py_ssize_t k = 0; k < step->remembered; k++) {
        const double *s = numbers(&step->steps) + k * n, *y = numbers(&step->changes) + k * n;
        if (step->curvature[k] != 0.0)
            add_scaled(d, s, step->share[k] - product(y, d, free, n) / step->curvature[k], free, n);
    }
}

static void find_step(const Step *step, double longest) {
    const double *point = numbers(&step->point), *g = numbers(&step->gradient);
    const double *lower = numbers(&step->lower), *upper = numbers(&step->upper);
    double *d = step->d.buf, most = 0.0;
    int outside = 0;
    for (Py_ssize_t i = 0; i < step->n; i++)
        step->free[i] = (point[i] <= lower[i] && g[i] > 0.0) || (point[i] >= upper[i] && g[i] < 0.0) ? 0.0 : 1.0;
    direction(step);
    /* Variables that would leave the box end at its bound, and the others go without them. */
    for (Py_ssize_t i = 0; i < step->n; i++) {
        int below = d[i] < lower[i] - point[i], above = d[i] > upper[i] - point[i];
        if (step->free[i] == 0.0 || !(below || above)) continue;
        step->free[i] = below ? -1.0 : -2.0;
        outside = 1;
    }
    if (outside) {
        double *to = step->x + step->widest; /* the bounds they end at */
        for (Py_ssize_t i = 0; i < step->n; i++) {
            to[i] = step->free[i] == -1.0 ? lower[i] - point[i] : step->free[i] == -2.0 ? upper[i] - point[i] : 0.0;
            if (step->free[i] < 0.0) step->free[i] = 0.0;
        }
        direction(step);
        for (Py_ssize_t i = 0; i < step->n; i++)
            if (step->free[i] == 0.0) d[i] = to[i];
    }
    for (Py_ssize_t i = 0; i < step->n; i++) most = fabs(d[i]) > most ? fabs(d[i]) : most;
    for (Py_ssize_t i = 0; most > longest && i < step->n; i++) d[i] *= longest / most;
}

/* ---- reading the arguments */

static int fits(const Step *step) {
    const Py_ssize_t number = sizeof(double), bytes = step->n * number;
    const int64_t *widths = step->widths.buf;
    Py_ssize_t columns = 0, entries = 0;
    for (Py_ssize_t k = 0; k < step->n_blocks; k++) {
        if (widths[k] < 0 || widths[k] > step->n) return 0;
        columns += (Py_ssize_t)widths[k];
        entries += (Py_ssize_t)(widths[k] * widths[k]);
        if (columns > step->n) return 0;
    }
    return step->n > 0 && columns == step->n - 1 && step->blocks.len == entries * number &&
           step->gradient.len == bytes && step->lower.len == bytes && step->upper.len == bytes && step->d.len == bytes &&
           step->border.len == bytes - number && step->ridge.len == bytes - number && step->corner.len == number &&
           step->steps.len == step->remembered * bytes && step->changes.len == step->steps.len;
}

static int make_room(Step *step) {
    const int64_t *widths = step->widths.buf;
    for (Py_ssize_t k = 0; k < step->n_blocks; k++)
        step->widest = widths[k] > step->widest ? (Py_ssize_t)widths[k] : step->widest;
    const size_t n = (size_t)step->n, widest = (size_t)step->widest, remembered = (size_t)step->remembered;
    step->memory = PyMem_Malloc((3 * n + 2 * remembered + widest + widest * widest) * sizeof(double));
    step->at = PyMem_Malloc((widest + 1) * sizeof(Py_ssize_t));
    if (step->memory == NULL || step->at == NULL) return no_memory();
    step->free = step->memory;
    step->q = step->free + n;
    step->share = step->q + n;
    step->curvature = step->share + remembered;
    step->x = step->curvature + remembered;
    step->factor = step->x + widest + n;
    return 1;
}

PyObject *kernel_block_step(PyObject *module, PyObject *args) {
    Step step;
    double longest;
    memset(&step, 0, sizeof step);
    (void)module;
    if (!PyArg_ParseTuple(args, "y*y*y*y*y*y*y*y*y*y*y*w*d", &step.point, &step.gradient, &step.lower, &step.upper,
                          &step.corner, &step.border, &step.ridge, &step.widths, &step.blocks, &step.steps,
                          &step.changes, &step.d, &longest))
        return NULL;
    step.n = step.point.len / (Py_ssize_t)sizeof(double);
    step.n_blocks = step.widths.len / (Py_ssize_t)sizeof(int64_t);
    step.remembered = step.n > 0 ? step.steps.len / step.point.len : 0;
    int good = fits(&step) || refuse("the point, the blocks and the steps do not fit each other");
    good = good && make_room(&step);
    if (good) {
        Py_BEGIN_ALLOW_THREADS;
        find_step(&step, longest);
        Py_END_ALLOW_THREADS;
    }
    PyMem_Free(step.memory);
    PyMem_Free(step.at);
    Py_buffer *each[] = {&step.point, &step.gradient, &step.lower,  &step.upper, &step.corner,  &step.border,
                         &step.ridge, &step.widths,   &step.blocks, &step.steps, &step.changes, &step.d};
    for (size_t k = 0; k < sizeof each / sizeof *each; k++) PyBuffer_Release(each[k]);
    if (!good) return NULL;
    Py_RETURN_NONE;
}
