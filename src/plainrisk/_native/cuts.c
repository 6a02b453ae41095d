/* The best cut of some rows of one feature. Every quantity that decides is computed in the precision and the order of
   encode/tree.py, which says why. */

#include <float.h>
#include <math.h>

#include "cuts.h"

#define SLACK 1e-11 /* far above the rounding of a gain, per unit of weight */
#define BLOCK 512   /* cuts evaluated at once */
#define STRIDE 16   /* segments that are ruled out together */
#define FEW_STRIDES 4
#define MOST_STRIDES (MOST_SEGMENTS / STRIDE + 1)

static Sums at_group(const Places *p, Py_ssize_t g) { return (Sums){p->open.good[g], p->open.bad[g]}; }

/* ---- what a cut gains */

static double gini(double good, double bad, double weight) {
    return 1.0 - (good * good + bad * bad) / (weight * weight);
}

static double share(double p) {
    /* 0 log 0 is 0. The logarithm is divided by ln 2, not log2: their last bits differ. */
    return p * (log(p > DBL_MIN ? p : DBL_MIN) / 0.6931471805599453);
}

static double entropy(double good, double bad, double weight) { return -share(good / weight) - share(bad / weight); }

double impurity_of(const Splitter *s, Sums from, Sums to) {
    double good = to.good - from.good, bad = to.bad - from.bad;
    return s->entropy ? entropy(good, bad, good + bad) : gini(good, bad, good + bad);
}

/* The decrease of impurity up to constants of the range, for several cuts. */
FOR_EVERY_PROCESSOR
static void gini_gains(const int32_t *good, const int32_t *bad, Py_ssize_t n, Sums start, Sums end, double *gain) {
    for (Py_ssize_t i = 0; i < n; i++) {
        double g = good[i], b = bad[i];
        double gl = g - start.good, bl = b - start.bad, gr = end.good - g, br = end.bad - b;
        double wl = gl + bl, wr = gr + br;
        double left = 1.0 - (gl * gl + bl * bl) / (wl * wl), right = 1.0 - (gr * gr + br * br) / (wr * wr);
        gain[i] = -wr * right - wl * left;
    }
}

static void find_gains(const Splitter *s, const int32_t *good, const int32_t *bad, Py_ssize_t n, const Range *range,
                       double *gain) {
    if (!s->entropy) {
        gini_gains(good, bad, n, range->start, range->end, gain);
        return;
    }
    for (Py_ssize_t i = 0; i < n; i++) {
        Sums at = {good[i], bad[i]};
        double wl = rows_below(at) - rows_below(range->start), wr = rows_below(range->end) - rows_below(at);
        double left = impurity_of(s, range->start, at), right = impurity_of(s, at, range->end);
        gain[i] = -wr * right - wl * left;
    }
}

/* ---- the best cut among the groups that are open */

FOR_EVERY_PROCESSOR
static double largest(const double *gain, Py_ssize_t n) {
    double most[8], all = -INFINITY;
    Py_ssize_t i = 0;
    for (int j = 0; j < 8; j++) most[j] = -INFINITY;
    for (; i + 8 <= n; i += 8)
        for (int j = 0; j < 8; j++) most[j] = gain[i + j] > most[j] ? gain[i + j] : most[j];
    for (; i < n; i++) most[0] = gain[i] > most[0] ? gain[i] : most[0];
    for (int j = 0; j < 8; j++) all = most[j] > all ? most[j] : all;
    return all;
}

/* The first of the best of some cuts, and its gain; -1 if none is better than the best so far. */
static Py_ssize_t first_best(const Splitter *s, const Range *range, const int32_t *good, const int32_t *bad,
                             Py_ssize_t n, double *best) {
    double gain[BLOCK];
    Py_ssize_t found = -1;
    for (Py_ssize_t start = 0; start < n; start += BLOCK) {
        Py_ssize_t size = n - start < BLOCK ? n - start : BLOCK, i = 0;
        find_gains(s, good + start, bad + start, size, range, gain);
        double top = largest(gain, size);
        if (!(top > *best)) continue; /* the leftmost of equals stays */
        while (gain[i] != top) i++;
        *best = top;
        found = start + i;
    }
    return found;
}

