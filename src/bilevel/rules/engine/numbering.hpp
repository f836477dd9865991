// The numbers of names by their addresses: the same name is mostly the same Python object.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

namespace bilevel {

class Addresses {
 public:
  void reserve(size_t count) {
    size_t size = 16;
    while (size < 2 * count) size *= 2;
    slots_.assign(size, Slot{nullptr, -1});
  }

  void put(const void* address, int number) { slots_[place(address)] = {address, number}; }

  // Return the number, or -1.
  int find(const void* address) const { return slots_[place(address)].number; }

 private:
  struct Slot {
    const void* address;
    int number;
  };

  size_t place(const void* address) const {
    size_t mask = slots_.size() - 1, place = (reinterpret_cast<uintptr_t>(address) >> 4) * 0x9E3779B97F4A7C15u >> 20;
    while (slots_[place & mask].address && slots_[place & mask].address != address) ++place;
    return place & mask;
  }

  std::vector<Slot> slots_;
};

template <size_t arity>
void sort_as(std::vector<int>& terms) {
  auto* rows = reinterpret_cast<std::array<int, arity>*>(terms.data());
  std::sort(rows, rows + terms.size() / arity);
}

// Sort short rows: neighbours in a sorted table are near each other in memory, too.
inline void sort_rows(std::vector<int>& terms, size_t count) {
  if (count == terms.size()) sort_as<1>(terms);
  else if (2 * count == terms.size()) sort_as<2>(terms);
  else if (3 * count == terms.size()) sort_as<3>(terms);
}

}  // namespace bilevel
