/* Codes of several features as one number: packs of a few levels, and cells of a whole row. */

#include <string.h>

#include "shared.h"
#include "sums.h"

/* ---- out = places[0][codes[0]] + places[1][codes[1]] + ... */

/* packed[i] += code[i] * stride */
FOR_EVERY_PROCESSOR
static void add_multiples(const uint8_t *restrict code, uint8_t stride, Py_ssize_t n, uint8_t *restrict packed) {
    for (Py_ssize_t i = 0; i < n; i++) packed[i] = (uint8_t)(packed[i] + code[i] * stride);
}

FOR_EVERY_PROCESSOR
static void add_wide_multiples(const uint8_t *restrict code, uint16_t stride, Py_ssize_t n, uint16_t *restrict packed) {
    for (Py_ssize_t i = 0; i < n; i++) packed[i] = (uint16_t)(packed[i] + code[i] * stride);
}

/* `strides` are how far apart the places of neighbouring levels are, or 0 if they are not regular. */
static void add_places(const Arrays *codes, const Arrays *places, const Py_ssize_t *strides, const Py_buffer *out) {
    const Py_ssize_t rows = out->len / out->itemsize;
    memset(out->buf, 0, (size_t)out->len);
    for (Py_ssize_t start = 0; start < rows; start += TILE) {
        Py_ssize_t n = rows - start < TILE ? rows - start : TILE;
        for (Py_ssize_t k = 0; k < codes->count; k++) {
            const Py_buffer *from = &codes->each[k];
            const uint8_t *code = (const uint8_t *)from->buf + start;
            const int is_quick = strides[k] != 0 && from->itemsize == 1;
            if (is_quick && out->itemsize == 1) {
                add_multiples(code, (uint8_t)strides[k], n, (uint8_t *)out->buf + start);
                continue;
            }
            if (is_quick && out->itemsize == 2) {
                add_wide_multiples(code, (uint16_t)strides[k], n, (uint16_t *)out->buf + start);
                continue;
            }
            BY_ITEM_SIZE(out->itemsize, {
                Code *packed = (Code *)out->buf + start;
                const Code *place = places->each[k].buf;
                BY_ITEM_SIZE(from->itemsize, {
                    const Code *level = (const Code *)from->buf + start;
                    for (Py_ssize_t i = 0; i < n; i++) packed[i] += place[level[i]];
                });
            });
        }
    }
}

static int packs_fit(const Arrays *codes, const Arrays *tables, const Py_buffer *out) {
    if (codes->count != tables->count) return refuse("as many places as codes are needed");
    if (out->itemsize != 1 && out->itemsize != 2 && out->itemsize != 4)
        return refuse("packs must be of one, two or four bytes");
    for (Py_ssize_t k = 0; k < codes->count; k++)
        if (!is_pack(&codes->each[k], out->len / out->itemsize)) return 0;
    return 1;
}

static Py_ssize_t stride_of(const Py_buffer *place) {
    Py_ssize_t stride = 0;
    BY_ITEM_SIZE(place->itemsize, {
        const Code *at = place->buf;
        const Py_ssize_t count = place->len / (Py_ssize_t)sizeof(Code);
        stride = count > 1 && at[0] == 0 ? (Py_ssize_t)at[1] : 0;
        for (Py_ssize_t level = 2; level < count; level++)
            if ((Py_ssize_t)at[level] != level * stride) stride = 0;
    });
    return stride;
}

