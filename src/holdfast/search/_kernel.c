/* The sums of `bm25.py` for one space, in C: the same numbers, to the last bit.
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
enum { VERSION = 1 };

enum { WORDS, OUTPUT, BLOCK, PREVIOUS, NEXT, SHARE, OWNER, PASSAGE_WORDS, BLOCK_WORDS, COLUMNS };
enum { K1, B, PASSAGE, CONTEXT, BEFORE, AFTER, TWO_BEFORE, TWO_AFTER, SESSION_K1, SESSION_B, OF_OUTPUT, WEIGHTS };
enum { SAID, IN_PASSAGES, PUT_OUT, LISTS };

/* For the rounding of sums. */
static const double MORE = 1 + 1e-9;

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
    double weights[WEIGHTS];
    double bounds[4]; /* what a neighbour adds to a bound at most: before, after, two before, two after */
    int64_t last, places, blocks, terms;
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
    Place *found;
    char *marks;
} Sums;

typedef struct {
    Py_ssize_t count;
    const int64_t *numbers;
    const double *frequencies;
    Py_buffer views[2];
} Postings;

#define COLUMN(sums, kind, name) ((const kind *)(sums)->columns[name].buf)

static double
saturated(double frequency, double k1, double factor)
{
    return frequency / (frequency + k1) * (factor * (k1 + 1));
}

/* A frequency in a text of so many words, scaled to the average length. */
static double
relative(double frequency, uint32_t words, double slope, double b)
{
    return frequency / ((words ? words : 1) * slope + (1 - b));
}

static int
hold(PyObject *from, Py_buffer *view, Py_ssize_t item, Py_ssize_t least)
{
    if (PyObject_GetBuffer(from, view, PyBUF_C_CONTIGUOUS) < 0) {
        return -1;
    }
    if (view->itemsize != item || view->len / item < least) {
        PyBuffer_Release(view);
        view->obj = NULL;
        PyErr_SetString(PyExc_ValueError, "an array has another type or length than the kernel expects");
        return -1;
    }
    return 0;
}

static void
release(Postings *postings)
{
    for (int n = 0; n < 2; n++) {
        if (postings->views[n].obj) {
            PyBuffer_Release(&postings->views[n]);
        }
    }
}

/* Read a pair (numbers, frequencies), or None for no postings. */
static int
read_postings(PyObject *pair, Postings *postings)
{
    PyObject *numbers, *frequencies;
    if (pair == Py_None) {
        return 0;
    }
    if (!PyArg_ParseTuple(pair, "OO", &numbers, &frequencies)) {
        return -1;
    }
    if (hold(numbers, &postings->views[0], sizeof(int64_t), 0) < 0) {
        return -1;
    }
    postings->count = postings->views[0].len / (Py_ssize_t)sizeof(int64_t);
    if (hold(frequencies, &postings->views[1], sizeof(double), postings->count) < 0) {
        return -1;
    }
    postings->numbers = postings->views[0].buf;
    postings->frequencies = postings->views[1].buf;
    return 0;
}

static int
outside(const Postings *postings, int64_t last)
{
    for (Py_ssize_t n = 0; n < postings->count; n++) {
        if (postings->numbers[n] < 1 || postings->numbers[n] > last) {
            return 1;
        }
    }
    return 0;
}

/* Add the postings of a term in what is said or in output. */
static void
add_texts(Sums *self, Lists *lists, double *sums, const Postings *some, int32_t term, const uint32_t *words,
          double slope, double factor)
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
static void
add_blocks(Sums *self, const Postings *said, int32_t term)
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

