# The C++ of the compiled parts, as Cython sees it.

from libc.stdint cimport int32_t, uint64_t
from libcpp cimport bool
from libcpp.vector cimport vector


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
