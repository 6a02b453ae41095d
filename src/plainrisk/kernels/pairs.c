/* Sums over rows for every pair of columns that are combinations of levels: what Hessians and lines are made of.

   Rows are first summed by pairs of pack codes, one table for two packs; then the codes of a table that stand for the
   same level are added up, and the levels become columns. The tables are small and stay in the cache, so a row costs
   one addition for two packs of several features each. */

#include <string.h>

#include "shared.h"
#include "sums.h"

typedef struct {
    Py_ssize_t size, features; /* codes of the pack, and features in it */
    Py_ssize_t levels, columns;
    Py_ssize_t place;       /* where its columns begin among all */
    const int32_t *members; /* (size, features): the level of each feature that a code stands for */
    const double *map;      /* (levels, columns) */
} Pack;

typedef struct {
    Py_buffer values, out;
    Arrays packs, members, maps;
    Pack *each;
    Py_ssize_t rows, width; /* width of `out` */
    size_t room;            /* for one table */
    double *table, *by_code, *by_level, *half;
} Pairs;

/* ---- rows by the codes of two packs */

FOR_EVERY_PROCESSOR
static void sum_table(const Pairs *pairs, Py_ssize_t k, Py_ssize_t l, double *table) {
    const Py_buffer *first = &pairs->packs.each[k], *second = &pairs->packs.each[l];
    const double *values = pairs->values.buf;
    const size_t width = (size_t)pairs->each[l].size;
    const Py_ssize_t rows = pairs->rows;
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
    const uint8_t *row = pairs->packs.each[k].buf, *a = pairs->packs.each[l].buf, *b = pairs->packs.each[l + 1].buf;
    const size_t width_a = (size_t)pairs->each[l].size, width_b = (size_t)pairs->each[l + 1].size;
    const double *values = pairs->values.buf;
    for (Py_ssize_t i = 0; i < pairs->rows; i++) {
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
            double *sum = sums + *level++ * n;
            for (Py_ssize_t i = 0; i < n; i++) sum[i] += rows[i];
        }
}

FOR_EVERY_PROCESSOR
static void transpose(const double *restrict from, double *restrict to, Py_ssize_t rows, Py_ssize_t columns) {
    for (Py_ssize_t i = 0; i < rows; i++)
        for (Py_ssize_t j = 0; j < columns; j++) to[j * rows + i] = from[i * columns + j];
}

/* to (columns of the pack, n) = the pack's map, transposed, times from (its levels, n) */
FOR_EVERY_PROCESSOR
static void levels_to_columns(const Pack *pack, const double *restrict from, double *restrict to, Py_ssize_t n) {
    memset(to, 0, (size_t)(pack->columns * n) * sizeof(double));
    for (Py_ssize_t level = 0; level < pack->levels; level++)
        for (Py_ssize_t c = 0; c < pack->columns; c++) {
            double weight = pack->map[level * pack->columns + c];
            if (weight == 0.0) continue;
            for (Py_ssize_t i = 0; i < n; i++) to[c * n + i] += weight * from[level * n + i];
        }
}

/* Add the sums by the levels of b and a, in by_level, to the pairs of their columns; it and half are used up. */
static void add_levels(const Pairs *pairs, const Pack *a, const Pack *b) {
    double *out = pairs->out.buf;
    levels_to_columns(b, pairs->by_level, pairs->half, a->levels);
    transpose(pairs->half, pairs->by_level, b->columns, a->levels);
    levels_to_columns(a, pairs->by_level, pairs->half, b->columns);
    for (Py_ssize_t i = 0; i < a->columns; i++)
        for (Py_ssize_t j = 0; j < b->columns; j++) {
            double sum = pairs->half[i * b->columns + j];
            out[(a->place + i) * pairs->width + b->place + j] += sum;
            if (a != b) out[(b->place + j) * pairs->width + a->place + i] += sum;
        }
}

/* ---- one pack with all */

static void add_others(const Pairs *pairs, Py_ssize_t k) {
    const Py_buffer *packs = pairs->packs.each;
    const Pack *a = &pairs->each[k];
    double *tables[2] = {pairs->table, pairs->table + pairs->room};
    for (Py_ssize_t l = k + 1; l < pairs->packs.count;) {
        int two = l + 1 < pairs->packs.count && packs[k].itemsize * packs[l].itemsize * packs[l + 1].itemsize == 1;
        for (int j = 0; j <= two; j++) memset(tables[j], 0, (size_t)(a->size * pairs->each[l + j].size) * sizeof(double));
        if (two)
            sum_two_tables(pairs, k, l, tables[0], tables[1]);
        else
            sum_table(pairs, k, l, tables[0]);
        for (int j = 0; j <= two; j++, l++) {
            const Pack *b = &pairs->each[l];
            add_codes(a, tables[j], pairs->by_code, b->size);
            transpose(pairs->by_code, tables[j], a->levels, b->size);
            add_codes(b, tables[j], pairs->by_level, a->levels);
            add_levels(pairs, a, b);
        }
    }
}

/* The levels of one pack with each other: a code says all of them at once. */
static void add_own(const Pairs *pairs, Py_ssize_t k) {
    const Pack *pack = &pairs->each[k];
    const Py_buffer sums = {.buf = pairs->table};
    memset(pairs->table, 0, (size_t)pack->size * sizeof(double));
    for (Py_ssize_t start = 0; start < pairs->rows; start += TILE) {
        Py_ssize_t n = pairs->rows - start < TILE ? pairs->rows - start : TILE;
        const double *tile = pairs->values.obj == NULL ? NULL : (const double *)pairs->values.buf + start;
        level_sums_tile(tile, &pairs->packs.each[k], &sums, 1, start, n);
    }
    memset(pairs->by_level, 0, (size_t)(pack->levels * pack->levels) * sizeof(double));
    for (Py_ssize_t code = 0; code < pack->size; code++) {
        const int32_t *level = pack->members + code * pack->features;
        for (Py_ssize_t f = 0; f < pack->features; f++)
            for (Py_ssize_t g = 0; g < pack->features; g++)
                pairs->by_level[level[f] * pack->levels + level[g]] += pairs->table[code];
    }
    add_levels(pairs, pack, pack);
}

