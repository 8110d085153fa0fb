// Finds block, stride and parent sizes: section 2.1's objective over (block_tokens, s, P), in integers.
//
// For a choice of one block and one number k of blocks per parent for each pool, P must be a multiple of k *
// unit and at least k * block for every pool; the least such P is the best one, since cost grows with P. So
// the search walks over (block, k) per pool, largest blocks first, and leaves a branch when a lower bound on
// its cost is no better than the best found. Complexity: for two pools about (bound / block)^2 steps, a few
// hundred in practice.
#ifndef KVASIR_PLANNER_RULESETS_NATIVE_SIZE_SEARCH_H_
#define KVASIR_PLANNER_RULESETS_NATIVE_SIZE_SEARCH_H_

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

namespace kvasir::native {

// The lengths that the objective looks at, each clipped to the context; the middle one breaks ties.
inline constexpr std::array<std::int64_t, 3> kObjectiveContexts = {8192, 32768, 131072};

struct SearchBlock {
  std::int64_t block_tokens = 0;
  std::int64_t parts = 1;
  std::int64_t stride_min = 0;              // the block's bytes rounded up to the pool's unit
  std::array<std::int64_t, 3> blocks = {};  // of one sequence, at each of kObjectiveContexts
  std::int64_t blocks_needed = 0;           // for min_requests sequences of the context and the prefill chunk
};

struct SearchPool {
  std::int64_t unit_bytes = 256;
  std::vector<SearchBlock> blocks;  // at least one
};

struct SearchProblem {
  std::int64_t arena_bytes = 0;
  std::int64_t parent_bytes_max = 0;
  std::array<std::int64_t, 3> payload = {};  // F: bytes of one sequence without any waste; at least 1
  std::vector<SearchPool> pools;
};

// Order: the objective, then its ties, then larger k; two different choices never compare equal.
struct SizeKey {
  std::int64_t cost_512 = 0;  // worst over the contexts
  std::int64_t parent_bytes = 0;
  std::int64_t middle_bytes = 0;                   // B at the middle context
  std::vector<std::int64_t> negated_block_tokens;  // by pool: larger is better
  std::vector<std::int64_t> parts;                 // by pool
  std::vector<std::int64_t> negated_blocks_per_parent;
  friend auto operator<=>(const SizeKey&, const SizeKey&) = default;
};

struct PoolSize {
  std::size_t block = 0;  // of SearchPool::blocks
  std::int64_t blocks_per_parent = 0;
  friend bool operator==(const PoolSize&, const PoolSize&) = default;
};

struct SizeSolution {
  SizeKey key;
  std::vector<PoolSize> pools;
  std::int64_t compared = 0;  // choices that were costed
};

// The best choice that admits what is needed; nullopt if there is none.
[[nodiscard]] std::optional<SizeSolution> FindSizes(const SearchProblem& problem);
// The first choice that admits what is needed, whatever it costs; its key has no cost.
[[nodiscard]] std::optional<SizeSolution> FindAnySizes(const SearchProblem& problem);

// cost(L) = ceil(512 * B * 2 A / (F * (2 A - (pools + 2) * P))); the largest integer where the divisor is not
// positive. Requires 0 < B <= A <= 2^50 and F > 0.
[[nodiscard]] std::int64_t Cost512(std::int64_t bytes, std::int64_t payload, std::int64_t arena,
                                   std::int64_t parent, std::int64_t pools);

}  // namespace kvasir::native

#endif  // KVASIR_PLANNER_RULESETS_NATIVE_SIZE_SEARCH_H_
