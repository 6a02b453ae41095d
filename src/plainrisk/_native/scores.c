/* Scores: for every row the sum of what its features add, each found by comparing a number with a few others.

   A chain of comparisons has no branch and no look-up, so several rows go through it at once. Rows are worked on a
   tile at a time: the tile's columns are laid out one after the other, and everything stays in the nearest caches. */

#include <math.h>

#include "shared.h"

#define LONGEST_CHAIN 48 /* edges; beyond, a binary search is quicker */

/* What one column adds to one score; `Chain` in scores.py says what the numbers mean. */
typedef struct {
    Py_ssize_t column, score, n_edges, n_equal;
    const double *head, *values, *edges, *equal_values, *equal;
} Step;

enum { MISSING, LIMIT, IS_LINE, SLOPE, CENTER, MOST, LOW, BELOW, HEAD }; /* the head of a chain */
enum { COLUMN, SCORE, START, N_EDGES, N_EQUAL, PLAN };                   /* a row of the plan */

/* ---- what every row of a tile gets from one column */

/* Both numbers are read before the choice: a choice whether to read would be a branch. */
#define HIT(COMPARISON, NUMBERS, VALUES, COUNT)                                                                        \
    for (int k = 0; k < (COUNT); k++) {                                                                                \
        double number = (NUMBERS)[k], other = (VALUES)[k];                                                             \
        value = at COMPARISON number ? other : value;                                                                  \
    }

#define ARGUMENTS const Step *step, const double *restrict x, double *restrict score, Py_ssize_t rows

/* With counts that the compiler knows, all numbers stay in registers. */
#define SHORT_CHAIN(N_EDGES_, N_EQUAL_)                                                                                \
    FOR_EVERY_PROCESSOR                                                                                                \
    static void chain_##N_EDGES_##_##N_EQUAL_(ARGUMENTS) {                                                             \
        const double *restrict edges = step->edges, *restrict values = step->values;                                   \
        const double *restrict equal = step->equal, *restrict equal_values = step->equal_values;                       \
        double missing = step->head[MISSING], limit = step->head[LIMIT];                                               \
        for (Py_ssize_t i = 0; i < rows; i++) {                                                                        \
            double at = x[i], value = values[0];                                                                       \
            HIT(>, edges, values + 1, N_EDGES_)                                                                        \
            HIT(==, equal, equal_values, N_EQUAL_)                                                                     \
            value = fabs(at) > limit ? (double)NAN : value;                                                            \
            score[i] += at != at ? missing : value;                                                                    \
        }                                                                                                              \
    }

SHORT_CHAIN(0, 0)
SHORT_CHAIN(0, 2)
SHORT_CHAIN(0, 4)
SHORT_CHAIN(0, 6)
SHORT_CHAIN(0, 8)
SHORT_CHAIN(2, 0)
SHORT_CHAIN(2, 2)
SHORT_CHAIN(4, 0)
SHORT_CHAIN(4, 2)
SHORT_CHAIN(6, 0)
SHORT_CHAIN(6, 2)
SHORT_CHAIN(8, 0)
SHORT_CHAIN(8, 2)

typedef void (*AddChain)(ARGUMENTS);

/* By the number of pairs of edges and of pairs of numbers to be equal to. */
static const AddChain short_chains[5][5] = {
    {chain_0_0, chain_0_2, chain_0_4, chain_0_6, chain_0_8},
    {chain_2_0, chain_2_2, NULL, NULL, NULL},
    {chain_4_0, chain_4_2, NULL, NULL, NULL},
    {chain_6_0, chain_6_2, NULL, NULL, NULL},
    {chain_8_0, chain_8_2, NULL, NULL, NULL},
};

static AddChain short_chain(const Step *step) {
    Py_ssize_t edges = step->n_edges / 2, equal = step->n_equal / 2;
    return edges < 5 && equal < 5 ? short_chains[edges][equal] : NULL;
}

/* Longer ones in several turns. */
#define SOME_OF_A_CHAIN(NAME, COMPARISON, COUNT)                                                                       \
    FOR_EVERY_PROCESSOR                                                                                                \
    static void NAME(const double *restrict x, double *restrict v, Py_ssize_t rows, const double *restrict numbers,    \
                     const double *restrict values) {                                                                  \
        for (Py_ssize_t i = 0; i < rows; i++) {                                                                        \
            double at = x[i], value = v[i];                                                                            \
            HIT(COMPARISON, numbers, values, COUNT)                                                                    \
            v[i] = value;                                                                                              \
        }                                                                                                              \
    }

