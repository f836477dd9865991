# cython: boundscheck=False, wraparound=False, cdivision=True
"""What `RelaxedPlans`, `applicable_in` and `FiledConditions` do, compiled: the same answers in the same order."""

from libc.stdint cimport uint64_t
from libc.string cimport memcpy
from libcpp.algorithm cimport sort
from libcpp.vector cimport vector

cdef extern from *:
    """
    #ifdef _MSC_VER
    #include <intrin.h>
    static inline int lowest_bit(unsigned long long word) {
        unsigned long bit;
        _BitScanForward64(&bit, word);
        return (int) bit;
    }
    #else
    static inline int lowest_bit(unsigned long long word) { return __builtin_ctzll(word); }
    #endif
    """
    int lowest_bit(unsigned long long word) nogil

ctypedef vector[uint64_t] Words


cdef Words words_of(object mask, int length):
    cdef bytes data = mask.to_bytes(8 * length, "little")
    cdef Words words = Words(length)
    if length:
        memcpy(words.data(), <const char *> data, 8 * length)
    return words


cdef vector[int] bits_in(const Words &words):
    cdef vector[int] bits
    cdef uint64_t word
    cdef size_t i
    for i in range(words.size()):
        word = words[i]
        while word:
            bits.push_back(<int> (64 * i + lowest_bit(word)))
            word &= word - 1
    return bits


cdef class RelaxedPlans:
    """The FF heuristic: how many operators a plan needs if nothing is ever deleted."""

    cdef int length  # of a state, in words
    cdef int without_condition  # the number of the group, or -1
    cdef object goal, aimed_at
    cdef vector[int] goal_bits  # of what it is aimed at
    cdef vector[char] is_goal
    cdef vector[vector[int]] conditions, adds, groups, waiting
    cdef vector[int] group_of, counts
    # what one evaluation works with
    cdef vector[int] supporter, queue, missing

    def __init__(self, task, deadline):
        cdef int index, number, bit, bits = len(task.literals)
        cdef dict numbers = {}
        self.length = (bits + 63) // 64
        self.goal, self.aimed_at = task.goal, 0
        self.is_goal.assign(bits, 0)
        self.waiting.resize(bits)
        self.supporter.resize(bits)
        for index, operator in enumerate(task.operators):
            deadline.check()
            self.conditions.push_back(bits_in(words_of(operator.precondition, self.length)))
            self.adds.push_back(bits_in(words_of(operator.add, self.length)))
            number = numbers.setdefault(operator.precondition, <int> self.groups.size())
            if number == <int> self.groups.size():
                self.groups.push_back(vector[int]())
                self.counts.push_back(<int> self.conditions[index].size())
                for bit in self.conditions[index]:
                    self.waiting[bit].push_back(number)
            self.groups[number].push_back(index)
            self.group_of.push_back(number)
        self.without_condition = numbers.get(0, -1)

    def forbid(self, int index):
        """Make no further use of an operator."""
        cdef vector[int] kept
        cdef int other
        for other in self.groups[self.group_of[index]]:
            if other != index:
                kept.push_back(other)
        self.groups[self.group_of[index]] = kept

    def __call__(self, object state, object goal=None):
        """The length of a relaxed plan and its operators that apply now, or `None` where there is none."""
        cdef int index, bit
        self.aim(self.goal if goal is None else goal)
        if not self.reach(words_of(state, self.length)):
            return None
        cdef set plan = set()
        cdef set helpful = set()
        cdef vector[char] wanted = self.is_goal
        cdef vector[int] needed = self.goal_bits
        cdef bint applies
        while needed.size():
            index = self.supporter[needed.back()]
            needed.pop_back()
            if index < 0 or index in plan:
                continue
            plan.add(index)
            applies = True
            for bit in self.conditions[index]:
                applies = applies and self.supporter[bit] == -1
                if not wanted[bit]:
                    wanted[bit] = 1
                    needed.push_back(bit)
            if applies:
                helpful.add(index)
        return len(plan), helpful

    cdef void aim(self, object goal):
        """Set the goal of the next evaluations."""
        cdef int bit
        if goal == self.aimed_at:
            return
        for bit in self.goal_bits:
            self.is_goal[bit] = 0
        self.goal_bits = bits_in(words_of(goal, self.length))
        for bit in self.goal_bits:
            self.is_goal[bit] = 1
        self.aimed_at = goal

    cdef bint reach(self, const Words &state):
        """Whether the goal is reached; sets the first operator to set each bit, -1 where it is set, -2 where none."""
        cdef int goals_left = <int> self.goal_bits.size()
        cdef int bit, number, index
        cdef size_t i, j, k
        self.supporter.assign(self.supporter.size(), -2)
        self.queue = bits_in(state)
        for bit in self.queue:
            self.supporter[bit] = -1
            goals_left -= self.is_goal[bit]
        self.missing = self.counts
        if self.without_condition >= 0:
            for index in self.groups[self.without_condition]:
                goals_left -= self.support(index)
        i = 0
        while i < self.queue.size() and goals_left:
            bit = self.queue[i]
            i += 1
            for j in range(self.waiting[bit].size()):
                number = self.waiting[bit][j]
                self.missing[number] -= 1
                if self.missing[number] == 0:
                    for k in range(self.groups[number].size()):
                        goals_left -= self.support(self.groups[number][k])
        return goals_left == 0

    cdef inline int support(self, int index):
        """Note the operator as the first to set its new bits, and return how many of them the goal asks for."""
        cdef int bit, goals = 0
        for bit in self.adds[index]:
            if self.supporter[bit] == -2:
                self.supporter[bit] = index
                self.queue.push_back(bit)
                goals += self.is_goal[bit]
        return goals


