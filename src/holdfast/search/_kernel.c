/* The sums of `bm25.py` for one space and the order of `rank.py`, in C: the same numbers, to the last bit.
 *
 * Every formula stands there with its reasons; here is only what a processor does fast. Compile without
 * contraction (-ffp-contract=off): a fused multiplication rounds once where numpy rounds twice. Sums are added
 * up in the order of numpy. Numbers that come from outside are checked before they index anything.
 */

#define PY_SSIZE_T_CLEAN
#define Py_LIMITED_API 0x030B0000
#include <Python.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* Raised whenever what is passed or computed changes: an installation may have been built from older source. */
enum { VERSION = 3 };

enum {
    WORDS, OUTPUT, BLOCK, PREVIOUS, NEXT, SHARE, OWNER, PASSAGE_WORDS, BLOCK_WORDS, SAME, AT, CHAT, ACTOR, TURN,
    TELLS_TIME, ASSISTED, SPOKEN, JUMPS, CHOSEN, COLUMNS
};
enum {
    K1, B, PASSAGE, CONTEXT, BEFORE, AFTER, TWO_BEFORE, TWO_AFTER, SESSION_K1, SESSION_B, OF_OUTPUT, CONCLUSION,
    SHARE_OF_LATER, TIME, HALF, MOST, WEIGHTS
};
enum { SAID, IN_PASSAGES, PUT_OUT, LISTS };

/* For the rounding of sums; and by how much what is raised stands above another. */
static const double MORE = 1 + 1e-9, ABOVE = 1 + 1e-12;

/* The parts of a score; its total, also after it lends its words, and after it replaces an earlier one. */
enum { OF_WORDS, NEIGHBOURS, SESSION, SUBSTANCE, CONCLUDES, SPEAKER, TIMES, PUT, DATE, PLAIN, RAISED, TOTAL, PARTS };
/* Where later messages come before earlier ones: nowhere, and none is raised at all; nowhere; chats; all. */
enum { NOT_RAISED = -1, NEVER, IN_CHATS, IN_ALL };
enum { ANSWER = 2, LOOKED_AT = 32, MANY = 256, MOST_SPARE = 1 << 26 };

/* A posting of a document: its frequency, scaled to the length, and the next one of the same document. */
typedef struct {
    double frequency;
    int32_t next;
    int32_t term;
} Node;

/* The postings of a document by their places, from 1; 0 ends. */
typedef struct {
    int32_t *first;
    Node *nodes;
    Py_ssize_t count;
} Lists;

/* A place that is known by a number. */
typedef struct {
    double bound;
    int64_t doc;
} Place;

typedef struct {
    PyObject_HEAD
    Py_buffer columns[COLUMNS];
    const double *weights;
    double bounds[4]; /* what a neighbour adds to a bound at most: before, after, two before, two after */
    int64_t last, places, blocks, terms, chats, actors;
    int64_t total_words, total_output, outputs;
    double ceiling; /* the largest sum that a message can have */
    void *memory;   /* of all that follows */
    size_t size;
    double *rarities;      /* of each term */
    double *of_sessions;   /* the weight of each term among blocks */
    double *of_blocks;     /* the rarity of each term among blocks */
    double *most;          /* at least the sum of the words of each document; two more before and after */
    double *with_passages; /* the sum of the words of a document with its best passage; NaN for one passage */
    double *output;
    double *in_block;
    double *lengths; /* of blocks, to the average */
    double *counts;  /* of a term in blocks */
    double *of_place;
    Lists said, put_out;
    double *beside; /* bounds of sums without blocks, as if neighbours were those stored beside a message */
    double *totals;    /* of the terms of one document */
    int32_t *place_of; /* of each document among the best */
    Place *found;      /* twice as many as documents */
    char *marks;
} Sums;

/* Documents, rising, with the parts of their scores one after the other, and their terms as bits. */
typedef struct {
    Py_ssize_t limit, span, count, width;
    int later;
    const char *passes;
    const double *bonus;
    void *memory; /* of all that follows, without gaps */
    double *parts;
    int64_t *docs;
    uint64_t *said, *put_out;
} Best;

/* A document of a chat, by its place. */
typedef struct {
    int64_t chat, at;
    Py_ssize_t place;
} Said;

typedef struct {
    Py_ssize_t count;
    const int64_t *numbers;
    const double *frequencies;
    Py_buffer views[2];
} Postings;

typedef struct {
    double rarity, of_sessions;
    Postings lists[LISTS];
} Term;

#define COLUMN(sums, kind, name) ((const kind *)(sums)->columns[name].buf)

static double saturated(double frequency, double k1, double factor)
{
    return frequency / (frequency + k1) * (factor * (k1 + 1));
}

/* A frequency in a text of so many words, scaled to the average length. */
static double relative(double frequency, uint32_t words, double slope, double b)
{
    return frequency / ((words ? words : 1) * slope + (1 - b));
}

