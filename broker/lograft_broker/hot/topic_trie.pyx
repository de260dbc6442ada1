# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False
# cython: auto_pickle=False
"""Which targets of a topic exchange want a routing key.

Patterns and keys are words between dots; `*` stands for one word, `#` for any number of them, none
included. A key of no bytes has no words; "a." has two, the second of them empty. A pattern is added
once for each binding and counts that often; a match gives each target once.

A match walks the trie with all its places at once, word by word, and enters a node once per word
however many ways lead there. So it costs at most words x nodes, whatever the patterns are: `#.#.#`
is three places, not a choice at each word. Nothing is allocated but the tuple that is handed out.

Children stand sorted by word, not in a hash table: one who may bind cannot choose words that
collide, and the order of a result depends on the history of the bindings alone. A word's first
eight bytes stand in the parent's row of edges, so that most searches touch nothing else.

What a target is, and what becomes of the result, is the router's business.
"""
cimport cython
from cpython.list cimport PyList_GET_ITEM
from cpython.mem cimport PyMem_Free, PyMem_Realloc
from cpython.ref cimport Py_INCREF
from cpython.tuple cimport PyTuple_New, PyTuple_SET_ITEM
from libc.string cimport memchr, memcmp, memcpy, memmove, memset

cdef enum:
    PREFIX_BYTES = 8
    ROOT = 0  # and, as nobody's child is the root, "none" where a child is meant

cdef uint32_t NOWHERE = 0xFFFFFFFF


cdef inline void read_word(Word* word, const uint8_t* data, size_t size) noexcept nogil:
    cdef uint64_t prefix = 0
    cdef size_t at
    for at in range(min(size, <size_t> PREFIX_BYTES)):
        prefix |= <uint64_t> data[at] << (56 - 8 * at)
    word.prefix = prefix
    word.size = <uint32_t> size
    word.rest = data + PREFIX_BYTES if size > PREFIX_BYTES else NULL


cdef inline size_t word_end(const uint8_t* data, size_t start, size_t size) noexcept nogil:
    cdef const void* dot = memchr(data + start, c".", size - start)
    return size if dot == NULL else <size_t> (<const uint8_t*> dot - data)


cdef inline bint is_wildcard(const Word* word, char wildcard) noexcept nogil:
    return word.size == 1 and word.prefix >> 56 == <uint8_t> wildcard


cdef inline int compare(const Word* word, const Edge* edge, const Node* nodes) noexcept nogil:
    """The order of children: first eight bytes, then long words by the rest, then the size."""
    cdef uint32_t shorter
    cdef int order
    if word.prefix != edge.prefix:
        return -1 if word.prefix < edge.prefix else 1
    if word.size > PREFIX_BYTES and edge.size > PREFIX_BYTES:
        shorter = min(word.size, edge.size) - PREFIX_BYTES
        order = memcmp(word.rest, nodes[edge.node].rest, shorter)
        if order != 0:
            return order
    if word.size != edge.size:
        return -1 if word.size < edge.size else 1
    return 0


cdef void* resized(void* old, size_t count, size_t item_bytes) except NULL:
    cdef void* data = PyMem_Realloc(old, count * item_bytes)
    if data == NULL:
        raise MemoryError()
    return data


cdef int reserve_edge(Node* node) except -1:
    cdef uint32_t room = max(<uint32_t> 2, 2 * node.edge_room)
    if node.edge_count == node.edge_room:
        node.edges = <Edge*> resized(node.edges, room, sizeof(Edge))
        node.edge_room = room
    return 0


cdef int reserve_entry(Node* node) except -1:
    cdef uint32_t room = max(<uint32_t> 1, 2 * node.entry_room)
    if node.entry_count == node.entry_room:
        node.entries = <Entry*> resized(node.entries, room, sizeof(Entry))
        node.entry_room = room
    return 0


cdef uint32_t entry_of(const Node* node, uint32_t target) noexcept:
    """Where the target stands among the node's entries; behind the last if it does not."""
    cdef uint32_t at = 0
    while at < node.entry_count and node.entries[at].target != target:
        at += 1
    return at


