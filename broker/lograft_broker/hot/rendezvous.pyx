# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False
# cython: auto_pickle=False
"""Chooses one of several weighted names for a value: always the same one, anywhere.

Weighted rendezvous hashing. Value and name together give each name a number u, evenly spread below
2**64; the name with the smallest -log(u / 2**64) / weight is chosen. So the choice depends on the
names and weights alone, neither on their order nor on how they came to be; a name that comes or
goes moves only the values it gains or had; shares are as the weights, however large those are.

Whole numbers only: no node's mathematics library may round differently. The logarithm is read from
a table, straight lines between its entries, which bends shares by less than a thousandth.

It looks at every name for each value, some nanoseconds each. The consistent-hash exchange calls it.
"""
cimport cython
from cpython.mem cimport PyMem_Calloc, PyMem_Free

cdef extern from *:
    int clz "__builtin_clzll"(unsigned long long value) noexcept nogil

WEIGHT_MAX = 1 << 24  # costs have 39 bits; a cost times a weight must fit into 64

cdef enum:
    STEP_BITS = 8  # the table has an entry for each of so many bits below the leading one
    LOG_BITS = 32  # a logarithm counts 2**-32

cdef uint64_t[(1 << STEP_BITS) + 1] LOGARITHMS


def _logarithm(step):
    """log2(1 + step / 2**STEP_BITS), rounded down; bit by bit: squaring doubles a logarithm."""
    precision = 128
    value = ((1 << STEP_BITS) + step) << (precision - STEP_BITS)
    result = 0
    for _ in range(LOG_BITS + 1):
        result <<= 1
        if value >> (precision + 1):
            result |= 1
            value >>= 1
        value = (value * value) >> precision
    return result


for _step in range((1 << STEP_BITS) + 1):
    LOGARITHMS[_step] = _logarithm(_step)


cdef inline uint64_t mix(uint64_t value) noexcept nogil:
    """Every bit of the result depends on every bit of the value; no two give the same."""
    value = (value ^ (value >> 30)) * <uint64_t> 0xBF58476D1CE4E5B9
    value = (value ^ (value >> 27)) * <uint64_t> 0x94D049BB133111EB
    return value ^ (value >> 31)


cdef uint64_t hash_bytes(const uint8_t* data, size_t size) noexcept nogil:
    """FNV-1a, mixed because that alone leaves the upper bits of short values much alike."""
    cdef uint64_t value = <uint64_t> 0xCBF29CE484222325
    cdef size_t at
    for at in range(size):
        value = (value ^ data[at]) * <uint64_t> 0x100000001B3
    return mix(value)


cdef inline uint64_t cost(uint64_t value) noexcept nogil:
    """-log2(value / 2**64) in units of 2**-LOG_BITS; from 1 to 64 << LOG_BITS."""
    cdef int zeros = clz(value)
    cdef uint64_t below = (value << zeros << 1) >> (64 - LOG_BITS)
    cdef uint64_t step = below >> (LOG_BITS - STEP_BITS)
    cdef uint64_t part = below & ((<uint64_t> 1 << (LOG_BITS - STEP_BITS)) - 1)
    cdef uint64_t rise = LOGARITHMS[step + 1] - LOGARITHMS[step]
    cdef uint64_t logarithm = LOGARITHMS[step] + (rise * part >> (LOG_BITS - STEP_BITS))
    return (<uint64_t> (zeros + 1) << LOG_BITS) - logarithm


def stable_hash(bytes value not None):
    """64 bits, the same in every process."""
    return hash_bytes(<const uint8_t*> <char*> value, len(value))


@cython.final
cdef class Rendezvous:
    def __cinit__(self, names, weights):
        """Names must differ; weights go from 1 to WEIGHT_MAX."""
        cdef Py_ssize_t at
        cdef bytes name
        self._count = len(names)
        if len(weights) != self._count or not all(1 <= weight <= WEIGHT_MAX for weight in weights):
            raise ValueError(f"{len(names)} names, weights {list(weights)[:10]}")
        self._seats = <Seat*> PyMem_Calloc(max(self._count, 1), sizeof(Seat))
        if self._seats == NULL:
            raise MemoryError()
        for at in range(self._count):
            name = names[at]
            self._seats[at].seed = hash_bytes(<const uint8_t*> <char*> name, len(name))
            self._seats[at].weight = weights[at]

    def __dealloc__(self):
        PyMem_Free(self._seats)

    def __len__(self):
        return self._count

    def choose(self, bytes value not None):
        """Number of the name chosen; -1 when there is none to choose."""
        return self.find(<const uint8_t*> <char*> value, len(value))

    cdef Py_ssize_t find(self, const uint8_t* value, size_t size) noexcept nogil:
        cdef uint64_t value_hash = hash_bytes(value, size)
        cdef uint64_t best_cost = 1
        cdef uint64_t best_weight = 0
        cdef uint64_t own
        cdef Py_ssize_t best = -1
        cdef Py_ssize_t at
        for at in range(self._count):
            own = cost(mix(value_hash ^ self._seats[at].seed) | 1)
            if own * best_weight < best_cost * self._seats[at].weight:
                best, best_cost, best_weight = at, own, self._seats[at].weight
        return best
