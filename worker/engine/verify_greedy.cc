#include "worker/engine/verify_greedy.h"

#include <cstddef>

#include "common/base/check.h"

namespace kvasir {

DraftVerdict VerifyGreedy(std::span<const std::int32_t> drafted, std::span<const std::int32_t> target_next) {
  KVASIR_CHECK(target_next.size() == drafted.size() + 1);
  std::size_t accepted = 0;
  while (accepted < drafted.size() && drafted[accepted] == target_next[accepted]) ++accepted;
  DraftVerdict verdict;
  verdict.accepted = static_cast<std::int64_t>(accepted);
  verdict.emitted.assign(drafted.begin(), drafted.begin() + static_cast<std::ptrdiff_t>(accepted));
  verdict.emitted.push_back(target_next[accepted]);
  return verdict;
}

}  // namespace kvasir
