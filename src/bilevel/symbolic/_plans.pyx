# cython: boundscheck=False, wraparound=False
"""Writes plans of millions of steps from integers."""

from libc.stdint cimport int32_t
from libcpp.string cimport string
from libcpp.vector cimport vector

from bilevel.symbolic.tables cimport NameText, string_view, view

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