/* Whether a cut leaves enough rows on both sides. */
static int is_allowed(const Splitter *s, const Range *range, Sums cut) {
    double rows = rows_below(cut), least = (double)s->min_rows;
    return rows >= rows_below(range->start) + least && rows <= rows_below(range->end) - least;
}

/* The first of ascending sums, from `low` up to `high`, that is not below so many rows. */
static Py_ssize_t first_with(const int32_t *good, const int32_t *bad, Py_ssize_t low, Py_ssize_t high, double rows) {
    while (low < high) {
        Py_ssize_t middle = low + (high - low) / 2;
        if ((double)good[middle] + bad[middle] < rows) low = middle + 1;
        else high = middle;
    }
    return low;
}

/* Try the cuts inside a segment that is open, and that to the next one. */
static void try_segment(const Splitter *s, const Range *range, Py_ssize_t k, Best *best) {
    const Places *p = s->places;
    const Groups *open = &p->open;
    Py_ssize_t first = p->group[k], last = first + p->groups[k] - 1, found;
    Py_ssize_t from = first_with(open->good, open->bad, first, last, rows_below(range->start) + (double)s->min_rows);
    Py_ssize_t to = first_with(open->good, open->bad, from, last, rows_below(range->end) - (double)s->min_rows + 1.0);
    found = first_best(s, range, open->good + from, open->bad + from, to - from, &best->gain);
    if (found >= 0) {
        found += from;
        *best = (Best){best->gain, 1, at_group(p, found), open->last[found], open->first[found + 1]};
    }
    if (k + 1 == p->segments || p->state[k + 1] != OPEN || !is_allowed(s, range, at_group(p, last))) return;
    float lower = open->last[last], upper = open->first[p->group[k + 1]];
    if (upper > lower + GAP && first_best(s, range, open->good + last, open->bad + last, 1, &best->gain) == 0)
        *best = (Best){best->gain, 1, at_group(p, last), lower, upper};
}

/* ---- opening what may hold the best cut */

/* The best of the cuts between segments, as if each were possible, which is nearly true; and the best so far. */
static Best best_end(const Splitter *s, const Range *range, Py_ssize_t first, Py_ssize_t last, Best best) {
    const Places *p = s->places;
    double least = (double)s->min_rows;
    Py_ssize_t from = first_with(p->good, p->bad, first + 1, last + 1, rows_below(range->start) + least);
    Py_ssize_t to = first_with(p->good, p->bad, from, last + 1, rows_below(range->end) - least + 1.0);
    Py_ssize_t found = first_best(s, range, p->good + from, p->bad + from, to - from, &best.gain);
    if (found >= 0) best.found = 1, best.cut = at_segment(p, from + found);
    return best;
}

/* The gain is convex in the class counts below a cut, which inside a segment lie in a rectangle: the best of its four
   corners bounds every cut of the segment. A corner without rows is no number, and loses. */
static void find_bounds(const Splitter *s, const Range *range, const int32_t *good, const int32_t *bad, Py_ssize_t n,
                        double *bound) {
    double gain[BLOCK];
    for (Py_ssize_t i = 0; i < n; i++) bound[i] = -INFINITY;
    for (int corner = 0; corner < 4; corner++) {
        find_gains(s, good + (corner & 1), bad + (corner >> 1), n, range, gain);
        for (Py_ssize_t i = 0; i < n; i++) bound[i] = gain[i] > bound[i] ? gain[i] : bound[i];
    }
}

static int reaches(double bound, double least) { return !(bound > -INFINITY && bound < least); }

static void want(Places *p, Py_ssize_t from, Py_ssize_t to) {
    for (Py_ssize_t k = from < 0 ? 0 : from; k <= to && k < p->segments; k++)
        if (p->state[k] != OPEN) p->state[k] |= WANTED;
}

/* Want those closed segments whose bound reaches a gain. */
static void want_promising(const Splitter *s, const Range *range, Py_ssize_t first, Py_ssize_t last, double least) {
    Places *p = s->places;
    double bound[BLOCK];
    for (Py_ssize_t start = first; start <= last; start += BLOCK) {
        Py_ssize_t n = last + 1 - start < BLOCK ? last + 1 - start : BLOCK;
        find_bounds(s, range, p->good + start, p->bad + start, n, bound);
        for (Py_ssize_t i = 0; i < n; i++)
            if (reaches(bound[i], least)) want(p, start + i - s->margin, start + i + s->margin);
    }
}

