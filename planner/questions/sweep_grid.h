// The points of a sweep by their numbers. Part of sweep.cc.
#ifndef KVASIR_PLANNER_QUESTIONS_SWEEP_GRID_H_
#define KVASIR_PLANNER_QUESTIONS_SWEEP_GRID_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "planner/core/wide.h"
#include "planner/questions/sweep.h"

namespace kvasir {

// The axis, or the question's own value where it is empty.
template <class T>
std::vector<T> Values(const std::vector<T>& axis, T own) {
  return axis.empty() ? std::vector<T>{std::move(own)} : axis;
}

struct Memory {
  std::vector<std::int64_t> bytes;
  std::optional<GpuRow> device;
};

inline std::vector<Memory> MemoriesOf(const PlanQuestion& base, const SweepAxes& axes) {
  std::vector<Memory> out;
  out.reserve(axes.devices.size() + axes.kv_memory_bytes.size() + 1);
  for (const GpuRow& device : axes.devices) out.push_back({{}, device});
  for (const std::int64_t bytes : axes.kv_memory_bytes) out.push_back({{bytes}, std::nullopt});
  if (out.empty()) out.push_back({base.options.kv_memory_bytes, std::nullopt});
  return out;
}

// Numbered points; the last axis turns fastest.
class Grid {
 public:
  Grid(const PlanQuestion& base, const SweepAxes& axes)
      : own_(base.options),
        rulesets_(Values(axes.rulesets, own_.ruleset)),
        memories_(MemoriesOf(base, axes)),
        tp_(Values(axes.tp, own_.tp)),
        dcp_(Values(axes.dcp, own_.dcp)),
        blocks_(Values(axes.block_tokens, own_.block_tokens)),
        dtypes_(Values(axes.cache_dtypes, own_.cache_dtype)),
        rollbacks_(Values(axes.state_rollbacks, own_.state_rollback)),
        tokens_(Values(axes.draft_tokens, own_.draft_tokens)),
        contexts_(Values(axes.contexts, own_.contexts.empty() ? std::int64_t{0} : own_.contexts.back())) {}

  // Saturates far above kSweepPointsMax: the product of a few long lists is past counting one by one.
  [[nodiscard]] std::int64_t size() const {
    Wide product = 1;
    for (const std::size_t axis :
         {rulesets_.size(), memories_.size(), tp_.size(), dcp_.size(), blocks_.size(), dtypes_.size(),
          rollbacks_.size(), tokens_.size(), contexts_.size()}) {
      product = std::min<Wide>(product * static_cast<Wide>(axis), Wide{1} << 40);
    }
    return static_cast<std::int64_t>(product);
  }

  // nullopt: the number is no point, since its dcp does not divide its tp.
  [[nodiscard]] std::optional<PlanOptions> Point(std::int64_t number, std::optional<GpuRow>& device) const {
    auto rest = static_cast<std::size_t>(number);
    const auto take = [&rest](const auto& axis) -> const auto& {
      const std::size_t place = rest % axis.size();
      rest /= axis.size();
      return axis[place];
    };
    PlanOptions out = own_;
    out.contexts = {take(contexts_)};
    out.draft_tokens = take(tokens_);
    out.state_rollback = take(rollbacks_);
    out.cache_dtype = take(dtypes_);
    out.block_tokens = take(blocks_);
    out.dcp = take(dcp_);
    out.tp = take(tp_);
    const Memory& memory = take(memories_);
    out.kv_memory_bytes = memory.bytes;
    device = memory.device;
    out.ruleset = take(rulesets_);
    if (out.tp > 0 && out.dcp > 0 && out.tp % out.dcp != 0) return std::nullopt;
    return out;
  }

 private:
  PlanOptions own_;
  std::vector<std::string> rulesets_;
  std::vector<Memory> memories_;
  std::vector<std::int64_t> tp_;
  std::vector<std::int64_t> dcp_;
  std::vector<std::int64_t> blocks_;
  std::vector<std::string> dtypes_;
  std::vector<std::string> rollbacks_;
  std::vector<std::int64_t> tokens_;
  std::vector<std::int64_t> contexts_;
};

}  // namespace kvasir

#endif  // KVASIR_PLANNER_QUESTIONS_SWEEP_GRID_H_
