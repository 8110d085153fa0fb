#include "planner/rulesets/native/size_search.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>

#include "common/base/checked_math.h"
#include "planner/core/wide.h"

namespace kvasir::native {
namespace {

// Bounds the work for requests with many pools; counted, not timed, so that the answer is the same
// everywhere.
constexpr std::int64_t kStepsMax = std::int64_t{1} << 18;

class Search {
 public:
  Search(const SearchProblem& problem, bool any)
      : problem_(problem), any_(any), sizes_(problem.pools.size()) {
    order_.resize(problem.pools.size());
    std::iota(order_.begin(), order_.end(), std::size_t{0});
    // Largest blocks first: they leave the fewest choices.
    std::sort(order_.begin(), order_.end(), [&](std::size_t a, std::size_t b) {
      const std::int64_t left = SmallestStride(problem.pools[a]);
      const std::int64_t right = SmallestStride(problem.pools[b]);
      return left != right ? left > right : a < b;
    });
  }

  std::optional<SizeSolution> Run() {
    Descend(0, {.parent = 1, .multiple = 1});
    if (best_.has_value()) best_->compared = compared_;
    return std::move(best_);
  }

 private:
  // What the pools chosen so far ask of P: at least `parent`, and a multiple of `multiple`.
  struct Demand {
    std::int64_t parent = 1;
    std::int64_t multiple = 1;
  };
  enum class Verdict : std::int8_t { kGo, kSkip, kStop };

  static std::int64_t SmallestStride(const SearchPool& pool) {
    std::int64_t least = std::numeric_limits<std::int64_t>::max();
    for (const SearchBlock& block : pool.blocks) least = std::min(least, block.stride_min);
    return least;
  }

  bool Done() const { return steps_ >= kStepsMax || (any_ && best_.has_value()); }

  void Descend(std::size_t depth, Demand demand) {
    if (depth == order_.size()) return Leaf(demand.parent);
    const SearchPool& pool = problem_.pools[order_[depth]];
    for (std::size_t i = 0; i < pool.blocks.size(); ++i) {
      // Close to the parent that the other pools already need the stride is tightest; from there both ways
      // the bound grows, so each way ends at the first choice that cannot win.
      const std::int64_t fit = demand.parent / pool.blocks[i].stride_min;
      for (std::int64_t k = fit; k >= 1 && !Done(); --k) {
        if (Try(depth, i, k, demand) == Verdict::kStop) break;
      }
      for (std::int64_t k = fit + 1; !Done(); ++k) {
        if (Try(depth, i, k, demand) == Verdict::kStop) break;
      }
    }
  }

  Verdict Try(std::size_t depth, std::size_t block, std::int64_t k, Demand demand) {
    ++steps_;
    const SearchPool& pool = problem_.pools[order_[depth]];
    const Wide least = Wide{k} * pool.blocks[block].stride_min;
    if (least > problem_.parent_bytes_max) return Verdict::kStop;
    sizes_[order_[depth]] = {.block = block, .blocks_per_parent = k};
    demand.parent = std::max(demand.parent, static_cast<std::int64_t>(least));
    if (!Promising(depth + 1, demand.parent)) return Verdict::kStop;
    // k * unit <= least, so neither product overflows.
    const auto multiple = CheckedLcm(demand.multiple, k * pool.unit_bytes);
    if (!multiple.has_value() || *multiple > problem_.parent_bytes_max) return Verdict::kSkip;
    demand.multiple = *multiple;
    const auto parent = CheckedRoundUp(demand.parent, demand.multiple);
    if (!parent.has_value() || *parent > problem_.parent_bytes_max) return Verdict::kSkip;
    demand.parent = *parent;
    if (!Promising(depth + 1, demand.parent)) return Verdict::kSkip;
    Descend(depth + 1, demand);
    return Verdict::kGo;
  }