cdef class Applicable:
    """A function from a state to the indices of its applicable operators, in order."""

    cdef int length
    cdef vector[int] always
    cdef vector[vector[int]] filed  # operators by the rarest bit of their condition
    cdef vector[vector[int]] conditions

    def __init__(self, task, deadline):
        cdef int index, bit, rarest, bits = len(task.literals)
        cdef vector[int] uses
        self.length = (bits + 63) // 64
        uses.assign(bits, 0)
        self.filed.resize(bits)
        for operator in task.operators:
            deadline.check()
            self.conditions.push_back(bits_in(words_of(operator.precondition, self.length)))
            for bit in self.conditions.back():
                uses[bit] += 1
        for index in range(<int> self.conditions.size()):
            deadline.check()
            if self.conditions[index].empty():
                self.always.push_back(index)
                continue
            rarest = self.conditions[index][0]
            for bit in self.conditions[index]:
                if uses[bit] < uses[rarest]:
                    rarest = bit
            self.filed[rarest].push_back(index)

    def __call__(self, object state):
        cdef Words words = words_of(state, self.length)
        cdef vector[int] found = self.always
        cdef int bit, needed, index
        cdef bint applies
        for bit in bits_in(words):
            for index in self.filed[bit]:
                applies = True
                for needed in self.conditions[index]:
                    if not words[needed >> 6] >> (needed & 63) & 1:
                        applies = False
                        break
                if applies:
                    found.push_back(index)
        sort(found.begin(), found.end())
        return found


cdef class Conditions:
    """Which of many conditions hold in a state; one after the other is looked at, which is quick."""

    cdef int length
    cdef vector[Words] conditions  # by number
    cdef vector[char] is_there

    def __init__(self, int bits):
        self.length = (bits + 63) // 64

    def put(self, int number, object condition):
        """Add a condition, or replace it by another."""
        if number >= <int> self.is_there.size():
            self.is_there.resize(number + 1, 0)
            self.conditions.resize(number + 1)
        self.conditions[number] = words_of(condition, self.length)
        self.is_there[number] = 1

    def remove(self, int number):
        """Forget a condition."""
        self.is_there[number] = 0
        self.conditions[number] = Words()

    def holding(self, object state):
        """The numbers of all conditions that hold in the state, in order."""
        cdef Words words = words_of(state, self.length)
        cdef vector[int] found
        cdef size_t number
        for number in range(self.is_there.size()):
            if self.holds(number, words):
                found.push_back(<int> number)
        return found

    def first(self, object state):
        """The lowest number of a condition that holds in the state."""
        cdef Words words = words_of(state, self.length)
        cdef size_t number
        for number in range(self.is_there.size()):
            if self.holds(number, words):
                return number
        return None

    cdef inline bint holds(self, size_t number, const Words &words):
        cdef int i
        if not self.is_there[number]:
            return False
        for i in range(self.length):
            if self.conditions[number][i] & ~words[i]:
                return False
        return True
