/* The logistic loss of few rows in a box, by Newton steps: `plainrisk.solve.bounded` in short.

   What it can not do at once (a singular Hessian, a step that lowers nothing) is left to that, from the start. */

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "box.h"
#include "logistic.h"
#include "pairs.h"

#define HALVINGS 40
#define MOST_POLISHED 12
#define SLOW 0.5      /* steps that shrink by less do not settle */
#define ABOUT 10.0    /* how far off a guess of the next step may be, from how steps shrank */
#define MATTERS 1e-3  /* the part of a step below which a variable's does not matter */
#define ENOUGH 1e-4   /* of what the slope promises */
#define JITTER 1e-13  /* added to the diagonal, relative to each entry */
#define SHORT 1e-3    /* a step after which the Hessian is as good as before */
#define MANY 4096     /* rows of which every so manieth tells where to begin, and how roughly */
#define EVERY 8
#define ENOUGH_ROWS 50 /* for each variable */
#define ROUGHLY 1e-4

typedef struct {
    Pass pass;
    Numbers numbers; /* there are packs or numbers, not both */
    Pairs pairs;
    Box box;
    Py_buffer point, gradient, ridge, lower, upper, history;
    Py_ssize_t n;      /* coefficients and the intercept */
    double total;      /* weight of all rows */
    double tolerance, settled;
    int is_far;        /* the point is far from the minimum */
    int bent;          /* curvatures are wanted with the objective */
    int has_bends;     /* and were had the last time */
    double value;      /* of the objective, at the point */
    double *memory, *H, *d, *last, *low, *high, *trial, *trial_gradient, *start, *bend; /* last is the step before d, or 0 */
    double *table; /* of numbers: sums by pairs of columns, if has_bends */
} Newton;

static const double *numbers(const Py_buffer *buffer) { return buffer->buf; }

/* The objective and its gradient. */
static double objective(Newton *newton, const double *point, double *gradient) {
    Pass *pass = &newton->pass;
    const double *ridge = numbers(&newton->ridge);
    memset(gradient, 0, (size_t)newton->n * sizeof(double));
    pass->point.buf = (void *)(uintptr_t)point;
    pass->gradient.buf = gradient;
    newton->has_bends = newton->bent;
    if (newton->numbers.columns.count > 0) {
        pass->loss = 0.0;
        if (newton->bent) memset(newton->table, 0, (size_t)(newton->n * newton->n) * sizeof(double));
        add_numbers(pass, &newton->numbers, newton->bent ? newton->table : NULL);
    } else {
        pass->bend.buf = newton->bent ? newton->bend : NULL;
        score_codes(pass);
        add_rows(pass);
        codes_to_columns(pass, gradient + 1);
    }
    double value = pass->loss / newton->total;
    for (Py_ssize_t i = 0; i < newton->n; i++) {
        value += ridge[i] * point[i] * point[i];
        gradient[i] = gradient[i] / newton->total + 2.0 * ridge[i] * point[i];
    }
    return value;
}

static void sum_pairs(Newton *newton) {
    Pass *pass = &newton->pass;
    const Py_ssize_t n = newton->n;
    double *H = newton->H;
    memset(H, 0, (size_t)(n * n) * sizeof(double));
    if (pass->map.packs.count < 2) H[0] = sum_bends(pass);
    add_all_pairs(&newton->pairs, pass->sums);
    if (pass->map.packs.count > 1)
        for (Py_ssize_t code = 0; code < pass->map.each[0].size; code++) H[0] += ((const double *)pass->sums[0].buf)[code];
    codes_to_columns(pass, H + 1);
    for (Py_ssize_t i = 1; i < n; i++) H[i * n] = H[i];
}

/* At the point, the last one the objective was asked for at. */
static void hessian(Newton *newton) {
    const Py_ssize_t n = newton->n;
    double *H = newton->H;
    if (!newton->has_bends) {
        newton->bent = 1;
        objective(newton, newton->point.buf, newton->trial_gradient);
    }
    if (newton->numbers.columns.count > 0) memcpy(H, newton->table, (size_t)(n * n) * sizeof(double));
    else sum_pairs(newton);
    for (Py_ssize_t i = 0; i < n * n; i++) H[i] /= newton->total;
    for (Py_ssize_t i = 0; i < n; i++) H[i * (n + 1)] = (H[i * (n + 1)] + 2.0 * numbers(&newton->ridge)[i]) * (1.0 + JITTER);
}