PyObject *kernel_pack(PyObject *module, PyObject *args) {
    PyObject *code_list, *place_list;
    Py_buffer out;
    Arrays codes = {0, NULL}, places = {0, NULL};
    (void)module;
    if (!PyArg_ParseTuple(args, "OOw*", &code_list, &place_list, &out)) return NULL;
    int good = open_arrays(code_list, 0, &codes) == 0 && open_arrays(place_list, 0, &places) == 0 &&
               packs_fit(&codes, &places, &out);
    for (Py_ssize_t k = 0; good && k < codes.count; k++)
        good = places.each[k].itemsize == out.itemsize || refuse("places and packs must be of one type");
    Py_ssize_t *strides = PyMem_Calloc((size_t)codes.count + 1, sizeof(Py_ssize_t));
    good = good && (strides != NULL || no_memory());
    if (good) {
        Py_BEGIN_ALLOW_THREADS;
        for (Py_ssize_t k = 0; k < codes.count; k++) strides[k] = stride_of(&places.each[k]);
        add_places(&codes, &places, strides, &out);
        Py_END_ALLOW_THREADS;
    }
    PyMem_Free(strides);
    close_arrays(&codes);
    close_arrays(&places);
    PyBuffer_Release(&out);
    if (!good) return NULL;
    Py_RETURN_NONE;
}

/* ---- the same of features of whose levels some were seen; what each code stands for is listed */

typedef struct {
    Arrays codes, seen, places; /* of every feature; the places are within `memory` */
    Py_buffer members, out;
    Py_ssize_t *strides; /* of every feature, see `add_places` */
    char *memory;
} Packing;

static Py_ssize_t count_seen(const Py_buffer *seen) {
    Py_ssize_t count = 0;
    for (Py_ssize_t level = 0; level < seen->len; level++) count += ((const char *)seen->buf)[level] != 0;
    return count;
}

/* Where the levels of a feature are, `stride` apart, in codes of which they take `width`; whether all that were seen
   are at multiples of it, since none comes after one that was not. */
static int place_levels(const Packing *packing, Py_ssize_t k, Py_ssize_t stride, Py_ssize_t width) {
    const Py_ssize_t features = packing->codes.count, codes = packing->members.shape[0];
    const char *seen = packing->seen.each[k].buf;
    int64_t *members = (int64_t *)packing->members.buf + k;
    Py_ssize_t place = 0;
    int regular = 1;
    for (Py_ssize_t level = 0; level < packing->seen.each[k].len; level++) {
        BY_ITEM_SIZE(packing->out.itemsize, { ((Code *)packing->places.each[k].buf)[level] = seen[level] ? (Code)place : 0; });
        if (!seen[level]) continue;
        regular = regular && place == level * stride;
        for (Py_ssize_t first = place; first < codes; first += width)
            for (Py_ssize_t i = 0; i < stride; i++) members[(first + i) * features] = level;
        place += stride;
    }
    return regular;
}

/* Places for all features; whether they are as many as there are codes. */
static int make_places(Packing *packing) {
    const Py_ssize_t features = packing->codes.count, size = packing->out.itemsize;
    Py_ssize_t stride = packing->members.shape[0], levels = 0;
    for (Py_ssize_t k = 0; k < features; k++) levels += packing->seen.each[k].len;
    packing->memory = PyMem_Calloc((size_t)(levels + 1), (size_t)size);
    packing->places.each = PyMem_Calloc((size_t)features + 1, sizeof(Py_buffer));
    packing->strides = PyMem_Calloc((size_t)features + 1, sizeof(Py_ssize_t));
    if (packing->memory == NULL || packing->places.each == NULL || packing->strides == NULL) return no_memory();
    memset(packing->members.buf, 0, (size_t)packing->members.len);
    levels = 0;
    for (Py_ssize_t k = 0; k < features; k++) {
        const Py_ssize_t count = count_seen(&packing->seen.each[k]), width = stride;
        packing->places.each[k].buf = packing->memory + levels * size;
        levels += packing->seen.each[k].len;
        if (count == 0) continue; /* no row has a code */
        if (stride % count) return refuse("there must be a code for all levels that go together");
        stride /= count;
        packing->strides[k] = place_levels(packing, k, stride, width) ? stride : 0;
    }
    return stride == 1 || refuse("there must be a code for all levels that go together");
}