SOME_OF_A_CHAIN(two_above, >, 2)
SOME_OF_A_CHAIN(eight_above, >, 8)
SOME_OF_A_CHAIN(two_equal, ==, 2)
SOME_OF_A_CHAIN(eight_equal, ==, 8)

/* The values of the bins by a binary search, a step for all rows after the other. */
FOR_EVERY_PROCESSOR
static void search(const double *restrict x, double *restrict v, Py_ssize_t rows, const double *restrict edges,
                   const double *restrict values, Py_ssize_t count) {
    int64_t at[MOST_ROWS];
    for (Py_ssize_t i = 0; i < rows; i++) at[i] = 0;
    for (int64_t left = count; left > 1; left -= left / 2) {
        int64_t half = left / 2;
        for (Py_ssize_t i = 0; i < rows; i++) at[i] += x[i] > edges[at[i] + half - 1] ? half : 0;
    }
    for (Py_ssize_t i = 0; i < rows; i++) v[i] = values[at[i] + (x[i] > edges[at[i]] ? 1 : 0)];
}

FOR_EVERY_PROCESSOR
static void on_line(const double *restrict x, double *restrict v, Py_ssize_t rows, const double *restrict head) {
    double slope = head[SLOPE], center = head[CENTER], most = head[MOST], low = head[LOW], below = head[BELOW];
    for (Py_ssize_t i = 0; i < rows; i++) {
        double value = slope * (x[i] - center);
        value = value < -most ? -most : value;
        value = value > most ? most : value;
        v[i] = x[i] < low ? below : value;
    }
}

FOR_EVERY_PROCESSOR
static void add(double *restrict score, const double *restrict x, const double *restrict v, Py_ssize_t rows,
                double limit, double missing) {
    for (Py_ssize_t i = 0; i < rows; i++) {
        double value = fabs(x[i]) > limit ? (double)NAN : v[i];
        score[i] += x[i] != x[i] ? missing : value;
    }
}

static void add_long_chain(ARGUMENTS) {
    double v[MOST_ROWS];
    if (step->head[IS_LINE] != 0)
        on_line(x, v, rows, step->head);
    else if (step->n_edges > LONGEST_CHAIN)
        search(x, v, rows, step->edges, step->values, step->n_edges);
    else {
        Py_ssize_t k = 0;
        for (Py_ssize_t i = 0; i < rows; i++) v[i] = step->values[0];
        for (; k + 8 <= step->n_edges; k += 8) eight_above(x, v, rows, step->edges + k, step->values + 1 + k);
        for (; k < step->n_edges; k += 2) two_above(x, v, rows, step->edges + k, step->values + 1 + k);
    }
    Py_ssize_t k = 0;
    for (; k + 8 <= step->n_equal; k += 8) eight_equal(x, v, rows, step->equal + k, step->equal_values + k);
    for (; k < step->n_equal; k += 2) two_equal(x, v, rows, step->equal + k, step->equal_values + k);
    add(score, x, v, rows, step->head[LIMIT], step->head[MISSING]);
}

static void add_step(ARGUMENTS) {
    AddChain add_short = step->head[IS_LINE] != 0 ? NULL : short_chain(step);
    if (add_short != NULL)
        add_short(step, x, score, rows);
    else
        add_long_chain(step, x, score, rows);
}

FOR_EVERY_PROCESSOR
static int all_numbers(const double *score, Py_ssize_t rows) {
    int64_t odd = 0;
    for (Py_ssize_t i = 0; i < rows; i++) odd |= score[i] != score[i] ? 1 : 0;
    return !odd;
}

/* Add to a tile of a score; return whether all of it are numbers as far as they were looked at. */
static int add_to(const Column *score, Py_ssize_t start, const Step *step, const double *x, Py_ssize_t rows) {
    if (in_one_piece(score)) {
        add_step(step, x, (double *)score->data + start, rows);
        return 1;
    }
    double sum[FAR_ROWS];
    char *to = score->data + start * score->stride;
    for (Py_ssize_t i = 0; i < rows; i++) sum[i] = *(double *)(to + i * score->stride);
    add_step(step, x, sum, rows);
    for (Py_ssize_t i = 0; i < rows; i++) *(double *)(to + i * score->stride) = sum[i];
    return all_numbers(sum, rows);
}

