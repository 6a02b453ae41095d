/* Sums over rows for every pair of columns that are combinations of levels: what Hessians and lines are made of.

   Rows are first summed by pairs of pack codes, one table for two packs; then the codes of a table that stand for the
   same level are added up, and the levels become columns. The tables are small and stay in the cache, so a row costs
   one addition for two packs of several features each. */

#include <string.h>

#include "pairs.h"
#include "sums.h"

/* ---- rows by the codes of two packs */

FOR_EVERY_PROCESSOR
static void sum_table(const Pairs *pairs, Py_ssize_t k, Py_ssize_t l, double *table) {
    const Py_buffer *first = &pairs->map.packs.each[k], *second = &pairs->map.packs.each[l];
    const double *values = pairs->values.buf;
    const size_t width = (size_t)pairs->map.each[l].size;
    const Py_ssize_t rows = pairs->map.rows;
    BY_ITEM_SIZE(first->itemsize, {
        const Code *row = first->buf;
        BY_ITEM_SIZE(second->itemsize, {
            const Code *column = second->buf;
            for (Py_ssize_t i = 0; i < rows; i++)
                table[row[i] * width + column[i]] += values == NULL ? 1.0 : values[i];
        });
    });
}

/* Two packs of bytes at a time, so that half of the additions need not wait. */
FOR_EVERY_PROCESSOR
static void sum_two_tables(const Pairs *pairs, Py_ssize_t k, Py_ssize_t l, double *table_a, double *table_b) {
    const uint8_t *row = pairs->map.packs.each[k].buf, *a = pairs->map.packs.each[l].buf, *b = pairs->map.packs.each[l + 1].buf;
    const size_t width_a = (size_t)pairs->map.each[l].size, width_b = (size_t)pairs->map.each[l + 1].size;
    const double *values = pairs->values.buf;
    for (Py_ssize_t i = 0; i < pairs->map.rows; i++) {
        double value = values == NULL ? 1.0 : values[i];
        size_t at = row[i];
        table_a[at * width_a + a[i]] += value;
        table_b[at * width_b + b[i]] += value;
    }
}

/* ---- from codes to levels, from levels to columns */

/* sums[level] += rows[code], for the level of every feature that the code stands for */
FOR_EVERY_PROCESSOR
static void add_codes(const Pack *pack, const double *restrict rows, double *restrict sums, Py_ssize_t n) {
    memset(sums, 0, (size_t)(pack->levels * n) * sizeof(double));
    const int32_t *level = pack->members;
    for (Py_ssize_t code = 0; code < pack->size; code++, rows += n)
        for (Py_ssize_t f = 0; f < pack->features; f++) {
            double *sum = sums + (*level++ - pack->first) * n;
            for (Py_ssize_t i = 0; i < n; i++) sum[i] += rows[i];
        }
}

FOR_EVERY_PROCESSOR
static void transpose(const double *restrict from, double *restrict to, Py_ssize_t rows, Py_ssize_t columns) {
    for (Py_ssize_t i = 0; i < rows; i++)
        for (Py_ssize_t j = 0; j < columns; j++) to[j * rows + i] = from[i * columns + j];
}

/* to (columns of the pack, n) += what its levels, from (levels, n), come to */
FOR_EVERY_PROCESSOR
static void levels_to_columns(const LevelMap *map, const Pack *pack, const double *restrict from, double *restrict to,
                              Py_ssize_t n) {
    const int32_t *starts = (const int32_t *)map->starts.buf + pack->first, *columns = map->columns.buf;
    const double *weights = map->weights.buf;
    memset(to, 0, (size_t)(pack->columns * n) * sizeof(double));
    for (Py_ssize_t level = 0; level < pack->levels; level++, from += n)
        for (int32_t j = starts[level]; j < starts[level + 1]; j++) {
            double weight = weights[j], *sum = to + (columns[j] - pack->place) * n;
            for (Py_ssize_t i = 0; i < n; i++) sum[i] += weight * from[i];
        }
}

/* half = the sums by pairs of columns of a and b, given those by the levels of b and a, in by_level, which are used up */
static void levels_to_pairs(const Pairs *pairs, const Pack *a, const Pack *b) {
    levels_to_columns(&pairs->map, b, pairs->by_level, pairs->half, a->levels);
    transpose(pairs->half, pairs->by_level, b->columns, a->levels);
    levels_to_columns(&pairs->map, a, pairs->by_level, pairs->half, b->columns);
}

static void add_levels(const Pairs *pairs, const Pack *a, const Pack *b) {
    double *out = pairs->out.buf;
    levels_to_pairs(pairs, a, b);
    for (Py_ssize_t i = 0; i < a->columns; i++)
        for (Py_ssize_t j = 0; j < b->columns; j++) {
            double sum = pairs->half[i * b->columns + j];
            out[(a->place + i) * pairs->width + b->place + j] += sum;
            if (a != b) out[(b->place + j) * pairs->width + a->place + i] += sum;
        }
}

