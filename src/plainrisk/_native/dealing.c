/* Folds: cards are shuffled, rows put in the order of their folds, and counted. */

#include <string.h>

#include "shared.h"
#include "sums.h"

/* Count the rows of every fold; whether each fold is one of so many. */
static int count_folds(const void *fold, Py_ssize_t item, Py_ssize_t rows, Py_ssize_t folds, int64_t *end) {
    memset(end, 0, (size_t)folds * sizeof *end);
    for (Py_ssize_t i = 0; i < rows; i++) {
        Py_ssize_t k = item == 1 ? ((const uint8_t *)fold)[i] : ((const uint16_t *)fold)[i];
        if (k >= folds) return 0;
        end[k]++;
    }
    return 1;
}

/* Every fold's rows, in their order; `end` grows from where a fold starts to where it ends. */
static void put_in_order(const void *fold, Py_ssize_t item, Py_ssize_t rows, Py_ssize_t folds, int64_t *end,
                         int64_t *order) {
    int64_t start = 0;
    for (Py_ssize_t k = 0; k < folds; k++) {
        int64_t size = end[k];
        end[k] = start;
        start += size;
    }
    if (item == 1)
        for (Py_ssize_t i = 0; i < rows; i++) order[end[((const uint8_t *)fold)[i]]++] = i;
    else
        for (Py_ssize_t i = 0; i < rows; i++) order[end[((const uint16_t *)fold)[i]]++] = i;
}

PyObject *kernel_fold_order(PyObject *module, PyObject *args) {
    Py_buffer fold, order, end;
    (void)module;
    if (!PyArg_ParseTuple(args, "y*w*w*", &fold, &order, &end)) return NULL;
    Py_ssize_t item = fold.itemsize, rows = order.len / (Py_ssize_t)sizeof(int64_t);
    Py_ssize_t folds = end.len / (Py_ssize_t)sizeof(int64_t);
    int good = (item == 1 || item == 2) && fold.len == rows * item;
    good = good && order.itemsize == sizeof(int64_t) && end.itemsize == sizeof(int64_t);
    if (good) {
        Py_BEGIN_ALLOW_THREADS;
        good = count_folds(fold.buf, item, rows, folds, end.buf);
        if (good) put_in_order(fold.buf, item, rows, folds, end.buf, order.buf);
        Py_END_ALLOW_THREADS;
    }
    PyBuffer_Release(&fold);
    PyBuffer_Release(&order);
    PyBuffer_Release(&end);
    if (!good) refuse("a fold and a place in the order per row are needed, and an end per fold");
    if (!good) return NULL;
    Py_RETURN_NONE;
}

/* ---- shuffling, as numpy does it with its Mersenne twister */

#define WORDS 624
#define MIDDLE 397

static uint32_t mixed(uint32_t high, uint32_t low, uint32_t far) {
    uint32_t y = (high & 0x80000000u) | (low & 0x7fffffffu);
    return far ^ (y >> 1) ^ ((y & 1) ? 0x9908b0dfu : 0);
}

static void turn(uint32_t *key) {
    for (int k = 0; k < WORDS - MIDDLE; k++) key[k] = mixed(key[k], key[k + 1], key[k + MIDDLE]);
    for (int k = WORDS - MIDDLE; k < WORDS - 1; k++) key[k] = mixed(key[k], key[k + 1], key[k + MIDDLE - WORDS]);
    key[WORDS - 1] = mixed(key[WORDS - 1], key[0], key[MIDDLE - 1]);
}

static inline uint32_t tempered(uint32_t y) {
    y ^= y >> 11;
    y ^= (y << 7) & 0x9d2c5680u;
    y ^= (y << 15) & 0xefc60000u;
    return y ^ (y >> 18);
}

/* Swap every card, from the last on, with one that is not behind it. A number that is too large is drawn again; then a
   card is swapped with itself, which is quicker than a branch that nobody can foresee. */
#define SHUFFLE(TYPE)                                                                                                  \
    while (i > 0) {                                                                                                    \
        while (mask >> 1 >= (uint64_t)i) mask >>= 1;                                                                   \
        if (used == WORDS) turn(key), used = 0;                                                                        \
        Py_ssize_t j = tempered(key[used++]) & mask;                                                                   \
        Py_ssize_t good = j <= i, with = good ? j : i;                                                                 \
        TYPE *card = cards, last = card[i], other = card[with];                                                        \
        card[i] = other;                                                                                               \
        card[with] = last;                                                                                             \
        i -= good;                                                                                                     \
    }

/* Return how many words of the key are used. */
static int shuffle_cards(void *cards, Py_ssize_t item, Py_ssize_t n, uint32_t *key, int used) {
    uint32_t mask = UINT32_MAX;
    Py_ssize_t i = n - 1;
    if (item == 1) SHUFFLE(uint8_t)
    else SHUFFLE(uint16_t)
    return used;
}