static int open_packing(PyObject *args, Packing *packing) {
    PyObject *codes, *seen, *members;
    const int out = PyBUF_C_CONTIGUOUS | PyBUF_WRITABLE;
    if (!PyArg_ParseTuple(args, "OOOw*", &codes, &seen, &members, &packing->out) ||
        open_arrays(codes, 0, &packing->codes) || open_arrays(seen, 0, &packing->seen) ||
        PyObject_GetBuffer(members, &packing->members, out))
        return 0;
    const Py_buffer *table = &packing->members;
    if (!packs_fit(&packing->codes, &packing->seen, &packing->out)) return 0;
    if (table->ndim != 2 || table->itemsize != sizeof(int64_t) || table->shape[1] != packing->codes.count || table->shape[0] < 1)
        return refuse("the members must be a table of 64-bit integers, a column for every feature");
    if (packing->out.itemsize < 4 && table->shape[0] > (Py_ssize_t)1 << (8 * packing->out.itemsize))
        return refuse("there are more codes than the type of the packs has");
    for (Py_ssize_t k = 0; k < packing->seen.count; k++)
        if (packing->seen.each[k].itemsize != 1) return refuse("whether a level was seen must be one byte");
    return make_places(packing);
}

PyObject *kernel_pack_seen(PyObject *module, PyObject *args) {
    Packing packing;
    memset(&packing, 0, sizeof packing);
    (void)module;
    int good = open_packing(args, &packing);
    if (good) {
        Py_BEGIN_ALLOW_THREADS;
        add_places(&packing.codes, &packing.places, packing.strides, &packing.out);
        Py_END_ALLOW_THREADS;
    }
    if (packing.members.obj != NULL) PyBuffer_Release(&packing.members);
    if (packing.out.obj != NULL) PyBuffer_Release(&packing.out);
    close_arrays(&packing.codes);
    close_arrays(&packing.seen);
    PyMem_Free(packing.places.each);
    PyMem_Free(packing.strides);
    PyMem_Free(packing.memory);
    if (!good) return NULL;
    Py_RETURN_NONE;
}

/* ---- the cells of rows */

#define NO_CELL "a row has a code beyond the size of its pack"

FOR_EVERY_PROCESSOR
static void add_bytes(const uint8_t *code, Py_ssize_t n, uint32_t stride, uint32_t *cell) {
    for (Py_ssize_t i = 0; i < n; i++) cell[i] += code[i] * stride;
}

FOR_EVERY_PROCESSOR
static int all_below(const uint32_t *cell, Py_ssize_t n, uint32_t grid) {
    uint32_t beyond = 0;
    for (Py_ssize_t i = 0; i < n; i++) beyond |= cell[i] >= grid;
    return !beyond;
}

/* The cells of some rows; whether there are so many. */
static int find_cells(const Arrays *packs, const int64_t *strides, Py_ssize_t start, Py_ssize_t n, Py_ssize_t grid,
                      uint32_t *cell) {
    memset(cell, 0, (size_t)n * sizeof *cell);
    for (Py_ssize_t k = 0; k < packs->count; k++) {
        const Py_buffer *pack = &packs->each[k];
        uint32_t stride = (uint32_t)strides[k];
        if (pack->itemsize == 1) add_bytes((const uint8_t *)pack->buf + start, n, stride, cell);
        else
            BY_ITEM_SIZE(pack->itemsize, {
                const Code *code = (const Code *)pack->buf + start;
                for (Py_ssize_t i = 0; i < n; i++) cell[i] += (uint32_t)code[i] * stride;
            });
    }
    return all_below(cell, n, (uint32_t)grid);
}

/* ---- counts[cell, outcome] += 1 */

