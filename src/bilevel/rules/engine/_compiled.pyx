# cython: boundscheck=False, wraparound=False
"""The compiled executor: it is handed plans as integers (see `lowering`) and follows them."""

from cpython.dict cimport PyDict_GetItem
from cpython.ref cimport PyObject
from cpython.tuple cimport PyTuple_GET_ITEM
from libc.stdint cimport int64_t
from libc.string cimport memcpy
from libcpp cimport bool
from libcpp.vector cimport vector

from array import array

from bilevel.rules.engine.executor cimport (
    Addresses,
    Change,
    CppExecutor,
    Effect,
    Join,
    Kind,
    LIST,
    Operation,
    Place,
    Predicate,
    Read,
    Reading,
    Rule,
    Serving,
    Source,
    Step,
    View,
    sort_rows,
)


cdef vector[Place] places(pairs):
    cdef vector[Place] made
    cdef Place place
    for place.column, place.slot in pairs:
        made.push_back(place)
    return made


cdef object listed(vector[int]& values):
    made = array("i", bytes(values.size() * sizeof(int)))
    cdef int[::1] view
    if values.size():
        view = made
        memcpy(&view[0], values.data(), values.size() * sizeof(int))
    return made


cdef class Numbers:
    """The places of names in a list."""

    cdef Addresses addresses
    cdef list names
    cdef dict by_name

    def __init__(self, list names):
        cdef int number
        self.names = names
        self.addresses.reserve(len(names))
        for number in range(len(names)):
            self.addresses.put(<void*>names[number], number)

    cdef int find(self, name) except -1:
        cdef int number = self.addresses.find(<void*>name)
        if number < 0:  # an equal name that is another object
            if self.by_name is None:
                self.by_name = {name: number for number, name in enumerate(self.names)}
            number = self.by_name[name]
        return number

    def rows(self, facts, predicates):
        """Return for each predicate how many facts it has and their terms, one after another."""
        cdef dict places = {name: place for place, name in enumerate(predicates)}
        cdef vector[vector[int]] terms_of = vector[vector[int]](len(places))
        cdef vector[int] counts = vector[int](len(places))
        cdef PyObject* found
        cdef tuple terms
        cdef size_t place
        for atom in facts:
            found = PyDict_GetItem(places, <object>PyTuple_GET_ITEM(atom, 0))
            if found != NULL:
                place = <object>found
                counts[place] += 1
                terms = <tuple>PyTuple_GET_ITEM(atom, 1)
                for term in terms:
                    terms_of[place].push_back(self.find(term))
        for place in range(counts.size()):
            sort_rows(terms_of[place], counts[place])
        return {name: (counts[place], listed(terms_of[place])) for name, place in places.items()}


def objects_of(int[::1] types, vector[char] wanted):
    """Return the objects whose types are wanted, as an array."""
    cdef vector[int] found
    cdef int number
    for number in range(types.shape[0]):
        if wanted[types[number]]:
            found.push_back(number)
    return listed(found)


