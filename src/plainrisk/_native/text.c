/* A column of text as small integers, read where it lies by Arrow's C stream interface: no copy, one pass. */

#include <stdlib.h>
#include <string.h>

#include "shared.h"

/* The structures of the Arrow C data and stream interfaces, as their specification lays them out. */
struct ArrowSchema {
    const char *format, *name, *metadata;
    int64_t flags, n_children;
    struct ArrowSchema **children, *dictionary;
    void (*release)(struct ArrowSchema *);
    void *private_data;
};

struct ArrowArray {
    int64_t length, null_count, offset, n_buffers, n_children;
    const void **buffers;
    struct ArrowArray **children, *dictionary;
    void (*release)(struct ArrowArray *);
    void *private_data;
};

struct ArrowArrayStream {
    int (*get_schema)(struct ArrowArrayStream *, struct ArrowSchema *);
    int (*get_next)(struct ArrowArrayStream *, struct ArrowArray *);
    const char *(*get_last_error)(struct ArrowArrayStream *);
    void (*release)(struct ArrowArrayStream *);
    void *private_data;
};

#define MOST_LABELS 127 /* what a signed byte counts */
#define SLOTS 512
#define LONGEST 4096 /* characters of a label in all; longer text is somebody else's */

typedef enum { SHORT_OFFSETS, LONG_OFFSETS, VIEWS, OTHER } Storage;

/* The labels met so far, in their order, and where to find them. */
typedef struct {
    int count;
    uint64_t hash[MOST_LABELS];
    int32_t length[MOST_LABELS];
    char *text[MOST_LABELS];
    int16_t slot[SLOTS]; /* -1 is empty */
} Found;

static Storage storage_of(const char *format) {
    if (strcmp(format, "u") == 0) return SHORT_OFFSETS;
    if (strcmp(format, "U") == 0) return LONG_OFFSETS;
    if (strcmp(format, "vu") == 0) return VIEWS;
    return OTHER;
}

/* Where the text of a row begins; its length in *length. */
static const char *text_at(const struct ArrowArray *array, Storage storage, int64_t row, int64_t *length) {
    if (storage == VIEWS) {
        const char *view = (const char *)array->buffers[1] + 16 * row;
        int32_t size, buffer, offset;
        memcpy(&size, view, 4);
        *length = size;
        if (size <= 12) return view + 4;
        memcpy(&buffer, view + 8, 4);
        memcpy(&offset, view + 12, 4);
        return (const char *)array->buffers[2 + buffer] + offset;
    }
    int64_t start, end;
    if (storage == SHORT_OFFSETS) {
        const int32_t *offsets = array->buffers[1];
        start = offsets[row], end = offsets[row + 1];
    } else {
        const int64_t *offsets = array->buffers[1];
        start = offsets[row], end = offsets[row + 1];
    }
    *length = end - start;
    return (const char *)array->buffers[2] + start;
}

static uint64_t hash_of(const char *text, int64_t length) {
    uint64_t h = 0x9E3779B97F4A7C15u ^ (uint64_t)length, word;
    for (; length >= 8; text += 8, length -= 8) {
        memcpy(&word, text, 8);
        h = (h ^ word) * 0xD6E8FEB86659FD93u;
        h ^= h >> 32;
    }
    word = 0;
    memcpy(&word, text, (size_t)length);
    h = (h ^ word) * 0xD6E8FEB86659FD93u;
    return h ^ (h >> 32);
}

/* The number of a label, a new one if it was not met before; -1 if there are too many or it is too long. */
static int number_of(Found *found, const char *text, int64_t length) {
    if (length > LONGEST) return -1;
    uint64_t h = hash_of(text, length);
    for (unsigned at = (unsigned)h % SLOTS;; at = (at + 1) % SLOTS) {
        int k = found->slot[at];
        if (k < 0) {
            if (found->count == MOST_LABELS) return -1;
            k = found->count;
            char *copy = malloc(length ? (size_t)length : 1);
            if (copy == NULL) return -1;
            memcpy(copy, text, (size_t)length);
            found->text[k] = copy;
            found->length[k] = (int32_t)length;
            found->hash[k] = h;
            found->slot[at] = (int16_t)k;
            found->count++;
            return k;
        }
        if (found->hash[k] == h && found->length[k] == length && memcmp(found->text[k], text, (size_t)length) == 0)
            return k;
    }
}

/* Short text of a view lies in the view itself, filled up with zeros: two words say all. Labels met before are known by
   them; `first` and `second` are those of the labels, and `near` where to look. */
