# cython: boundscheck=False, wraparound=False
"""The compiled executor: it follows the same plans as the one in Python, with the same face.

It has numbers for objects, their places in the order of names; those that come later are numbered on.
"""

from bisect import bisect
from libc.stdint cimport int64_t
from libcpp cimport bool
from libcpp.pair cimport pair
from libcpp.string cimport string
from libcpp.vector cimport vector

from array import array

from bilevel.symbolic.domain import Atom
from bilevel.symbolic.packed import PackedActions, Names, Rows


cdef extern from "executor.hpp" namespace "bilevel" nogil:
    cdef cppclass Order:
        void start(int)
        int add(string, int) except +

    cdef cppclass Plan:
        vector[int] numbers

    cdef cppclass CppExecutor "bilevel::Executor":
        Order order
        bool commits
        int64_t most_work, open_goals
        vector[pair[int, vector[int]]] came, went
        int unplanned, chosen
        vector[int] found, arguments, done, done_arguments
        vector[vector[int]] instances
        int add_relation(int, const int*, size_t, int) except +
        int add_view(Plan) except +
        void add_rule(int, Plan) except +
        void plan_rule(int, Plan) except +
        bool has(int, const int*)
        int choose() except +
        int every(int) except +
        bool set(int, const int*, bool) except +
        void note() except +
        int run(size_t, bool) except +
        vector[int] served()


cdef object listed(vector[int]& values):
    return array("i", (<const char*>values.data())[:values.size() * sizeof(int)])


cdef class Executor:
    cdef CppExecutor it
    cdef int size  # how many objects there are at first
    cdef object at_first  # their names
    cdef list names  # those of all objects by number, once they are asked for
    cdef dict numbers  # and the numbers of all names
    cdef dict relations  # the numbers of relations, in this order

    def __init__(self, bool commits, int64_t most_work, names):
        self.it.commits = commits
        self.it.most_work = most_work
        self.at_first, self.size = names, names.text.count(b"\n")
        self.it.order.start(self.size)
        self.relations = {"!=": -1}

    # Objects

    cdef int number_all(self) except -1:
        if self.names is None:
            self.names = list(self.at_first.listed)
            self.numbers = {name: number for number, name in enumerate(self.names)}
        return 0

    cdef int number(self, name) except -1:
        """Return the number of an object, a new one if it is new."""
        self.number_all()
        if name not in self.numbers:
            self.numbers[name] = self.it.order.add(name.encode(), bisect(self.names, name, 0, self.size))
            self.names.append(name)
        return self.numbers[name]

    cdef int constant(self, name) except -1:
        """Return the number of an object that rules name, if possible without a table of all."""
        number = self.at_first.number(name) if self.names is None else None
        return self.number(name) if number is None else number

    cdef int number_row(self, names, vector[int]& row) except -1:
        row.clear()
        for name in names:
            row.push_back(self.number(name))
        return 0

    cdef tuple named(self, vector[int]& row):
        self.number_all()
        return tuple([self.names[number] for number in row])

    # Plans

    cdef int flatten(self, data, vector[int]& numbers) except -1:
        """Append a plan as numbers: lists begin with their length, tuples do not; constants are negative."""
        if type(data) is str:
            numbers.push_back(-1 - self.constant(data))
        elif isinstance(data, str):
            numbers.push_back(self.relations[data])
        elif isinstance(data, (list, tuple)):
            if isinstance(data, list):
                numbers.push_back(len(data))
            for part in data:
                self.flatten(part, numbers)
        else:
            numbers.push_back(data)
        return 0

    cdef Plan planned(self, data) except *:
        cdef Plan plan
        self.flatten(data, plan.numbers)
        return plan

    # Building

    def add_relation(self, name, int arity, rows):
        cdef vector[int] terms
        cdef int nothing = 0, facts = self.relations[name[5:]] if name.startswith("goal ") else -1
        cdef int[::1] packed
        cdef const int* at
        cdef size_t count
        if isinstance(rows, Rows):
            packed, count = rows.terms, rows.size
            at = &packed[0] if packed.shape[0] else &nothing
        else:
            count = len(rows)
            for each in rows:
                for term in each:
                    terms.push_back(self.number(term))
            at = terms.data()
        self.relations[name] = self.it.add_relation(arity, at, count, facts)

    def add_rule(self, int place, *plan):
        self.it.add_rule(place, self.planned(plan))

    def plan_rule(self, int number, views, *plan):
        for name, *view in views:
            if name not in self.relations:
                self.relations[name] = self.it.add_view(self.planned(tuple(view)))
        self.it.plan_rule(number, self.planned(plan))

    # Asking and acting

    def choose(self):
        return self.it.choose()

    def every(self, int rule):
        return self.it.every(rule)

    def has(self, fact):
        cdef vector[int] row
        self.number_row(fact[1], row)
        return self.it.has(self.relations[fact[0]], row.data())

    def set(self, came, went):
        return self.change(came, True), self.change(went, False)

    cdef list change(self, facts, bool present):
        cdef vector[int] row
        changed = []
        for fact in facts:
            relation = self.relations.get(fact[0])
            if relation is not None:
                self.number_row(fact[1], row)
                if self.it.set(relation, row.data(), present):
                    changed.append(fact)
        return changed

    def apply(self, came, went):
        self.it.note()
        return self.set(came, went)

    def run(self, size_t bound, bool stops):
        cdef int status
        with nogil:
            status = self.it.run(bound, stops)
        return status

    @property
    def changes(self):
        return self.facts(self.it.came), self.facts(self.it.went)

    cdef list facts(self, vector[pair[int, vector[int]]]& rows):
        names = [*self.relations]
        return [Atom(names[1 + relation], self.named(row)) for relation, row in rows]

    @property
    def open_goals(self):
        return self.it.open_goals

    @property
    def served(self):
        return self.it.served()

    @property
    def unplanned(self):
        return self.it.unplanned

    @property
    def chosen(self):
        return self.it.chosen

    @property
    def found(self):
        return self.named(self.it.found)

    @property
    def arguments(self):
        return self.named(self.it.arguments)

    @property
    def instances(self):
        return [self.named(row) for row in self.it.instances]

    @property
    def steps(self):
        return self.it.done.size()

    def actions(self, domain, schemas):
        """Return the actions done, given the schemas of the rules at each place."""
        numbers = {name: number for number, name in enumerate(domain.schemas)}
        cdef vector[int] done = self.it.done, of_place = [numbers[name] for name in schemas]
        cdef size_t step
        for step in range(done.size()):
            done[step] = of_place[done[step]]
        names = self.at_first if self.names is None else Names.of(self.names)
        return PackedActions(domain, names, listed(done), listed(self.it.done_arguments))
