"""What the binding uses of the C++ headers."""

from libc.stdint cimport int64_t
from libcpp cimport bool
from libcpp.string cimport string
from libcpp.vector cimport vector


cdef extern from "numbering.hpp" namespace "bilevel" nogil:
    cdef cppclass Addresses:
        void reserve(size_t)
        void put(const void*, int)
        int find(const void*)

    void sort_rows(vector[int]&, size_t)


cdef extern from "executor.hpp" namespace "bilevel" nogil:
    cdef cppclass Order:
        void start(int)
        int add(string, int) except +

    cdef cppclass Relation:
        int index(vector[int]) except +
        bool has(const int*)
        size_t size()

    cdef cppclass Source:
        Relation relation
        Source* closure

    cdef cppclass Place:
        int column, slot

    cdef enum Kind "bilevel::Step::Kind":
        LIST "bilevel::Step::LIST"
        UNEQUAL "bilevel::Step::UNEQUAL"

    cdef cppclass Step:
        Kind kind
        Relation* relation
        int index
        vector[int] slots
        vector[Place] binds, same

    cdef cppclass Join:
        vector[int] values
        vector[Step] steps

    cdef cppclass View:
        Source source
        Join building
        vector[int] key_slots
        int value_slot

    cdef cppclass Change:
        Join join
        vector[Place] binds, same

    cdef cppclass Predicate:
        Source* state
        Source* goal

    cdef cppclass Effect:
        Predicate predicate
        vector[int] terms

    cdef cppclass Operation:
        vector[Effect] adds, deletes

    cdef cppclass Read:
        View* view
        vector[int] key
        int slot
        bool compares
        vector[Step] filters

    cdef cppclass Reading:
        vector[Step] filters
        vector[Read] reads
        vector[int] outputs

    cdef cppclass Serving:
        vector[Place] binds, same
        vector[Step] guards
        Join join
        Reading rest

    cdef cppclass Rule:
        bool is_planned
        vector[Source*] needs
        Join ground, guards
        Reading reading
        vector[View*] views
        vector[Source*] served
        vector[Serving] servings
        vector[int] goal, arguments
        int operation
        bool is_awake

    cdef cppclass CppExecutor "bilevel::Executor":
        Order order
        vector[Source*] sources, goals
        vector[View*] views
        vector[Operation] operations
        bool goals_end_it, commits
        int chosen
        vector[int] found, arguments, done_arguments
        vector[int] done
        int64_t marked_step, last_chance, rest_after
        Source* add_relation(int, bool) except +
        View* add_view(int) except +
        Change* add_change(View*, Source*, bool) except +
        Rule* add_rule() except +
        Rule* rule(size_t) except +
        size_t rule_count()
        void load(Source*, const int*, size_t) except +
        void mark_achieved(Source*, const int*, size_t) except +
        void close(Source&) except +
        vector[int] terms(Source&) except +
        void wake(Rule&) except +
        void set(Predicate, const int*, bool) except +
        int64_t open_goals() except +
        int choose(size_t) except +
        int serve(Source*, vector[int]) except +
        int run(size_t) except +
        void apply(Operation, vector[int]) except +
        int note_done() except +
        void watch() except +
