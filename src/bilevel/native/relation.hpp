// Sets of rows of objects, with indexes.
#pragma once

#include <algorithm>

#include "objects.hpp"

namespace bilevel {

using Row = const Object*;
using Number = uint32_t;  // of a row in its table
constexpr Number NONE = UINT32_MAX;

inline uint64_t mixed(uint64_t hash) {
  hash *= 0x9E3779B97F4A7C15u;
  return hash ^ hash >> 32;
}

// Rows of one arity, each with a number; the numbers of erased rows are used again.
class RowTable {
 public:
  explicit RowTable(int arity) : arity_(arity) {}

  int arity() const { return arity_; }
  Number end() const { return end_; }  // all numbers are below
  Row row(Number number) const { return rows_.data() + size_t(number) * arity_; }

  Number find(Row row) const {
    if (arity_ == 1) return size_t(row[0]) < number_of_.size() ? number_of_[row[0]] - 1 : NONE;
    if (slots_.empty()) return NONE;
    uint32_t wanted = hash(row);
    for (size_t place = wanted & mask_;; place = (place + 1) & mask_) {
      const Slot& slot = slots_[place];
      if (slot.number == NONE) return NONE;
      if (slot.hash == wanted && equal(this->row(slot.number), row)) return slot.number;
    }
  }

  // The row must not be there.
  Number insert(Row row) {
    Number number = free_.empty() ? end_++ : free_.back();
    if (!free_.empty()) free_.pop_back();
    if (rows_.size() < size_t(end_) * arity_) rows_.resize(size_t(end_) * arity_);
    std::copy(row, row + arity_, rows_.begin() + size_t(number) * arity_);
    if (arity_ == 1) {
      if (size_t(row[0]) >= number_of_.size()) number_of_.resize(row[0] + 1);
      number_of_[row[0]] = number + 1;
    } else {
      if (size_t(++used_) * 8 > slots_.size() * 5) grow();
      put({hash(row), number});
    }
    return number;
  }

  void erase(Number number) {
    free_.push_back(number);
    if (arity_ == 1) {
      number_of_[row(number)[0]] = 0;
      return;
    }
    --used_;
    size_t place = hash(row(number)) & mask_;
    while (slots_[place].number != number) place = (place + 1) & mask_;
    close_gap(place);
  }

 private:
  struct Slot {
    uint32_t hash;
    Number number;
  };

  // Not by memcmp, which waits for what was written a moment ago in smaller parts.
  bool equal(Row one, Row other) const {
    for (int i = 0; i < arity_; ++i)
      if (one[i] != other[i]) return false;
    return true;
  }

  uint32_t hash(Row row) const {
    uint64_t hash = 0;
    for (int i = 0; i < arity_; ++i) hash = mixed(hash ^ uint32_t(row[i]));
    return uint32_t(hash);
  }

  void put(Slot slot) {
    size_t place = slot.hash & mask_;
    while (slots_[place].number != NONE) place = (place + 1) & mask_;
    slots_[place] = slot;
  }

  void grow() {
    std::vector<Slot> old(std::max<size_t>(8, slots_.size() * 2), Slot{0, NONE});
    old.swap(slots_);
    mask_ = slots_.size() - 1;
    for (const Slot& slot : old)
      if (slot.number != NONE) put(slot);
  }

  void close_gap(size_t gap) {
    for (size_t place = (gap + 1) & mask_; slots_[place].number != NONE; place = (place + 1) & mask_) {
      size_t home = slots_[place].hash & mask_;
      if (((place - home) & mask_) >= ((place - gap) & mask_)) {
        slots_[gap] = slots_[place];
        gap = place;
      }
    }
    slots_[gap].number = NONE;
  }

  int arity_;
  Number end_ = 0, used_ = 0;
  std::vector<Object> rows_;
  std::vector<Number> free_;
  std::vector<Number> number_of_;  // arity 1: of each object's row, plus one
  std::vector<Slot> slots_;        // other arities: open addressing
  size_t mask_ = 0;
};

// The rows of a relation by their values in some columns: a linked list for each.
class Index {
 public:
  explicit Index(std::vector<int> columns)
      : columns_(std::move(columns)), keys_(int(columns_.size())), key_(columns_.size()) {}

  const std::vector<int>& columns() const { return columns_; }

  Number first(Row key) const {
    Number found = keys_.find(key);
    return found == NONE ? NONE : heads_[found];
  }
  Number next(Number number) const { return next_[number]; }

  void link(Number number, Row row) {
    if (next_.size() <= number) {
      next_.resize(number + 1, NONE);
      previous_.resize(next_.size(), NONE);
    }
    Row key = key_of(row);
    Number found = keys_.find(key);
    if (found == NONE) {
      found = keys_.insert(key);
      if (heads_.size() <= found) heads_.resize(found + 1, NONE);
      heads_[found] = NONE;
    }
    Number head = heads_[found];
    next_[number] = head;
    previous_[number] = NONE;
    if (head != NONE) previous_[head] = number;
    heads_[found] = number;
  }

  void unlink(Number number, Row row) {
    Number before = previous_[number], after = next_[number];
    if (after != NONE) previous_[after] = before;
    if (before != NONE) {
      next_[before] = after;
      return;
    }
    Number found = keys_.find(key_of(row));
    heads_[found] = after;
    if (after == NONE) keys_.erase(found);
  }

 private:
  Row key_of(Row row) {
    for (size_t i = 0; i < columns_.size(); ++i) key_[i] = row[columns_[i]];
    return key_.data();
  }

  std::vector<int> columns_;
  RowTable keys_;
  std::vector<Object> key_;
  std::vector<Number> heads_, next_, previous_;
};

// A set of rows, with indexes.
class Relation {
 public:
  explicit Relation(int arity) : table_(arity) {}

  int arity() const { return table_.arity(); }
  size_t size() const { return size_; }
  Row row(Number number) const { return table_.row(number); }
  std::vector<Index>& indexes() { return indexes_; }

  Number find(Row row) const { return table_.find(row); }
  bool has(Row row) const { return find(row) != NONE; }

  // The row must not be in.
  Number add(Row row) {
    Number number = table_.insert(row);
    if (is_in_.size() <= number) is_in_.resize(number + 1);
    is_in_[number] = true;
    ++size_;
    for (Index& index : indexes_) index.link(number, table_.row(number));
    return number;
  }

  void remove(Number number) {
    for (Index& index : indexes_) index.unlink(number, table_.row(number));
    is_in_[number] = false;
    --size_;
    table_.erase(number);
  }

  template <class Function>
  void each(Function&& function) const {
    for (Number number = 0; number < table_.end(); ++number)
      if (is_in_[number]) function(number);
  }

  // Return the place of the index by these columns, which is made when it is first asked for.
  int index(const std::vector<int>& columns) {
    for (size_t i = 0; i < indexes_.size(); ++i)
      if (indexes_[i].columns() == columns) return int(i);
    indexes_.emplace_back(columns);
    each([&](Number number) { indexes_.back().link(number, table_.row(number)); });
    return int(indexes_.size()) - 1;
  }

 private:
  size_t size_ = 0;
  RowTable table_;
  std::vector<char> is_in_;
  std::vector<Index> indexes_;
};

}  // namespace bilevel