/* ---- runs of segments that may hold the best cut, found among strides of several segments */

/* Where runs start and stop, and how many there are. */
typedef struct {
    Py_ssize_t count;
    Py_ssize_t first[MOST_STRIDES], last[MOST_STRIDES];
} Runs;

static void add_run(Runs *runs, Py_ssize_t first, Py_ssize_t last) {
    if (runs->count > 0 && runs->last[runs->count - 1] + 1 == first) runs->count--;
    else runs->first[runs->count] = first;
    runs->last[runs->count++] = last;
}

/* The best gain of a cut between strides. */
static double best_stride(const Splitter *s, const Range *range, const int32_t *good, const int32_t *bad,
                          Py_ssize_t n) {
    double gain[BLOCK], best = -INFINITY;
    for (Py_ssize_t start = 1; start < n; start += BLOCK) {
        Py_ssize_t size = n - start < BLOCK ? n - start : BLOCK;
        find_gains(s, good + start, bad + start, size, range, gain);
        for (Py_ssize_t i = 0; i < size; i++)
            if (gain[i] > best && is_allowed(s, range, (Sums){good[start + i], bad[start + i]})) best = gain[i];
    }
    return best;
}

/* The strides at both ends may reach beyond the range, where there are no bounds: they stay. */
static void find_runs(const Splitter *s, const Range *range, Py_ssize_t first, Py_ssize_t last, double slack,
                      Runs *runs) {
    const Places *p = s->places;
    int32_t good[MOST_STRIDES + 1], bad[MOST_STRIDES + 1];
    double bound[BLOCK];
    Py_ssize_t from = first / STRIDE, n = last / STRIDE + 1 - from;
    runs->count = 0;
    if (n <= FEW_STRIDES) {
        add_run(runs, first, last);
        return;
    }
    for (Py_ssize_t i = 0; i <= n; i++) {
        Py_ssize_t at = (from + i) * STRIDE < p->segments ? (from + i) * STRIDE : p->segments;
        good[i] = p->good[at];
        bad[i] = p->bad[at];
    }
    double least = best_stride(s, range, good, bad, n) - slack;
    for (Py_ssize_t start = 0; start < n; start += BLOCK) {
        Py_ssize_t size = n - start < BLOCK ? n - start : BLOCK;
        find_bounds(s, range, good + start, bad + start, size, bound);
        for (Py_ssize_t i = start; i < start + size; i++) {
            Py_ssize_t low = (from + i) * STRIDE, high = low + STRIDE - 1;
            if (i == 0 || i == n - 1 || reaches(bound[i - start], least))
                add_run(runs, low > first ? low : first, high < last ? high : last);
        }
    }
}

/* The segment that holds a row. */
static Py_ssize_t segment_of(const Places *p, double row) {
    return first_with(p->good, p->bad, 0, p->segments, row + 1.0) - 1;
}

/* Open the segments between two that are wanted. */
static void open_wanted(Places *p, Py_ssize_t first, Py_ssize_t last) {
    for (Py_ssize_t k = first; k <= last; k++)
        if (p->state[k] & WANTED) open_segment(p, k);
}

Best best_cut(const Splitter *s, const Range *range) {
    Places *p = s->places;
    Py_ssize_t first = segment_of(p, rows_below(range->start)), last = segment_of(p, rows_below(range->end) - 1.0);
    double slack = SLACK * (rows_below(range->end) - rows_below(range->start));
    Best hope = {.gain = -INFINITY};
    Runs runs;
    find_runs(s, range, first, last, slack, &runs);
    for (Py_ssize_t r = 0; r < runs.count; r++) hope = best_end(s, range, runs.first[r], runs.last[r], hope);
    while (1) {
        Best best = {.gain = -INFINITY};
        for (Py_ssize_t r = 0; r < runs.count; r++)
            want_promising(s, range, runs.first[r], runs.last[r], hope.gain - slack);
        if (s->foresee) return hope;
        gather_wanted(p);
        open_wanted(p, first, last);
        for (Py_ssize_t k = first; k <= last; k++)
            if (p->state[k] == OPEN) try_segment(s, range, k, &best);
        if (best.gain >= hope.gain) return best;
        hope = best; /* some cut between segments was not possible: look everywhere */
        runs = (Runs){1, {first}, {last}};
    }
}
