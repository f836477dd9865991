// Objects as numbers, and sets of them in the order of their names.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace bilevel {

using Object = int32_t;

// The order of the objects' names: those of the start have numbers in that order, and others come in between.
class Order {
 public:
  void start(Object size) { start_ = size; }

  // Add an object whose name comes after `count` of those there were at the start, and return its number.
  Object add(std::string name, Object count) {
    newcomers_.emplace_back(count, std::move(name));
    return start_ + Object(newcomers_.size()) - 1;
  }

  bool less(Object a, Object b) const {
    if (a < start_ && b < start_) return a < b;
    int64_t one = place(a), other = place(b);
    return one == other && a != b ? newcomers_[a - start_].second < newcomers_[b - start_].second : one < other;
  }

 private:
  // Objects of the start have odd places, those that come between them the even ones.
  int64_t place(Object o) const { return 2 * int64_t(o < start_ ? o : newcomers_[o - start_].first) + (o < start_); }

  Object start_ = 0;
  std::vector<std::pair<Object, std::string>> newcomers_;
};

// A set of objects in order: none, one, or sorted parts of some hundreds each, none of them empty.
class SortedSet {
 public:
  bool empty() const { return !has_one_ && !parts_; }

  void insert(Object value, const Order& order) {
    if (empty()) {
      has_one_ = true;
      only_ = value;
      return;
    }
    if (has_one_ && only_ == value) return;
    if (!parts_) parts_ = std::make_unique<Parts>(1, Part{only_});
    has_one_ = false;
    auto part = part_of(value, order);
    if (part == parts_->end()) --part;
    auto place = place_of(value, *part, order);
    if (place != part->end() && *place == value) return;
    part->insert(place, value);
    if (part->size() <= MOST) return;
    size_t kept = part + 1 == parts_->end() ? MOST : MOST / 2;  // what comes in order fills the parts
    Part rest(part->begin() + kept, part->end());
    part->resize(kept);
    parts_->insert(part + 1, std::move(rest));
  }

  bool erase(Object value, const Order& order) {
    if (!parts_) {
      bool was_there = has_one_ && only_ == value;
      has_one_ = has_one_ && !was_there;
      return was_there;
    }
    auto part = part_of(value, order);
    if (part == parts_->end()) return false;
    auto place = place_of(value, *part, order);
    if (*place != value) return false;
    part->erase(place);
    if (part->empty()) parts_->erase(part);
    if (parts_->empty()) parts_.reset();
    return true;
  }

  // Call the function with each member in order until it returns true.
  template <class Function>
  void any(Function&& function) const {
    if (has_one_) function(only_);
    if (!parts_) return;
    for (const Part& part : *parts_)
      for (Object value : part)
        if (function(value)) return;
  }

 private:
  static constexpr size_t MOST = 512;
  using Part = std::vector<Object>;
  using Parts = std::vector<Part>;

  // The first part whose last member does not come before the value, which is the only one that may have it.
  Parts::iterator part_of(Object value, const Order& order) {
    auto before = [&](const Part& part, Object value) { return order.less(part.back(), value); };
    return std::lower_bound(parts_->begin(), parts_->end(), value, before);
  }

  static Part::iterator place_of(Object value, Part& part, const Order& order) {
    auto before = [&](Object a, Object b) { return order.less(a, b); };
    return std::lower_bound(part.begin(), part.end(), value, before);
  }

  bool has_one_ = false;
  Object only_ = 0;
  std::unique_ptr<Parts> parts_;
};

}  // namespace bilevel