/* The step to the minimum of the quadratic model in the box, in d; what it promises, or below 0 if there is none. */
static double direction(Newton *newton) {
    const double *point = numbers(&newton->point);
    for (Py_ssize_t i = 0; i < newton->n; i++) {
        newton->low[i] = numbers(&newton->lower)[i] - point[i];
        newton->high[i] = numbers(&newton->upper)[i] - point[i];
    }
    if (!minimise_box(&newton->box)) return -1.0;
    double promise = 0.0; /* the box's gradient is H d + g */
    for (Py_ssize_t i = 0; i < newton->n; i++)
        promise -= 0.5 * newton->d[i] * (newton->box.g[i] + newton->box.gradient[i]);
    return promise > 0.0 ? promise : 0.0;
}

static void move_to(Newton *newton, double size) {
    const double *point = numbers(&newton->point), *lower = numbers(&newton->lower), *upper = numbers(&newton->upper);
    for (Py_ssize_t i = 0; i < newton->n; i++) {
        double to = point[i] + size * newton->d[i];
        newton->trial[i] = to < lower[i] ? lower[i] : to > upper[i] ? upper[i] : to;
    }
}

static void accept(Newton *newton, double value) {
    newton->value = value;
    memcpy(newton->point.buf, newton->trial, (size_t)newton->n * sizeof(double));
    memcpy(newton->gradient.buf, newton->trial_gradient, (size_t)newton->n * sizeof(double));
}

/* Halve the step until the objective falls enough; 1 if at once, 2 if later, 0 if never. */
static int search(Newton *newton) {
    double slope = 0.0, size = 1.0;
    for (Py_ssize_t i = 0; i < newton->n; i++) slope += newton->box.g[i] * newton->d[i];
    for (int k = 0; k < HALVINGS; k++, size *= 0.5) {
        move_to(newton, size);
        double value = objective(newton, newton->trial, newton->trial_gradient);
        if (value <= newton->value + ENOUGH * size * slope) {
            accept(newton, value);
            return k == 0 ? 1 : 2;
        }
    }
    return 0;
}

/* By how much a step is shorter than the last, in the variable that matters where that is least so. */
static double shrinking(const Newton *newton, double step) {
    double most = 0.0;
    for (Py_ssize_t i = 0; i < newton->n; i++) {
        double size = fabs(newton->d[i]), before = fabs(newton->last[i]);
        if (size <= MATTERS * step) continue;
        double ratio = before > 0.0 ? size / before : INFINITY;
        most = ratio > most ? ratio : most;
    }
    return most;
}

static double least(double a, double b) { return a < b ? a : b; }

static double longest(const double *d, Py_ssize_t n) {
    double step = 0.0;
    for (Py_ssize_t i = 0; i < n; i++) step = fabs(d[i]) > step ? fabs(d[i]) : step;
    return step;
}

/* How many steps it took; 0 if it did not end well. */
static Py_ssize_t run(Newton *newton) {
    const Py_ssize_t most = newton->history.len / (Py_ssize_t)sizeof(double) / 3;
    double *history = newton->history.buf, last_step = INFINITY;
    int polished = 0, fresh = 1; /* whether the Hessian is that of the point */
    newton->bent = 1;
    newton->value = objective(newton, newton->point.buf, newton->gradient.buf);
    for (Py_ssize_t k = 0; k < most; k++, history += 3) {
        if (fresh) hessian(newton);
        double promise = direction(newton), step = longest(newton->d, newton->n);
        if (promise < 0.0 || !(newton->value < INFINITY)) return 0;
        newton->bent = step > SHORT;
        double shrink = k > 0 && step < last_step ? step / last_step : 1.0; /* the first step shrinks nothing */
        int taken = 1;
        history[0] = newton->value, history[1] = promise, history[2] = step;
        if (promise <= newton->tolerance * (newton->value > 1e-3 ? newton->value : 1e-3)) {
            if (step > 0.0 && promise > 0.0) {
                move_to(newton, 1.0);
                accept(newton, objective(newton, newton->trial, newton->trial_gradient));
            }
            double rate = shrinking(newton, step), next = step * least(1.0, ABOUT * rate * (fresh ? rate : 1.0));
            if (next <= newton->settled || ++polished >= MOST_POLISHED || (polished > 2 && shrink > SLOW)) return k + 1;
        } else
            taken = search(newton);
        if (!taken) return 0;
        for (Py_ssize_t i = 0; i < newton->n; i++) newton->last[i] = taken == 1 ? newton->d[i] : 0.0;
        last_step = step;
        fresh = taken != 1 || step > SHORT || shrink > SLOW;
    }
    return 0;
}

