// Facts that come and go, and actions that change them.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "tables.hpp"

namespace bilevel {

// The facts of one predicate that hold: a hash table with linear probing, whose rows of terms lie side by side. A fact
// without terms has the row {0}.
class FactSet {
public:
    explicit FactSet(std::size_t arity = 0) : width_(std::max<std::size_t>(arity, 1)) { reserve(8); }

    bool contains(const std::int32_t* row) const { return is_taken(find(row)); }

    void insert(const std::int32_t* row) {
        std::size_t place = find(row);
        if (is_taken(place)) return;
        std::copy_n(row, width_, at(place));
        if (2 * ++count_ > mask_) reserve(2 * count_);
    }

    // Rows behind the one that goes may have to move up, since looking for them must not end at a gap.
    void erase(const std::int32_t* row) {
        std::size_t gap = find(row);
        if (!is_taken(gap)) return;
        for (std::size_t place = (gap + 1) & mask_; is_taken(place); place = (place + 1) & mask_) {
            if (((place - home(at(place))) & mask_) < ((place - gap) & mask_)) continue;
            std::copy_n(at(place), width_, at(gap));
            gap = place;
        }
        *at(gap) = EMPTY;
        --count_;
    }

    // Make room for so many facts.
    void reserve(std::size_t count) {
        std::size_t capacity = 16;
        while (capacity < 2 * count) capacity *= 2;
        std::vector<std::int32_t> old(capacity * width_, EMPTY);
        old.swap(rows_);
        mask_ = capacity - 1;
        for (std::size_t start = 0; start < old.size(); start += width_)
            if (old[start] != EMPTY) std::copy_n(&old[start], width_, at(find(&old[start])));
    }

private:
    static constexpr std::int32_t EMPTY = -1;  // objects count from 0

    std::int32_t* at(std::size_t place) { return &rows_[place * width_]; }
    const std::int32_t* at(std::size_t place) const { return &rows_[place * width_]; }
    bool is_taken(std::size_t place) const { return *at(place) != EMPTY; }

    std::size_t home(const std::int32_t* row) const {
        std::uint64_t hash = HASH_START;
        for (std::size_t i = 0; i < width_; ++i) hash = hashed(hash, static_cast<std::uint32_t>(row[i]));
        return place_of(hash, mask_);
    }

    // Where the row is, or the empty place where it would be.
    std::size_t find(const std::int32_t* row) const {
        std::size_t place = home(row);
        while (is_taken(place) && !std::equal(row, row + width_, at(place))) place = (place + 1) & mask_;
        return place;
    }

    std::size_t width_, mask_ = 0, count_ = 0;
    std::vector<std::int32_t> rows_;
};

// An atom of a schema; a term is an argument's place, or ~n for object n.
struct Literal {
    std::size_t predicate;
    std::vector<std::int32_t> terms;
};

struct Operator {
    std::vector<std::pair<std::int32_t, std::int32_t>> equal, different;  // terms
    std::vector<Literal> required, forbidden, removed, added;
};

class World {
public:
    void declare(std::size_t arity) {
        facts_.emplace_back(arity);
        arities_.push_back(arity);
    }

    // Add facts, given the terms of one after another.
    void add(std::size_t predicate, const std::int32_t* terms, std::size_t count) {
        facts_[predicate].reserve(count);
        for (std::size_t number = 0; number < count; ++number) facts_[predicate].insert(row(predicate, terms, number));
    }

    bool hold(std::size_t predicate, const std::int32_t* terms, std::size_t count) const {
        for (std::size_t number = 0; number < count; ++number)
            if (!facts_[predicate].contains(row(predicate, terms, number))) return false;
        return true;
    }

    // Carry out an action; false if it cannot be.
    bool apply(const Operator& action, const std::int32_t* arguments) {
        for (auto [a, b] : action.equal)
            if (value(a, arguments) != value(b, arguments)) return false;
        for (auto [a, b] : action.different)
            if (value(a, arguments) == value(b, arguments)) return false;
        for (const Literal& literal : action.required)
            if (!facts_[literal.predicate].contains(row(literal, arguments))) return false;
        for (const Literal& literal : action.forbidden)
            if (facts_[literal.predicate].contains(row(literal, arguments))) return false;
        for (const Literal& literal : action.removed) facts_[literal.predicate].erase(row(literal, arguments));
        for (const Literal& literal : action.added) facts_[literal.predicate].insert(row(literal, arguments));
        return true;
    }

private:
    static std::int32_t value(std::int32_t term, const std::int32_t* arguments) {
        return term >= 0 ? arguments[term] : ~term;
    }

    const std::int32_t* row(std::size_t predicate, const std::int32_t* terms, std::size_t number) const {
        static constexpr std::int32_t nothing = 0;
        return arities_[predicate] ? terms + number * arities_[predicate] : &nothing;
    }

    const std::int32_t* row(const Literal& literal, const std::int32_t* arguments) {
        row_.assign(std::max<std::size_t>(literal.terms.size(), 1), 0);
        for (std::size_t i = 0; i < literal.terms.size(); ++i) row_[i] = value(literal.terms[i], arguments);
        return row_.data();
    }

    std::vector<FactSet> facts_;
    std::vector<std::size_t> arities_;
    std::vector<std::int32_t> row_;
};

}  // namespace bilevel