  // Could the first `chosen` pools with a parent of at least `parent` bytes lead to something better than the
  // best? Every bound here grows with `parent`.
  bool Promising(std::size_t chosen, std::int64_t parent) const {
    Wide needed = parent;  // the null parent
    std::array<Wide, 3> bytes = {};
    for (std::size_t i = 0; i < order_.size(); ++i) {
      const SearchPool& pool = problem_.pools[order_[i]];
      if (i < chosen) {
        const PoolSize& size = sizes_[order_[i]];
        const SearchBlock& block = pool.blocks[size.block];
        needed += Wide{block.blocks_needed} * parent / size.blocks_per_parent;
        for (std::size_t c = 0; c < bytes.size(); ++c)
          bytes[c] += Wide{block.blocks[c]} * parent / size.blocks_per_parent;
        continue;
      }
      Wide least_needed = Wide{1} << 126;
      std::array<Wide, 3> least = {least_needed, least_needed, least_needed};
      for (const SearchBlock& block : pool.blocks) {
        least_needed = std::min(least_needed, Wide{block.blocks_needed} * block.stride_min);
        for (std::size_t c = 0; c < least.size(); ++c) {
          least[c] = std::min(least[c], Wide{block.blocks[c]} * block.stride_min);
        }
      }
      needed += least_needed;
      for (std::size_t c = 0; c < bytes.size(); ++c) bytes[c] += least[c];
    }
    if (needed > problem_.arena_bytes) return false;
    if (any_ || !best_.has_value()) return true;
    const std::int64_t cost = WorstCost(bytes, parent);
    if (cost != best_->key.cost_512) return cost < best_->key.cost_512;
    return parent <= best_->key.parent_bytes;
  }

  std::int64_t WorstCost(const std::array<Wide, 3>& bytes, std::int64_t parent) const {
    std::int64_t worst = 0;
    for (std::size_t c = 0; c < bytes.size(); ++c) {
      worst = std::max(worst, Cost512(Saturated(bytes[c]), problem_.payload[c], problem_.arena_bytes, parent,
                                      static_cast<std::int64_t>(order_.size())));
    }
    return worst;
  }

  void Leaf(std::int64_t parent) {
    Wide parents = 1;
    std::array<Wide, 3> bytes = {};
    for (std::size_t i = 0; i < sizes_.size(); ++i) {
      const SearchBlock& block = problem_.pools[i].blocks[sizes_[i].block];
      const std::int64_t k = sizes_[i].blocks_per_parent;
      parents += CeilDiv(block.blocks_needed, k);
      for (std::size_t c = 0; c < bytes.size(); ++c) bytes[c] += Wide{block.blocks[c]} * (parent / k);
    }
    if (parents * parent > problem_.arena_bytes) return;
    ++compared_;
    SizeKey key;
    key.cost_512 = any_ ? 0 : WorstCost(bytes, parent);
    key.parent_bytes = parent;
    key.middle_bytes = Saturated(bytes[1]);
    for (std::size_t i = 0; i < sizes_.size(); ++i) {
      const SearchBlock& block = problem_.pools[i].blocks[sizes_[i].block];
      key.negated_block_tokens.push_back(-block.block_tokens);
      key.parts.push_back(block.parts);
      key.negated_blocks_per_parent.push_back(-sizes_[i].blocks_per_parent);
    }
    if (!best_.has_value() || key < best_->key) {
      best_ = SizeSolution{.key = std::move(key), .pools = sizes_, .compared = 0};
    }
  }

  const SearchProblem& problem_;
  const bool any_;
  std::vector<std::size_t> order_;  // of pools, as the search walks
  std::vector<PoolSize> sizes_;     // of the branch at hand, by pool
  std::optional<SizeSolution> best_;
  std::int64_t steps_ = 0;
  std::int64_t compared_ = 0;
};

}  // namespace

std::int64_t Cost512(std::int64_t bytes, std::int64_t payload, std::int64_t arena, std::int64_t parent,
                     std::int64_t pools) {
  const Wide usable = Wide{2} * arena - Wide{pools + 2} * parent;
  if (usable <= 0) return std::numeric_limits<std::int64_t>::max();
  const Wide above = Wide{512} * bytes * 2 * arena;
  const Wide below = Wide{payload} * usable;
  return Saturated(above / below + (above % below != 0 ? 1 : 0));
}

std::optional<SizeSolution> FindSizes(const SearchProblem& problem) { return Search(problem, false).Run(); }

std::optional<SizeSolution> FindAnySizes(const SearchProblem& problem) { return Search(problem, true).Run(); }

}  // namespace kvasir::native