static int hold(PyObject *from, Py_buffer *view, Py_ssize_t item, Py_ssize_t least)
{
    if (PyObject_GetBuffer(from, view, PyBUF_C_CONTIGUOUS) < 0)
        return -1;
    if (view->itemsize != item || view->len / item < least) {
        PyBuffer_Release(view);
        view->obj = NULL;
        PyErr_SetString(PyExc_ValueError, "an array has another type or length than the kernel expects");
        return -1;
    }
    return 0;
}

static void release(Py_buffer *views, int count)
{
    for (int n = 0; n < count; n++)
        PyBuffer_Release(&views[n]);
}

/* Read a pair (numbers, frequencies), or None for no postings. */
static int read_postings(PyObject *pair, Postings *postings)
{
    PyObject *numbers, *frequencies;
    if (pair == Py_None)
        return 0;
    if (!PyArg_ParseTuple(pair, "OO", &numbers, &frequencies) ||
        hold(numbers, &postings->views[0], sizeof(int64_t), 0) < 0)
        return -1;
    postings->count = postings->views[0].len / (Py_ssize_t)sizeof(int64_t);
    if (hold(frequencies, &postings->views[1], sizeof(double), postings->count) < 0)
        return -1;
    postings->numbers = postings->views[0].buf;
    postings->frequencies = postings->views[1].buf;
    return 0;
}

/* Add the postings of a term in what is said or in output. */
static void add_texts(Sums *self, Lists *lists, double *sums, const Postings *some, int32_t term,
                      const uint32_t *words, double slope, double factor)
{
    const double k1 = self->weights[K1], b = self->weights[B];
    for (Py_ssize_t n = 0; n < some->count; n++) {
        int64_t doc = some->numbers[n];
        Node *node = &lists->nodes[lists->count];
        node->frequency = relative(some->frequencies[n], words[doc], slope, b);
        node->next = lists->first[doc];
        node->term = term;
        lists->first[doc] = (int32_t)++lists->count;
        sums[doc] += saturated(node->frequency, k1, factor);
    }
}

/* Add a term to the sums of blocks: frequencies of all its messages together, then saturated. */
static void add_blocks(Sums *self, const Postings *said, int32_t term)
{
    const int64_t *block = COLUMN(self, int64_t, BLOCK);
    const double k1 = self->weights[SESSION_K1], *lengths = self->lengths;
    double *counts = self->counts;
    int64_t having = 0;
    for (Py_ssize_t n = 0; n < said->count; n++) {
        double *count = &counts[block[said->numbers[n]]];
        having += *count == 0;
        *count += said->frequencies[n];
    }
    double rarity = self->of_sessions[term] * log(1 + ((double)(self->blocks - having) + 0.5) / ((double)having + 0.5));
    self->of_blocks[term] = rarity;
    for (Py_ssize_t n = 0; n < said->count; n++) {
        int64_t of = block[said->numbers[n]];
        if (counts[of] > 0) {
            self->in_block[of] += saturated(counts[of] / lengths[of], k1, rarity);
            counts[of] = 0;
        }
    }
}

/* Count for a message with several passages the best of them as well. */
static void count_passages(Sums *self, const Term *terms)
{
    const double slope = self->weights[B] * (double)self->places / (double)(self->total_words ? self->total_words : 1);
    const double share = self->weights[PASSAGE];
    const uint32_t *words = COLUMN(self, uint32_t, PASSAGE_WORDS);
    double *best = self->with_passages, *of_place = self->of_place;
    for (int64_t doc = 0; doc <= self->last; doc++)
        best[doc] = NAN;
    for (int64_t term = 0; term < self->terms; term++) {
        const Postings *some = &terms[term].lists[IN_PASSAGES];
        for (Py_ssize_t n = 0; n < some->count; n++) {
            int64_t place = some->numbers[n];
            double within = relative(some->frequencies[n], words[place], slope, self->weights[B]);
            of_place[place] += saturated(within, self->weights[K1], self->rarities[term]);
        }
    }
    for (int64_t term = 0; term < self->terms; term++) {
        const Postings *some = &terms[term].lists[IN_PASSAGES];
        for (Py_ssize_t n = 0; n < some->count; n++) {
            double *of = &best[COLUMN(self, int64_t, OWNER)[some->numbers[n]]];
            *of = *of >= of_place[some->numbers[n]] ? *of : of_place[some->numbers[n]];
        }
    }
    for (int64_t doc = 1; doc <= self->last; doc++) {
        if (!isnan(best[doc])) {
            double alone = self->most[doc];
            best[doc] = (1 - share) * alone + share * best[doc];
            self->most[doc] = best[doc] > alone ? best[doc] : alone;
        }
    }
}

static void count_blocks(Sums *self, const Term *terms)
{
    const int64_t *words = COLUMN(self, int64_t, BLOCK_WORDS);
    const double b = self->weights[SESSION_B];
    double total = 0;
    for (int64_t n = 0; n < self->blocks; n++)
        total += (double)words[n];
    double average = total / (double)self->blocks + 1;
    for (int64_t n = 0; n < self->blocks; n++)
        self->lengths[n] = 1 - b + b * (((double)words[n] + 1) / (average > 1 ? average : 1));
    for (int32_t term = 0; term < self->terms; term++)
        add_blocks(self, &terms[term].lists[SAID], term);
}

