# cython: boundscheck=False, wraparound=False
"""Writes, reads and carries out plans of millions of steps as integers.

What is read are plans that say nothing of nature, an action a line; what is carried out is what can be. Everything else
is left to the ordinary functions, which know what is wrong.
"""

from libc.stdint cimport int32_t
from libcpp.string cimport string
from libcpp.vector cimport vector

from array import array

from bilevel.symbolic.domain import EQUALITY
from bilevel.symbolic.packed import NUMBER, types_of
from bilevel.symbolic.packed_plans import PackedActions
from bilevel.symbolic.tables cimport (
    CLOSE,
    END,
    NAME,
    OPEN,
    Literal,
    NameTable,
    NameText,
    Operator,
    Scanner,
    Token,
    World,
    lines,
    memory,
    string_view,
    view,
)

LARGEST = 2**31 - 1  # bytes of a text
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


def packed_actions(bytes data not None, domain, names):
    """Return the actions of a plan file over objects of these names, or `None` where there is anything else in it."""
    if len(data) > LARGEST:
        return None
    schema_names = lines(domain.schemas)
    parameters = [len(known.parameters) for known in domain.schemas.values()]
    cdef vector[int32_t] arities = parameters
    cdef vector[int32_t] latest = [-1] * max(parameters, default=0)  # terms at each place
    cdef NameTable schemas, objects
    schemas.build(view(schema_names))
    objects.build(view(names.text))
    cdef Scanner scanner = Scanner(<const char*>data, len(data))
    cdef vector[int32_t] steps, arguments
    cdef int32_t schema, place
    cdef size_t line
    cdef Token token = scanner.next()
    while token == OPEN:
        line = scanner.line
        schema = schemas.find(scanner.word, scanner.length, scanner.hash) if scanner.next() == NAME else -1
        if schema < 0:
            return None
        for place in range(arities[schema]):
            if scanner.next() != NAME:
                return None
            latest[place] = objects.find(scanner.word, scanner.length, scanner.hash, latest[place])
            if latest[place] < 0:
                return None
            arguments.push_back(latest[place])
        steps.push_back(schema)
        if scanner.next() != CLOSE or scanner.line != line:
            return None
        token = scanner.next()
        if scanner.follows_comment or (token != END and scanner.line == line):
            return None
    if token != END:
        return None
    return PackedActions(domain, names, array(NUMBER, memory(steps)), array(NUMBER, memory(arguments)))


def reaches_goal(problem, actions):
    """Return whether the actions, none of which is up to nature, can be carried out in turn and achieve the goal."""
    domain = actions.domain
    cdef World world
    cdef vector[Operator] operators
    cdef vector[vector[vector[char]]] fits  # of each parameter of each schema: for each type, whether it fits
    type_names = types_of(domain)
    for predicate in domain.predicates.values():
        world.declare(predicate.arity)
    for number, rows in enumerate(problem.state.values()):
        _add(world, number, rows)
    for schema in domain.schemas.values():
        operators.push_back(_operator(schema, list(domain.predicates), problem.names))
        fits.push_back([[domain.is_subtype(kind, p.type) for kind in type_names] for p in schema.parameters])
    return _carried_out(world, operators, fits, problem.types, actions.schemas, actions.arguments) and all(
        [_hold(world, number, rows) for number, rows in enumerate(problem.goal.values())]
    )


cdef bint _carried_out(
    World& world,
    const vector[Operator]& operators,
    const vector[vector[vector[char]]]& fits,
    const int32_t[::1] types,
    const int32_t[::1] steps,
    const int32_t[::1] arguments,
) except -1:
    cdef Py_ssize_t step, place, start = 0
    cdef int32_t schema
    for step in range(steps.shape[0]):
        schema = steps[step]
        for place in range(<Py_ssize_t>fits[schema].size()):
            if not fits[schema][place][types[arguments[start + place]]]:
                return False
        if not world.apply(operators[schema], &arguments[0] + start):
            return False
        start += fits[schema].size()
    return True


cdef int _add(World& world, size_t predicate, rows) except -1:
    cdef const int32_t[::1] terms = rows.terms
    if rows.size:
        world.add(predicate, &terms[0] if terms.shape[0] else NULL, rows.size)
    return 0


cdef bint _hold(World& world, size_t predicate, rows) except -1:
    cdef const int32_t[::1] terms = rows.terms
    return not rows.size or world.hold(predicate, &terms[0] if terms.shape[0] else NULL, rows.size)


cdef Operator _operator(schema, list predicates, names) except *:
    cdef Operator made
    outcome, = schema.outcomes
    places = {parameter.name: place for place, parameter in enumerate(schema.parameters)}

    def terms(atom):
        return [places[term] if term in places else ~names.number(term) for term in atom.terms]

    made.equal = [terms(atom) for atom in schema.precondition if atom.predicate == EQUALITY]
    made.different = [terms(atom) for atom in schema.negative_precondition if atom.predicate == EQUALITY]
    made.required = _literals(schema.precondition, predicates, terms)
    made.forbidden = _literals(schema.negative_precondition, predicates, terms)
    made.removed = _literals(outcome.delete, predicates, terms)
    made.added = _literals(outcome.add, predicates, terms)
    return made


cdef vector[Literal] _literals(atoms, list predicates, terms) except *:
    cdef vector[Literal] literals
    cdef Literal literal
    for atom in atoms:
        if atom.predicate != EQUALITY:
            literal.predicate, literal.terms = predicates.index(atom.predicate), terms(atom)
            literals.push_back(literal)
    return literals