static int counts_fit(const Arrays *packs, const Py_buffer *strides, const Py_buffer *outcome,
                      const Py_buffer *counts) {
    int good = strides->len == packs->count * (Py_ssize_t)sizeof(int64_t) && outcome->itemsize == 1 &&
               counts->itemsize == sizeof(uint32_t) && counts->len % (Py_ssize_t)(2 * sizeof(uint32_t)) == 0 &&
               outcome->len < INT32_MAX && counts->len / 8 < INT32_MAX;
    if (!good) return refuse("packs, strides, outcomes and counts do not fit each other");
    for (Py_ssize_t k = 0; good && k < packs->count; k++) good = is_pack(&packs->each[k], outcome->len);
    return good;
}

PyObject *kernel_cell_counts(PyObject *module, PyObject *args) {
    PyObject *pack_list;
    Py_buffer strides, outcome, counts;
    Arrays packs = {0, NULL};
    (void)module;
    if (!PyArg_ParseTuple(args, "Oy*y*w*", &pack_list, &strides, &outcome, &counts)) return NULL;
    int good = open_arrays(pack_list, 0, &packs) == 0 && counts_fit(&packs, &strides, &outcome, &counts);
    if (good) {
        uint32_t(*count)[2] = counts.buf;
        const uint8_t *positive = outcome.buf;
        Py_BEGIN_ALLOW_THREADS;
        for (Py_ssize_t start = 0; good && start < outcome.len; start += TILE) {
            uint32_t cell[TILE];
            Py_ssize_t n = outcome.len - start < TILE ? outcome.len - start : TILE;
            good = find_cells(&packs, strides.buf, start, n, counts.len / 8, cell);
            for (Py_ssize_t i = 0; good && i < n; i++) count[cell[i]][positive[start + i] & 1]++;
        }
        Py_END_ALLOW_THREADS;
        if (!good) refuse(NO_CELL);
    }
    close_arrays(&packs);
    PyBuffer_Release(&strides);
    PyBuffer_Release(&outcome);
    PyBuffer_Release(&counts);
    if (!good) return NULL;
    Py_RETURN_NONE;
}

/* ---- the cells that were counted: their codes, how many rows they have, and how many of the outcome 1 */

#define MOST_PACKS 64

typedef struct {
    Py_buffer counts, sizes, total, hits;
    Arrays codes;
} Counted;

static void set_code(const Py_buffer *codes, Py_ssize_t at, uint32_t code) {
    BY_ITEM_SIZE(codes->itemsize, { ((Code *)codes->buf)[at] = (Code)code; });
}

/* Whether there were as many as there is room for. */
static int list_counted(const Counted *counted) {
    const uint32_t(*count)[2] = counted->counts.buf;
    const int64_t *sizes = counted->sizes.buf;
    const Py_ssize_t last = counted->codes.count - 1, grid = counted->counts.len / 8;
    const Py_ssize_t room = counted->total.len / (Py_ssize_t)sizeof(double);
    double *total = counted->total.buf, *hits = counted->hits.buf;
    uint32_t digits[MOST_PACKS] = {0}; /* the codes of the cell, that of the last pack running on */
    Py_ssize_t found = 0;
    for (Py_ssize_t cell = 0; cell < grid; cell++) {
        if (count[cell][0] | count[cell][1]) {
            if (found == room) return 0;
            for (Py_ssize_t k = 0; k <= last; k++) set_code(&counted->codes.each[k], found, digits[k]);
            hits[found] = count[cell][1];
            total[found++] = (double)count[cell][0] + (double)count[cell][1];
        }
        for (Py_ssize_t k = last; k >= 0 && ++digits[k] == (uint32_t)sizes[k]; k--) digits[k] = 0;
    }
    return found == room;
}