/* A frequency of a neighbour counts a share of itself, and less than that is lost by saturation: most of all at
 * the highest one. */
static void find_bounds(Sums *self)
{
    const double *w = self->weights, *most = self->most, shares[4] = {w[BEFORE], w[AFTER], w[TWO_BEFORE], w[TWO_AFTER]};
    double highest = 1, context[4], *beside = self->beside;
    for (Py_ssize_t n = 0; n < self->said.count; n++)
        highest = self->said.nodes[n].frequency > highest ? self->said.nodes[n].frequency : highest;
    for (int n = 0; n < 4; n++) {
        double raised = shares[n] * (highest + w[K1]) / (shares[n] * highest + w[K1]);
        self->bounds[n] = raised > shares[n] ? raised : shares[n];
        context[n] = w[CONTEXT] * self->bounds[n];
    }
    for (int64_t n = 0; n <= self->last; n++) {
        beside[n] = most[n] + context[0] * most[n - 1] + context[1] * most[n + 1] + context[2] * most[n - 2] +
                    context[3] * most[n + 2] + (self->output ? self->output[n] : 0);
    }
}

/* Compute all sums. Needs no interpreter. */
static void count_all(Sums *self, const Term *terms)
{
    const double *w = self->weights;
    double slope = w[B] * (double)self->last / (double)(self->total_words ? self->total_words : 1);
    for (int32_t term = 0; term < self->terms; term++) {
        add_texts(self, &self->said, self->most, &terms[term].lists[SAID], term,
                  COLUMN(self, uint32_t, WORDS), slope, self->rarities[term]);
    }
    if (self->with_passages)
        count_passages(self, terms);
    if (self->output) {
        slope = w[B] * (double)self->outputs / (double)self->total_output;
        for (int32_t term = 0; term < self->terms; term++) {
            add_texts(self, &self->put_out, self->output, &terms[term].lists[PUT_OUT], term,
                      COLUMN(self, uint32_t, OUTPUT), slope, w[OF_OUTPUT] * self->rarities[term]);
        }
    }
    count_blocks(self, terms);
    double most = self->total_output ? 1 + w[OF_OUTPUT] : 1;
    for (int64_t term = 0; term < self->terms; term++)
        self->ceiling += most * self->rarities[term] * (w[K1] + 1) + self->of_blocks[term] * (w[SESSION_K1] + 1);
    find_bounds(self);
}

/* Between the parts of one block of memory the sanitizer watches a gap. */
#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
enum { GAP = 64 };
#else
#define ASAN_POISON_MEMORY_REGION(begin, size) ((void)0)
#define ASAN_UNPOISON_MEMORY_REGION(begin, size) ((void)0)
enum { GAP = 0 };
#endif

/* The memory of the last sums that ended, for the next: fresh pages cost more than the work on them. */
static void *spare;
static size_t spare_size;

#define PLACE(field, count) \
    do { \
        self->field = base ? (void *)(base + used) : NULL; \
        used += (((size_t)(count) * sizeof *self->field) + 15) & ~(size_t)15; \
        if (base) \
            ASAN_POISON_MEMORY_REGION(base + used, GAP); \
        used += GAP; \
    } while (0)

/* Lay out memory from `base` on, first what begins as zeros; return its bytes, and of those zeros. */
static size_t lay_out(Sums *self, char *base, const size_t sizes[LISTS], size_t *zeros)
{
    const size_t docs = (size_t)self->last + 1, blocks = (size_t)self->blocks + 1, terms = (size_t)self->terms + 1;
    size_t used = 0;
    PLACE(most, docs + 4);
    self->most = base ? self->most + 2 : NULL;
    PLACE(said.first, docs);
    PLACE(in_block, blocks);
    PLACE(counts, blocks);
    if (sizes[IN_PASSAGES]) {
        PLACE(of_place, self->places + 1);
        PLACE(with_passages, docs);
    }
    if (self->total_output) {
        PLACE(output, docs);
        PLACE(put_out.first, docs);
    }
    *zeros = used;
    PLACE(rarities, terms);
    PLACE(of_sessions, terms);
    PLACE(of_blocks, terms);
    PLACE(lengths, blocks);
    PLACE(said.nodes, sizes[SAID] + 1);
    PLACE(put_out.nodes, sizes[PUT_OUT] + 1);
    PLACE(beside, docs);
    PLACE(totals, terms);
    PLACE(place_of, docs);
    PLACE(found, 2 * docs);
    PLACE(marks, docs);
    return used;
}

