# cython: boundscheck=False, wraparound=False
"""Reads plainly written problems of any size straight into integers.

Plain are ASCII texts whose objects come before facts and goals, whose first state is a list of facts and of numeric
values, and whose goal is one fact or an `and` of some. Everything else, right or wrong, is left to the ordinary reader.
"""

from array import array

from cython.operator cimport dereference as deref
from libc.stdint cimport int32_t
from libcpp.algorithm cimport sort
from libcpp.pair cimport pair
from libcpp.string cimport string
from libcpp.unordered_map cimport unordered_map
from libcpp.vector cimport vector

from bilevel.symbolic.expressions import is_number
from bilevel.symbolic.packed import NUMBER, Names, PackedProblem, Rows, types_of

cdef extern from "reading.hpp" namespace "bilevel" nogil:
    cdef enum Token:
        END, OPEN, CLOSE, NAME, WORD, STRANGE

    cdef cppclass Scanner:
        string word
        Scanner()
        Scanner(const char*, size_t)
        Token next()

    void sort_rows(vector[int32_t]&, size_t) except +


ctypedef unordered_map[string, int32_t] Numbers  # of names


cdef inline int32_t number_of(Numbers& numbers, const string& name):
    """The number of a name; -1 if it has none."""
    place = numbers.find(name)
    return -1 if place == numbers.end() else deref(place).second


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
    cdef bytes text
    cdef Numbers predicates, types, objects
    cdef vector[int32_t] arities, first_parameters  # of each predicate
    cdef vector[vector[char]] fits  # of each parameter of each predicate: for each type, whether it fits; or empty: all
    cdef vector[vector[int32_t]] terms  # of each predicate's facts
    cdef vector[char] seen  # of each predicate, whether there is a fact
    cdef vector[pair[string, int32_t]] given  # objects, each with its place as they come
    cdef vector[int32_t] given_kinds  # and the numbers of their types
    cdef string names  # of the objects in alphabetical order, a newline after each
    cdef vector[int32_t] kinds, declared
    cdef bint objects_known
    cdef Token token  # the last one

    def __init__(self, bytes text, domain):
        self.text = text
        self.scanner = Scanner(<const char*>text, len(text))
        self.domain = domain
        self.objects_known = False
        type_names = types_of(domain)
        for number, kind in enumerate(type_names):
            self.types[kind.encode()] = number
        for number, predicate in enumerate(domain.predicates.values()):
            self.predicates[predicate.name.encode()] = number
            self.arities.push_back(predicate.arity)
            self.first_parameters.push_back(self.fits.size())
            for parameter in predicate.parameters:
                allowed = [domain.is_subtype(kind, parameter.type) for kind in type_names]
                self.fits.push_back([] if all(allowed) else allowed)
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
            name, self.domain.name, Names(self.names), types_of(self.domain), types, declared, state, goal
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
            if self.scanner.word == <string>b"and":
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
                self.given.push_back(pair[string, int32_t](self.scanner.word, <int32_t>self.given.size()))
                untyped += 1
                continue
            kind = 0  # the root type's number
            if self.token == WORD and untyped and self.scanner.word == <string>b"-":
                self.expect(NAME)
                kind = number_of(self.types, self.scanner.word)
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
        cdef int32_t own = self.given.size()
        type_names = types_of(self.domain)
        for constant, kind in self.domain.constants.items():
            self.given.push_back(pair[string, int32_t](constant.encode(), <int32_t>self.given.size()))
            self.given_kinds.push_back(type_names.index(kind))
        sort(self.given.begin(), self.given.end())
        self.objects.reserve(self.given.size())
        cdef vector[int32_t] numbers = vector[int32_t](own, -1)
        cdef size_t at
        cdef int32_t place, last
        for at in range(self.given.size()):
            place = self.given[at].second
            if at and self.given[at].first == self.given[at - 1].first:
                last = self.given[at - 1].second
                if place < own or last >= own or self.given_kinds[place] != self.given_kinds[last]:
                    raise NotPlain
                numbers[last] = -1
                continue
            if place < own:
                numbers[place] = self.kinds.size()
            self.objects[self.given[at].first] = self.kinds.size()
            self.kinds.push_back(self.given_kinds[place])
            self.names.append(self.given[at].first)
            self.names.push_back(c"\n")
        for place in numbers:
            if place >= 0:
                self.declared.push_back(place)
        self.given = vector[pair[string, int32_t]]()
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
        cdef int32_t predicate = number_of(self.predicates, self.scanner.word)
        if predicate < 0:
            raise NotPlain
        cdef int32_t parameter = self.first_parameters[predicate], term
        for parameter in range(parameter, parameter + self.arities[predicate]):
            self.expect(NAME)
            term = number_of(self.objects, self.scanner.word)
            if term < 0 or (self.fits[parameter].size() and not self.fits[parameter][self.kinds[term]]):
                raise NotPlain
            self.terms[predicate].push_back(term)
        self.expect(CLOSE)
        self.seen[predicate] = True
        return 0

    cdef int skip_value(self) except -1:
        """Pass over the rest of a value such as `(= (f a) 5)`."""
        if self.token != WORD or self.scanner.word != <string>b"=":
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
        if self.scanner.word != <string>word:
            raise NotPlain
        return 0

    cdef str word(self):
        return (<bytes>self.scanner.word).decode("ascii")
