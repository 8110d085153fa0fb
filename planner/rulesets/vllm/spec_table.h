// The distinct specs of one planning run, each with its page computed once. Layers and groups hold ids, so
// that comparing specs, the commonest question of grouping, compares two integers.
#ifndef KVASIR_PLANNER_RULESETS_VLLM_SPEC_TABLE_H_
#define KVASIR_PLANNER_RULESETS_VLLM_SPEC_TABLE_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "planner/rulesets/vllm/engine_plan.h"
#include "planner/rulesets/vllm/engine_spec.h"

namespace kvasir::vllm {

// The engine's dict from layer to spec, in insertion order.
using LayerSpecs = std::vector<UniformTypeSpecs::Member>;

class SpecTable {
 public:
  explicit SpecTable(EngineVersion version, bool repaired = false) : version_(version), repaired_(repaired) {}

  [[nodiscard]] EngineVersion version() const { return version_; }
  // Whether known defects are planned as they were meant (plan_engine.h).
  [[nodiscard]] bool repaired() const { return repaired_; }

  // The id of an equal spec, or a new one. Ids count up from 0 in order of first appearance.
  std::int32_t Intern(EngineSpec spec);

  // Valid until the next Intern.
  [[nodiscard]] const EngineSpec& operator[](std::int32_t id) const {
    return specs_[static_cast<std::size_t>(id)];
  }

  // PageBytes of the spec (engine_spec.h).
  [[nodiscard]] EngineResult<std::int64_t> Page(std::int32_t id) const;

  // Interned copies with one field replaced.
  [[nodiscard]] EngineResult<std::int32_t> WithBlockSize(std::int32_t id, std::int64_t tokens);
  [[nodiscard]] EngineResult<std::int32_t> WithPaddedPage(std::int32_t id, std::int64_t bytes);

  [[nodiscard]] std::vector<EngineSpec> TakeSpecs() && { return std::move(specs_); }

 private:
  EngineVersion version_;
  bool repaired_;
  std::vector<EngineSpec> specs_;
  std::vector<std::optional<std::int64_t>> pages_;  // nullopt: reading it raises
  std::multimap<std::uint64_t, std::int32_t> by_fingerprint_;
};

// Ids of the specs of `layers`, each once, in order of first appearance.
[[nodiscard]] std::vector<std::int32_t> DistinctSpecs(const LayerSpecs& layers);

// Ids of the specs that a group's spec covers, each once.
[[nodiscard]] std::vector<std::int32_t> SpecsOf(const EngineGroup& group);

// The spec id of the i-th layer of a group: in a wrapper that layer's own, else the group's. Requires
// i < group.layers.size(); a wrapper that has layers lists its members in their order.
[[nodiscard]] std::int32_t SpecAt(const EngineGroup& group, std::size_t i);

}  // namespace kvasir::vllm

#endif  // KVASIR_PLANNER_RULESETS_VLLM_SPEC_TABLE_H_