static int open_counted(PyObject *args, Counted *counted) {
    PyObject *codes;
    if (!PyArg_ParseTuple(args, "y*y*Ow*w*", &counted->counts, &counted->sizes, &codes, &counted->total, &counted->hits) ||
        open_arrays(codes, 1, &counted->codes))
        return 0;
    const Py_ssize_t packs = counted->codes.count, number = sizeof(double), room = counted->total.len / number;
    const int64_t *sizes = counted->sizes.buf;
    int good = packs > 0 && packs <= MOST_PACKS && counted->sizes.len == packs * (Py_ssize_t)sizeof(int64_t) &&
               counted->counts.itemsize == sizeof(uint32_t) && counted->hits.len == room * number;
    Py_ssize_t grid = counted->counts.len / 8;
    for (Py_ssize_t k = packs - 1; good && k >= 0; k--) {
        good = sizes[k] > 0 && grid % sizes[k] == 0 && is_pack(&counted->codes.each[k], room);
        if (good) good = counted->codes.each[k].itemsize == 4 || sizes[k] <= (int64_t)1 << (8 * counted->codes.each[k].itemsize);
        if (good) grid /= sizes[k];
    }
    if (PyErr_Occurred()) return 0;
    if (!good || grid != 1 || counted->counts.len % 8) return refuse("counts, sizes and codes do not fit each other");
    return 1;
}

PyObject *kernel_list_cells(PyObject *module, PyObject *args) {
    Counted counted;
    memset(&counted, 0, sizeof counted);
    (void)module;
    int good = open_counted(args, &counted);
    if (good) {
        Py_BEGIN_ALLOW_THREADS;
        good = list_counted(&counted);
        Py_END_ALLOW_THREADS;
        if (!good) refuse("there is room for as many cells as have rows, and no others");
    }
    Py_buffer *each[] = {&counted.counts, &counted.sizes, &counted.total, &counted.hits};
    for (size_t k = 0; k < sizeof each / sizeof *each; k++)
        if (each[k]->obj != NULL) PyBuffer_Release(each[k]);
    close_arrays(&counted.codes);
    if (!good) return NULL;
    Py_RETURN_NONE;
}

/* ---- the cells that have rows, numbered in their order: a bit for every cell, and how many are set before each word */

#define WORD 64

typedef struct {
    Arrays packs;
    Py_buffer strides, bits;
    Py_ssize_t rows;
} Marks;

static int open_marks(PyObject *packs, Marks *marks) {
    const Py_buffer *strides = &marks->strides, *bits = &marks->bits;
    if (open_arrays(packs, 0, &marks->packs)) return 0;
    if (strides->len != marks->packs.count * (Py_ssize_t)sizeof(int64_t) || bits->itemsize != sizeof(uint64_t) ||
        bits->len / 8 > UINT32_MAX / WORD || !marks->packs.count)
        return refuse("packs, strides and bits do not fit each other");
    marks->rows = marks->packs.each[0].len / marks->packs.each[0].itemsize;
    for (Py_ssize_t k = 0; k < marks->packs.count; k++)
        if (!is_pack(&marks->packs.each[k], marks->rows)) return 0;
    return 1;
}

static void close_marks(Marks *marks) {
    close_arrays(&marks->packs);
    PyBuffer_Release(&marks->strides);
    PyBuffer_Release(&marks->bits);
}

/* The cells of a tile; whether all are among the bits. */
static int next_cells(const Marks *marks, Py_ssize_t start, Py_ssize_t n, uint32_t *cell) {
    return find_cells(&marks->packs, marks->strides.buf, start, n, marks->bits.len / 8 * WORD, cell);
}

static int count_bits(uint64_t word) {
    word -= (word >> 1) & 0x5555555555555555u;
    word = (word & 0x3333333333333333u) + ((word >> 2) & 0x3333333333333333u);
    return (int)((((word + (word >> 4)) & 0x0f0f0f0f0f0f0f0fu) * 0x0101010101010101u) >> 56);
}

static int mark_rows(const Marks *marks) {
    uint64_t *bits = marks->bits.buf;
    uint32_t cell[TILE];
    for (Py_ssize_t start = 0; start < marks->rows; start += TILE) {
        Py_ssize_t n = marks->rows - start < TILE ? marks->rows - start : TILE;
        if (!next_cells(marks, start, n, cell)) return 0;
        for (Py_ssize_t i = 0; i < n; i++) bits[cell[i] / WORD] |= (uint64_t)1 << cell[i] % WORD;
    }
    return 1;
}