static int allocate(Sums *self, const size_t sizes[LISTS])
{
    size_t zeros;
    self->size = lay_out(self, NULL, sizes, &zeros);
    if (spare_size >= self->size) {
        self->memory = spare;
        self->size = spare_size;
        spare = NULL;
        spare_size = 0;
    } else if (!(self->memory = malloc(self->size))) {
        self->size = 0;
        PyErr_NoMemory();
        return -1;
    }
    ASAN_UNPOISON_MEMORY_REGION(self->memory, self->size);
    memset(self->memory, 0, zeros);
    lay_out(self, self->memory, sizes, &zeros);
    return 0;
}

/* Whether all numbers that index something are of this space. */
static int fits(const Sums *self, const Postings *some, int within)
{
    const int64_t *of = COLUMN(self, int64_t, within ? OWNER : BLOCK), first = within;
    const int64_t last = within ? self->places : self->last, end = within ? self->last + 1 : self->blocks;
    for (Py_ssize_t n = 0; n < some->count; n++) {
        int64_t number = some->numbers[n];
        if (number < 1 || number > last || of[number] < first || of[number] >= end)
            return 0;
    }
    return 1;
}

/* Read a term: (rarity, weight among blocks, said, in passages, put out). */
static int read_term(PyObject *from, Term *term)
{
    PyObject *lists[LISTS];
    int done = PyArg_ParseTuple(from, "ddOOO", &term->rarity, &term->of_sessions, &lists[SAID], &lists[IN_PASSAGES],
                                &lists[PUT_OUT]) - 1;
    for (int n = 0; n < LISTS && !done; n++)
        done = read_postings(lists[n], &term->lists[n]);
    return done;
}

/* Allocate and compute from what was read; return 0, or -1 and an error. */
static int compute(Sums *self, const Term *terms)
{
    size_t sizes[LISTS] = {0};
    int fit = 1;
    for (int64_t n = 0; n < self->terms * LISTS; n++)
        sizes[n % LISTS] += (size_t)terms[n / LISTS].lists[n % LISTS].count;
    if (sizes[SAID] >= INT32_MAX || sizes[PUT_OUT] >= INT32_MAX || (sizes[PUT_OUT] && !self->total_output)) {
        PyErr_SetString(PyExc_ValueError, "there are more postings than documents can have");
        return -1;
    }
    if (allocate(self, sizes) < 0)
        return -1;
    Py_BEGIN_ALLOW_THREADS
    for (int64_t n = 0; n < self->terms; n++) {
        self->rarities[n] = terms[n].rarity;
        self->of_sessions[n] = terms[n].of_sessions;
        for (int m = 0; m < LISTS; m++)
            fit = fit && fits(self, &terms[n].lists[m], m == IN_PASSAGES);
    }
    if (fit)
        count_all(self, terms);
    Py_END_ALLOW_THREADS
    if (!fit)
        PyErr_SetString(PyExc_ValueError, "a posting is of a document that there is not");
    return fit - 1;
}

static int read_terms(Sums *self, PyObject *list)
{
    self->terms = PyList_Size(list);
    Term *terms = calloc((size_t)self->terms + 1, sizeof(Term));
    int done = terms ? 0 : -1;
    if (!terms)
        PyErr_NoMemory();
    for (int64_t n = 0; n < self->terms && !done; n++)
        done = read_term(PyList_GetItem(list, n), &terms[n]);
    if (!done)
        done = compute(self, terms);
    for (int64_t n = 0; terms && n < self->terms * LISTS; n++)
        release(terms[n / LISTS].lists[n % LISTS].views, 2);
    free(terms);
    return done;
}

static int read_all(Sums *self, PyObject *arguments)
{
    PyObject *columns, *terms;
    if (!PyArg_ParseTuple(arguments, "(LLLLLLLL)O!O!", &self->last, &self->places, &self->blocks, &self->total_words,
                          &self->total_output, &self->outputs, &self->chats, &self->actors, &PyTuple_Type, &columns,
                          &PyList_Type, &terms))
        return -1;
    if (self->last < 0 || self->places < self->last || self->blocks < 0 || self->last > INT32_MAX - 8 ||
        self->chats < 0 || self->actors < 0) {
        PyErr_SetString(PyExc_ValueError, "there are fewer documents than none, or too many");
        return -1;
    }
    const Py_ssize_t items[COLUMNS] = {4, 4, 8, 8, 8, 8, 8, 4, 8, 8, 8, 4, 4, 1, 1, 1, 8, 8, 8};
    const int64_t docs = self->last + 1, places = self->places + 1;
    const int64_t lengths[COLUMNS] = {docs, docs, docs, docs, docs, docs, places, places, self->blocks, docs,
                                      docs, docs, docs, docs, docs, self->chats, self->actors, 0, WEIGHTS};
    for (int n = 0; n < COLUMNS; n++) {
        PyObject *column = PyTuple_GetItem(columns, n);
        if (!column || hold(column, &self->columns[n], items[n], lengths[n]) < 0)
            return -1;
    }
    self->weights = self->columns[CHOSEN].buf;
    return read_terms(self, terms);
}

