// How far two short words are apart, for "did you mean".
#ifndef KVASIR_COMMON_BASE_EDIT_DISTANCE_H_
#define KVASIR_COMMON_BASE_EDIT_DISTANCE_H_

#include <algorithm>
#include <cstddef>
#include <string_view>
#include <vector>

namespace kvasir {

// The least number of insertions, deletions and replacements of one character that turn `a` into `b`. Takes
// O(|a| |b|) time: cut what comes from outside first.
[[nodiscard]] inline std::size_t EditDistance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replaced = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({replaced, row[j] + 1, row[j - 1] + 1});
    }
  }
  return row[b.size()];
}

}  // namespace kvasir

#endif  // KVASIR_COMMON_BASE_EDIT_DISTANCE_H_
