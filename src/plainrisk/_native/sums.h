/* Look-ups and sums by joint code over a tile of rows, for other kernels. */

#ifndef PLAINRISK_SUMS_H
#define PLAINRISK_SUMS_H

#include "shared.h"

/* Open joint codes, one small integer per row each; on failure an exception is set. */
int open_codes(PyObject *sequence, Py_ssize_t rows, Arrays *out);

/* Open one table of doubles per joint code. Every code is checked against the size of its table, here and nowhere else,
   so no look-up can leave it. */
int open_tables(PyObject *sequence, int writable, const Arrays *codes, Arrays *out);

/* score[i] += tables[k][codes[k][start + i]], one joint code after the other */
void look_up_tile(double *score, const Py_buffer *codes, const Py_buffer *tables, Py_ssize_t count, Py_ssize_t start,
                  Py_ssize_t rows);

/* sums[k][codes[k][start + i]] += values[i], one row after the other; without values every row counts 1 */
void level_sums_tile(const double *values, const Py_buffer *codes, const Py_buffer *sums, Py_ssize_t count,
                     Py_ssize_t start, Py_ssize_t rows);

#endif