static PyObject *sums_new(PyTypeObject *type, PyObject *arguments, PyObject *Py_UNUSED(named))
{
    allocfunc allocate_object = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);
    PyObject *object = allocate_object(type, 0);
    if (object && read_all((Sums *)object, arguments) < 0)
        Py_CLEAR(object);
    return object;
}

static void sums_dealloc(PyObject *object)
{
    Sums *self = (Sums *)object;
    PyTypeObject *type = Py_TYPE(object);
    release(self->columns, COLUMNS);
    if (self->size > spare_size && self->size <= MOST_SPARE) {
        void *other = spare;
        spare = self->memory;
        spare_size = self->size;
        self->memory = other;
    }
    free(self->memory);
    freefunc release_memory = (freefunc)PyType_GetSlot(type, Py_tp_free);
    release_memory(object);
    Py_DECREF(type);
}

/* The neighbours of a document that pass: before, after, two before, two after; 0 for none. */
static void find_around(const Sums *self, int64_t doc, const char *passes, int64_t around[4])
{
    const int64_t *previous = COLUMN(self, int64_t, PREVIOUS), *next = COLUMN(self, int64_t, NEXT);
    const uint64_t last = (uint64_t)self->last;
    around[0] = previous[doc];
    around[1] = next[doc];
    around[2] = (uint64_t)around[0] <= last ? previous[around[0]] : 0;
    around[3] = (uint64_t)around[1] <= last ? next[around[1]] : 0;
    for (int n = 0; n < 4; n++) {
        if ((uint64_t)around[n] > last || (passes && !passes[around[n]]))
            around[n] = 0;
    }
}

/* A bound of the sum of a message without its block, with its true neighbours. */
static double bound_around(const Sums *self, int64_t doc)
{
    int64_t around[4];
    double sum = 0;
    find_around(self, doc, NULL, around);
    for (int n = 0; n < 4; n++)
        sum += self->bounds[n] * self->most[around[n]];
    sum = sum * COLUMN(self, double, SHARE)[doc] + self->most[doc];
    return self->output ? sum + self->output[doc] : sum;
}

/* Put a place into a heap whose first is the lowest, where there is a lower one. */
static void sift(Place *heap, Py_ssize_t size, Py_ssize_t n, Place place)
{
    for (;;) {
        Py_ssize_t child = 2 * n + 1;
        if (child + 1 < size && heap[child + 1].bound < heap[child].bound)
            child++;
        if (child >= size || heap[child].bound >= place.bound)
            break;
        heap[n] = heap[child];
        n = child;
    }
    heap[n] = place;
}

/* Mark documents among which the best are likely to be. */
static void mark_likely(Sums *self, Py_ssize_t most, const char *passes)
{
    Place *heap = self->found;
    most = most > self->last ? self->last : most < 0 ? 0 : most;
    memset(heap, 0, (size_t)most * sizeof(Place));
    memset(self->marks, 0, (size_t)self->last + 1);
    for (int64_t doc = 1; doc <= self->last && most; doc++)
        if (self->beside[doc] > heap[0].bound && (!passes || passes[doc]))
            sift(heap, most, 0, (Place){self->beside[doc], doc});
    for (Py_ssize_t n = 0; n < most; n++)
        self->marks[heap[n].doc] = heap[n].doc && bound_around(self, heap[n].doc) > 0;
}

/* Mark the documents with a neighbour that is stored elsewhere: a bound from those beside them does not hold. */
static void mark_apart(Sums *self)
{
    const int64_t *jumps = COLUMN(self, int64_t, JUMPS);
    Py_ssize_t count = self->columns[JUMPS].len / (Py_ssize_t)sizeof(int64_t);
    memset(self->marks, 0, (size_t)self->last + 1);
    for (Py_ssize_t n = 0; n < count; n++) {
        int64_t around[4];
        if (jumps[n] >= 1 && jumps[n] <= self->last) {
            find_around(self, jumps[n], NULL, around);
            self->marks[jumps[n]] = 1;
            for (int m = 0; m < 4; m++)
                self->marks[around[m]] = 1;
        }
    }
}

static Py_ssize_t find_in_reach(Sums *self, double least)
{
    const int64_t *block = COLUMN(self, int64_t, BLOCK);
    const double *in_block = self->in_block, *beside = self->beside;
    Py_ssize_t count = 0;
    for (int64_t doc = 1; doc <= self->last; doc++) {
        double of_block = (uint64_t)block[doc] < (uint64_t)self->blocks ? in_block[block[doc]] : 0;
        if (self->marks[doc] || (beside[doc] > 0 && beside[doc] * MORE + of_block >= least)) {
            double bound = bound_around(self, doc);
            if (bound > 0 && bound + of_block >= least)
                self->found[count++] = (Place){bound + of_block, doc};
        }
    }
    return count;
}