static int add_all(const Columns *scores, const Columns *columns, const Step *steps, Py_ssize_t n_steps,
                   Py_ssize_t n_rows) {
    double copy[MOST_ROWS];
    Py_ssize_t tile = columns->room == NULL && scores->room == NULL ? MOST_ROWS : FAR_ROWS;
    int good = 1;
    for (Py_ssize_t start = 0; start < n_rows && good; start += tile) {
        Py_ssize_t rows = n_rows - start < tile ? n_rows - start : tile;
        if (columns->room != NULL) lay_out(columns, start, rows);
        for (const Step *step = steps; step < steps + n_steps; step++) {
            const double *x = tile_of(columns, step->column, start, rows, copy);
            good &= add_to(scores->each + step->score, start, step, x, rows);
        }
        for (Py_ssize_t k = 0; k < scores->count; k++)
            if (in_one_piece(scores->each + k))
                good &= all_numbers((const double *)scores->each[k].data + start, rows);
    }
    return good;
}

/* ---- the arguments, none of which is trusted */

#define PLAN_BYTES ((Py_ssize_t)(PLAN * sizeof(int64_t)))

static int are_scores(const Columns *scores) {
    for (Py_ssize_t k = 0; k < scores->count; k++) {
        const Column *score = scores->each + k;
        if (score->kind != 'f' || score->size != sizeof(double) || !(in_one_piece(score) || is_far(score)))
            return refuse("a score must be float64");
    }
    return 1;
}

static Step *read_steps(const Py_buffer *plan, const Py_buffer *numbers, Py_ssize_t n_columns, Py_ssize_t n_scores) {
    const int64_t *row = plan->buf, n_numbers = numbers->len / (Py_ssize_t)sizeof(double);
    Py_ssize_t n_steps = plan->len / PLAN_BYTES;
    Step *steps = PyMem_Calloc((size_t)n_steps + 1, sizeof(Step));
    if (steps == NULL) no_memory();
    for (Py_ssize_t k = 0; steps != NULL && k < n_steps; k++, row += PLAN) {
        int64_t edges = row[N_EDGES], equal = row[N_EQUAL], start = row[START];
        int known = row[COLUMN] >= 0 && row[COLUMN] < n_columns && row[SCORE] >= 0 && row[SCORE] < n_scores;
        int counts = edges >= 0 && equal >= 0 && edges <= n_numbers && equal <= n_numbers && (edges | equal) % 2 == 0;
        if (!known || !counts || start < 0 || start > n_numbers - (HEAD + 1 + 2 * edges + 2 * equal)) {
            refuse("the plan does not fit the columns, the scores or the numbers");
            PyMem_Free(steps);
            return NULL;
        }
        const double *head = (const double *)numbers->buf + start, *values = head + HEAD, *above = values + 1 + edges;
        steps[k] = (Step){row[COLUMN], row[SCORE], edges, equal, head, values, above, above + edges,
                          above + edges + equal};
    }
    return steps;
}

PyObject *kernel_add_chains(PyObject *module, PyObject *args) {
    PyObject *score_list, *column_list;
    Py_buffer plan, numbers;
    Py_ssize_t rows;
    (void)module;
    if (!PyArg_ParseTuple(args, "OOny*y*", &score_list, &column_list, &rows, &plan, &numbers)) return NULL;
    Arrays score_arrays = {0, NULL}, column_arrays = {0, NULL};
    Columns scores = {0, NULL, NULL}, columns = {0, NULL, NULL};
    Step *steps = NULL;
    int found = 0;
    if (open_columns(score_list, 1, &score_arrays) == 0 && open_columns(column_list, 0, &column_arrays) == 0 &&
        read_columns(&score_arrays, rows, &scores) && are_scores(&scores) &&
        read_columns(&column_arrays, rows, &columns))
        steps = read_steps(&plan, &numbers, columns.count, scores.count);
    int good = steps != NULL;
    if (good) {
        Py_BEGIN_ALLOW_THREADS;
        found = add_all(&scores, &columns, steps, plan.len / PLAN_BYTES, rows);
        Py_END_ALLOW_THREADS;
    }
    PyMem_Free(steps);
    free_columns(&scores);
    free_columns(&columns);
    close_arrays(&score_arrays);
    close_arrays(&column_arrays);
    PyBuffer_Release(&plan);
    PyBuffer_Release(&numbers);
    return good ? PyBool_FromLong(found) : NULL;
}
