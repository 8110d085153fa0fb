// A stable order without std::stable_sort, which allocates through a function that C++17 deprecates and that
// clang therefore refuses with g++ 12's library.
#ifndef KVASIR_COMMON_BASE_INSERT_SORTED_H_
#define KVASIR_COMMON_BASE_INSERT_SORTED_H_

#include <algorithm>
#include <utility>
#include <vector>

namespace kvasir {

// Inserts `item` behind all items of the sorted list that it is not before.
template <class T, class Before>
void InsertSorted(std::vector<T>& sorted, T item, Before before) {
  const auto at = std::upper_bound(sorted.begin(), sorted.end(), item, before);
  sorted.insert(at, std::move(item));
}

}  // namespace kvasir

#endif  // KVASIR_COMMON_BASE_INSERT_SORTED_H_