/* BM25F of a message with its neighbours; mark the terms that it says itself. */
static double context_of(const Sums *self, int64_t doc, const int64_t around[4], uint64_t *said)
{
    const double *w = self->weights, shares[4] = {w[BEFORE], w[AFTER], w[TWO_BEFORE], w[TWO_AFTER]};
    double *totals = self->totals;
    memset(totals, 0, (size_t)self->terms * sizeof(double));
    for (int32_t n = self->said.first[doc]; n; n = self->said.nodes[n - 1].next) {
        const Node *node = &self->said.nodes[n - 1];
        totals[node->term] = node->frequency;
        said[node->term / 64] |= (uint64_t)1 << node->term % 64;
    }
    for (int m = 0; m < 4; m++) {
        for (int32_t n = self->said.first[around[m]]; n; n = self->said.nodes[n - 1].next) {
            const Node *node = &self->said.nodes[n - 1];
            totals[node->term] += shares[m] * node->frequency;
        }
    }
    double sum = 0;
    for (int64_t term = 0; term < self->terms; term++)
        sum += saturated(totals[term], w[K1], self->rarities[term]);
    return sum;
}

/* The parts of the score of a document at its place. */
static void score(const Sums *self, Best *best, Py_ssize_t n)
{
    const double *w = self->weights;
    const uint8_t *turn = COLUMN(self, uint8_t, TURN);
    const int64_t doc = best->docs[n];
    const uint64_t block = (uint64_t)COLUMN(self, int64_t, BLOCK)[doc];
    const uint32_t actor = COLUMN(self, uint32_t, ACTOR)[doc], words = COLUMN(self, uint32_t, WORDS)[doc];
    const double share = COLUMN(self, double, SHARE)[doc], length = words ? words : 1;
    double *of = &best->parts[n * PARTS];
    int64_t around[4];
    find_around(self, doc, NULL, around);
    int apart = self->with_passages && !isnan(self->with_passages[doc]);
    of[OF_WORDS] = (1 - share) * (apart ? self->with_passages[doc] : self->most[doc]);
    of[NEIGHBOURS] = share * context_of(self, doc, around, &best->said[n * best->width]);
    of[SESSION] = block < (uint64_t)self->blocks ? self->in_block[block] : 0;
    of[SUBSTANCE] = length / (length + w[HALF]);
    of[CONCLUDES] = 1 + w[CONCLUSION] * (turn[doc] == ANSWER && turn[around[0]] && !turn[around[1]]);
    of[SPEAKER] = actor < (uint64_t)self->actors ? COLUMN(self, double, SPOKEN)[actor] : 1;
    of[TIMES] = 1 + w[TIME] * (COLUMN(self, uint8_t, TELLS_TIME)[doc] != 0);
    of[PUT] = self->output ? self->output[doc] : 0;
    of[DATE] = best->bonus ? best->bonus[doc] : 0;
    double sum = of[OF_WORDS] + of[NEIGHBOURS] + of[SESSION];
    of[PLAIN] = sum * of[SUBSTANCE] * of[CONCLUDES] * of[SPEAKER] * of[TIMES] + of[PUT] + of[DATE];
    of[RAISED] = of[TOTAL] = of[PLAIN];
    for (int32_t m = self->output ? self->put_out.first[doc] : 0; m; m = self->put_out.nodes[m - 1].next) {
        int32_t term = self->put_out.nodes[m - 1].term;
        best->put_out[n * best->width + term / 64] |= (uint64_t)1 << term % 64;
    }
}

/* Score the marked documents; return -1 without memory. */
static int score_marked(Sums *self, Best *best)
{
    size_t count = 0, width = (size_t)best->width;
    for (int64_t doc = 1; doc <= self->last; doc++)
        count += self->marks[doc] != 0;
    free(best->memory);
    best->memory = calloc(count + 1, (PARTS + 1 + 2 * width) * 8);
    if (!best->memory)
        return -1;
    best->parts = best->memory;
    best->docs = (int64_t *)(best->parts + count * PARTS);
    best->said = (uint64_t *)(best->docs + count);
    best->put_out = best->said + count * width;
    best->count = 0;
    for (int64_t doc = 1; doc <= self->last; doc++) {
        if (self->marks[doc]) {
            best->docs[best->count] = doc;
            self->place_of[doc] = (int32_t)best->count;
            score(self, best, best->count++);
        }
    }
    return 0;
}

static int by_same(const void *one, const void *other)
{
    const Place *a = one, *b = other;
    int by_doc = (a->doc > b->doc) - (a->doc < b->doc);
    return by_doc ? by_doc : (a->bound < b->bound) - (a->bound > b->bound);
}