/* The sum of each message with its best passage, where it has several. */
static void
add_best_passages(Sums *self, const Postings *postings)
{
    const int64_t *owner = COLUMN(self, int64_t, OWNER);
    const double share = self->weights[PASSAGE], *of_place = self->of_place;
    double *best = self->with_passages;
    for (int64_t term = 0; term < self->terms; term++) {
        const Postings *some = &postings[term * LISTS + IN_PASSAGES];
        for (Py_ssize_t n = 0; n < some->count; n++) {
            double *of = &best[owner[some->numbers[n]]];
            if (isnan(*of) || *of < of_place[some->numbers[n]]) {
                *of = of_place[some->numbers[n]];
            }
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

static void
count_passages(Sums *self, const Postings *postings)
{
    const double slope = self->weights[B] * (double)self->places / (double)(self->total_words ? self->total_words : 1);
    const uint32_t *words = COLUMN(self, uint32_t, PASSAGE_WORDS);
    for (int64_t doc = 0; doc <= self->last; doc++) {
        self->with_passages[doc] = NAN;
    }
    for (int64_t term = 0; term < self->terms; term++) {
        const Postings *some = &postings[term * LISTS + IN_PASSAGES];
        for (Py_ssize_t n = 0; n < some->count; n++) {
            int64_t place = some->numbers[n];
            double within = relative(some->frequencies[n], words[place], slope, self->weights[B]);
            self->of_place[place] += saturated(within, self->weights[K1], self->rarities[term]);
        }
    }
    add_best_passages(self, postings);
}

static void
count_blocks(Sums *self, const Postings *postings)
{
    const int64_t *words = COLUMN(self, int64_t, BLOCK_WORDS);
    const double b = self->weights[SESSION_B];
    double total = 0;
    for (int64_t n = 0; n < self->blocks; n++) {
        total += (double)words[n];
    }
    double average = total / (double)self->blocks + 1;
    for (int64_t n = 0; n < self->blocks; n++) {
        self->lengths[n] = 1 - b + b * (((double)words[n] + 1) / (average > 1 ? average : 1));
    }
    for (int32_t term = 0; term < self->terms; term++) {
        add_blocks(self, &postings[term * LISTS + SAID], term);
    }
}

static void
find_ceiling(Sums *self)
{
    const double *w = self->weights, most = self->total_output ? 1 + w[OF_OUTPUT] : 1;
    for (int64_t term = 0; term < self->terms; term++) {
        self->ceiling += most * self->rarities[term] * (w[K1] + 1) + self->of_blocks[term] * (w[SESSION_K1] + 1);
    }
}

/* A frequency of a neighbour counts a share of itself, and less than that is lost by saturation: most of all at
 * the highest one. */
static void
find_bounds(Sums *self)
{
    const double *w = self->weights, *most = self->most, shares[4] = {w[BEFORE], w[AFTER], w[TWO_BEFORE], w[TWO_AFTER]};
    double highest = 1, context[4], *beside = self->beside;
    for (Py_ssize_t n = 0; n < self->said.count; n++) {
        highest = self->said.nodes[n].frequency > highest ? self->said.nodes[n].frequency : highest;
    }
    for (int n = 0; n < 4; n++) {
        double raised = shares[n] * (highest + w[K1]) / (shares[n] * highest + w[K1]);
        self->bounds[n] = raised > shares[n] ? raised : shares[n];
        context[n] = w[CONTEXT] * self->bounds[n];
    }
    for (int64_t n = 0; n <= self->last; n++) {
        beside[n] = most[n] + context[0] * most[n - 1] + context[1] * most[n + 1] + context[2] * most[n - 2] +
                    context[3] * most[n + 2];
    }
    for (int64_t n = 0; self->output && n <= self->last; n++) {
        beside[n] += self->output[n];
    }
}

/* Compute all sums. Needs no interpreter. */
static void
count_all(Sums *self, const Postings *postings)
{
    const double *w = self->weights;
    double slope = w[B] * (double)self->last / (double)(self->total_words ? self->total_words : 1);
    for (int32_t term = 0; term < self->terms; term++) {
        add_texts(self, &self->said, self->most, &postings[term * LISTS + SAID], term,
                  COLUMN(self, uint32_t, WORDS), slope, self->rarities[term]);
    }
    if (self->with_passages) {
        count_passages(self, postings);
    }
    if (self->output) {
        slope = w[B] * (double)self->outputs / (double)self->total_output;
        for (int32_t term = 0; term < self->terms; term++) {
            add_texts(self, &self->put_out, self->output, &postings[term * LISTS + PUT_OUT], term,
                      COLUMN(self, uint32_t, OUTPUT), slope, w[OF_OUTPUT] * self->rarities[term]);
        }
    }
    count_blocks(self, postings);
    find_ceiling(self);
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
enum { MOST_SPARE = 1 << 26 };

#define PLACE(field, count) \
    do { \
        self->field = base ? (void *)(base + used) : NULL; \
        used += (((size_t)(count) * sizeof *self->field) + 15) & ~(size_t)15; \
        if (base) { \
            ASAN_POISON_MEMORY_REGION(base + used, GAP); \
        } \
        used += GAP; \
    } while (0)

/* Lay out memory from `base` on, first what begins as zeros; return its bytes, and of those zeros. */
static size_t
lay_out(Sums *self, char *base, const size_t sizes[LISTS], size_t *zeros)
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
    PLACE(found, docs);
    PLACE(marks, docs);
    if (sizes[IN_PASSAGES]) {
        PLACE(with_passages, docs);
    }
    return used;
}

static int
allocate(Sums *self, const size_t sizes[LISTS])
{
    size_t zeros;
    self->size = lay_out(self, NULL, sizes, &zeros);
    if (spare_size >= self->size) {
        self->memory = spare;
        self->size = spare_size;
        spare = NULL;
        spare_size = 0;
    } else if (!(self->memory = malloc(self->size))) {
        PyErr_NoMemory();
        return -1;
    }
    ASAN_UNPOISON_MEMORY_REGION(self->memory, self->size);
    memset(self->memory, 0, zeros);
    lay_out(self, self->memory, sizes, &zeros);
    return 0;
}

static void
give_back(Sums *self)
{
    if (self->size > spare_size && self->size <= MOST_SPARE) {
        void *other = spare;
        spare = self->memory;
        spare_size = self->size;
        self->memory = other;
    }
    free(self->memory);
}

/* Whether all numbers that index something are of this space. */
static int
fits(const Sums *self, const Postings *postings)
{
    const int64_t *block = COLUMN(self, int64_t, BLOCK), *owner = COLUMN(self, int64_t, OWNER);
    for (int64_t n = 0; n < self->terms * LISTS; n++) {
        const Postings *some = &postings[n];
        if (outside(some, n % LISTS == IN_PASSAGES ? self->places : self->last)) {
            return 0;
        }
        for (Py_ssize_t m = 0; m < some->count; m++) {
            int64_t number = some->numbers[m];
            if (n % LISTS == IN_PASSAGES ? owner[number] < 1 || owner[number] > self->last
                                         : block[number] < 0 || block[number] >= self->blocks) {
                return 0;
            }
        }
    }
    return 1;
}

static int
read_columns(Sums *self, PyObject *columns)
{
    const Py_ssize_t items[COLUMNS] = {4, 4, 8, 8, 8, 8, 8, 4, 8};
    for (int n = 0; n < COLUMNS; n++) {
        Py_ssize_t least = n == BLOCK_WORDS ? self->blocks : self->last + 1;
        if (n == OWNER || n == PASSAGE_WORDS) {
            least = self->places + 1;
        }
        PyObject *column = PyTuple_GetItem(columns, n);
        if (!column || hold(column, &self->columns[n], items[n], least) < 0) {
            return -1;
        }
    }
    return 0;
}

static int
read_weights(Sums *self, PyObject *weights)
{
    for (int n = 0; n < WEIGHTS; n++) {
        PyObject *weight = PyTuple_GetItem(weights, n);
        if (!weight) {
            return -1;
        }
        self->weights[n] = PyFloat_AsDouble(weight);
    }
    return PyErr_Occurred() ? -1 : 0;
}

/* Read a term: (rarity, weight among blocks, said, in passages, put out). */
static int
read_term(PyObject *term, double numbers[2], Postings postings[LISTS])
{
    PyObject *lists[LISTS];
    if (!PyArg_ParseTuple(term, "ddOOO", &numbers[0], &numbers[1], &lists[SAID], &lists[IN_PASSAGES], &lists[PUT_OUT])) {
        return -1;
    }
    for (int n = 0; n < LISTS; n++) {
        if (read_postings(lists[n], &postings[n]) < 0) {
            return -1;
        }
    }
    return 0;
}

/* Allocate and compute from what was read; return 0, or -1 and an error. */
static int
compute(Sums *self, const Postings *postings, double (*numbers)[2])
{
    size_t sizes[LISTS] = {0};
    int fit;
    for (int64_t n = 0; n < self->terms * LISTS; n++) {
        sizes[n % LISTS] += (size_t)postings[n].count;
    }
    if (sizes[SAID] >= INT32_MAX || sizes[PUT_OUT] >= INT32_MAX || (sizes[PUT_OUT] && !self->total_output)) {
        PyErr_SetString(PyExc_ValueError, "there are more postings than documents can have");
        return -1;
    }
    if (allocate(self, sizes) < 0) {
        return -1;
    }
    for (int64_t n = 0; n < self->terms; n++) {
        self->rarities[n] = numbers[n][0];
        self->of_sessions[n] = numbers[n][1];
    }
    Py_BEGIN_ALLOW_THREADS
    fit = fits(self, postings);
    if (fit) {
        count_all(self, postings);
    }
    Py_END_ALLOW_THREADS
    if (!fit) {
        PyErr_SetString(PyExc_ValueError, "a posting is of a document that there is not");
    }
    return fit ? 0 : -1;
}

static int
read_terms(Sums *self, PyObject *terms)
{
    self->terms = PyList_Size(terms);
    Postings *postings = calloc((size_t)self->terms * LISTS + 1, sizeof(Postings));
    double(*numbers)[2] = calloc((size_t)self->terms + 1, sizeof *numbers);
    int done = postings && numbers ? 0 : -1;
    if (done < 0) {
        PyErr_NoMemory();
    }
    for (int64_t n = 0; n < self->terms && !done; n++) {
        done = read_term(PyList_GetItem(terms, n), numbers[n], &postings[n * LISTS]);
    }
    if (!done) {
        done = compute(self, postings, numbers);
    }
    for (int64_t n = 0; postings && n < self->terms * LISTS; n++) {
        release(&postings[n]);
    }
    free(postings);
    free(numbers);
    return done;
}

static int
read_all(Sums *self, PyObject *arguments)
{
    PyObject *columns, *weights, *terms;
    if (!PyArg_ParseTuple(arguments, "(LLLLLL)O!O!O!", &self->last, &self->places, &self->blocks, &self->total_words,
                          &self->total_output, &self->outputs, &PyTuple_Type, &columns, &PyTuple_Type, &weights,
                          &PyList_Type, &terms)) {
        return -1;
    }
    if (self->last < 0 || self->places < self->last || self->blocks < 0 || self->last > INT32_MAX - 8) {
        PyErr_SetString(PyExc_ValueError, "there are fewer documents than none, or too many");
        return -1;
    }
    if (read_columns(self, columns) < 0 || read_weights(self, weights) < 0) {
        return -1;
    }
    return read_terms(self, terms);
}

static PyObject *
sums_new(PyTypeObject *type, PyObject *arguments, PyObject *Py_UNUSED(named))
{
    allocfunc allocate_object = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);
    PyObject *object = allocate_object(type, 0);
    if (object && read_all((Sums *)object, arguments) < 0) {
        Py_DECREF(object);
        return NULL;
    }
    return object;
}

static void
sums_dealloc(PyObject *object)
{
    Sums *self = (Sums *)object;
    PyTypeObject *type = Py_TYPE(object);
    for (int n = 0; n < COLUMNS; n++) {
        if (self->columns[n].obj) {
            PyBuffer_Release(&self->columns[n]);
        }
    }
    give_back(self);
    freefunc release_memory = (freefunc)PyType_GetSlot(type, Py_tp_free);
    release_memory(object);
    Py_DECREF(type);
}

static PyObject *
array(const void *values, size_t size)
{
    return PyByteArray_FromStringAndSize(values, (Py_ssize_t)size);
}

static PyObject *
sums_ceiling(PyObject *object, PyObject *Py_UNUSED(nothing))
{
    return PyFloat_FromDouble(((Sums *)object)->ceiling);
}

/* The neighbours of a document: before, after, two before, two after; 0 for none. */
static void
find_around(const Sums *self, int64_t doc, int64_t around[4])
{
    const int64_t *previous = COLUMN(self, int64_t, PREVIOUS), *next = COLUMN(self, int64_t, NEXT);
    around[0] = previous[doc];
    around[1] = next[doc];
    around[2] = (uint64_t)around[0] <= (uint64_t)self->last ? previous[around[0]] : 0;
    around[3] = (uint64_t)around[1] <= (uint64_t)self->last ? next[around[1]] : 0;
    for (int n = 0; n < 4; n++) {
        if ((uint64_t)around[n] > (uint64_t)self->last) {
            around[n] = 0;
        }
    }
}

/* A bound of the sum of a message without its block, with its true neighbours. */
static double
bound_around(const Sums *self, int64_t doc)
{
    int64_t around[4];
    double sum = 0;
    find_around(self, doc, around);
    for (int n = 0; n < 4; n++) {
        sum += self->bounds[n] * self->most[around[n]];
    }
    sum = sum * COLUMN(self, double, SHARE)[doc] + self->most[doc];
    return self->output ? sum + self->output[doc] : sum;
}

static int
by_doc(const void *one, const void *other)
{
    int64_t a = ((const Place *)one)->doc, b = ((const Place *)other)->doc;
    return (a > b) - (a < b);
}

/* Put a place into a heap whose first is the lowest. */
static void
sift(Place *heap, Py_ssize_t size, Place place)
{
    Py_ssize_t n = 0;
    for (;;) {
        Py_ssize_t child = 2 * n + 1;
        if (child + 1 < size && heap[child + 1].bound < heap[child].bound) {
            child++;
        }
        if (child >= size || heap[child].bound >= place.bound) {
            break;
        }
        heap[n] = heap[child];
        n = child;
    }
    heap[n] = place;
}

static PyObject *
documents(const Place *found, Py_ssize_t count)
{
    PyObject *docs = array(NULL, (size_t)count * sizeof(int64_t));
    int64_t *into = docs ? (int64_t *)PyByteArray_AsString(docs) : NULL;
    for (Py_ssize_t n = 0; into && n < count; n++) {
        into[n] = found[n].doc;
    }
    return docs;
}

static PyObject *
sums_likely(PyObject *object, PyObject *arguments)
{
    Sums *self = (Sums *)object;
    Py_ssize_t most, some = 0;
    PyObject *mask;
    Py_buffer passing = {0};
    if (!PyArg_ParseTuple(arguments, "nO", &most, &mask)) {
        return NULL;
    }
    if (mask != Py_None && hold(mask, &passing, 1, self->last + 1) < 0) {
        return NULL;
    }
    most = most < 1 ? 1 : most > self->last ? self->last : most;
    Place *heap = self->found;
    const char *passes = passing.buf;
    Py_BEGIN_ALLOW_THREADS
    memset(heap, 0, (size_t)most * sizeof(Place));
    for (int64_t doc = 1; doc <= self->last; doc++) {
        if (self->beside[doc] > heap[0].bound && (!passes || passes[doc])) {
            sift(heap, most, (Place){self->beside[doc], doc});
        }
    }
    qsort(heap, (size_t)most, sizeof(Place), by_doc);
    for (Py_ssize_t n = 0; n < most; n++) {
        if (heap[n].doc && bound_around(self, heap[n].doc) > 0) {
            heap[some++] = heap[n];
        }
    }
    Py_END_ALLOW_THREADS
    if (passing.obj) {
        PyBuffer_Release(&passing);
    }
    return documents(heap, some);
}

/* Mark the documents with a neighbour that is stored elsewhere: a bound from those beside them does not hold. */
static void
mark_apart(Sums *self, const int64_t *jumps, Py_ssize_t count)
{
    char *marks = self->marks;
    memset(marks, 0, (size_t)self->last + 1);
    for (Py_ssize_t n = 0; n < count; n++) {
        int64_t around[4];
        if (jumps[n] >= 1 && jumps[n] <= self->last) {
            find_around(self, jumps[n], around);
            marks[jumps[n]] = 1;
            for (int m = 0; m < 4; m++) {
                marks[around[m]] = 1;
            }
        }
    }
}

static Py_ssize_t
find_in_reach(Sums *self, double least)
{
    const int64_t *block = COLUMN(self, int64_t, BLOCK);
    const double *in_block = self->in_block, *beside = self->beside;
    const uint64_t blocks = (uint64_t)self->blocks;
    Py_ssize_t count = 0;
    for (int64_t doc = 1; doc <= self->last; doc++) {
        if ((uint64_t)block[doc] < blocks &&
            (self->marks[doc] || (beside[doc] > 0 && beside[doc] * MORE + in_block[block[doc]] >= least))) {
            double bound = bound_around(self, doc);
            if (bound > 0 && bound + in_block[block[doc]] >= least) {
                self->found[count++] = (Place){bound + in_block[block[doc]], doc};
            }
        }
    }
    return count;
}

static PyObject *
sums_reach(PyObject *object, PyObject *arguments)
{
    Sums *self = (Sums *)object;
    double least;
    PyObject *apart;
    Py_buffer jumps = {0};
    Py_ssize_t some;
    if (!PyArg_ParseTuple(arguments, "dO", &least, &apart) || hold(apart, &jumps, sizeof(int64_t), 0) < 0) {
        return NULL;
    }
    Py_BEGIN_ALLOW_THREADS
    mark_apart(self, jumps.buf, jumps.len / (Py_ssize_t)sizeof(int64_t));
    some = find_in_reach(self, least / MORE);
    Py_END_ALLOW_THREADS
    PyBuffer_Release(&jumps);
    PyObject *bounds = array(NULL, (size_t)some * sizeof(double));
    double *into = bounds ? (double *)PyByteArray_AsString(bounds) : NULL;
    for (Py_ssize_t n = 0; into && n < some; n++) {
        into[n] = self->found[n].bound;
    }
    return Py_BuildValue("NN", documents(self->found, some), bounds);
}

/* BM25F of a message with its neighbours; mark the terms that it says itself. */
static double
context_of(const Sums *self, int64_t doc, double *totals, char *said, Py_ssize_t step)
{
    const double *w = self->weights, shares[4] = {w[BEFORE], w[AFTER], w[TWO_BEFORE], w[TWO_AFTER]};
    int64_t around[4];
    memset(totals, 0, (size_t)self->terms * sizeof(double));
    for (int32_t n = self->said.first[doc]; n; n = self->said.nodes[n - 1].next) {
        const Node *node = &self->said.nodes[n - 1];
        totals[node->term] = node->frequency;
        said[node->term * step] = 1;
    }
    find_around(self, doc, around);
    for (int m = 0; m < 4; m++) {
        for (int32_t n = self->said.first[around[m]]; n; n = self->said.nodes[n - 1].next) {
            const Node *node = &self->said.nodes[n - 1];
            totals[node->term] += shares[m] * node->frequency;
        }
    }
    double sum = 0;
    for (int64_t term = 0; term < self->terms; term++) {
        sum += saturated(totals[term], w[K1], self->rarities[term]);
    }
    return sum;
}

static PyObject *
sums_of(PyObject *object, PyObject *numbers)
{
    Sums *self = (Sums *)object;
    PyObject *found = NULL;
    Py_buffer view = {0};
    if (hold(numbers, &view, sizeof(int64_t), 0) < 0) {
        return NULL;
    }
    const int64_t *docs = view.buf, *block = COLUMN(self, int64_t, BLOCK);
    Py_ssize_t count = view.len / (Py_ssize_t)sizeof(int64_t);
    size_t size = (size_t)count + 1;
    double *values = calloc(size * 4, sizeof(double)), *totals = calloc((size_t)self->terms + 1, sizeof(double));
    char *said = calloc(size, 2 * (size_t)self->terms + 1);
    int fit = 1;
    if (values && totals && said) {
        Py_BEGIN_ALLOW_THREADS
        double *words = values, *context = values + count, *session = context + count, *output = session + count;
        char *put_out = said + (size_t)count * (size_t)self->terms;
        for (Py_ssize_t n = 0; n < count; n++) {
            int64_t doc = docs[n];
            if ((uint64_t)doc > (uint64_t)self->last || (uint64_t)block[doc] >= (uint64_t)self->blocks) {
                fit = 0;
                break;
            }
            words[n] = self->with_passages && !isnan(self->with_passages[doc]) ? self->with_passages[doc]
                                                                               : self->most[doc];
            context[n] = context_of(self, doc, totals, said + n, count);
            session[n] = self->in_block[block[doc]];
            if (self->output) {
                output[n] = self->output[doc];
                for (int32_t m = self->put_out.first[doc]; m; m = self->put_out.nodes[m - 1].next) {
                    put_out[self->put_out.nodes[m - 1].term * count + n] = 1;
                }
            }
        }
        Py_END_ALLOW_THREADS
        if (fit) {
            found = Py_BuildValue("NN", array(values, (size_t)count * 4 * sizeof(double)),
                                  array(said, (size_t)count * 2 * (size_t)self->terms));
        } else {
            PyErr_SetString(PyExc_ValueError, "there is no such document");
        }
    } else {
        PyErr_NoMemory();
    }
    free(values);
    free(totals);
    free(said);
    PyBuffer_Release(&view);
    return found;
}

static PyMethodDef methods[] = {
    {"ceiling", sums_ceiling, METH_NOARGS, "Return the largest sum that a message can have."},
    {"likely", sums_likely, METH_VARARGS, "Return documents among which the best are likely to be."},
    {"reach", sums_reach, METH_VARARGS, "Return the documents whose sums may reach a number, and their bounds."},
    {"of", sums_of, METH_O, "Return words, context, blocks and output of documents, and masks of their terms."},
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

static int
fill(PyObject *module)
{
    PyObject *type = PyType_FromSpec(&spec);
    if (!type) {
        return -1;
    }
    int done = PyModule_AddObjectRef(module, "Sums", type);
    Py_DECREF(type);
    return done < 0 ? done : PyModule_AddIntConstant(module, "VERSION", VERSION);
}

static PyModuleDef_Slot parts[] = {{Py_mod_exec, fill}, {0, NULL}};
static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT, "_kernel", "See kernel.py.", 0, NULL, parts, NULL, NULL, NULL};

PyMODINIT_FUNC
PyInit__kernel(void)
{
    return PyModuleDef_Init(&definition);
}
