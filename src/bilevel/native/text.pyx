# cython: boundscheck=False, wraparound=False
"""Reads plainly written problems of any size straight into integers, and writes plans of millions of steps from them.

Plain are ASCII texts whose objects come before facts and goals, whose first state is a list of facts and of numeric
values, and whose goal is one fact or an `and` of some. Everything else, right or wrong, is left to the ordinary reader.
"""

from array import array

from libc.stdint cimport int32_t, uint64_t
from libcpp cimport bool
from libcpp.string cimport string
from libcpp.vector cimport vector

from bilevel.symbolic.expressions import is_number
from bilevel.symbolic.packed import NUMBER, Names, PackedProblem, Rows, types_of

cdef extern from "<string_view>" namespace "std" nogil:
    cdef cppclass string_view:
        string_view()
        string_view(const char*, size_t)
        const char* data()
        size_t size()
        bool operator==(string_view)


cdef extern from "tables.hpp" namespace "bilevel" nogil:
    cdef cppclass NameText:
        NameText()
        void split(string_view) except +
        string_view name(size_t)

    cdef cppclass NameTable:
        NameTable()
        void build(string_view) except +
        int32_t find(const char*, size_t, uint64_t)
        int32_t find(const char*, size_t, uint64_t, int32_t)

    cdef cppclass NameList:
        NameList()
        void add(const char*, size_t) except +
        size_t size()
        string_view name(size_t)
        vector[int32_t] alphabetical() except +

    void sort_rows(vector[int32_t]&, size_t) except +


cdef extern from "scanner.hpp" namespace "bilevel" nogil:
    cdef enum Token:
        END, OPEN, CLOSE, NAME, WORD, STRANGE

    cdef cppclass Scanner:
        const char* word
        size_t length
        uint64_t hash
        Scanner()
        Scanner(const char*, size_t)
        Token next()
        bool spells(string_view)


cdef inline string_view view(bytes text):
    return string_view(<const char*>text, len(text))


cdef inline bytes lines(words):
    """The words, a newline after each."""
    return "".join([f"{word}\n" for word in words]).encode()


cdef inline bytes memory(const vector[int32_t]& numbers):
    """What arrays are made of."""
    return (<const char*>numbers.data())[:numbers.size() * sizeof(int32_t)]


LARGEST = 2**31 - 1  # bytes of a file; places in it are kept in 32 bits
IGNORED = (":requirements", ":metric", ":length")
cdef int DEEPEST = 50  # parentheses in what is ignored


class NotPlain(Exception):
    """The text is wrong or merely unusual."""


def packed_problem(bytes data not None, domain):
    """Return the problem that a file's contents define, or `None` where they are not plain."""
    if len(data) > LARGEST:
        return None
    try:
        return _Reader(data, domain).problem()
    except NotPlain:
        return None


