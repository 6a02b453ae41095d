/* How the codes of packs stand for levels, and how levels become columns. */

#include "levels.h"

#include <string.h>

#include "sums.h"

static const int32_t *starts_of(const LevelMap *map) { return map->starts.buf; }
static const int32_t *columns_of(const LevelMap *map) { return map->columns.buf; }
static const double *weights_of(const LevelMap *map) { return map->weights.buf; }

void score_levels(const LevelMap *map, const double *coefficients, double *scores) {
    for (Py_ssize_t i = 0; i < map->n_levels; i++) {
        scores[i] = 0.0;
        for (int32_t j = starts_of(map)[i]; j < starts_of(map)[i + 1]; j++)
            scores[i] += weights_of(map)[j] * coefficients[columns_of(map)[j]];
    }
}

void add_columns(const LevelMap *map, const double *by_level, double *sums) {
    for (Py_ssize_t i = 0; i < map->n_levels; i++)
        for (int32_t j = starts_of(map)[i]; j < starts_of(map)[i + 1]; j++)
            sums[columns_of(map)[j]] += weights_of(map)[j] * by_level[i];
}

/* ---- reading the arguments */

static int read_columns_of_levels(const LevelMap *map) {
    const Py_ssize_t entries = map->columns.len / (Py_ssize_t)sizeof(int32_t);
    const int32_t *starts = starts_of(map);
    if (map->starts.len < (Py_ssize_t)sizeof(int32_t) || map->weights.len != entries * (Py_ssize_t)sizeof(double))
        return refuse("starts, columns and weights of levels do not fit each other");
    if (starts[0] != 0 || starts[map->n_levels] != entries) return refuse("starts must go from 0 to the number of weights");
    for (Py_ssize_t i = 0; i < map->n_levels; i++)
        if (starts[i + 1] < starts[i]) return refuse("starts must not go down");
    for (Py_ssize_t j = 0; j < entries; j++)
        if (columns_of(map)[j] < 0 || columns_of(map)[j] >= map->n_columns) return refuse("a column is beyond the last");
    return 1;
}

/* The stretch of levels that a pack's codes stand for, and that of their columns. */
static int read_pack(const LevelMap *map, Py_ssize_t k) {
    const Py_buffer *members = &map->members.each[k];
    if (members->ndim != 2 || members->itemsize != sizeof(int32_t) || members->shape[1] < 1)
        return refuse("members must be a table of 32-bit integers");
    Pack *pack = &map->each[k];
    *pack = (Pack){members->shape[0], members->shape[1], map->n_levels, 0, map->n_columns, 0, members->buf};
    Py_ssize_t last = pack->first - 1, last_column = pack->place - 1;
    for (Py_ssize_t i = 0; i < pack->size * pack->features; i++) {
        int32_t level = pack->members[i];
        if (level < 0 || level >= map->n_levels) return refuse("a level is beyond the last");
        if (level < pack->first) pack->first = level;
        if (level > last || i == 0) last = level;
    }
    pack->levels = last + 1 - pack->first;
    for (int32_t j = starts_of(map)[pack->first]; j < starts_of(map)[pack->first + pack->levels]; j++) {
        int32_t column = columns_of(map)[j];
        if (column < pack->place) pack->place = column;
        if (column > last_column || pack->columns == 0) last_column = column;
        pack->columns = last_column + 1 - pack->place;
    }
    if (pack->columns == 0) pack->place = 0;
    return 1;
}

int open_level_map(PyObject *packs, PyObject *map, Py_ssize_t rows, Py_ssize_t n_columns, LevelMap *out) {
    PyObject *members, *starts, *columns, *weights;
    if (!PyArg_ParseTuple(map, "OOOO", &members, &starts, &columns, &weights)) return 0;
    if ((packs != NULL && open_arrays(packs, 0, &out->packs)) || open_arrays(members, 0, &out->members) ||
        PyObject_GetBuffer(starts, &out->starts, PyBUF_C_CONTIGUOUS) ||
        PyObject_GetBuffer(columns, &out->columns, PyBUF_C_CONTIGUOUS) ||
        PyObject_GetBuffer(weights, &out->weights, PyBUF_C_CONTIGUOUS))
        return 0;
    if (packs != NULL && out->packs.count != out->members.count) return refuse("as many members as packs are needed");
    for (Py_ssize_t k = 0; k < out->packs.count; k++)
        if (!is_pack(&out->packs.each[k], rows)) return 0;
    if (out->starts.itemsize != sizeof(int32_t) || out->columns.itemsize != sizeof(int32_t))
        return refuse("starts and columns must be 32-bit integers");
    out->rows = rows;
    out->n_levels = out->starts.len / (Py_ssize_t)sizeof(int32_t) - 1;
    out->n_columns = n_columns;
    if (!read_columns_of_levels(out)) return 0;
    out->each = PyMem_Calloc((size_t)out->members.count + 1, sizeof(Pack));
    if (out->each == NULL) return no_memory();
    for (Py_ssize_t k = 0; k < out->members.count; k++)
        if (!read_pack(out, k)) return 0;
    return 1;
}

void close_level_map(LevelMap *map) {
    Py_buffer *each[] = {&map->starts, &map->columns, &map->weights};
    for (size_t k = 0; k < sizeof each / sizeof *each; k++)
        if (each[k]->obj != NULL) PyBuffer_Release(each[k]);
    close_arrays(&map->packs);
    close_arrays(&map->members);
    PyMem_Free(map->each);
}

/* ---- scores of levels, and of codes, which stand for several */

