// Greedy verification of a drafted block: what speculation emits is what plain greedy decoding would have.
#ifndef KVASIR_WORKER_ENGINE_VERIFY_GREEDY_H_
#define KVASIR_WORKER_ENGINE_VERIFY_GREEDY_H_

#include <cstdint>
#include <span>
#include <vector>

namespace kvasir {

// What verification makes of a drafted block, greedy or sampled.
struct DraftVerdict {
  std::int64_t accepted = 0;               // a: how many drafted tokens the target takes, a prefix
  std::vector<std::int32_t> emitted = {};  // the a accepted tokens, then the target's own next token
};

// Accepts the longest prefix that the target would have chosen. `target_next[i]` is the target's argmax after
// the anchor and i drafted tokens. Requires target_next.size() == drafted.size() + 1.
[[nodiscard]] DraftVerdict VerifyGreedy(std::span<const std::int32_t> drafted,
                                        std::span<const std::int32_t> target_next);

}  // namespace kvasir

#endif  // KVASIR_WORKER_ENGINE_VERIFY_GREEDY_H_