@cython.final
cdef class TopicTrie:
    def __cinit__(self):
        self._numbers = {}
        self._targets = []
        self._spare = []
        self._reserve_node()
        memset(&self._nodes[ROOT], 0, sizeof(Node))
        self._node_top = 1
        self.node_count = 1

    def __dealloc__(self):
        cdef uint32_t number
        for number in range(self._node_top):
            PyMem_Free(self._nodes[number].edges)
            PyMem_Free(self._nodes[number].entries)
            PyMem_Free(self._nodes[number].rest)
        PyMem_Free(self._nodes)
        PyMem_Free(self._now)
        PyMem_Free(self._next)
        PyMem_Free(self._target_seen)
        PyMem_Free(self._target_uses)
        PyMem_Free(self._found)

    @classmethod
    def __class_getitem__(cls, item):
        """TopicTrie[Queue] says to a reader and to a type checker what the targets are."""
        return cls

    def __len__(self):
        """How often `add` was called, less what was removed."""
        return self._size

    def __repr__(self):
        return f"TopicTrie({self._size} patterns, {len(self._numbers)} targets)"

    def add(self, bytes pattern not None, target):
        """`target`, which must be hashable, wants keys that fit `pattern`."""
        cdef uint32_t number = self._number(target)
        cdef uint32_t place = self._make(<const uint8_t*> <char*> pattern, len(pattern))
        cdef Node* node = &self._nodes[place]
        cdef uint32_t at
        reserve_entry(node)
        at = entry_of(node, number)
        if at == node.entry_count:
            node.entries[at].target = number
            node.entries[at].count = 0
            node.entry_count += 1
        node.entries[at].count += 1
        self._target_uses[number] += 1
        self._size += 1

    def remove(self, bytes pattern not None, target):
        """Take back one `add`. False when there is none to take back."""
        cdef object known = self._numbers.get(target)
        cdef uint32_t place = self._locate(<const uint8_t*> <char*> pattern, len(pattern))
        cdef uint32_t at
        cdef Node* node
        if place == NOWHERE or known is None:
            return False
        node = &self._nodes[place]
        at = entry_of(node, known)
        if at == node.entry_count:
            return False
        node.entries[at].count -= 1
        if node.entries[at].count == 0:
            node.entry_count -= 1
            memmove(
                &node.entries[at], &node.entries[at + 1], (node.entry_count - at) * sizeof(Entry)
            )
            self._prune(place)
        self._size -= 1
        self._drop_use(target, known)
        return True

    def match(self, bytes key not None):
        """The targets of all patterns that fit `key`, each once."""
        return self.find(<const uint8_t*> <char*> key, len(key))

    cdef tuple find(self, const uint8_t* key, size_t size):
        cdef uint32_t count = self._gather(self._walk(key, size))
        cdef tuple result = PyTuple_New(count)
        cdef uint32_t at
        cdef object target
        for at in range(count):
            target = <object> PyList_GET_ITEM(self._targets, self._found[at])
            Py_INCREF(target)
            PyTuple_SET_ITEM(result, at, target)
        return result

    cdef uint32_t _walk(self, const uint8_t* key, size_t size) noexcept nogil:
        """Leave the nodes whose patterns fit the whole key in `_now`; says how many."""
        cdef uint32_t active_count
        cdef size_t start = 0
        cdef size_t end
        cdef Word word
        self._stamp += 1
        active_count = self._enter(ROOT, 0)
        self._now, self._next = self._next, self._now
        self.visited_last = active_count
        if size == 0:
            return active_count
        while active_count != 0:
            end = word_end(key, start, size)
            read_word(&word, key + start, end - start)
            active_count = self._step(&word, active_count)
            self.visited_last += active_count
            if end == size:
                break
            start = end + 1
        return active_count

    cdef uint32_t _step(self, const Word* word, uint32_t active_count) noexcept nogil:
        """Go one word on from every node in `_now`."""
        cdef uint32_t count = 0
        cdef uint32_t at, child
        cdef Node* node
        self._stamp += 1
        for at in range(active_count):
            node = &self._nodes[self._now[at]]
            if node.is_hash:
                count = self._enter(self._now[at], count)
            if node.star != 0:
                count = self._enter(node.star, count)
            if node.edge_count != 0:
                child = self._child(self._now[at], word, NULL)
                if child != 0:
                    count = self._enter(child, count)
        self._now, self._next = self._next, self._now
        return count

    cdef uint32_t _enter(self, uint32_t number, uint32_t count) noexcept nogil:
        """Note in `_next` that the walk stands at this node, and at each `#` right below it, as
        that may stand for no word. A node stands there once, so `_next` is never too short."""
        while self._nodes[number].seen != self._stamp:
            self._nodes[number].seen = self._stamp
            self._next[count] = number
            count += 1
            number = self._nodes[number].hash
            if number == 0:
                break
        return count

    cdef uint32_t _gather(self, uint32_t active_count) noexcept nogil:
        """Leave the targets of the nodes in `_now` in `_found`, each once; says how many."""
        cdef uint32_t count = 0
        cdef uint32_t at, entry, target
        cdef Node* node
        for at in range(active_count):
            node = &self._nodes[self._now[at]]
            for entry in range(node.entry_count):
                target = node.entries[entry].target
                if self._target_seen[target] != self._stamp:
                    self._target_seen[target] = self._stamp
                    self._found[count] = target
                    count += 1
        return count

    cdef uint32_t _child(self, uint32_t number, const Word* word, uint32_t* place) noexcept nogil:
        """The child for a plain word, or 0; `place` learns where its edge stands or should."""
        cdef const Edge* edges = self._nodes[number].edges
        cdef uint32_t low = 0
        cdef uint32_t high = self._nodes[number].edge_count
        cdef uint32_t middle
        cdef uint32_t child = 0
        cdef int order
        while low < high:
            middle = low + (high - low) // 2
            order = compare(word, &edges[middle], self._nodes)
            if order == 0:
                child = edges[middle].node
                low = middle
                break
            if order < 0:
                high = middle
            else:
                low = middle + 1
        if place != NULL:
            place[0] = low
        return child

    cdef uint32_t _below(self, uint32_t number, const Word* word) noexcept nogil:
        """The child for one word of a pattern, or 0."""
        if is_wildcard(word, c"*"):
            return self._nodes[number].star
        if is_wildcard(word, c"#"):
            return self._nodes[number].hash
        return self._child(number, word, NULL)

    cdef uint32_t _locate(self, const uint8_t* pattern, size_t size) noexcept nogil:
        """The node of a pattern, or NOWHERE."""
        cdef uint32_t number = ROOT
        cdef size_t start = 0
        cdef size_t end = size
        cdef Word word
        if size == 0:
            return number
        while True:
            end = word_end(pattern, start, size)
            read_word(&word, pattern + start, end - start)
            number = self._below(number, &word)
            if number == 0:
                return NOWHERE
            if end == size:
                return number
            start = end + 1

    cdef uint32_t _make(self, const uint8_t* pattern, size_t size) except? 0xFFFFFFFF:
        """The node of a pattern, made together with the way to it where that is missing."""
        cdef uint32_t number = ROOT
        cdef uint32_t child
        cdef size_t start = 0
        cdef size_t end
        cdef Word word
        if size == 0:
            return number
        while True:
            end = word_end(pattern, start, size)
            read_word(&word, pattern + start, end - start)
            child = self._below(number, &word)
            number = child if child != 0 else self._new_node(number, &word)
            if end == size:
                return number
            start = end + 1

    cdef uint32_t _new_node(self, uint32_t parent, const Word* word) except 0:
        cdef uint8_t* rest = NULL
        cdef uint32_t number = self._node_free
        cdef Node* node
        self._reserve_node()
        reserve_edge(&self._nodes[parent])
        if word.size > PREFIX_BYTES:
            rest = <uint8_t*> resized(NULL, word.size - PREFIX_BYTES, 1)
            memcpy(rest, word.rest, word.size - PREFIX_BYTES)
        if number != 0:
            self._node_free = self._nodes[number].parent
        else:
            number = self._node_top
            self._node_top += 1
        node = &self._nodes[number]
        memset(node, 0, sizeof(Node))
        node.parent = parent
        node.prefix = word.prefix
        node.size = word.size
        node.rest = rest
        node.is_hash = is_wildcard(word, c"#")
        self.node_count += 1
        self._attach(parent, word, number)
        return number

    cdef void _attach(self, uint32_t parent, const Word* word, uint32_t number) noexcept:
        cdef Node* above = &self._nodes[parent]
        cdef uint32_t place
        if is_wildcard(word, c"*"):
            above.star = number
        elif is_wildcard(word, c"#"):
            above.hash = number
        else:
            self._child(parent, word, &place)
            memmove(
                &above.edges[place + 1], &above.edges[place],
                (above.edge_count - place) * sizeof(Edge),
            )
            above.edges[place].prefix = word.prefix
            above.edges[place].size = word.size
            above.edges[place].node = number
            above.edge_count += 1

    cdef void _detach(self, uint32_t number) noexcept:
        cdef Node* node = &self._nodes[number]
        cdef Node* above = &self._nodes[node.parent]
        cdef uint32_t place
        cdef Word word
        if above.star == number:
            above.star = 0
        elif above.hash == number:
            above.hash = 0
        else:
            word.prefix = node.prefix
            word.size = node.size
            word.rest = node.rest
            self._child(node.parent, &word, &place)
            above.edge_count -= 1
            memmove(
                &above.edges[place], &above.edges[place + 1],
                (above.edge_count - place) * sizeof(Edge),
            )

    cdef void _prune(self, uint32_t number) noexcept:
        """Take away the nodes, from this one upwards, that lead nowhere any more."""
        cdef uint32_t parent
        cdef Node* node = &self._nodes[number]
        while number != ROOT and (
            node.entry_count == 0 and node.edge_count == 0 and node.star == 0 and node.hash == 0
        ):
            self._detach(number)
            PyMem_Free(node.edges)
            PyMem_Free(node.entries)
            PyMem_Free(node.rest)
            parent = node.parent
            memset(node, 0, sizeof(Node))
            node.parent = self._node_free
            self._node_free = number
            self.node_count -= 1
            number = parent
            node = &self._nodes[number]

    cdef int _reserve_node(self) except -1:
        """Room for one more node, and for a walk that stands at all of them."""
        cdef uint32_t room = max(<uint32_t> 8, 2 * self._node_room)
        if self._node_free != 0 or self._node_top < self._node_room:
            return 0
        if room <= self._node_room:
            raise MemoryError()
        self._now = <uint32_t*> resized(self._now, room, sizeof(uint32_t))
        self._next = <uint32_t*> resized(self._next, room, sizeof(uint32_t))
        self._nodes = <Node*> resized(self._nodes, room, sizeof(Node))
        self._node_room = room
        return 0

    cdef uint32_t _number(self, object target) except? 0xFFFFFFFF:
        """The number of a target, given to it when it is new."""
        cdef object known = self._numbers.get(target)
        cdef uint32_t room = max(<uint32_t> 8, 2 * self._target_room)
        cdef uint32_t number
        if known is not None:
            return known
        if not self._spare:
            number = len(self._targets)
            if number == self._target_room:
                self._target_seen = <uint64_t*> resized(self._target_seen, room, sizeof(uint64_t))
                self._target_uses = <uint64_t*> resized(self._target_uses, room, sizeof(uint64_t))
                self._found = <uint32_t*> resized(self._found, room, sizeof(uint32_t))
                self._target_room = room
            self._targets.append(None)
            self._spare.append(number)
        number = self._spare.pop()
        self._numbers[target] = number
        self._targets[number] = target
        self._target_seen[number] = 0
        self._target_uses[number] = 0
        return number

    cdef int _drop_use(self, object target, uint32_t number) except -1:
        self._target_uses[number] -= 1
        if self._target_uses[number] == 0:
            del self._numbers[target]
            self._targets[number] = None
            self._spare.append(number)
        return 0
