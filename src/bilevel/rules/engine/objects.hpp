// Objects as numbers, and sets of them in the order of their names.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace bilevel {

using Object = int32_t;

// The order of the objects' names. Numbers are in that order until an object comes whose name is not the last; from then
// on each object has a label, and comparing labels compares names.
class Order {
 public:
  bool less(Object a, Object b) const { return labels_.empty() ? a < b : labels_[a] < labels_[b]; }
  Object size() const { return size_; }
  void start(Object size) { size_ = size; }

  // Add an object whose name comes after `count` of those there were at the start, and return its number.
  Object add(const std::string& name, Object count) {
    if (labels_.empty()) label_all();
    Object before = count ? count - 1 : NOBODY;
    auto after = newcomers_.lower_bound(name);
    if (after != newcomers_.begin()) {
      Object other = std::prev(after)->second;
      if (before == NOBODY || labels_[before] < labels_[other]) before = other;
    }
    Object added = size_++;
    newcomers_.emplace_hint(after, name, added);
    Object next = before == NOBODY ? first_ : next_[before];
    next_.push_back(next);
    previous_.push_back(before);
    (before == NOBODY ? first_ : next_[before]) = added;
    if (next != NOBODY) previous_[next] = added;
    labels_.push_back(0);
    set_label(added);
    return added;
  }

 private:
  static constexpr Object NOBODY = -1;
  static constexpr int BITS = 62;

  void label_all() {
    for (Object o = 0; o < size_; ++o) {
      labels_.push_back((int64_t(1) << BITS) / (size_ + 1) * (o + 1));
      next_.push_back(o + 1 < size_ ? o + 1 : NOBODY);
      previous_.push_back(o - 1);
    }
    first_ = size_ ? 0 : NOBODY;
  }

  // Put the label halfway between the neighbours'; where there is no room, spread those of a stretch around it: the
  // smallest that is not crowded (Bender et al., Two simplified algorithms for maintaining order in a list, 2002).
  void set_label(Object added) {
    Object before = previous_[added], after = next_[added];
    int64_t low = before == NOBODY ? 0 : labels_[before];
    int64_t high = after == NOBODY ? int64_t(1) << BITS : labels_[after];
    labels_[added] = low + (high - low) / 2;
    if (high - low > 1) return;
    Object from = added, to = added;
    int64_t count = 1;
    double room = 1;
    for (int bits = 1; bits <= BITS; ++bits) {
      int64_t start = low >> bits << bits, end = start + (int64_t(1) << bits);
      for (; previous_[from] != NOBODY && labels_[previous_[from]] >= start; from = previous_[from]) ++count;
      for (; next_[to] != NOBODY && labels_[next_[to]] < end; to = next_[to]) ++count;
      room *= 1.5;
      if (count + 1 < room) {
        int64_t gap = (int64_t(1) << bits) / (count + 1), label = start;
        for (Object o = from;; o = next_[o]) {
          labels_[o] = label += gap;
          if (o == to) return;
        }
      }
    }
  }

  Object size_ = 0, first_ = NOBODY;
  std::vector<int64_t> labels_;
  std::vector<Object> next_, previous_;
  std::map<std::string, Object> newcomers_;
};

// A set of objects in order: none, one, or sorted parts of some hundreds each.
class SortedSet {
 public:
  bool empty() const { return size_ == 0; }

  bool insert(Object value, const Order& order) {
    if (!parts_) {
      if (size_ == 0) {
        only_ = value;
        size_ = 1;
        return true;
      }
      if (only_ == value) return false;
      parts_ = std::make_unique<Parts>();
      parts_->lasts = {only_};
      parts_->members = {{only_}};
    }
    size_t place = part_of(value, order);
    bool is_last = place == parts_->lasts.size();
    if (is_last) --place;
    std::vector<Object>& part = parts_->members[place];
    auto found = is_last ? part.end() : lower_bound(part, value, order);
    if (found != part.end() && *found == value) return false;
    if (is_last && part.size() >= MOST) {
      parts_->members.push_back({value});
      parts_->lasts.push_back(value);
    } else {
      part.insert(found, value);
      parts_->lasts[place] = part.back();
      if (part.size() > MOST) split(place);
    }
    ++size_;
    return true;
  }

  bool erase(Object value, const Order& order) {
    if (size_ == 0) return false;
    if (!parts_) {
      if (only_ != value) return false;
    } else {
      size_t place = part_of(value, order);
      if (place == parts_->lasts.size()) return false;
      std::vector<Object>& part = parts_->members[place];
      auto found = lower_bound(part, value, order);
      if (*found != value) return false;
      part.erase(found);
      if (part.empty()) {
        parts_->members.erase(parts_->members.begin() + place);
        parts_->lasts.erase(parts_->lasts.begin() + place);
      } else {
        parts_->lasts[place] = part.back();
      }
    }
    if (--size_ == 0) parts_.reset();
    return true;
  }

  // Call the function with each member in order until it returns true; return whether it did.
  template <class Function>
  bool any(Function&& function) const {
    if (!parts_) return size_ && function(only_);
    for (const auto& part : parts_->members)
      for (Object value : part)
        if (function(value)) return true;
    return false;
  }

 private:
  static constexpr size_t MOST = 512;
  struct Parts {
    std::vector<Object> lasts;  // of each part
    std::vector<std::vector<Object>> members;
  };

  static std::vector<Object>::iterator lower_bound(std::vector<Object>& values, Object value, const Order& order) {
    return std::lower_bound(values.begin(), values.end(), value, [&](Object a, Object b) { return order.less(a, b); });
  }

  size_t part_of(Object value, const Order& order) const {
    return lower_bound(parts_->lasts, value, order) - parts_->lasts.begin();
  }

  void split(size_t place) {
    auto& part = parts_->members[place];
    std::vector<Object> upper(part.begin() + part.size() / 2, part.end());
    part.resize(part.size() / 2);
    parts_->lasts.insert(parts_->lasts.begin() + place, part.back());
    parts_->members.insert(parts_->members.begin() + place + 1, std::move(upper));
  }

  uint32_t size_ = 0;
  Object only_ = 0;
  std::unique_ptr<Parts> parts_;
};

}  // namespace bilevel
