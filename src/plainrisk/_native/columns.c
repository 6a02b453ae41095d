/* Columns of numbers of any type, however they are stored, as tiles of doubles in one piece. */

#include "shared.h"

#define GROUP 8 /* columns copied in one loop over the rows, or half of them */

/* Ask for memory that the next tile will read. The nearest cache has no room for it. */
#if defined(__GNUC__)
#define FETCH(ADDRESS) __builtin_prefetch((const void *)(ADDRESS), 0, 2)
#else
#define FETCH(ADDRESS) (void)(ADDRESS)
#endif

int in_one_piece(const Column *column) {
    return column->kind == 'f' && column->size == sizeof(double) && column->stride == sizeof(double);
}

int is_far(const Column *column) { return column->stride > column->size || column->stride < -column->size; }

#define COPY(TYPE)                                                                                                     \
    for (Py_ssize_t i = 0; i < rows; i++) out[i] = (double)*(const TYPE *)(from + i * stride)

static void copy_one(const Column *column, Py_ssize_t start, Py_ssize_t rows, double *restrict out) {
    Py_ssize_t stride = column->stride;
    const char *from = column->data + start * stride;
    switch (column->kind * 16 + (int)column->size) {
    case 'f' * 16 + 8: COPY(double); break;
    case 'f' * 16 + 4: COPY(float); break;
    case 'i' * 16 + 1: COPY(int8_t); break;
    case 'i' * 16 + 2: COPY(int16_t); break;
    case 'i' * 16 + 4: COPY(int32_t); break;
    case 'i' * 16 + 8: COPY(int64_t); break;
    case 'u' * 16 + 1: COPY(uint8_t); break;
    case 'u' * 16 + 2: COPY(uint16_t); break;
    case 'u' * 16 + 4: COPY(uint32_t); break;
    default: COPY(uint64_t);
    }
}

/* Several columns in one go over the rows: in a matrix that is stored row by row they are next to each other. */
#define COPY_GROUP(TYPE, COUNT)                                                                                        \
    for (Py_ssize_t i = 0; i < rows; i++) {                                                                            \
        FETCH(((uintptr_t)from[0] + (uintptr_t)((i + FAR_ROWS) * stride)));                                            \
        for (int k = 0; k < (COUNT); k++) out[k * FAR_ROWS + i] = (double)*(const TYPE *)(from[k] + i * stride);       \
    }

static void copy_group(const Column *columns, int count, Py_ssize_t start, Py_ssize_t rows, double *restrict out) {
    const char *from[GROUP];
    Py_ssize_t stride = columns->stride;
    for (int k = 0; k < count; k++) from[k] = columns[k].data + start * stride;
    if (columns->size == sizeof(double) && count == GROUP) {
        COPY_GROUP(double, GROUP)
    } else if (columns->size == sizeof(double)) {
        COPY_GROUP(double, GROUP / 2)
    } else if (count == GROUP) {
        COPY_GROUP(float, GROUP)
    } else {
        COPY_GROUP(float, GROUP / 2)
    }
}

/* Whether the next columns are like those of a matrix of floats that is stored row by row. */
static int is_group(const Column *columns, int count) {
    for (int k = 0; k < count; k++) {
        int alike = columns[k].size == columns->size && columns[k].stride == columns->stride;
        if (columns[k].kind != 'f' || !alike || !is_far(columns + k)) return 0;
    }
    return 1;
}

/* Copy the tiles of the columns that are far. A last group may begin before the one in front of it ends. */
void lay_out(const Columns *all, Py_ssize_t start, Py_ssize_t rows) {
    const Column *columns = all->each;
    double *room = all->room;
    Py_ssize_t count = all->count, k = 0;
    int size = count < GROUP ? GROUP / 2 : GROUP;
    while (k < count) {
        Py_ssize_t first = k + size <= count ? k : count - size;
        if (first >= 0 && is_group(columns + first, size)) {
            copy_group(columns + first, size, start, rows, room + first * FAR_ROWS);
            k = first + size;
        } else {
            if (is_far(columns + k)) copy_one(columns + k, start, rows, room + k * FAR_ROWS);
            k++;
        }
    }
}

/* Where the tile of a column is in one piece; `copy` is for numbers that are near, but no doubles. */
const double *tile_of(const Columns *columns, Py_ssize_t k, Py_ssize_t start, Py_ssize_t rows, double *copy) {
    const Column *column = columns->each + k;
    if (is_far(column)) return columns->room + k * FAR_ROWS;
    if (in_one_piece(column)) return (const double *)column->data + start;
    copy_one(column, start, rows, copy);
    return copy;
}

/* ---- reading the arguments */

static char kind_of(const char *format) {
    if (format == NULL || format[0] == 0 || format[1] != 0) return 0; /* also numbers in another byte order */
    switch (format[0]) {
    case 'd': case 'f': return 'f';
    case 'b': case 'h': case 'i': case 'l': case 'q': return 'i';
    case '?': case 'B': case 'H': case 'I': case 'L': case 'Q': return 'u';
    default: return 0;
    }
}

/* On failure an exception is set; `free_columns` is due in any case. */
int read_columns(const Arrays *arrays, Py_ssize_t rows, Columns *out) {
    int far = 0;
    out->each = PyMem_Calloc((size_t)arrays->count + 1, sizeof(Column));
    if (out->each == NULL) return no_memory();
    for (Py_ssize_t k = 0; k < arrays->count; k++, out->count++) {
        const Py_buffer *buffer = &arrays->each[k];
        char kind = kind_of(buffer->format);
        if (kind == 0 || buffer->ndim != 1 || buffer->shape[0] != rows)
            return refuse("a column must have one number per row, of a type that is known here");
        out->each[k] = (Column){buffer->buf, buffer->strides[0], buffer->itemsize, kind};
        far |= is_far(&out->each[k]);
    }
    if (far) out->room = PyMem_Malloc((size_t)arrays->count * FAR_ROWS * sizeof(double));
    return !far || out->room != NULL || no_memory();
}

void free_columns(Columns *columns) {
    PyMem_Free(columns->each);
    PyMem_Free(columns->room);
}
