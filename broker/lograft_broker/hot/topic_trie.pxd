cimport cython
from libc.stddef cimport size_t
from libc.stdint cimport uint8_t, uint32_t, uint64_t

cdef struct Word:
    const uint8_t* rest
    uint64_t prefix
    uint32_t size


cdef struct Edge:
    uint64_t prefix
    uint32_t size
    uint32_t node


cdef struct Entry:
    uint32_t target
    uint32_t count


cdef struct Node:
    Edge* edges
    Entry* entries
    uint8_t* rest
    uint64_t prefix
    uint64_t seen
    uint32_t size
    uint32_t parent
    uint32_t star
    uint32_t hash
    uint32_t is_hash
    uint32_t edge_count
    uint32_t edge_room
    uint32_t entry_count
    uint32_t entry_room


@cython.final
cdef class TopicTrie:
    cdef Node* _nodes
    cdef uint32_t* _now
    cdef uint32_t* _next
    cdef uint32_t _node_room
    cdef uint32_t _node_top
    cdef uint32_t _node_free
    cdef readonly uint32_t node_count
    cdef readonly uint64_t visited_last
    cdef uint64_t _stamp
    cdef Py_ssize_t _size

    cdef dict _numbers
    cdef list _targets
    cdef list _spare
    cdef uint64_t* _target_seen
    cdef uint64_t* _target_uses
    cdef uint32_t* _found
    cdef uint32_t _target_room

    cdef tuple find(self, const uint8_t* key, size_t size)

    cdef uint32_t _walk(self, const uint8_t* key, size_t size) noexcept nogil
    cdef uint32_t _step(self, const Word* word, uint32_t active_count) noexcept nogil
    cdef uint32_t _enter(self, uint32_t number, uint32_t count) noexcept nogil
    cdef uint32_t _gather(self, uint32_t active_count) noexcept nogil
    cdef uint32_t _child(self, uint32_t number, const Word* word, uint32_t* place) noexcept nogil
    cdef uint32_t _below(self, uint32_t number, const Word* word) noexcept nogil
    cdef uint32_t _locate(self, const uint8_t* pattern, size_t size) noexcept nogil
    cdef uint32_t _make(self, const uint8_t* pattern, size_t size) except? 0xFFFFFFFF
    cdef uint32_t _new_node(self, uint32_t parent, const Word* word) except 0
    cdef void _attach(self, uint32_t parent, const Word* word, uint32_t number) noexcept
    cdef void _detach(self, uint32_t number) noexcept
    cdef void _prune(self, uint32_t number) noexcept
    cdef int _reserve_node(self) except -1
    cdef uint32_t _number(self, object target) except? 0xFFFFFFFF
    cdef int _drop_use(self, object target, uint32_t number) except -1