cdef class Executor:
    """Relations, views and rules by number; an object's number is its place in the order of names."""

    cdef CppExecutor it

    def __init__(self, int objects, bool commits):
        self.it.order.start(objects)
        self.it.commits = commits

    # Building

    def add_relation(self, int arity, *, bool is_goal=False):
        cdef Source* source = self.it.add_relation(arity, is_goal)
        if is_goal:
            self.it.goals.push_back(source)
        return self.it.sources.size() - 1

    def load(self, int relation, int[::1] terms, size_t count):
        """Add rows, the terms of one after another."""
        cdef int nothing = 0
        self.it.load(self.it.sources[relation], &terms[0] if terms.shape[0] else &nothing, count)

    def mark_achieved(self, int goal, int[::1] terms, size_t count):
        """Take out the goals that are among these facts; they stay known."""
        cdef int nothing = 0
        self.it.mark_achieved(self.it.sources[goal], &terms[0] if terms.shape[0] else &nothing, count)

    def close(self, int relation, int closure):
        """Let one relation be the transitive closure of another."""
        self.it.sources[relation].closure = self.it.sources[closure]
        self.it.close(self.it.sources[relation][0])

    def rows(self, int relation):
        """Return all rows, the terms of one after another, as an array."""
        cdef vector[int] terms = self.it.terms(self.it.sources[relation][0])
        return listed(terms)

    def add_object(self, name, int after):
        """Add an object whose name comes after so many of those that were there at the start."""
        return self.it.order.add(name.encode(), after)

    cdef Step _step(self, data) except *:
        cdef Step step
        kind, relation, columns, step.slots, binds, same = data
        step.kind = <Kind><int>kind
        step.index = -1
        step.relation = NULL
        if relation >= 0:
            step.relation = &self.it.sources[<int>relation].relation
        if step.kind == LIST and columns:
            step.index = step.relation.index(columns)
        step.binds, step.same = places(binds), places(same)
        return step

    cdef vector[Step] _steps(self, listed) except *:
        cdef vector[Step] steps
        for data in listed:
            steps.push_back(self._step(data))
        return steps

    cdef Join _join(self, values, steps) except *:
        cdef Join join
        join.values, join.steps = values, self._steps(steps)
        return join

    cdef Reading _reading(self, data) except *:
        cdef Reading reading
        cdef Read read
        filters, reads, reading.outputs = data
        reading.filters = self._steps(filters)
        for view, read.key, read.slot, read.compares, filters in reads:
            read.view = self.it.views[<int>view]
            read.filters = self._steps(filters)
            reading.reads.push_back(read)
        return reading

    def add_view(self, values, steps, key_slots, int value_slot, changes):
        """Add a view, and how it changes with the relations it is made of; return the number of its keys."""
        cdef View* view = self.it.add_view(len(key_slots))
        cdef Change* change
        view.building = self._join(values, steps)
        view.key_slots, view.value_slot = key_slots, value_slot
        for relation, present, values, steps, binds, same in changes:
            change = self.it.add_change(view, self.it.sources[<int>relation], present)
            change.join = self._join(values, steps)
            change.binds, change.same = places(binds), places(same)
        return self.it.sources.size() - 1

    cdef Predicate _predicate(self, int state, int goal):
        cdef Predicate predicate
        predicate.state = self.it.sources[state] if state >= 0 else NULL
        predicate.goal = self.it.sources[goal] if goal >= 0 else NULL
        return predicate

    def add_operation(self, adds, deletes):
        cdef Operation operation
        cdef Effect effect
        for state, goal, effect.terms in adds:
            effect.predicate = self._predicate(state, goal)
            operation.adds.push_back(effect)
        for state, goal, effect.terms in deletes:
            effect.predicate = self._predicate(state, goal)
            operation.deletes.push_back(effect)
        self.it.operations.push_back(operation)
        return self.it.operations.size() - 1

    def add_rule(self, needs, ground_values, ground_steps, served, goal, arguments, int operation):
        cdef Rule* rule = self.it.add_rule()
        for relation in needs:
            rule.needs.push_back(self.it.sources[<int>relation])
        rule.ground = self._join(ground_values, ground_steps)
        for relation in served:
            rule.served.push_back(self.it.sources[<int>relation])
        rule.goal, rule.arguments, rule.operation = goal, arguments, operation
        if not served:
            self.it.goals_end_it = False

    def plan_rule(self, size_t number, views, values, guards, reading):
        cdef Rule* rule = self.it.rule(number)
        for view in views:
            rule.views.push_back(self.it.views[<int>view])
        rule.guards = self._join(values, guards)
        rule.reading = self._reading(reading)
        rule.is_planned = True
        self.it.wake(rule[0])

    def plan_serving(self, size_t number, servings):
        cdef Serving serving
        for binds, same, guards, values, steps, rest in servings:
            serving.binds, serving.same = places(binds), places(same)
            serving.guards = self._steps(guards)
            serving.join = self._join(values, steps)
            serving.rest = self._reading(rest)
            self.it.rule(number).servings.push_back(serving)

    def rest_after(self, int64_t changes):
        """Look after so many changes of facts which views nobody needs any more; 0 lets go of all, at every choice."""
        self.it.rest_after = changes

    @property
    def awake(self):
        """How many rules' views are kept up to date."""
        cdef size_t number
        return sum(self.it.rule(number).is_awake for number in range(self.it.rule_count()))

    # Asking and acting

    @property
    def chosen(self):
        return self.it.chosen

    @property
    def found(self):
        return tuple(self.it.found)

    @property
    def arguments(self):
        return tuple(self.it.arguments)

    def choose(self, size_t start=0):
        return self.it.choose(start)

    def serve(self, int goal, terms):
        return self.it.serve(self.it.sources[goal], terms)

    def open_goals(self):
        return self.it.open_goals()

    def set(self, int state, int goal, vector[int] terms, bool present):
        self.it.set(self._predicate(state, goal), terms.data(), present)

    def has(self, int relation, vector[int] terms):
        return self.it.sources[relation].relation.has(terms.data())

    def apply(self, int operation, vector[int] arguments):
        self.it.apply(self.it.operations[operation], arguments)

    def run(self, size_t bound):
        cdef int status
        with nogil:
            status = self.it.run(bound)
        return status

    def note_done(self, int64_t last_chance):
        """Note that the chosen action was done, and with which step nature last had to do; return a status."""
        self.it.last_chance = last_chance
        return self.it.note_done()

    def follow_chance(self, int operation, vector[int] chosen, list types):
        """Do the chosen action with nature's choices, which become known as objects of types; return a status."""
        cdef Predicate predicate
        cdef size_t place
        self.it.arguments.insert(self.it.arguments.end(), chosen.begin(), chosen.end())
        for place in range(chosen.size()):
            for relation in types[place]:
                predicate = self._predicate(relation, -1)
                self.it.set(predicate, &chosen[place], True)
        self.it.apply(self.it.operations[operation], self.it.arguments)
        self.it.arguments.resize(self.it.arguments.size() - chosen.size())
        self.it.last_chance = self.it.done.size()
        return self.it.note_done()

    def watch(self):
        self.it.watch()

    @property
    def marked_step(self):
        return self.it.marked_step

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