PyObject *kernel_mark_cells(PyObject *module, PyObject *args) {
    PyObject *packs;
    Marks marks;
    memset(&marks, 0, sizeof marks);
    (void)module;
    if (!PyArg_ParseTuple(args, "Oy*w*", &packs, &marks.strides, &marks.bits)) return NULL;
    int good = open_marks(packs, &marks);
    Py_ssize_t count = 0;
    if (good) {
        Py_BEGIN_ALLOW_THREADS;
        good = mark_rows(&marks);
        for (Py_ssize_t w = 0; w < marks.bits.len / 8; w++) count += count_bits(((const uint64_t *)marks.bits.buf)[w]);
        Py_END_ALLOW_THREADS;
        if (!good) refuse(NO_CELL);
    }
    close_marks(&marks);
    return good ? PyLong_FromSsize_t(count) : NULL;
}

static void list_marked(const Marks *marks, uint32_t *before, int64_t *used) {
    const uint64_t *bits = marks->bits.buf;
    uint32_t count = 0;
    for (Py_ssize_t w = 0; w < marks->bits.len / 8; w++) {
        before[w] = count;
        int64_t cell = w * WORD;
        for (uint64_t left = bits[w]; left; left >>= 1, cell++)
            if (left & 1) used[count++] = cell;
    }
}

static int number_rows(const Marks *marks, const uint32_t *before, const Py_buffer *out) {
    const uint64_t *bits = marks->bits.buf;
    uint32_t cell[TILE];
    for (Py_ssize_t start = 0; start < marks->rows; start += TILE) {
        Py_ssize_t n = marks->rows - start < TILE ? marks->rows - start : TILE;
        if (!next_cells(marks, start, n, cell)) return 0;
        BY_ITEM_SIZE(out->itemsize, {
            Code *number = (Code *)out->buf + start;
            for (Py_ssize_t i = 0; i < n; i++) {
                uint64_t below = bits[cell[i] / WORD] & (((uint64_t)1 << cell[i] % WORD) - 1);
                number[i] = (Code)(before[cell[i] / WORD] + (uint32_t)count_bits(below));
            }
        });
    }
    return 1;
}

PyObject *kernel_number_cells(PyObject *module, PyObject *args) {
    PyObject *packs;
    Py_buffer used, out;
    Marks marks;
    memset(&marks, 0, sizeof marks);
    (void)module;
    if (!PyArg_ParseTuple(args, "Oy*y*w*w*", &packs, &marks.strides, &marks.bits, &used, &out)) return NULL;
    const Py_ssize_t words = marks.bits.len / 8;
    int good = open_marks(packs, &marks);
    uint32_t *before = good ? PyMem_Malloc((size_t)(words + 1) * sizeof(uint32_t)) : NULL;
    if (good && before == NULL) good = no_memory();
    Py_ssize_t count = 0;
    for (Py_ssize_t w = 0; good && w < words; w++) count += count_bits(((const uint64_t *)marks.bits.buf)[w]);
    if (good && (out.len != marks.rows * out.itemsize || used.len != count * (Py_ssize_t)sizeof(int64_t) ||
                 (out.itemsize != 1 && out.itemsize != 2 && out.itemsize != 4)))
        good = refuse("a number for every row, and a cell for every bit are needed");
    if (good) {
        Py_BEGIN_ALLOW_THREADS;
        list_marked(&marks, before, used.buf);
        good = number_rows(&marks, before, &out);
        Py_END_ALLOW_THREADS;
        if (!good) refuse(NO_CELL);
    }
    PyMem_Free(before);
    close_marks(&marks);
    PyBuffer_Release(&used);
    PyBuffer_Release(&out);
    if (!good) return NULL;
    Py_RETURN_NONE;
}