/* The score that a document needs to be among the best of different texts. */
static double floor_of(const Sums *self, const Best *best, int part)
{
    const Py_ssize_t limit = best->limit;
    Place *every = self->found, *heap = every + best->count;
    if (limit < 1 || limit > best->count)
        return 0;
    for (Py_ssize_t n = 0; n < best->count; n++)
        every[n] = (Place){best->parts[n * PARTS + part], COLUMN(self, int64_t, SAME)[best->docs[n]]};
    if (limit > MANY)
        qsort(every, (size_t)best->count, sizeof(Place), by_same);
    memset(heap, 0, (size_t)limit * sizeof(Place));
    for (Py_ssize_t n = 0; n < best->count; n++) {
        /* 0 is no text. Of few, each is looked for among the best; of many, equal ones stand together. */
        Py_ssize_t at = 0;
        if (every[n].doc && limit > MANY && n && every[n - 1].doc == every[n].doc)
            continue;
        if (every[n].doc && limit <= MANY && every[n].bound > heap[0].bound) {
            for (at = limit - 1; at && heap[at].doc != every[n].doc;)
                at--;
        }
        if (every[n].bound > heap[at].bound)
            sift(heap, limit, at, every[n]);
    }
    return (1 - self->weights[SHARE_OF_LATER]) * (1 - 1e-9) * heap[0].bound;
}

/* Score all documents that can be among the best, even after others are raised. */
static int score_in_reach(Sums *self, Best *best)
{
    double highest = 0;
    mark_likely(self, best->limit > self->last ? self->last : 2 * best->limit, best->passes);
    if (score_marked(self, best) < 0)
        return -1;
    double floor = floor_of(self, best, PLAIN);
    for (int64_t doc = 0; best->bonus && doc <= self->last; doc++)
        highest = best->bonus[doc] > highest ? best->bonus[doc] : highest;
    mark_apart(self);
    Py_ssize_t count = find_in_reach(self, (floor - highest) / self->weights[MOST] / MORE), left = best->span;
    memset(self->marks, 0, (size_t)self->last + 1);
    for (Py_ssize_t n = 0; n < count; n++) {
        int64_t doc = self->found[n].doc;
        double bound = self->found[n].bound * self->weights[MOST];
        bound = best->bonus ? bound + best->bonus[doc] : bound;
        self->marks[doc] = bound >= floor && (!best->passes || best->passes[doc]);
    }
    for (int64_t doc = self->last; best->bonus && doc && left; doc--) {
        if (best->bonus[doc] > 0 && (!best->passes || best->passes[doc])) {
            self->marks[doc] = 1;
            left--;
        }
    }
    return score_marked(self, best);
}

/* Whether a document says a term of the query, or at least has it in output. */
static int has_words(const Best *best, Py_ssize_t place, int with_output)
{
    uint64_t some = with_output && best->parts[place * PARTS + PUT] > 0;
    for (Py_ssize_t n = 0; n < best->width; n++)
        some |= best->said[place * best->width + n];
    return some != 0;
}

/* Raise the best neighbour with words of its own above a document. */
static void raise_lender(const Sums *self, Best *best, Place borrower)
{
    int64_t around[4];
    double nothing[PARTS] = {0}, *lender = nothing;
    find_around(self, borrower.doc, best->passes, around);
    for (int n = 0; n < 4; n++) {
        double *parts = self->marks[around[n]] ? &best->parts[self->place_of[around[n]] * PARTS] : nothing;
        lender = parts[PLAIN] > lender[PLAIN] && has_words(best, self->place_of[around[n]], 1) ? parts : lender;
    }
    lender[RAISED] = lender[TOTAL] = fmax(lender[RAISED], borrower.bound * ABOVE);
}

/* See `rank.raise_lenders`. */
static int raise_lenders(Sums *self, Best *best)
{
    const double floor = floor_of(self, best, PLAIN);
    Py_ssize_t borrowers = 0, missing = 0;
    for (Py_ssize_t n = 0; n < best->count; n++) {
        const double *of = &best->parts[n * PARTS];
        int64_t around[4], doc = best->docs[n];
        if (of[PLAIN] < floor || of[PLAIN] <= 0 || of[DATE] > 0 || has_words(best, n, 1))
            continue;
        self->found[borrowers++] = (Place){of[PLAIN], doc};
        find_around(self, doc, best->passes, around);
        for (int m = 0; m < 4; m++) {
            int has = self->said.first[around[m]] || (self->output && self->put_out.first[around[m]]);
            missing |= has && !self->marks[around[m]];
            self->marks[around[m]] |= has;
        }
    }
    if (missing && score_marked(self, best) < 0)
        return -1;
    for (Py_ssize_t n = 0; n < borrowers; n++)
        raise_lender(self, best, self->found[n]);
    return 0;
}

static int by_time(const void *one, const void *other)
{
    const Said *a = one, *b = other;
    int by_chat = (a->chat > b->chat) - (a->chat < b->chat), by_at = (a->at > b->at) - (a->at < b->at);
    return by_chat ? by_chat : by_at ? by_at : (a->place > b->place) - (a->place < b->place);
}

/* Whether the terms of a document come after others, as numbers are compared. */
static int is_after(const uint64_t *terms, const uint64_t *others, Py_ssize_t width)
{
    while (width > 1 && terms[width - 1] == others[width - 1])
        width--;
    return terms[width - 1] > others[width - 1];
}