typedef struct {
    uint64_t first[MOST_LABELS], second[MOST_LABELS];
    int16_t near[SLOTS];
} Words;

static inline unsigned near_of(uint64_t first, uint64_t second) {
    uint64_t h = (first ^ (second * 0x9E3779B97F4A7C15u)) * 0xD6E8FEB86659FD93u;
    return (unsigned)(h >> 55); /* below SLOTS */
}

static int code_views(const struct ArrowArray *array, Found *found, int8_t *codes) {
    const uint8_t *valid = array->null_count == 0 ? NULL : array->buffers[0];
    Words words;
    memset(words.near, 0xFF, sizeof words.near);
    for (int64_t i = 0; i < array->length; i++) {
        int64_t row = array->offset + i, length;
        if (valid != NULL && !(valid[row >> 3] >> (row & 7) & 1)) {
            codes[i] = -1;
            continue;
        }
        uint64_t first, second;
        memcpy(&first, (const char *)array->buffers[1] + 16 * row, 8);
        memcpy(&second, (const char *)array->buffers[1] + 16 * row + 8, 8);
        unsigned at = near_of(first, second);
        int k = words.near[at];
        if (k < 0 || words.first[k] != first || words.second[k] != second) {
            const char *text = text_at(array, VIEWS, row, &length);
            k = number_of(found, text, length);
            if (k < 0) return 0;
            if (length <= 12) {
                words.first[k] = first;
                words.second[k] = second;
                words.near[at] = (int16_t)k;
            }
        }
        codes[i] = (int8_t)k;
    }
    return 1;
}

/* Code the rows of one array; whether its labels are few. */
static int code_array(const struct ArrowArray *array, Storage storage, Found *found, int8_t *codes) {
    if (storage == VIEWS) return code_views(array, found, codes);
    const uint8_t *valid = array->null_count == 0 ? NULL : array->buffers[0];
    for (int64_t i = 0; i < array->length; i++) {
        int64_t row = array->offset + i, length;
        if (valid != NULL && !(valid[row >> 3] >> (row & 7) & 1)) {
            codes[i] = -1;
            continue;
        }
        const char *text = text_at(array, storage, row, &length);
        int k = number_of(found, text, length);
        if (k < 0) return 0;
        codes[i] = (int8_t)k;
    }
    return 1;
}

/* Code all rows of a stream; whether it was text with few labels and as many rows as there is room. */
static int code_stream(struct ArrowArrayStream *stream, Found *found, int8_t *codes, int64_t rows) {
    struct ArrowSchema schema;
    if (stream->get_schema(stream, &schema) != 0) return 0;
    Storage storage = storage_of(schema.format);
    if (schema.release != NULL) schema.release(&schema);
    int64_t done = 0;
    for (int good = storage != OTHER; good;) {
        struct ArrowArray array;
        if (stream->get_next(stream, &array) != 0) return 0;
        if (array.release == NULL) return done == rows; /* the end */
        good = array.length <= rows - done && code_array(&array, storage, found, codes + done);
        done += array.length;
        array.release(&array);
    }
    return 0;
}

static PyObject *labels_of(const Found *found) {
    PyObject *labels = PyList_New(found->count);
    for (int k = 0; labels != NULL && k < found->count; k++) {
        PyObject *label = PyUnicode_DecodeUTF8(found->text[k], found->length[k], NULL);
        if (label == NULL) {
            Py_DECREF(labels);
            return NULL;
        }
        PyList_SetItem(labels, k, label);
    }
    return labels;
}

PyObject *kernel_text_codes(PyObject *module, PyObject *args) {
    PyObject *capsule;
    Py_buffer codes;
    (void)module;
    if (!PyArg_ParseTuple(args, "Ow*", &capsule, &codes)) return NULL;
    struct ArrowArrayStream *stream = PyCapsule_GetPointer(capsule, "arrow_array_stream");
    PyObject *labels = NULL;
    if (stream != NULL && stream->release != NULL) {
        Found found = {0};
        int good;
        Py_BEGIN_ALLOW_THREADS;
        memset(found.slot, 0xFF, sizeof found.slot);
        good = code_stream(stream, &found, codes.buf, codes.len);
        stream->release(stream);
        Py_END_ALLOW_THREADS;
        labels = good ? labels_of(&found) : Py_NewRef(Py_None);
        for (int k = 0; k < found.count; k++) free(found.text[k]);
    } else if (stream != NULL)
        PyErr_SetString(PyExc_ValueError, "the stream was read already");
    PyBuffer_Release(&codes);
    return labels;
}