PyObject *kernel_shuffle(PyObject *module, PyObject *args) {
    Py_buffer cards, key;
    int used;
    (void)module;
    if (!PyArg_ParseTuple(args, "w*w*i", &cards, &key, &used)) return NULL;
    int good = (cards.itemsize == 1 || cards.itemsize == 2) && key.itemsize == sizeof(uint32_t) && used >= 0;
    good = good && key.len == WORDS * (Py_ssize_t)sizeof(uint32_t) && used <= WORDS && cards.len < UINT32_MAX;
    if (good) {
        Py_BEGIN_ALLOW_THREADS;
        used = shuffle_cards(cards.buf, cards.itemsize, cards.len / cards.itemsize, key.buf, used);
        Py_END_ALLOW_THREADS;
    }
    PyBuffer_Release(&cards);
    PyBuffer_Release(&key);
    if (!good) refuse("cards of one or two bytes, and the state of a Mersenne twister are needed");
    return good ? PyLong_FromLong(used) : NULL;
}

/* ---- rows by level and outcome, of every fold, whose rows stand together */

#define COUNT(TYPE)                                                                                                    \
    for (Py_ssize_t i = 0; i < n; i++) {                                                                               \
        Py_ssize_t level = ((const TYPE *)codes)[i];                                                                   \
        counts[2 * (level < levels ? level : levels - 1) + (outcome[i] & 1)]++;                                        \
    }

/* Four tables in turn: an addition need not wait for the one before. */
static void count_bytes(const uint8_t *code, const uint8_t *outcome, Py_ssize_t n, int64_t *counts, Py_ssize_t levels) {
    uint32_t table[4][512] = {{0}};
    Py_ssize_t i = 0;
    for (; i + 4 <= n; i += 4)
        for (int j = 0; j < 4; j++) table[j][2 * code[i + j] + (outcome[i + j] & 1)]++;
    for (; i < n; i++) table[0][2 * code[i] + (outcome[i] & 1)]++;
    for (Py_ssize_t k = 0; k < 512; k++) {
        Py_ssize_t at = k / 2 < levels ? k : 2 * (levels - 1) + k % 2;
        for (int j = 0; j < 4; j++) counts[at] += table[j][k];
    }
}

/* Codes beyond the last level are counted with it. */
static void count_fold(const void *codes, Py_ssize_t item, const uint8_t *outcome, Py_ssize_t n, int64_t *counts,
                       Py_ssize_t levels) {
    if (item == 1) count_bytes(codes, outcome, n, counts, levels);
    else if (item == 2) COUNT(uint16_t)
    else COUNT(uint32_t)
}

/* Whether the folds end one after the other, the last with the rows. */
static int ends_fit(const int64_t *end, Py_ssize_t folds, Py_ssize_t rows) {
    int64_t last = 0;
    for (Py_ssize_t k = 0; k < folds; k++) {
        if (end[k] < last) return 0;
        last = end[k];
    }
    return last == rows;
}

PyObject *kernel_fold_counts(PyObject *module, PyObject *args) {
    Py_buffer codes, outcome, ends, counts;
    (void)module;
    if (!PyArg_ParseTuple(args, "y*y*y*w*", &codes, &outcome, &ends, &counts)) return NULL;
    Py_ssize_t rows = outcome.len, folds = ends.len / (Py_ssize_t)sizeof(int64_t), item = codes.itemsize;
    Py_ssize_t room = counts.len / (Py_ssize_t)(2 * sizeof(int64_t)), levels = folds > 0 ? room / folds : 0;
    int good = (item == 1 || item == 2 || item == 4) && codes.len == rows * item && rows < INT32_MAX && levels > 0;
    good = good && ends.itemsize == sizeof(int64_t) && counts.itemsize == sizeof(int64_t);
    good = good && counts.len == folds * levels * (Py_ssize_t)(2 * sizeof(int64_t)) && ends_fit(ends.buf, folds, rows);
    if (good) {
        const int64_t *end = ends.buf;
        Py_BEGIN_ALLOW_THREADS;
        for (Py_ssize_t k = 0; k < folds; k++) {
            Py_ssize_t start = k > 0 ? (Py_ssize_t)end[k - 1] : 0;
            count_fold((const char *)codes.buf + start * item, item, (const uint8_t *)outcome.buf + start,
                       (Py_ssize_t)end[k] - start, (int64_t *)counts.buf + 2 * k * levels, levels);
        }
        Py_END_ALLOW_THREADS;
    }
    PyBuffer_Release(&codes);
    PyBuffer_Release(&outcome);
    PyBuffer_Release(&ends);
    PyBuffer_Release(&counts);
    if (!good) refuse("a small code and an outcome per row, and two counts per fold and level are needed");
    if (!good) return NULL;
    Py_RETURN_NONE;
}