/* ---- reading the arguments */

static int read_packs(Pairs *pairs) {
    Py_ssize_t place = 0;
    pairs->each = PyMem_Calloc((size_t)pairs->packs.count + 1, sizeof(Pack));
    if (pairs->each == NULL) return no_memory();
    for (Py_ssize_t k = 0; k < pairs->packs.count; k++) {
        const Py_buffer *members = &pairs->members.each[k], *map = &pairs->maps.each[k];
        if (members->ndim != 2 || members->itemsize != sizeof(int32_t) || map->ndim != 2 || map->itemsize != sizeof(double))
            return refuse("members must be a table of 32-bit integers and a map one of doubles");
        pairs->each[k] = (Pack){members->shape[0], members->shape[1], map->shape[0], map->shape[1], place,
                                members->buf,      map->buf};
        place += map->shape[1];
        for (Py_ssize_t i = 0; i < members->shape[0] * members->shape[1]; i++) {
            int32_t level = pairs->each[k].members[i];
            if (level < 0 || level >= map->shape[0]) return refuse("a level is beyond the map of its pack");
        }
    }
    return place == pairs->width || refuse("the table of pairs must have a row and a column for every column of a map");
}

static size_t larger(size_t a, size_t b) { return a > b ? a : b; }

/* Room for the tables of one pack with itself and any of those after it. */
static int make_room(Pairs *pairs, Py_ssize_t first) {
    const Pack *own = &pairs->each[first];
    const size_t most = larger((size_t)own->levels, (size_t)own->columns);
    size_t codes = 1, others = 1;
    for (Py_ssize_t l = first; l < pairs->packs.count; l++) {
        const Pack *pack = &pairs->each[l];
        codes = larger(codes, (size_t)pack->size);
        others = larger(others, larger((size_t)pack->levels, (size_t)pack->columns));
    }
    pairs->room = larger((size_t)own->size, (size_t)own->levels) * codes;
    pairs->table = PyMem_Malloc(2 * pairs->room * sizeof(double));
    pairs->by_code = PyMem_Malloc((size_t)own->levels * codes * sizeof(double));
    pairs->by_level = PyMem_Malloc(most * others * sizeof(double));
    pairs->half = PyMem_Malloc(most * others * sizeof(double));
    return (pairs->table && pairs->by_code && pairs->by_level && pairs->half) || no_memory();
}

static int pairs_fit(Pairs *pairs, Py_ssize_t first) {
    const Py_ssize_t count = pairs->packs.count;
    int good = count == pairs->members.count && count == pairs->maps.count && first >= 0 && first < count &&
               pairs->out.ndim == 2 && pairs->out.shape[0] == pairs->out.shape[1] &&
               pairs->out.itemsize == sizeof(double);
    if (!good) return refuse("packs, members, maps and the table of pairs do not fit each other");
    pairs->rows = pairs->packs.each[first].len / pairs->packs.each[first].itemsize;
    pairs->width = pairs->out.shape[0];
    if (pairs->values.obj != NULL && pairs->values.len != pairs->rows * (Py_ssize_t)sizeof(double))
        return refuse("one value per row is needed");
    for (Py_ssize_t k = 0; k < count; k++)
        if (!is_pack(&pairs->packs.each[k], pairs->rows)) return 0;
    return read_packs(pairs) && make_room(pairs, first);
}

static void close_pairs(Pairs *pairs) {
    void *memory[] = {pairs->each, pairs->table, pairs->by_code, pairs->by_level, pairs->half};
    for (size_t k = 0; k < sizeof memory / sizeof *memory; k++) PyMem_Free(memory[k]);
    if (pairs->values.obj != NULL) PyBuffer_Release(&pairs->values);
    if (pairs->out.obj != NULL) PyBuffer_Release(&pairs->out);
    close_arrays(&pairs->packs);
    close_arrays(&pairs->members);
    close_arrays(&pairs->maps);
}

PyObject *kernel_pair_sums(PyObject *module, PyObject *args) {
    PyObject *values, *packs, *members, *maps, *out;
    Py_ssize_t first;
    Pairs pairs;
    memset(&pairs, 0, sizeof pairs);
    (void)module;
    if (!PyArg_ParseTuple(args, "OOOOnO", &values, &packs, &members, &maps, &first, &out)) return NULL;
    int good = (values == Py_None || PyObject_GetBuffer(values, &pairs.values, PyBUF_C_CONTIGUOUS) == 0) &&
               open_arrays(packs, 0, &pairs.packs) == 0 && open_arrays(members, 0, &pairs.members) == 0 &&
               open_arrays(maps, 0, &pairs.maps) == 0 &&
               PyObject_GetBuffer(out, &pairs.out, PyBUF_C_CONTIGUOUS | PyBUF_WRITABLE) == 0 && pairs_fit(&pairs, first);
    if (good) {
        Py_BEGIN_ALLOW_THREADS;
        add_own(&pairs, first);
        add_others(&pairs, first);
        Py_END_ALLOW_THREADS;
    }
    close_pairs(&pairs);
    if (!good) return NULL;
    Py_RETURN_NONE;
}
