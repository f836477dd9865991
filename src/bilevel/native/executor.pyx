# cython: boundscheck=False, wraparound=False
"""The compiled executor: it is handed plans as integers (see `lowering`) and follows them, as the one in Python does."""

from libc.stdint cimport int64_t
from libc.string cimport memcpy
from libcpp cimport bool
from libcpp.pair cimport pair
from libcpp.string cimport string
from libcpp.vector cimport vector

from array import array


cdef extern from "executor.hpp" namespace "bilevel" nogil:
    cdef cppclass Order:
        void start(int)
        int add(string, int) except +

    cdef cppclass Plan:
        vector[int] numbers

    cdef cppclass CppExecutor "bilevel::Executor":
        Order order
        bool commits
        int64_t most_work
        vector[pair[int, vector[int]]] came, went
        int chosen
        vector[int] found, arguments, done, done_arguments
        vector[vector[int]] instances
        int add_relation(int, bool, int) except +
        void load(int, const int*, size_t) except +
        void watch(int)
        int add_view(Plan) except +
        int add_operation(Plan) except +
        void add_rule(Plan) except +
        void plan_rule(int, bool, Plan) except +
        int64_t open_goals()
        bool has(int, const int*)
        int choose() except +
        int every(int) except +
        void set(int, const int*, bool) except +
        void apply(int, vector[int]) except +
        int run(size_t) except +


cdef object listed(vector[int]& values):
    made = array("i", bytes(values.size() * sizeof(int)))
    cdef int[::1] view
    if values.size():
        view = made
        memcpy(&view[0], values.data(), values.size() * sizeof(int))
    return made


cdef int flatten(data, vector[int]& numbers) except -1:
    """Append the numbers of a plan: lists begin with their length, tuples do not."""
    if isinstance(data, (list, tuple)):
        if isinstance(data, list):
            numbers.push_back(len(data))
        for part in data:
            flatten(part, numbers)
    else:
        numbers.push_back(data)
    return 0


cdef Plan planned(data) except *:
    cdef Plan plan
    flatten(data, plan.numbers)
    return plan


cdef class Executor:
    """Relations, views and rules by number; an object's number is its place in the order of names."""

    cdef CppExecutor it

    def __init__(self, int objects, bool commits, int64_t most_work):
        self.it.order.start(objects)
        self.it.commits = commits
        self.it.most_work = most_work

    # Building

    def add_relation(self, int arity, bool is_goal=False, int facts=-1):
        return self.it.add_relation(arity, is_goal, facts)

    def load(self, int relation, int[::1] terms, size_t count):
        cdef int nothing = 0
        self.it.load(relation, &terms[0] if terms.shape[0] else &nothing, count)

    def watch(self, int relation):
        self.it.watch(relation)

    def add_object(self, name, int after):
        """Add an object whose name comes after so many of those that were there at the start."""
        return self.it.order.add(name.encode(), after)

    def add_view(self, *plan):
        return self.it.add_view(planned(plan))

    def add_operation(self, *plan):
        return self.it.add_operation(planned(plan))

    def add_rule(self, *plan):
        self.it.add_rule(planned(plan))

    def plan_rule(self, int number, bool serving, *plan):
        self.it.plan_rule(number, serving, planned(plan))

    # Asking and acting

    def choose(self):
        return self.it.choose()

    def every(self, int rule):
        return self.it.every(rule)

    def open_goals(self):
        return self.it.open_goals()

    def has(self, int relation, vector[int] terms):
        return self.it.has(relation, terms.data())

    def set(self, int number, vector[int] terms, bool present):
        self.it.set(number, terms.data(), present)

    def apply(self, int operation, vector[int] arguments):
        self.it.apply(operation, arguments)

    def run(self, size_t bound):
        cdef int status
        with nogil:
            status = self.it.run(bound)
        return status

    def take_changes(self):
        changes = self.it.came, self.it.went
        self.it.came.clear()
        self.it.went.clear()
        return changes

    @property
    def chosen(self):
        return self.it.chosen

    @property
    def found(self):
        return self.it.found

    @property
    def arguments(self):
        return self.it.arguments

    @property
    def instances(self):
        return self.it.instances

    @property
    def steps(self):
        return self.it.done.size()

    def actions(self, vector[int] schemas):
        """Return the schema of each action done, given those of the rules, and the arguments of one after another."""
        cdef vector[int] done = self.it.done
        cdef size_t step
        for step in range(done.size()):
            done[step] = schemas[done[step]]
        return listed(done), listed(self.it.done_arguments)