/* ---- total[cell] += weight, hits[cell] += positive */

typedef struct {
    Arrays packs;
    Py_buffer strides, positive, weight, total, hits;
} Cells;

static void close_cells(Cells *cells) {
    Py_buffer *each[] = {&cells->strides, &cells->positive, &cells->weight, &cells->total, &cells->hits};
    for (size_t k = 0; k < sizeof each / sizeof *each; k++)
        if (each[k]->obj != NULL) PyBuffer_Release(each[k]);
    close_arrays(&cells->packs);
}

static int cells_fit(const Cells *cells, Py_ssize_t rows) {
    int good = cells->strides.len == cells->packs.count * (Py_ssize_t)sizeof(int64_t) &&
               cells->total.len == cells->hits.len && cells->total.len / 8 < INT32_MAX &&
               (cells->positive.itemsize == 1 || cells->positive.itemsize == sizeof(double)) &&
               (cells->weight.obj == NULL || cells->weight.len == rows * (Py_ssize_t)sizeof(double));
    if (!good) PyErr_SetString(PyExc_ValueError, "packs, strides, weights and sums do not fit each other");
    for (Py_ssize_t k = 0; good && k < cells->packs.count; k++) good = is_pack(&cells->packs.each[k], rows);
    return good;
}

static int add_cells(const Cells *cells, Py_ssize_t rows) {
    uint32_t cell[TILE];
    double *total = cells->total.buf, *hits = cells->hits.buf;
    const double *weight = cells->weight.obj == NULL ? NULL : cells->weight.buf;
    Py_ssize_t grid = cells->total.len / (Py_ssize_t)sizeof(double);
    int bytes = cells->positive.itemsize == 1;
    for (Py_ssize_t start = 0; start < rows; start += TILE) {
        Py_ssize_t n = rows - start < TILE ? rows - start : TILE;
        if (!find_cells(&cells->packs, cells->strides.buf, start, n, grid, cell)) return 0;
        for (Py_ssize_t i = 0; i < n; i++) {
            total[cell[i]] += weight == NULL ? 1.0 : weight[start + i];
            hits[cell[i]] += bytes ? ((const uint8_t *)cells->positive.buf)[start + i]
                                   : ((const double *)cells->positive.buf)[start + i];
        }
    }
    return 1;
}

PyObject *kernel_cell_sums(PyObject *module, PyObject *args) {
    PyObject *packs, *strides, *positive, *weight, *total, *hits;
    Cells cells;
    memset(&cells, 0, sizeof cells);
    (void)module;
    if (!PyArg_ParseTuple(args, "OOOOOO", &packs, &strides, &positive, &weight, &total, &hits)) return NULL;
    const int out = PyBUF_C_CONTIGUOUS | PyBUF_WRITABLE;
    int good = open_arrays(packs, 0, &cells.packs) == 0 &&
               PyObject_GetBuffer(strides, &cells.strides, PyBUF_C_CONTIGUOUS) == 0 &&
               PyObject_GetBuffer(positive, &cells.positive, PyBUF_C_CONTIGUOUS) == 0 &&
               (weight == Py_None || PyObject_GetBuffer(weight, &cells.weight, PyBUF_C_CONTIGUOUS) == 0) &&
               PyObject_GetBuffer(total, &cells.total, out) == 0 && PyObject_GetBuffer(hits, &cells.hits, out) == 0;
    Py_ssize_t rows = good ? cells.positive.len / cells.positive.itemsize : 0;
    good = good && cells_fit(&cells, rows);
    if (good) {
        Py_BEGIN_ALLOW_THREADS;
        good = add_cells(&cells, rows);
        Py_END_ALLOW_THREADS;
        if (!good) refuse(NO_CELL);
    }
    close_cells(&cells);
    if (!good) return NULL;
    Py_RETURN_NONE;
}