/* ---- where to begin */

/* Let an array be every so manieth of its rows; the memory has room for a double each, so that all arrays are aligned. */
static char *thin(Py_buffer *array, Py_ssize_t few, char *memory) {
    const Py_ssize_t size = array->itemsize, step = EVERY * (array->strides == NULL ? size : array->strides[0]);
    const char *from = array->buf;
    for (Py_ssize_t i = 0; i < few; i++) memcpy(memory + i * size, from + i * step, (size_t)size);
    array->buf = memory;
    array->strides = &array->itemsize;
    return memory + few * (Py_ssize_t)sizeof(double);
}

static void set_rows(Newton *newton, Py_ssize_t rows) {
    newton->pass.map.rows = newton->pairs.map.rows = rows;
    newton->total = (double)rows;
}

static int has_both_outcomes(const Newton *newton) {
    const Py_buffer *positive = &newton->pass.positive;
    const Py_ssize_t size = positive->itemsize;
    for (Py_ssize_t i = 1; i < newton->pass.map.rows; i++)
        if (memcmp(positive->buf, (const char *)positive->buf + i * size, (size_t)size) != 0) return 1;
    return 0;
}

/* From the start to the minimum of some rows, roughly: the first steps are long, and need no more. `arrays` hold a number
   or a code per row, `saved` is room for as many, and `memory` for EVERY-th of their rows. */
static void begin(Newton *newton, Py_buffer **arrays, Py_buffer *saved, size_t count, char *memory) {
    const Py_ssize_t rows = newton->pass.map.rows, few = (rows + EVERY - 1) / EVERY;
    const double total = newton->total, settled = newton->settled, tolerance = newton->tolerance;
    const size_t bytes = (size_t)newton->n * sizeof(double);
    double *point = newton->point.buf;
    for (size_t k = 0; k < count; k++) {
        saved[k] = *arrays[k];
        memory = thin(arrays[k], few, memory);
    }
    set_rows(newton, few);
    newton->settled = INFINITY;
    newton->tolerance = ROUGHLY;
    memcpy(newton->start, point, bytes);
    if (!has_both_outcomes(newton) || run(newton) == 0) memcpy(point, newton->start, bytes);
    memset(newton->last, 0, bytes);
    newton->settled = settled;
    newton->tolerance = tolerance;
    set_rows(newton, rows);
    newton->total = total;
    for (size_t k = 0; k < count; k++) *arrays[k] = saved[k];
}

/* The same if that is worth it, and each row is one: cells of equal rows stand in an order. */
static void begin_on_some(Newton *newton) {
    Arrays *packs = &newton->pass.map.packs, *columns = &newton->numbers.columns;
    const size_t count = (size_t)(packs->count + columns->count) + 1;
    const size_t few = (size_t)(newton->pass.map.rows / EVERY) + 1;
    if (!newton->is_far || newton->pass.map.rows < MANY || newton->pass.weight.obj != NULL) return;
    if (few < ENOUGH_ROWS * (size_t)newton->n) return;
    Py_buffer **arrays = malloc(count * sizeof *arrays), *saved = malloc(count * sizeof *saved);
    char *memory = malloc(count * few * sizeof(double));
    if (arrays != NULL && saved != NULL && memory != NULL) {
        size_t k = 0;
        arrays[k++] = &newton->pass.positive;
        for (Py_ssize_t j = 0; j < columns->count; j++) arrays[k++] = &columns->each[j];
        for (Py_ssize_t j = 0; j < packs->count; j++) arrays[k++] = &packs->each[j];
        begin(newton, arrays, saved, count, memory);
    }
    free(arrays);
    free(saved);
    free(memory);
}

/* ---- reading the arguments */