cdef class _Reader:
    cdef Scanner scanner
    cdef object domain
    cdef bytes text, predicate_text, type_text, name_text
    cdef NameTable predicates, types, objects
    cdef vector[int32_t] arities, first_parameters  # of each predicate
    cdef vector[vector[char]] fits  # of each parameter of each predicate: for each type, whether it fits; or empty: all
    cdef vector[int32_t] latest  # of each parameter of each predicate, the last term
    cdef vector[vector[int32_t]] terms  # of each predicate's facts
    cdef vector[char] seen  # of each predicate, whether there is a fact
    cdef NameList given  # objects as they come
    cdef vector[int32_t] given_kinds  # and the numbers of their types
    cdef vector[int32_t] kinds, declared
    cdef bint objects_known
    cdef Token token  # the last one

    def __init__(self, bytes text, domain):
        self.text = text
        self.scanner = Scanner(<const char*>text, len(text))
        self.domain = domain
        self.objects_known = False
        type_names = types_of(domain)
        self.predicate_text, self.type_text = lines(domain.predicates), lines(type_names)
        self.predicates.build(view(self.predicate_text))
        self.types.build(view(self.type_text))
        for predicate in domain.predicates.values():
            self.arities.push_back(predicate.arity)
            self.first_parameters.push_back(self.fits.size())
            for parameter in predicate.parameters:
                allowed = [domain.is_subtype(kind, parameter.type) for kind in type_names]
                self.fits.push_back([] if all(allowed) else allowed)
        self.latest.assign(self.fits.size(), -1)
        self.terms.resize(len(domain.predicates))
        self.seen.resize(len(domain.predicates))

    def problem(self):
        """Return the problem that the whole text defines."""
        self.expect(OPEN)
        self.expect_word(b"define")
        self.expect(OPEN)
        self.expect_word(b"problem")
        self.expect(NAME)
        name = self.word()
        self.expect(CLOSE)
        sections = {}
        while self.next() == OPEN:
            self.expect(WORD)
            keyword = self.word()
            if keyword in sections:
                raise NotPlain
            sections[keyword] = self.section(keyword)
        if self.token != CLOSE or self.next() != END or not sections.keys() >= {":domain", ":goal"}:
            raise NotPlain
        if not self.objects_known:
            self.sort_objects()
        nothing = self.relations()  # what was read has been taken away
        types, declared = array(NUMBER, memory(self.kinds)), array(NUMBER, memory(self.declared))
        state, goal = sections.get(":init", nothing), sections[":goal"]
        return PackedProblem(
            name, self.domain.name, Names(self.name_text), types_of(self.domain), types, declared, state, goal
        )

    cdef object section(self, str keyword):
        """Read the rest of a section; return what it says of facts."""
        if keyword == ":domain":
            self.expect_word(self.domain.name.encode())
            self.expect(CLOSE)
        elif keyword == ":objects" and not self.objects_known:
            self.read_objects()
        elif keyword == ":init":
            self.read_facts(with_values=True)
            return self.relations()
        elif keyword == ":goal":
            self.expect(OPEN)
            self.expect(NAME)
            if self.scanner.spells(view(b"and")):
                self.read_facts(with_values=False)
            else:
                self.read_fact()
            self.expect(CLOSE)
            return self.relations()
        elif keyword in IGNORED:
            self.skip_group()
        else:
            raise NotPlain
        return None

    cdef int read_objects(self) except -1:
        """Read names and their types up to the section's end."""
        cdef int32_t kind
        cdef size_t untyped = 0
        while True:
            self.next()
            if self.token == NAME:
                self.given.add(self.scanner.word, self.scanner.length)
                untyped += 1
                continue
            kind = 0  # the root type's number
            if self.token == WORD and untyped and self.scanner.spells(view(b"-")):
                self.expect(NAME)
                kind = self.types.find(self.scanner.word, self.scanner.length, self.scanner.hash)
            elif self.token != CLOSE:
                raise NotPlain
            if kind < 0:
                raise NotPlain
            self.given_kinds.insert(self.given_kinds.end(), untyped, kind)
            untyped = 0
            if self.token == CLOSE:
                return 0

    cdef int sort_objects(self) except -1:
        """Number the objects, and the domain's constants, by their names; a constant may be declared again."""
        cdef size_t own = self.given.size()
        type_names = types_of(self.domain)
        for constant, kind in self.domain.constants.items():
            name = constant.encode()
            self.given.add(<const char*>name, len(name))
            self.given_kinds.push_back(type_names.index(kind))
        cdef vector[int32_t] order = self.given.alphabetical()
        cdef vector[int32_t] numbers = vector[int32_t](order.size(), -1)
        cdef string text
        cdef int32_t place, last = -1
        cdef string_view word
        for place in order:
            word = self.given.name(place)
            if last >= 0 and self.given.name(last) == word:
                if (<size_t>place < own) == (<size_t>last < own) or self.given_kinds[place] != self.given_kinds[last]:
                    raise NotPlain
                numbers[min(place, last)] = -1  # constants come last
            else:
                numbers[place] = self.kinds.size()
                self.kinds.push_back(self.given_kinds[place])
                text.append(word.data(), word.size())
                text.push_back(c"\n")
            last = place
        for place in range(<int32_t>own):
            if numbers[place] >= 0:
                self.declared.push_back(numbers[place])
        self.name_text = text
        self.objects.build(view(self.name_text))
        self.given = NameList()
        self.objects_known = True
        return 0

    cdef int read_facts(self, bint with_values) except -1:
        """Read facts, and perhaps numeric values, which do not matter, up to the end of the group."""
        while self.next() == OPEN:
            self.next()
            if self.token == NAME:
                self.read_fact()
            elif with_values:
                self.skip_value()
            else:
                raise NotPlain
        if self.token != CLOSE:
            raise NotPlain
        return 0

    cdef int read_fact(self) except -1:
        """Read the rest of a fact, whose predicate was the last word."""
        if not self.objects_known:
            self.sort_objects()
        cdef int32_t predicate = self.predicates.find(self.scanner.word, self.scanner.length, self.scanner.hash)
        if predicate < 0:
            raise NotPlain
        cdef int32_t parameter = self.first_parameters[predicate], term
        for parameter in range(parameter, parameter + self.arities[predicate]):
            self.expect(NAME)
            term = self.objects.find(
                self.scanner.word, self.scanner.length, self.scanner.hash, self.latest[parameter]
            )
            if term < 0 or (self.fits[parameter].size() and not self.fits[parameter][self.kinds[term]]):
                raise NotPlain
            self.latest[parameter] = term
            self.terms[predicate].push_back(term)
        self.expect(CLOSE)
        self.seen[predicate] = True
        return 0

    cdef int skip_value(self) except -1:
        """Pass over the rest of a value such as `(= (f a) 5)`."""
        if self.token != WORD or not self.scanner.spells(view(b"=")):
            raise NotPlain
        self.expect(OPEN)
        self.expect(NAME)
        while self.next() == NAME:
            pass
        if self.token != CLOSE or self.next() not in (NAME, WORD) or not is_number(self.word()):
            raise NotPlain
        self.expect(CLOSE)
        return 0

    cdef int skip_group(self) except -1:
        """Pass over whatever stands up to the end of the group."""
        cdef int depth = 1
        while depth:
            self.next()
            depth += (self.token == OPEN) - (self.token == CLOSE)
            if self.token == END or depth > DEEPEST:
                raise NotPlain
        return 0

    cdef object relations(self):
        """Return the facts that were read, and forget them."""
        relations = {}
        cdef size_t number
        for number, predicate in enumerate(self.domain.predicates.values()):
            if predicate.arity:
                sort_rows(self.terms[number], predicate.arity)
            terms = array(NUMBER, memory(self.terms[number]))
            relations[predicate.name] = Rows(len(terms) // predicate.arity if predicate.arity else self.seen[number], terms)
            self.terms[number] = vector[int32_t]()
            self.seen[number] = False
        return relations

    cdef Token next(self) except STRANGE:
        self.token = self.scanner.next()
        if self.token == STRANGE:
            raise NotPlain
        return self.token

    cdef int expect(self, Token token) except -1:
        if self.next() != token:
            raise NotPlain
        return 0

    cdef int expect_word(self, bytes word) except -1:
        self.expect(NAME)
        if not self.scanner.spells(view(word)):
            raise NotPlain
        return 0

    cdef str word(self):
        return self.scanner.word[:self.scanner.length].decode("ascii").lower()


# Plans

NO_END = (-1, "")
cdef int BLOCK = 50_000  # steps written at a time


cdef class Lines:
    """The lines of some actions as blocks of bytes; some lines have further ends."""

    cdef bytes text
    cdef NameText names
    cdef vector[string] heads
    cdef vector[int32_t] arities
    cdef const int32_t[::1] schemas, arguments
    cdef Py_ssize_t step, argument
    cdef object ends  # steps and what their lines end with
    cdef object end  # the next one
    cdef Py_ssize_t end_step

    def __init__(self, actions, ends):
        self.text = actions.names.text
        self.names.split(view(self.text))
        for schema in actions.domain.schemas.values():
            self.heads.push_back(f"({schema.name}".encode())
            self.arities.push_back(len(schema.parameters))
        self.schemas, self.arguments = actions.schemas, actions.arguments
        self.step = self.argument = 0
        self.ends = iter(sorted(ends.items()))
        self.end_step, self.end = next(self.ends, NO_END)

    def __iter__(self):
        return self

    def __next__(self):
        cdef Py_ssize_t step, end = min(self.step + BLOCK, self.schemas.shape[0])
        if self.step == end:
            raise StopIteration
        cdef string lines
        cdef int32_t schema
        cdef string_view name
        for step in range(self.step, end):
            schema = self.schemas[step]
            lines.append(self.heads[schema])
            for _ in range(self.arities[schema]):
                name = self.names.name(self.arguments[self.argument])
                lines.push_back(c" ")
                lines.append(name.data(), name.size())
                self.argument += 1
            lines.push_back(c")")
            if step == self.end_step:
                lines.append(<string>self.end.encode())
                self.end_step, self.end = next(self.ends, NO_END)
            lines.push_back(c"\n")
        self.step = end
        return <bytes>lines