PyObject *kernel_code_scores(PyObject *module, PyObject *args) {
    PyObject *levels;
    Py_buffer coefficients, by_level, by_code;
    LevelMap map;
    memset(&map, 0, sizeof map);
    (void)module;
    if (!PyArg_ParseTuple(args, "y*Ow*w*", &coefficients, &levels, &by_level, &by_code)) return NULL;
    const Py_ssize_t number = sizeof(double);
    int good = open_level_map(NULL, levels, 0, coefficients.len / number, &map);
    Py_ssize_t codes = 0;
    for (Py_ssize_t k = 0; good && k < map.members.count; k++) codes += map.each[k].size;
    if (good && (by_level.len != map.n_levels * number || by_code.len != codes * number))
        good = refuse("a score for every level and every code is needed");
    if (good) {
        double *score = by_code.buf, *level = by_level.buf;
        score_levels(&map, coefficients.buf, level);
        for (Py_ssize_t k = 0; k < map.members.count; k++) {
            const int32_t *member = map.each[k].members;
            for (Py_ssize_t code = 0; code < map.each[k].size; code++, score++) {
                *score = 0.0;
                for (Py_ssize_t f = 0; f < map.each[k].features; f++) *score += level[*member++];
            }
        }
    }
    close_level_map(&map);
    PyBuffer_Release(&coefficients);
    PyBuffer_Release(&by_level);
    PyBuffer_Release(&by_code);
    if (!good) return NULL;
    Py_RETURN_NONE;
}

/* ---- making a map */

typedef struct {
    Arrays features, given, members; /* matrices (levels, columns), and members by feature and among all levels */
    Py_buffer starts, columns, weights;
    Py_ssize_t count; /* entries */
} Making;

/* The entries of all matrices that are not 0, level by level. */
static int list_entries(Making *making) {
    int32_t *starts = making->starts.buf, *columns = making->columns.buf;
    double *weights = making->weights.buf;
    const Py_ssize_t room = making->weights.len / (Py_ssize_t)sizeof(double);
    Py_ssize_t first = 0;
    for (Py_ssize_t f = 0; f < making->features.count; f++) {
        const Py_buffer *matrix = &making->features.each[f];
        const double *entry = matrix->buf;
        for (Py_ssize_t level = 0; level < matrix->shape[0]; level++) {
            *starts++ = (int32_t)making->count;
            for (Py_ssize_t j = 0; j < matrix->shape[1]; j++, entry++) {
                if (*entry == 0.0) continue;
                if (making->count == room) return refuse("there is no room for so many entries");
                columns[making->count] = (int32_t)(first + j);
                weights[making->count++] = *entry;
            }
        }
        first += matrix->shape[1];
    }
    *starts = (int32_t)making->count;
    return 1;
}

/* From levels of features to places among all levels. */
static int place_members(const Making *making) {
    Py_ssize_t f = 0, first = 0;
    for (Py_ssize_t k = 0; k < making->given.count; k++) {
        const Py_buffer *pack = &making->given.each[k];
        const Py_ssize_t size = pack->shape[0], wide = pack->shape[1];
        for (Py_ssize_t j = 0; j < wide; j++, f++) {
            if (f == making->features.count) return refuse("packs have more features than there are");
            const Py_ssize_t levels = making->features.each[f].shape[0];
            const int64_t *from = (const int64_t *)pack->buf + j;
            int32_t *to = (int32_t *)making->members.each[k].buf + j;
            for (Py_ssize_t i = 0; i < size; i++, from += wide, to += wide) {
                if (*from < 0 || *from >= levels) return refuse("a level is beyond the last");
                *to = (int32_t)(first + *from);
            }
            first += levels;
        }
    }
    return 1;
}

static int is_table(const Py_buffer *table, Py_ssize_t size) { return table->ndim == 2 && table->itemsize == size; }

static int open_making(PyObject *args, Making *making) {
    PyObject *features, *given, *members;
    if (!PyArg_ParseTuple(args, "OOOw*w*w*", &features, &given, &members, &making->starts, &making->columns,
                          &making->weights) ||
        open_arrays(features, 0, &making->features) || open_arrays(given, 0, &making->given) ||
        open_arrays(members, 1, &making->members))
        return 0;
    const Py_ssize_t code = sizeof(int32_t);
    Py_ssize_t levels = 0, columns = 0;
    int good = making->given.count == making->members.count && making->starts.itemsize == code &&
               making->columns.itemsize == code && making->columns.len / code == making->weights.len / 8;
    for (Py_ssize_t f = 0; good && f < making->features.count; f++) {
        good = is_table(&making->features.each[f], sizeof(double));
        if (good) levels += making->features.each[f].shape[0], columns += making->features.each[f].shape[1];
    }
    for (Py_ssize_t k = 0; good && k < making->given.count; k++) {
        const Py_buffer *from = &making->given.each[k], *to = &making->members.each[k];
        good = is_table(from, sizeof(int64_t)) && is_table(to, code) && from->shape[0] == to->shape[0] &&
               from->shape[1] == to->shape[1];
    }
    good = good && levels < INT32_MAX && columns < INT32_MAX && making->weights.len / 8 < INT32_MAX;
    if (!good || making->starts.len != (levels + 1) * code) return refuse("the matrices and the members do not fit the map");
    return 1;
}

PyObject *kernel_level_map(PyObject *module, PyObject *args) {
    Making making;
    memset(&making, 0, sizeof making);
    (void)module;
    int good = open_making(args, &making) && list_entries(&making) && place_members(&making);
    Py_buffer *each[] = {&making.starts, &making.columns, &making.weights};
    for (size_t k = 0; k < sizeof each / sizeof *each; k++)
        if (each[k]->obj != NULL) PyBuffer_Release(each[k]);
    close_arrays(&making.features);
    close_arrays(&making.given);
    close_arrays(&making.members);
    return good ? PyLong_FromSsize_t(making.count) : NULL;
}
