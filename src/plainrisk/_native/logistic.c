/* One pass of the mean logistic loss over rows: scores, losses, residuals and their sums by level, a tile at a time. */

#include <math.h>
#include <string.h>

#include "dense.h"
#include "logistic.h"
#include "sums.h"

/* exp(-a) for a >= 0, to about one unit in the last place; below 1e-307 it is 0. */
static inline double exp_minus(double a) {
    const double log2_e = 1.4426950408889634, ln2_high = 6.93147180369123816490e-01, ln2_low = 1.90821492927058770002e-10;
    const double round_here = 6755399441055744.0; /* 1.5 * 2^52: adding it rounds to a whole number */
    double x = -(a < 707.0 ? a : 707.0);
    double shifted = x * log2_e + round_here;
    double k = shifted - round_here;
    double r = (x - k * ln2_high) - k * ln2_low;
    double p = 2.5110049204818658e-08; /* |r| < 0.35: through exp at Chebyshev points, it is off by less than 2e-17 between them */
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

/* From scores to losses and residuals: loss = w log(1 + exp(s)) - t s, residual = w p - t; and if wanted to curvatures
   bend = w p (1 - p). */
static inline void weigh(const double *restrict score, const double *restrict weight, const double *restrict positive,
                         double *restrict loss, double *restrict residual, double *restrict bend, int bent,
                         Py_ssize_t rows) {
    for (Py_ssize_t i = 0; i < rows; i++) {
        double s = score[i];
        double u = exp_minus(fabs(s));
        double softplus = (s > 0.0 ? s : 0.0) + log_one_plus(u);
        double p = (s >= 0.0 ? 1.0 : u) / (1.0 + u);
        loss[i] = weight[i] * softplus - positive[i] * s;
        residual[i] = weight[i] * p - positive[i];
        if (bent) bend[i] = weight[i] * (u / ((1.0 + u) * (1.0 + u)));
    }
}

/* The same where every w is 1, in two pieces: the loss is loss + log(factor), factor between 1 and 2. */
static inline void count(const double *restrict score, const double *restrict positive, double *restrict loss,
                         double *restrict factor, double *restrict residual, double *restrict bend, int bent,
                         Py_ssize_t rows) {
    for (Py_ssize_t i = 0; i < rows; i++) {
        double s = score[i];
        double u = exp_minus(fabs(s));
        double v = 1.0 + u;
        factor[i] = v;
        loss[i] = (s > 0.0 ? s : 0.0) - positive[i] * s;
        residual[i] = (s >= 0.0 ? 1.0 : u) / v - positive[i];
        if (bent) bend[i] = u / (v * v);
    }
}

FOR_EVERY_PROCESSOR
static void weighted_losses(const double *score, const double *weight, const double *positive, double *loss,
                            double *residual, Py_ssize_t rows) {
    weigh(score, weight, positive, loss, residual, NULL, 0, rows);
}

FOR_EVERY_PROCESSOR
static void weighted_bends(const double *score, const double *weight, const double *positive, double *loss,
                           double *residual, double *bend, Py_ssize_t rows) {
    weigh(score, weight, positive, loss, residual, bend, 1, rows);
}

FOR_EVERY_PROCESSOR
static void plain_losses(const double *score, const double *positive, double *loss, double *factor, double *residual,
                         Py_ssize_t rows) {
    count(score, positive, loss, factor, residual, NULL, 0, rows);
}

FOR_EVERY_PROCESSOR
static void plain_bends(const double *score, const double *positive, double *loss, double *factor, double *residual,
                        double *bend, Py_ssize_t rows) {
    count(score, positive, loss, factor, residual, bend, 1, rows);
}

/* The sum of log(factor): logarithms of products, of at most TILE / SUMS factors. What is left over is too little to
   multiply, and its logarithm is taken from what the score says: of a few rows it is exact however small it is. */
FOR_EVERY_PROCESSOR
static double add_logs(const double *factor, const double *score, Py_ssize_t rows) {
    double lane[SUMS], total = 0.0;
    Py_ssize_t i = 0;
    for (int j = 0; j < SUMS; j++) lane[j] = 1.0;
    for (; i + SUMS <= rows; i += SUMS)
        for (int j = 0; j < SUMS; j++) lane[j] *= factor[i + j];
    for (; i < rows; i++) total += log_one_plus(exp_minus(fabs(score[i])));
    for (int j = 0; j < SUMS; j++) total += log(lane[j]);
    return total;
}

/* From scores to p */
FOR_EVERY_PROCESSOR
static void probabilities(double *score, Py_ssize_t rows) {
    for (Py_ssize_t i = 0; i < rows; i++) {
        double s = score[i];
        double u = exp_minus(fabs(s));
        score[i] = (s >= 0.0 ? 1.0 : u) / (1.0 + u);
    }
}

/* From scores to curvatures p (1 - p) */
FOR_EVERY_PROCESSOR
static void bends(const double *score, double *bend, Py_ssize_t rows) {
    for (Py_ssize_t i = 0; i < rows; i++) {
        double u = exp_minus(fabs(score[i]));
        double v = 1.0 + u;
        bend[i] = u / (v * v);
    }
}

FOR_EVERY_PROCESSOR
static double add_up(const double *values, Py_ssize_t rows) {
    double lane[SUMS] = {0.0}, total = 0.0;
    Py_ssize_t i = 0;
    for (; i + SUMS <= rows; i += SUMS)
        for (int j = 0; j < SUMS; j++) lane[j] += values[i + j];
    for (; i < rows; i++) total += values[i];
    for (int j = 0; j < SUMS; j++) total += lane[j];
    return total;
}

FOR_EVERY_PROCESSOR
static void add_scaled(double *restrict to, const double *restrict from, double factor, Py_ssize_t rows) {
    for (Py_ssize_t i = 0; i < rows; i++) to[i] += from[i] * factor;
}

/* The outcomes of a tile as doubles: where they lie, or a copy. */
FOR_EVERY_PROCESSOR
static const double *outcomes(const Pass *pass, Py_ssize_t start, Py_ssize_t rows, double *copy) {
    if (pass->positive.itemsize != 1) return (const double *)pass->positive.buf + start;
    const uint8_t *given = (const uint8_t *)pass->positive.buf + start;
    for (Py_ssize_t i = 0; i < rows; i++) copy[i] = given[i];
    return copy;
}

static void score_rows(const Pass *pass, Py_ssize_t start, Py_ssize_t n, double *score, double *copy) {
    const LevelMap *map = &pass->map;
    const double intercept = *(const double *)pass->point.buf;
    const double *slope = (const double *)pass->point.buf + 1 + map->n_columns;
    for (Py_ssize_t i = 0; i < n; i++) score[i] = intercept;
    look_up_tile(score, map->packs.each, pass->tables, map->packs.count, start, n);
    for (Py_ssize_t j = 0; j < pass->n_dense; j++)
        add_scaled(score, dense_column(&pass->dense, j, start, n, copy), slope[j], n);
}

/* The losses of a tile, summed; its residuals, and unless `bend` is NULL its curvatures. */
static double losses(const Pass *pass, const double *score, const double *positive, Py_ssize_t start, Py_ssize_t n,
                     double *loss, double *factor, double *residual, double *bend) {
    const double *weight = pass->weight.buf == NULL ? NULL : (const double *)pass->weight.buf + start;
    if (weight == NULL && bend == NULL) plain_losses(score, positive, loss, factor, residual, n);
    if (weight == NULL && bend != NULL) plain_bends(score, positive, loss, factor, residual, bend, n);
    if (weight != NULL && bend == NULL) weighted_losses(score, weight, positive, loss, residual, n);
    if (weight != NULL && bend != NULL) weighted_bends(score, weight, positive, loss, residual, bend, n);
    return add_up(loss, n) + (weight == NULL ? add_logs(factor, score, n) : 0.0);
}

void add_rows(Pass *pass) {
    double score[TILE], loss[TILE], residual[TILE], factor[TILE], copy[TILE];
    const LevelMap *map = &pass->map;
    double *by_dense = (double *)pass->gradient.buf + 1 + map->n_columns;
    for (Py_ssize_t start = 0; start < map->rows; start += TILE) {
        Py_ssize_t n = map->rows - start < TILE ? map->rows - start : TILE;
        score_rows(pass, start, n, score, copy);
        const double *positive = outcomes(pass, start, n, copy);
        double *bend = pass->bend.buf == NULL ? NULL : (double *)pass->bend.buf + start;
        pass->loss += losses(pass, score, positive, start, n, loss, factor, residual, bend);
        *(double *)pass->gradient.buf += add_up(residual, n);
        level_sums_tile(residual, map->packs.each, pass->sums, map->packs.count, start, n);
        for (Py_ssize_t j = 0; j < pass->n_dense; j++)
            by_dense[j] += sum_of_products(residual, dense_column(&pass->dense, j, start, n, copy), n);
    }
}

/* Curvatures, and their sums by codes. */
static void bend_rows(Pass *pass) {
    double score[TILE], copy[TILE];
    const LevelMap *map = &pass->map;
    const double *weight = pass->weight.buf;
    for (Py_ssize_t start = 0; start < map->rows; start += TILE) {
        Py_ssize_t n = map->rows - start < TILE ? map->rows - start : TILE;
        double *bend = (double *)pass->bend.buf + start;
        score_rows(pass, start, n, score, copy);
        bends(score, bend, n);
        for (Py_ssize_t i = 0; weight != NULL && i < n; i++) bend[i] *= weight[start + i];
        level_sums_tile(bend, map->packs.each, pass->sums, map->packs.count, start, n);
    }
}

double sum_bends(Pass *pass) {
    const LevelMap *map = &pass->map;
    const double *bend = pass->bend.buf;
    double total = 0.0;
    for (Py_ssize_t k = 0; k < map->packs.count; k++)
        memset(pass->sums[k].buf, 0, (size_t)map->each[k].size * sizeof(double));
    for (Py_ssize_t start = 0; start < map->rows; start += TILE) {
        Py_ssize_t n = map->rows - start < TILE ? map->rows - start : TILE;
        total += add_up(bend + start, n);
        level_sums_tile(bend + start, map->packs.each, pass->sums, map->packs.count, start, n);
    }
    return total;
}

void add_numbers(Pass *pass, const Numbers *numbers, double *table) {
    double score[TILE], loss[TILE], residual[TILE], factor[TILE], bend[TILE], copy[TILE];
    const double *point = pass->point.buf;
    double *gradient = pass->gradient.buf, *sums = numbers->sums;
    const Py_ssize_t all = pass->map.rows, count = numbers->columns.count, n = 1 + count;
    for (Py_ssize_t start = 0; start < all; start += TILE) {
        Py_ssize_t rows = all - start < TILE ? all - start : TILE;
        find_tile(numbers, start, rows);
        for (Py_ssize_t i = 0; i < rows; i++) score[i] = point[0];
        for (Py_ssize_t j = 0; j < count; j++) add_scaled(score, numbers->tile[j], point[1 + j], rows);
        const double *positive = outcomes(pass, start, rows, copy);
        pass->loss += losses(pass, score, positive, start, rows, loss, factor, residual, table == NULL ? NULL : bend);
        gradient[0] += add_up(residual, rows);
        sums_of_products(residual, NULL, numbers->tile, count, rows, sums);
        for (Py_ssize_t j = 0; j < count; j++) gradient[1 + j] += sums[j];
        if (table == NULL) continue;
        table[0] += add_up(bend, rows);
        add_dense_pairs(bend, numbers->tile, count, rows, table, sums);
    }
    for (Py_ssize_t j = 1; table != NULL && j < n; j++) table[j * n] = table[j]; /* what was there before was the same */
}

void score_codes(Pass *pass) {
    const LevelMap *map = &pass->map;
    double *levels = pass->memory;
    memset(pass->memory, 0, pass->n_memory * sizeof(double));
    pass->loss = 0.0;
    score_levels(map, (const double *)pass->point.buf + 1, levels);
    for (Py_ssize_t k = 0; k < map->packs.count; k++) {
        const Pack *pack = &map->each[k];
        const int32_t *member = pack->members;
        double *table = pass->tables[k].buf;
        for (Py_ssize_t code = 0; code < pack->size; code++)
            for (Py_ssize_t f = 0; f < pack->features; f++) table[code] += levels[*member++];
    }
}

void codes_to_columns(Pass *pass, double *out) {
    const LevelMap *map = &pass->map;
    double *levels = pass->memory;
    memset(levels, 0, (size_t)map->n_levels * sizeof(double));
    for (Py_ssize_t k = 0; k < map->packs.count; k++) {
        const Pack *pack = &map->each[k];
        const int32_t *member = pack->members;
        const double *sum = pass->sums[k].buf;
        for (Py_ssize_t code = 0; code < pack->size; code++)
            for (Py_ssize_t f = 0; f < pack->features; f++) levels[*member++] += sum[code];
    }
    add_columns(map, levels, out);
}

/* ---- reading the arguments */

static Py_ssize_t n_codes(const LevelMap *map) {
    Py_ssize_t codes = 0;
    for (Py_ssize_t k = 0; k < map->packs.count; k++) codes += map->each[k].size;
    return codes;
}

int make_pass_room(Pass *pass, double *sums) {
    const LevelMap *map = &pass->map;
    const size_t codes = (size_t)n_codes(map), packs = (size_t)map->packs.count;
    pass->n_memory = (size_t)map->n_levels + (sums == NULL ? 2 : 1) * codes + 1;
    pass->memory = PyMem_Malloc(pass->n_memory * sizeof(double));
    pass->tables = PyMem_Calloc(2 * packs + 1, sizeof(Py_buffer));
    if (pass->memory == NULL || pass->tables == NULL) return no_memory();
    pass->sums = pass->tables + packs;
    double *next = pass->memory + map->n_levels;
    if (sums == NULL) sums = next + codes;
    for (size_t k = 0; k < packs; k++) {
        pass->tables[k].buf = next;
        pass->sums[k].buf = sums;
        next += map->each[k].size;
        sums += map->each[k].size;
    }
    return 1;
}

/* Open an array unless it is None; whether that went well. */
static int open_one(PyObject *array, int flags, Py_buffer *out) {
    return array == Py_None || PyObject_GetBuffer(array, out, flags) == 0;
}

/* What both kernels read: the point, the rows, their weights and columns. */
static int open_rows(PyObject *point, PyObject *packs, PyObject *map, PyObject *weight, PyObject *dense, Py_ssize_t rows,
                     Pass *pass) {
    if (!open_one(point, PyBUF_C_CONTIGUOUS, &pass->point) || !open_one(weight, PyBUF_C_CONTIGUOUS, &pass->weight) ||
        !open_one(dense, PyBUF_STRIDED_RO, &pass->dense))
        return 0;
    const Py_ssize_t number = sizeof(double);
    int good = pass->point.len >= number && (pass->weight.obj == NULL || pass->weight.len == rows * number) &&
               (pass->dense.obj == NULL ||
                (pass->dense.ndim == 2 && pass->dense.itemsize == number && pass->dense.shape[0] == rows));
    if (!good) return refuse("outcomes, weights and columns do not fit each other");
    pass->n_dense = pass->dense.obj == NULL ? 0 : pass->dense.shape[1];
    const Py_ssize_t n_columns = pass->point.len / number - 1 - pass->n_dense;
    if (n_columns < 0) return refuse("a coefficient for every column is needed");
    return open_level_map(packs, map, rows, n_columns, &pass->map);
}

static int open_pass(PyObject *args, Pass *pass) {
    PyObject *point, *packs, *map, *positive, *weight, *dense, *gradient;
    const int out = PyBUF_C_CONTIGUOUS | PyBUF_WRITABLE;
    if (!PyArg_ParseTuple(args, "OOOOOOO", &point, &packs, &map, &positive, &weight, &dense, &gradient)) return 0;
    if (!open_one(positive, PyBUF_C_CONTIGUOUS, &pass->positive) || !open_one(gradient, out, &pass->gradient)) return 0;
    const Py_ssize_t item = pass->positive.itemsize;
    if (item != 1 && item != sizeof(double)) return refuse("outcomes must be bytes or doubles: others do not fit");
    if (!open_rows(point, packs, map, weight, dense, pass->positive.len / item, pass)) return 0;
    if (pass->gradient.len != pass->point.len) return refuse("the point and the gradient do not fit each other");
    return make_pass_room(pass, NULL);
}

static int open_bends(PyObject *args, Pass *pass) {
    PyObject *point, *packs, *map, *weight, *dense, *bend, *codes;
    const int out = PyBUF_C_CONTIGUOUS | PyBUF_WRITABLE;
    const Py_ssize_t number = sizeof(double);
    if (!PyArg_ParseTuple(args, "OOOOOOO", &point, &packs, &map, &weight, &dense, &bend, &codes)) return 0;
    if (!open_one(bend, out, &pass->bend) || !open_one(codes, out, &pass->codes)) return 0;
    if (!open_rows(point, packs, map, weight, dense, pass->bend.len / number, pass)) return 0;
    if (pass->codes.len != n_codes(&pass->map) * number) return refuse("one sum for every code is needed");
    return make_pass_room(pass, pass->codes.buf);
}

static void close_pass(Pass *pass) {
    Py_buffer *each[] = {&pass->point, &pass->positive, &pass->weight, &pass->dense,
                         &pass->gradient, &pass->bend,  &pass->codes};
    for (size_t k = 0; k < sizeof each / sizeof *each; k++)
        if (each[k]->obj != NULL) PyBuffer_Release(each[k]);
    PyMem_Free(pass->memory);
    PyMem_Free(pass->tables);
    close_level_map(&pass->map);
}

PyObject *kernel_logistic(PyObject *module, PyObject *args) {
    Pass pass;
    memset(&pass, 0, sizeof pass);
    (void)module;
    int good = open_pass(args, &pass);
    if (good) {
        Py_BEGIN_ALLOW_THREADS;
        score_codes(&pass);
        add_rows(&pass);
        codes_to_columns(&pass, (double *)pass.gradient.buf + 1);
        Py_END_ALLOW_THREADS;
    }
    close_pass(&pass);
    return good ? PyFloat_FromDouble(pass.loss) : NULL;
}

PyObject *kernel_curvatures(PyObject *module, PyObject *args) {
    Pass pass;
    memset(&pass, 0, sizeof pass);
    (void)module;
    int good = open_bends(args, &pass);
    if (good) {
        Py_BEGIN_ALLOW_THREADS;
        score_codes(&pass);
        bend_rows(&pass);
        Py_END_ALLOW_THREADS;
    }
    close_pass(&pass);
    if (!good) return NULL;
    Py_RETURN_NONE;
}

PyObject *kernel_dense_newton(PyObject *module, PyObject *args) {
    PyObject *positive, *weight, *columns, *tables, *square;
    Py_buffer table = {0};
    Numbers numbers = {0};
    Pass pass;
    memset(&pass, 0, sizeof pass);
    (void)module;
    if (!PyArg_ParseTuple(args, "y*OOOOw*O", &pass.point, &positive, &weight, &columns, &tables, &pass.gradient, &square))
        return NULL;
    const Py_ssize_t number = sizeof(double), n = pass.point.len / number;
    int good = open_one(positive, PyBUF_C_CONTIGUOUS, &pass.positive) && open_one(weight, PyBUF_C_CONTIGUOUS, &pass.weight) &&
               open_one(square, PyBUF_C_CONTIGUOUS | PyBUF_WRITABLE, &table);
    const Py_ssize_t item = good && pass.positive.obj != NULL ? pass.positive.itemsize : 0;
    if (good && item != 1 && item != number) good = refuse("outcomes do not fit: bytes or doubles are needed");
    if (good) pass.map.rows = pass.positive.len / item;
    good = good && open_numbers(columns, tables, pass.map.rows, &numbers);
    if (good && (numbers.columns.count != n - 1 || (table.obj != NULL && table.len != n * n * number) || pass.gradient.len != n * number ||
                 (pass.weight.obj != NULL && pass.weight.len != pass.map.rows * number)))
        good = refuse("the point, the rows and the table do not fit each other");
    if (good) {
        Py_BEGIN_ALLOW_THREADS;
        add_numbers(&pass, &numbers, table.buf);
        Py_END_ALLOW_THREADS;
    }
    close_numbers(&numbers);
    close_pass(&pass);
    if (table.obj != NULL) PyBuffer_Release(&table);
    return good ? PyFloat_FromDouble(pass.loss) : NULL;
}

PyObject *kernel_look_up_risks(PyObject *module, PyObject *args) {
    PyObject *pack_list, *table_list;
    Py_buffer out;
    double start;
    (void)module;
    if (!PyArg_ParseTuple(args, "dOOw*", &start, &pack_list, &table_list, &out)) return NULL;
    Arrays packs = {0, NULL}, tables = {0, NULL};
    const Py_ssize_t all = out.len / (Py_ssize_t)sizeof(double);
    int good = open_arrays(pack_list, 0, &packs) == 0 && open_arrays(table_list, 0, &tables) == 0;
    if (good && packs.count != tables.count) good = refuse("as many tables as packs are needed");
    for (Py_ssize_t k = 0; good && k < packs.count; k++) good = is_pack(&packs.each[k], all);
    if (good) {
        Py_BEGIN_ALLOW_THREADS;
        double score[TILE]; /* memory that is fresh is written once */
        for (Py_ssize_t first = 0; first < all; first += TILE) {
            Py_ssize_t rows = all - first < TILE ? all - first : TILE;
            for (Py_ssize_t i = 0; i < rows; i++) score[i] = start;
            look_up_tile(score, packs.each, tables.each, packs.count, first, rows);
            probabilities(score, rows);
            memcpy((double *)out.buf + first, score, (size_t)rows * sizeof(double));
        }
        Py_END_ALLOW_THREADS;
    }
    close_arrays(&packs);
    close_arrays(&tables);
    PyBuffer_Release(&out);
    if (!good) return NULL;
    Py_RETURN_NONE;
}
