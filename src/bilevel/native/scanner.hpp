// The tokens of plain PDDL: ASCII text with parentheses, names and other words, and comments from a semicolon on.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "tables.hpp"

namespace bilevel {

enum Token : char { END = 0, OPEN = '(', CLOSE = ')', NAME = 'n', WORD = 'w', STRANGE = '!' };

class Scanner {
public:
    Scanner() = default;
    Scanner(const char* text, std::size_t size) : at_(text), end_(text + size) {}

    // Of the last token, if it is a name or another word.
    const char* word = nullptr;
    std::size_t length = 0;
    std::uint64_t hash = 0;  // of its small letters

    // What comes next; `STRANGE` for characters that are not plain.
    Token next() {
        for (; at_ < end_; ++at_) {
            switch (kind(*at_)) {
                case SPACE: continue;
                case LINE_END: continue;
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

    bool spells(std::string_view wanted) const {
        if (length != wanted.size()) return false;
        for (std::size_t i = 0; i < length; ++i)
            if (lower(word[i]) != wanted[i]) return false;
        return true;
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
        word = at_;
        bool is_name = kind(*at_) == FIRST;
        for (hash = HASH_START; at_ < end_ && kind(*at_) >= FIRST; ++at_) {
            is_name &= kind(*at_) != OTHER;
            hash = hashed(hash, static_cast<unsigned char>(lower(*at_)));
        }
        length = std::size_t(at_ - word);
        return is_name ? NAME : WORD;
    }

    const char* at_ = nullptr;
    const char* end_ = nullptr;
};

}  // namespace bilevel
