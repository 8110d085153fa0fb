#include "planner/rulesets/vllm/plan_warnings.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <iterator>
#include <string>
#include <utility>

#include "absl/strings/str_format.h"
#include "planner/core/wide.h"
#include "planner/rulesets/vllm/mark_draft_groups.h"
#include "planner/rulesets/vllm/merge_layers.h"
#include "planner/rulesets/vllm/need_bytes.h"

namespace kvasir::vllm {
namespace {

constexpr char kOptimized[] = "python -O";
constexpr char kHashSeed[] = "PYTHONHASHSEED";
constexpr char kDefect[] = "defect";

std::string Engine(const EnginePlan& plan) { return std::string(EngineVersionName(plan.version)); }

// The first merge that only an assertion refuses.
std::vector<EngineWarning> Divergence(const SpecTable& table, const EnginePlan& plan,
                                      const std::vector<EngineLayer>& names, const GroupingNotes& notes) {
  if (!notes.divergence.has_value()) return {};
  const std::string differs = MergeRefusalText(table, notes.divergence->refusal, names);
  switch (notes.divergence->outcome) {
    case WithoutAssert::kSame:
      return {};
    case WithoutAssert::kMerges:
      return {{kOptimized,
               absl::StrFormat(
                   "%s without assertions merges layers that differ (%s) and gives all of them the first "
                   "one's spec",
                   Engine(plan), differs),
               "https://github.com/vllm-project/vllm/pull/55187"}};
    case WithoutAssert::kValueError:
      return {{kOptimized,
               absl::StrFormat("%s without assertions fails with ValueError where these layers meet (%s)",
                               Engine(plan), differs),
               "https://github.com/vllm-project/vllm/pull/55187"}};
    case WithoutAssert::kAttributeError:
      return {{kOptimized,
               absl::StrFormat("%s without assertions fails with AttributeError where these layers meet (%s)",
                               Engine(plan), differs),
               "https://github.com/vllm-project/vllm/pull/55187"}};
    case WithoutAssert::kHashSeed:
      return {
          {kOptimized,
           absl::StrFormat("%s without assertions merges layers that differ (%s)", Engine(plan), differs),
           "https://github.com/vllm-project/vllm/issues/54649"},
          {kHashSeed,
           absl::StrFormat("the merged value is then whichever a set of strings yields first (%s)", differs),
           "https://github.com/vllm-project/vllm/issues/54649"}};
  }
  return {};
}

// An assertion that ends planning is not there either.
std::vector<EngineWarning> MissingAssertion(const EnginePlan& plan, const GroupingNotes& notes) {
  if (notes.divergence.has_value() || !plan.failure.has_value() ||
      plan.failure->kind != EngineErrorKind::kAssertionError) {
    return {};
  }
  return {
      {kOptimized,
       absl::StrFormat("%s without assertions passes this failure by and gives another plan or another error",
                       Engine(plan)),
       "https://github.com/vllm-project/vllm/pull/55187"}};
}

// A stage without layers of a wrapper still places the other stages' layers.
std::vector<EngineWarning> ForeignTensors(const EnginePlan& plan) {
  if (plan.version == EngineVersion::k2026_08) return {};
  for (std::size_t w = 0; w < plan.workers.size(); ++w) {
    const EngineWorkerPlan& worker = plan.workers[w];
    const bool foreign =
        std::any_of(worker.groups.begin(), worker.groups.end(), [](const EngineGroup& group) {
          return group.layers.empty() && std::holds_alternative<UniformTypeSpecs>(group.spec);
        });
    if (!foreign || worker.tensors.empty()) continue;
    return {{kDefect,
             absl::StrFormat("worker %d has tensors of layers that belong to other pipeline stages", w),
             "https://github.com/vllm-project/vllm/issues/54711"}};
  }
  return {};
}

// 2026-08 charges packed groups more than they take.
std::vector<EngineWarning> PackedOvercount(const SpecTable& table, const EngineConfig& config,
                                           const EnginePlan& plan) {
  const bool wrappers =
      plan.groups.size() > 1 && std::all_of(plan.groups.begin(), plan.groups.end(), [](const auto& g) {
        return std::holds_alternative<UniformTypeSpecs>(g.spec);
      });
  if (plan.version != EngineVersion::k2026_08 || !wrappers || plan.per_worker.empty()) return {};
  const EngineWorkerNumbers& numbers = plan.per_worker.front();
  if (!numbers.needed_bytes.has_value() || !numbers.pool_bytes_per_block.has_value()) return {};
  std::int64_t blocks = 0;
  for (const EngineGroup& group : plan.groups) {
    const auto own = RequestBlocks(table, group, config, plan.max_model_len);
    if (!own.ok()) return {};
    blocks += *own;
  }
  const Wide taken = Wide{*numbers.pool_bytes_per_block} * blocks;
  if (taken >= *numbers.needed_bytes) return {};
  return {{kDefect,
           absl::StrFormat("one request is charged %d bytes; at the real stride its %d blocks take %d",
                           *numbers.needed_bytes, blocks, Saturated(taken)),
           "https://github.com/vllm-project/vllm/issues/51041"}};
}

// With no group marked, consumers take every group for the draft's.
std::vector<EngineWarning> UnmarkedDraft(const EngineConfig& config, const EnginePlan& plan) {
  if (!config.speculative.has_value() || !IsEagleLike(config.speculative->method)) return {};
  const bool later = plan.version == EngineVersion::k2026_11;
  if (later && config.speculative->disable_eagle_block_drop) return {};
  if (plan.groups.size() < 2 || std::any_of(plan.groups.begin(), plan.groups.end(),
                                            [](const EngineGroup& group) { return group.eagle; })) {
    return {};
  }
  return {{kDefect,
           absl::StrFormat(
               "no group is marked as the draft's (method %s), so every group drops its last block at a "
               "prefix hit",
               config.speculative->method),
           later ? "https://github.com/vllm-project/vllm/pull/57616"
                 : "https://github.com/vllm-project/vllm/pull/52047"}};
}

// Exceptions that are no judgement of the input: what was meant is known (plan_engine.h).
std::vector<EngineWarning> FatalDefect(const EnginePlan& plan) {
  if (!plan.failure.has_value()) return {};
  if (plan.failure->kind == EngineErrorKind::kTypeError) {
    return {{kDefect,
             absl::StrFormat("%s fails here with TypeError; meant is one cache of all layers", Engine(plan)),
             ""}};
  }
  if (plan.failure->kind == EngineErrorKind::kStopIteration) {
    return {{kDefect,
             absl::StrFormat(
                 "%s fails here with StopIteration; meant is a group of the bucket that it cuts into more "
                 "pieces than it has layer tuples",
                 Engine(plan)),
             ""}};
  }
  return {};
}

// A merged group has one flag for its blocks' masks. The engine takes any member's, and so causal layers run
// without a mask where a draft's do.
std::vector<EngineWarning> SharedCausality(const EngineCase& asked, const EnginePlan& plan) {
  std::vector<EngineWarning> warnings;
  for (std::size_t i = 0; i < plan.groups.size(); ++i) {
    if (!std::holds_alternative<std::int32_t>(plan.groups[i].spec)) continue;
    std::vector<std::int32_t> causal;
    std::vector<std::int32_t> non_causal;
    for (const std::int32_t layer : plan.groups[i].layers) {
      const auto place = static_cast<std::size_t>(asked.layers[static_cast<std::size_t>(layer)].spec);
      const bool flag = asked.specs[place].non_causal_multi_token_decode || asked.specs[place].non_causal;
      (flag ? non_causal : causal).push_back(layer);
    }
    if (causal.empty() || non_causal.empty()) continue;
    const auto name = [&](std::int32_t layer) { return asked.layers[static_cast<std::size_t>(layer)].name; };
    warnings.push_back(
        {kDefect,
         absl::StrFormat(
             "group %d gives %d causal layers (%s ...) and %d non-causal ones (%s ...) one flag: the "
             "causal layers then verify drafted tokens without a mask, or are refused for a backend "
             "that they do not need",
             i, causal.size(), name(causal.front()), non_causal.size(), name(non_causal.front())),
         "https://github.com/vllm-project/vllm/pull/56952"});
  }
  return warnings;
}

}  // namespace

std::vector<EngineWarning> WarningsOf(const SpecTable& table, const EngineCase& asked, const EnginePlan& plan,
                                      const GroupingNotes& notes) {
  const EngineConfig& config = asked.config;
  const std::vector<EngineLayer>& names = asked.layers;
  std::vector<EngineWarning> warnings;
  std::array found = {
      Divergence(table, plan, names, notes), MissingAssertion(plan, notes), ForeignTensors(plan),
      PackedOvercount(table, config, plan),  UnmarkedDraft(config, plan),   FatalDefect(plan),
      SharedCausality(asked, plan)};
  for (std::vector<EngineWarning>& some : found) {
    warnings.insert(warnings.end(), std::make_move_iterator(some.begin()),
                    std::make_move_iterator(some.end()));
  }
  return warnings;
}

}  // namespace kvasir::vllm