static int make_room(Newton *newton) {
    const size_t n = (size_t)newton->n;
    /* Numbers need a table, packs the curvatures of rows. */
    const size_t more = newton->numbers.columns.count > 0 ? n * n : (size_t)newton->pass.map.rows;
    newton->memory = PyMem_Malloc((2 * n * n + 7 * n + more + 1) * sizeof(double));
    newton->box.state = PyMem_Malloc(n);
    if (newton->memory == NULL || newton->box.state == NULL) return no_memory();
    newton->H = newton->memory;
    newton->box.factor = newton->H + n * n;
    newton->d = newton->box.factor + n * n;
    newton->last = newton->d + n;
    memset(newton->last, 0, n * sizeof(double));
    newton->low = newton->last + n;
    newton->high = newton->low + n;
    newton->trial = newton->high + n;
    newton->trial_gradient = newton->trial + n;
    newton->start = newton->trial_gradient + n;
    newton->bend = newton->table = newton->start + n;
    newton->box.n = newton->n;
    newton->box.H = newton->H, newton->box.g = newton->gradient.buf, newton->box.d = newton->d;
    newton->box.lower = newton->low, newton->box.upper = newton->high;
    newton->pairs.map = newton->pass.map; /* which `pass` owns */
    newton->pairs.values.buf = newton->bend;
    newton->pairs.values.obj = NULL;
    newton->pairs.out.buf = newton->H + n + 1; /* without the intercept */
    newton->pairs.width = newton->n;
    return make_pass_room(&newton->pass, NULL) && make_box_room(&newton->box) &&
           make_pair_room(&newton->pairs, 0, newton->pass.map.packs.count - 1);
}

static int open_newton(PyObject *args, Newton *newton) {
    PyObject *packs, *map, *weight, *columns, *tables;
    Pass *pass = &newton->pass;
    if (!PyArg_ParseTuple(args, "w*OOy*OOOy*y*y*dddw*w*dp", &newton->point, &packs, &map, &pass->positive, &weight, &columns,
                          &tables, &newton->ridge, &newton->lower, &newton->upper, &newton->total, &newton->tolerance,
                          &newton->settled, &newton->gradient, &newton->history, &newton->box.flat, &newton->is_far))
        return 0;
    if (weight != Py_None && PyObject_GetBuffer(weight, &pass->weight, PyBUF_C_CONTIGUOUS)) return 0;
    const Py_ssize_t number = sizeof(double), item = pass->positive.itemsize, bytes = newton->point.len;
    newton->n = bytes / number;
    int good = newton->n > 0 && newton->gradient.len == bytes && newton->ridge.len == bytes && newton->lower.len == bytes &&
               newton->upper.len == bytes && (item == 1 || item == number);
    const Py_ssize_t rows = good ? pass->positive.len / item : 0;
    if (!good || (weight != Py_None && pass->weight.len != rows * number))
        return refuse("the point, its bounds, outcomes, weights and columns do not fit each other");
    if (!open_numbers(columns, tables, rows, &newton->numbers)) return 0;
    const Py_ssize_t count = newton->numbers.columns.count;
    /* Products of levels with numbers are not taken here. */
    if (count && PySequence_Size(packs) != 0) return refuse("rows must have packs or numeric columns, not both");
    if (count && count != newton->n - 1) return refuse("the point and the columns do not fit each other");
    return open_level_map(packs, map, rows, newton->n - 1 - count, &pass->map) && make_room(newton);
}

static void close_newton(Newton *newton) {
    Pass *pass = &newton->pass;
    Py_buffer *each[] = {&newton->point,   &newton->gradient, &newton->ridge, &newton->lower, &newton->upper,
                         &newton->history, &pass->positive,   &pass->weight};
    for (size_t k = 0; k < sizeof each / sizeof *each; k++)
        if (each[k]->obj != NULL) PyBuffer_Release(each[k]);
    close_numbers(&newton->numbers);
    free_pair_room(&newton->pairs);
    free_box_room(&newton->box);
    PyMem_Free(newton->memory);
    PyMem_Free(newton->box.state);
    PyMem_Free(pass->memory);
    PyMem_Free(pass->tables);
    close_level_map(&pass->map);
}

PyObject *kernel_newton(PyObject *module, PyObject *args) {
    Newton newton;
    Py_ssize_t steps = 0;
    memset(&newton, 0, sizeof newton);
    (void)module;
    int good = open_newton(args, &newton);
    if (good) {
        Py_BEGIN_ALLOW_THREADS;
        begin_on_some(&newton);
        steps = run(&newton);
        Py_END_ALLOW_THREADS;
    }
    close_newton(&newton);
    return good ? Py_BuildValue("nd", steps, newton.value) : NULL;
}