/* Raise a document above the best of earlier ones that it may replace, and put it among them. */
static void raise_one(const Sums *self, Best *best, Py_ssize_t place, Place *earlier, Py_ssize_t count)
{
    const Py_ssize_t width = best->width;
    const uint64_t *said = best->said, *own = &said[place * width];
    double score = best->parts[place * PARTS + RAISED], most = score / (1 - self->weights[SHARE_OF_LATER]);
    Py_ssize_t end = count;
    while (end && earlier[end - 1].bound >= most)
        end--;
    for (Py_ssize_t n = end - 1; n >= 0 && n >= end - LOOKED_AT && earlier[n].bound >= score; n--) {
        int common = 0, every = 0;
        for (Py_ssize_t m = 0; m < width; m++) {
            uint64_t other = said[earlier[n].doc * width + m];
            common += __builtin_popcountll(other & own[m]);
            every += __builtin_popcountll(other);
        }
        if (3 * common >= every) {
            score = earlier[n].bound * ABOVE;
            break;
        }
    }
    best->parts[place * PARTS + TOTAL] = score;
    for (end = count; end; end--) {
        Place other = earlier[end - 1];
        if (other.bound < score || (other.bound == score && !is_after(&said[other.doc * width], own, width)))
            break;
        earlier[end] = other;
    }
    earlier[end] = (Place){score, place};
}

/* See `rank.raise_later`. */
static int raise_later(Sums *self, Best *best)
{
    const double floor = floor_of(self, best, RAISED);
    Said *every = malloc(((size_t)best->count + 1) * sizeof(Said));
    Py_ssize_t some = 0, count = 0;
    if (!every)
        return -1;
    for (Py_ssize_t n = 0; n < best->count; n++) {
        const int64_t doc = best->docs[n];
        const uint32_t chat = COLUMN(self, uint32_t, CHAT)[doc];
        int is_one = best->later == IN_ALL || (chat < (uint64_t)self->chats && COLUMN(self, char, ASSISTED)[chat]);
        if (is_one && best->parts[n * PARTS + RAISED] >= floor)
            every[some++] = (Said){best->later == IN_ALL ? 0 : chat, COLUMN(self, int64_t, AT)[doc], n};
    }
    qsort(every, (size_t)some, sizeof(Said), by_time);
    for (Py_ssize_t n = 0; n < some; n++) {
        count = n && every[n].chat == every[n - 1].chat ? count : 0;
        if (has_words(best, every[n].place, 0))
            raise_one(self, best, every[n].place, self->found, count++);
    }
    free(every);
    return 0;
}

static PyObject *sums_best(PyObject *object, PyObject *arguments)
{
    Sums *self = (Sums *)object;
    Best best = {.width = self->terms / 64 + 1};
    PyObject *mask, *bonus;
    Py_buffer views[2] = {0};
    int done;
    if (!PyArg_ParseTuple(arguments, "ninOO", &best.limit, &best.later, &best.span, &mask, &bonus) ||
        (mask != Py_None && hold(mask, &views[0], 1, self->last + 1) < 0) ||
        (bonus != Py_None && hold(bonus, &views[1], sizeof(double), self->last + 1) < 0)) {
        release(views, 2);
        return NULL;
    }
    best.passes = views[0].buf;
    best.bonus = views[1].buf;
    Py_BEGIN_ALLOW_THREADS
    done = score_in_reach(self, &best);
    if (!done && best.later != NOT_RAISED)
        done = raise_lenders(self, &best);
    if (!done && best.later > NEVER && self->weights[SHARE_OF_LATER] > 0)
        done = raise_later(self, &best);
    Py_END_ALLOW_THREADS
    Py_ssize_t size = best.count * (PARTS + 1 + 2 * best.width) * 8;
    PyObject *found = done < 0 ? PyErr_NoMemory()
                               : Py_BuildValue("dnN", self->ceiling, best.count,
                                               PyByteArray_FromStringAndSize(best.memory, size));
    free(best.memory);
    release(views, 2);
    return found;
}

static PyMethodDef methods[] = {
    {"best", sums_best, METH_VARARGS, "Return the largest possible sum, and a count of messages with their scores."},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_doc, "The sums of a query for each message of a space."},
    {Py_tp_new, sums_new},
    {Py_tp_dealloc, sums_dealloc},
    {Py_tp_methods, methods},
    {0, NULL},
};

static PyType_Spec spec = {"holdfast.search._kernel.Sums", sizeof(Sums), 0, Py_TPFLAGS_DEFAULT, slots};

static int fill(PyObject *module)
{
    PyObject *type = PyType_FromSpec(&spec);
    int done = PyModule_AddObjectRef(module, "Sums", type);
    Py_XDECREF(type);
    return done < 0 ? done : PyModule_AddIntConstant(module, "VERSION", VERSION);
}

static PyModuleDef_Slot parts[] = {{Py_mod_exec, fill}, {0, NULL}};
static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT, "_kernel", "See kernel.py.", 0, NULL, parts, NULL, NULL, NULL};

PyMODINIT_FUNC
PyInit__kernel(void)
{
    return PyModuleDef_Init(&definition);
}