/* ---- one pack with all */

/* The sums by the codes of one pack or of the other, given those by both. */
FOR_EVERY_PROCESSOR
static void sum_rows(const double *table, Py_ssize_t rows, Py_ssize_t columns, double *restrict sums) {
    for (Py_ssize_t i = 0; i < rows; i++, table += columns) {
        sums[i] = 0.0;
        for (Py_ssize_t j = 0; j < columns; j++) sums[i] += table[j];
    }
}

FOR_EVERY_PROCESSOR
static void sum_columns(const double *table, Py_ssize_t rows, Py_ssize_t columns, double *restrict sums) {
    memset(sums, 0, (size_t)columns * sizeof(double));
    for (Py_ssize_t i = 0; i < rows; i++, table += columns)
        for (Py_ssize_t j = 0; j < columns; j++) sums[j] += table[j];
}

/* With those after it. Unless `own` is NULL, the sums by its own codes are found on the way, and by the last pack's. */
static void add_others(const Pairs *pairs, Py_ssize_t k, const Py_buffer *own) {
    const Py_buffer *packs = pairs->map.packs.each;
    const Py_ssize_t last = pairs->map.packs.count - 1;
    const Pack *a = &pairs->map.each[k];
    double *tables[2] = {pairs->table, pairs->table + pairs->room};
    for (Py_ssize_t l = k + 1; l < pairs->map.packs.count;) {
        int two = l + 1 < pairs->map.packs.count && packs[k].itemsize * packs[l].itemsize * packs[l + 1].itemsize == 1;
        for (int j = 0; j <= two; j++) memset(tables[j], 0, (size_t)(a->size * pairs->map.each[l + j].size) * sizeof(double));
        if (two)
            sum_two_tables(pairs, k, l, tables[0], tables[1]);
        else
            sum_table(pairs, k, l, tables[0]);
        for (int j = 0; j <= two; j++, l++) {
            const Pack *b = &pairs->map.each[l];
            if (own != NULL && l == k + 1) sum_rows(tables[j], a->size, b->size, own[k].buf);
            if (own != NULL && l == last && k == last - 1) sum_columns(tables[j], a->size, b->size, own[l].buf);
            add_codes(a, tables[j], pairs->by_code, b->size);
            transpose(pairs->by_code, tables[j], a->levels, b->size);
            add_codes(b, tables[j], pairs->by_level, a->levels);
            add_levels(pairs, a, b);
        }
    }
}

/* The levels of one pack with each other: a code says all of them at once. */
static void sum_own(const Pairs *pairs, const Pack *pack, const double *own) {
    memset(pairs->by_level, 0, (size_t)(pack->levels * pack->levels) * sizeof(double));
    for (Py_ssize_t code = 0; code < pack->size; code++) {
        const int32_t *level = pack->members + code * pack->features;
        for (Py_ssize_t f = 0; f < pack->features; f++)
            for (Py_ssize_t g = 0; g < pack->features; g++)
                pairs->by_level[(level[f] - pack->first) * pack->levels + level[g] - pack->first] += own[code];
    }
}

static void add_own(const Pairs *pairs, Py_ssize_t k, const double *own) {
    const Pack *pack = &pairs->map.each[k];
    sum_own(pairs, pack, own);
    add_levels(pairs, pack, pack);
}

/* ---- reading the arguments */

static size_t larger(size_t a, size_t b) { return a > b ? a : b; }

int make_pair_room(Pairs *pairs, Py_ssize_t first, Py_ssize_t last) {
    size_t size = 1, most = 1, sizes = 1, mosts = 1; /* codes, and levels or columns: of the packs to last, and of all */
    for (Py_ssize_t l = first; l < pairs->map.packs.count; l++) {
        const Pack *pack = &pairs->map.each[l];
        const size_t codes = (size_t)pack->size, wide = larger((size_t)pack->levels, (size_t)pack->columns);
        sizes = larger(sizes, codes);
        mosts = larger(mosts, wide);
        if (l <= last) size = larger(size, codes);
        if (l <= last) most = larger(most, wide);
    }
    pairs->room = larger(size, most) * sizes;
    const size_t needed = 2 * pairs->room + most * sizes + 2 * most * mosts;
    const int enough = pairs->given.obj != NULL && (size_t)pairs->given.len >= needed * sizeof(double);
    pairs->own_memory = enough ? NULL : PyMem_Malloc(needed * sizeof(double));
    pairs->table = enough ? pairs->given.buf : pairs->own_memory;
    if (pairs->table == NULL) return no_memory();
    pairs->by_code = pairs->table + 2 * pairs->room;
    pairs->by_level = pairs->by_code + most * sizes;
    pairs->half = pairs->by_level + most * mosts;
    return 1;
}

