// The tokens of plain PDDL: ASCII text with parentheses, names and other words, and comments from a semicolon on. And the
// rows of facts in order.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

namespace bilevel {

enum Token : char { END = 0, OPEN = '(', CLOSE = ')', NAME = 'n', WORD = 'w', STRANGE = '!' };

class Scanner {
public:
    Scanner() = default;
    Scanner(const char* text, std::size_t size) : at_(text), end_(text + size) {}

    std::string word;  // the last token's small letters, if it is a name or another word

    // What comes next; `STRANGE` for characters that are not plain.
    Token next() {
        for (; at_ < end_; ++at_) {
            switch (kind(*at_)) {
                case SPACE: case LINE_END: continue;
                case PARENTHESIS: return Token(*at_++);
                case SEMICOLON:
                    while (at_ + 1 < end_ && kind(at_[1]) != LINE_END)
                        if (static_cast<unsigned char>(*++at_) >= 128) return STRANGE;
                    continue;
                case BAD: return STRANGE;
                default: return word_here();
            }
        }
        return END;
    }

private:
    enum Kind : unsigned char { BAD, SPACE, LINE_END, PARENTHESIS, SEMICOLON, FIRST, INNER, OTHER };

    // What may begin a name, what may only stand inside one, and what other words are made of.
    static constexpr std::array<Kind, 256> kinds() {
        std::array<Kind, 256> table{};
        for (int c = 33; c < 127; ++c) table[std::size_t(c)] = OTHER;
        for (unsigned char c = '0'; c <= '9'; ++c) table[c] = FIRST;
        for (unsigned char c = 'a'; c <= 'z'; ++c) table[c] = table[std::size_t(c - 'a' + 'A')] = FIRST;
        for (unsigned char c : {'_', '@', '$', '%', '*', '/', '+', '~', '^', '.'}) table[c] = FIRST;
        table['#'] = table['-'] = INNER;
        table[' '] = table['\t'] = SPACE;
        table['\n'] = table['\r'] = LINE_END;
        table['('] = table[')'] = PARENTHESIS;
        table[';'] = SEMICOLON;
        return table;
    }

    static Kind kind(char letter) {
        static constexpr std::array<Kind, 256> table = kinds();
        return table[static_cast<unsigned char>(letter)];
    }

    Token word_here() {
        const char* start = at_;
        bool is_name = kind(*at_) == FIRST;
        for (; at_ < end_ && kind(*at_) >= FIRST; ++at_) is_name &= kind(*at_) != OTHER;
        word.assign(start, at_);
        for (char& letter : word)
            if (letter >= 'A' && letter <= 'Z') letter = static_cast<char>(letter + ('a' - 'A'));
        return is_name ? NAME : WORD;
    }

    const char* at_ = nullptr;
    const char* end_ = nullptr;
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
