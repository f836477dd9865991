// Tables of names and of facts for the compiled parts.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace bilevel {

constexpr std::uint64_t HASH_START = 14695981039346656037u;  // FNV-1a

inline std::uint64_t hashed(std::uint64_t hash, std::uint64_t value) { return (hash ^ value) * 1099511628211u; }

inline char lower(char letter) {
    return letter >= 'A' && letter <= 'Z' ? static_cast<char>(letter + ('a' - 'A')) : letter;
}

inline std::uint64_t hash_of(std::string_view name) {
    std::uint64_t hash = HASH_START;
    for (unsigned char letter : name) hash = hashed(hash, letter);
    return hash;
}

// The low bits of a product depend on few of its factors' bits, so places are taken from the high ones, too.
inline std::size_t place_of(std::uint64_t hash, std::size_t mask) { return (hash ^ (hash >> 32)) & mask; }

// Gives the names of a text in which a newline follows each, by their numbers. The text must stay.
class NameText {
public:
    void split(std::string_view text) {
        text_ = text;
        starts_.clear();
        for (std::size_t at = 0; at < text.size(); at = text.find('\n', at) + 1)
            starts_.push_back(static_cast<std::uint32_t>(at));
        starts_.push_back(static_cast<std::uint32_t>(text.size()));
    }

    std::size_t size() const { return starts_.empty() ? 0 : starts_.size() - 1; }

    std::string_view name(std::size_t number) const {
        return text_.substr(starts_[number], starts_[number + 1] - starts_[number] - 1);
    }

private:
    std::string_view text_;
    std::vector<std::uint32_t> starts_;
};

// Finds the numbers of names, too.
class NameTable : public NameText {
public:
    void build(std::string_view text) {
        split(text);
        std::size_t capacity = 16;
        while (capacity < 2 * size()) capacity *= 2;
        slots_.assign(capacity, Slot{0, -1});
        mask_ = capacity - 1;
        for (std::size_t number = 0; number < size(); ++number) {
            std::uint64_t hash = hash_of(name(number));
            std::size_t at = place_of(hash, mask_);
            while (slots_[at].number >= 0) at = (at + 1) & mask_;
            slots_[at] = Slot{static_cast<std::uint32_t>(hash >> 32), static_cast<std::int32_t>(number)};
        }
    }

    // The number of a word in letters of any case, whose hash is that of its small letters; -1 if there is none. Files
    // are often in alphabetical order, so the number after the one before is a guess that saves a search.
    std::int32_t find(const char* word, std::size_t length, std::uint64_t hash, std::int32_t before = -1) const {
        if (static_cast<std::size_t>(before + 1) < size() && is(before + 1, word, length)) return before + 1;
        for (std::size_t at = place_of(hash, mask_); slots_[at].number >= 0; at = (at + 1) & mask_)
            if (slots_[at].tag == static_cast<std::uint32_t>(hash >> 32) && is(slots_[at].number, word, length))
                return slots_[at].number;
        return -1;
    }

private:
    struct Slot {
        std::uint32_t tag;
        std::int32_t number;
    };

    bool is(std::int32_t number, const char* word, std::size_t length) const {
        std::string_view wanted = name(static_cast<std::size_t>(number));
        if (wanted.size() != length) return false;
        for (std::size_t i = 0; i < length; ++i)
            if (lower(word[i]) != wanted[i]) return false;
        return true;
    }

    std::vector<Slot> slots_;
    std::size_t mask_ = 0;
};

// Names in the order in which they come.
class NameList {
public:
    void add(const char* word, std::size_t length) {
        for (std::size_t i = 0; i < length; ++i) text_.push_back(lower(word[i]));
        ends_.push_back(text_.size());
    }

    std::size_t size() const { return ends_.size(); }

    std::string_view name(std::size_t place) const {
        std::size_t start = place ? ends_[place - 1] : 0;
        return std::string_view(text_).substr(start, ends_[place] - start);
    }

    // The places of the names, in alphabetical order.
    std::vector<std::int32_t> alphabetical() const {
        std::vector<std::int32_t> places(size());
        std::iota(places.begin(), places.end(), 0);
        std::sort(places.begin(), places.end(), [&](auto a, auto b) { return name(a) < name(b); });
        return places;
    }

private:
    std::string text_;
    std::vector<std::size_t> ends_;
};

// Put rows of so many terms into ascending order, and drop those that are there already.
inline void sort_rows(std::vector<std::int32_t>& terms, std::size_t arity) {
    auto row = [&](std::size_t number) { return terms.data() + number * arity; };
    auto before = [&](std::size_t a, std::size_t b) {
        return std::lexicographical_compare(row(a), row(a) + arity, row(b), row(b) + arity);
    };
    std::size_t count = terms.size() / arity;
    bool ascending = true;
    for (std::size_t number = 1; ascending && number < count; ++number) ascending = before(number - 1, number);
    if (ascending) return;
    std::vector<std::size_t> order(count);
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::sort(order.begin(), order.end(), before);
    std::vector<std::int32_t> sorted;
    sorted.reserve(terms.size());
    for (std::size_t place = 0; place < count; ++place)
        if (place == 0 || before(order[place - 1], order[place]))
            sorted.insert(sorted.end(), row(order[place]), row(order[place]) + arity);
    terms = std::move(sorted);
}

}  // namespace bilevel