void free_pair_room(Pairs *pairs) { PyMem_Free(pairs->own_memory); }

static void add_pairs(const Pairs *pairs, Py_ssize_t k) {
    add_own(pairs, k, pairs->own.buf);
    add_others(pairs, k, NULL);
}

void add_all_pairs(const Pairs *pairs, const Py_buffer *own) {
    const Py_ssize_t count = pairs->map.packs.count;
    for (Py_ssize_t k = 0; k + 1 < count; k++) add_others(pairs, k, own);
    for (Py_ssize_t k = 0; k < count; k++) add_own(pairs, k, own[k].buf);
}

/* The rows of one pack; below 0 if an exception is set. */
static Py_ssize_t rows_of(PyObject *packs, Py_ssize_t first) {
    PyObject *pack = first < 0 ? NULL : PySequence_GetItem(packs, first);
    if (pack == NULL) {
        PyErr_Clear();
        refuse("there is no such pack");
        return -1;
    }
    Py_ssize_t rows = PyObject_Size(pack);
    Py_DECREF(pack);
    return rows;
}

static int open_pairs(PyObject *values, PyObject *packs, PyObject *map, Py_ssize_t first, PyObject *own, PyObject *out,
                      PyObject *room, Pairs *pairs) {
    if ((values != Py_None && PyObject_GetBuffer(values, &pairs->values, PyBUF_C_CONTIGUOUS)) ||
        PyObject_GetBuffer(own, &pairs->own, PyBUF_C_CONTIGUOUS) ||
        PyObject_GetBuffer(room, &pairs->given, PyBUF_C_CONTIGUOUS | PyBUF_WRITABLE) ||
        PyObject_GetBuffer(out, &pairs->out, PyBUF_STRIDED))
        return 0;
    const Py_buffer *table = &pairs->out; /* may be a part of a larger one */
    const Py_ssize_t number = sizeof(double);
    if (table->ndim != 2 || table->shape[0] != table->shape[1] || table->itemsize != number ||
        table->strides[1] != number || table->strides[0] % number || table->strides[0] < table->shape[1] * number)
        return refuse("the table of pairs must be a square of doubles, each row in one piece");
    Py_ssize_t rows = rows_of(packs, first);
    if (rows < 0 || !open_level_map(packs, map, rows, table->shape[0], &pairs->map)) return 0;
    if (values != Py_None && pairs->values.len != rows * (Py_ssize_t)sizeof(double))
        return refuse("one value per row is needed");
    if (first >= pairs->map.packs.count) return refuse("there is no such pack");
    if (pairs->own.len != pairs->map.each[first].size * (Py_ssize_t)sizeof(double))
        return refuse("one sum per code of the pack is needed");
    pairs->width = table->strides[0] / number;
    return make_pair_room(pairs, first, first);
}

static void close_pairs(Pairs *pairs) {
    free_pair_room(pairs);
    if (pairs->values.obj != NULL) PyBuffer_Release(&pairs->values);
    if (pairs->own.obj != NULL) PyBuffer_Release(&pairs->own);
    if (pairs->given.obj != NULL) PyBuffer_Release(&pairs->given);
    if (pairs->out.obj != NULL) PyBuffer_Release(&pairs->out);
    close_level_map(&pairs->map);
}

PyObject *kernel_pair_sums(PyObject *module, PyObject *args) {
    PyObject *values, *packs, *map, *own, *out, *room;
    Py_ssize_t first;
    Pairs pairs;
    memset(&pairs, 0, sizeof pairs);
    (void)module;
    if (!PyArg_ParseTuple(args, "OOOnOOO", &values, &packs, &map, &first, &own, &out, &room)) return NULL;
    int good = open_pairs(values, packs, map, first, own, out, room, &pairs);
    if (good) {
        Py_BEGIN_ALLOW_THREADS;
        add_pairs(&pairs, first);
        Py_END_ALLOW_THREADS;
    }
    close_pairs(&pairs);
    if (!good) return NULL;
    Py_RETURN_NONE;
}

/* ---- every pack with itself alone */

typedef struct {
    Pairs pairs;
    Py_buffer sums, widths, blocks; /* of every pack's columns; a pack need not use them all */
    Py_buffer *by_code;
    double *memory;
} Blocks;

static void add_blocks(Blocks *blocks) {
    const Pairs *pairs = &blocks->pairs;
    const LevelMap *map = &pairs->map;
    const double *values = pairs->values.buf;
    const int64_t *widths = blocks->widths.buf;
    double *block = blocks->blocks.buf, *sums = blocks->sums.buf;
    for (Py_ssize_t first = 0; first < map->rows; first += TILE) {
        Py_ssize_t rows = map->rows - first < TILE ? map->rows - first : TILE;
        const double *tile = values == NULL ? NULL : values + first;
        level_sums_tile(tile, map->packs.each, blocks->by_code, map->packs.count, first, rows);
    }
    Py_ssize_t start = 0;
    for (Py_ssize_t k = 0; k < map->packs.count; k++) {
        const Pack *pack = &map->each[k];
        sum_own(pairs, pack, blocks->by_code[k].buf);
        for (Py_ssize_t level = 0; level < pack->levels; level++) { /* what a level has with itself is all it has */
            const int32_t *entry = (const int32_t *)map->starts.buf + pack->first + level;
            for (int32_t j = entry[0]; j < entry[1]; j++)
                sums[((const int32_t *)map->columns.buf)[j]] +=
                    ((const double *)map->weights.buf)[j] * pairs->by_level[level * (pack->levels + 1)];
        }
        levels_to_pairs(pairs, pack, pack);
        const Py_ssize_t width = (Py_ssize_t)widths[k], skip = pack->place - start;
        for (Py_ssize_t i = 0; i < pack->columns; i++)
            for (Py_ssize_t j = 0; j < pack->columns; j++)
                block[(skip + i) * width + skip + j] += pairs->half[i * pack->columns + j];
        start += width, block += width * width;
    }
}

static int open_blocks(PyObject *args, Blocks *blocks) {
    PyObject *values, *packs, *map;
    Pairs *pairs = &blocks->pairs;
    if (!PyArg_ParseTuple(args, "OOOw*y*w*", &values, &packs, &map, &blocks->sums, &blocks->widths, &blocks->blocks))
        return 0;
    if (values != Py_None && PyObject_GetBuffer(values, &pairs->values, PyBUF_C_CONTIGUOUS)) return 0;
    const Py_ssize_t number = sizeof(double);
    const int64_t *widths = blocks->widths.buf;
    Py_ssize_t rows = rows_of(packs, 0), entries = 0, codes = 0, most = 0, start = 0;
    if (rows < 0 || !open_level_map(packs, map, rows, blocks->sums.len / number, &pairs->map)) return 0;
    if (values != Py_None && pairs->values.len != rows * number) return refuse("one value per row is needed");
    if (blocks->widths.len != pairs->map.packs.count * (Py_ssize_t)sizeof(int64_t))
        return refuse("one width per pack is needed");
    for (Py_ssize_t k = 0; k < pairs->map.packs.count; k++) {
        const Pack *pack = &pairs->map.each[k];
        const Py_ssize_t wide = pack->levels > pack->columns ? pack->levels : pack->columns;
        if (widths[k] < 0 || widths[k] > pairs->map.n_columns) return refuse("a width is beyond the columns");
        const Py_ssize_t end = start + (Py_ssize_t)widths[k];
        if (pack->columns && (pack->place < start || pack->place + pack->columns > end))
            return refuse("the columns of a pack are beyond its width");
        entries += (end - start) * (end - start);
        start = end;
        codes += pack->size;
        most = wide > most ? wide : most;
    }
    if (blocks->blocks.len != entries * number) return refuse("a square for every pack is needed");
    blocks->memory = PyMem_Calloc((size_t)(codes + 2 * most * most + 1), sizeof(double));
    blocks->by_code = PyMem_Calloc((size_t)pairs->map.packs.count + 1, sizeof(Py_buffer));
    if (blocks->memory == NULL || blocks->by_code == NULL) return no_memory();
    pairs->by_level = blocks->memory + codes;
    pairs->half = pairs->by_level + most * most;
    double *next = blocks->memory;
    for (Py_ssize_t k = 0; k < pairs->map.packs.count; k++) {
        blocks->by_code[k].buf = next;
        next += pairs->map.each[k].size;
    }
    return 1;
}

PyObject *kernel_block_sums(PyObject *module, PyObject *args) {
    Blocks blocks;
    memset(&blocks, 0, sizeof blocks);
    (void)module;
    int good = open_blocks(args, &blocks);
    if (good) {
        Py_BEGIN_ALLOW_THREADS;
        add_blocks(&blocks);
        Py_END_ALLOW_THREADS;
    }
    PyMem_Free(blocks.memory);
    PyMem_Free(blocks.by_code);
    if (blocks.sums.obj != NULL) PyBuffer_Release(&blocks.sums);
    if (blocks.widths.obj != NULL) PyBuffer_Release(&blocks.widths);
    if (blocks.blocks.obj != NULL) PyBuffer_Release(&blocks.blocks);
    close_pairs(&blocks.pairs);
    if (!good) return NULL;
    Py_RETURN_NONE;
}
