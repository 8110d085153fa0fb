// Engine cases for tests of the vllm rulesets, written down by hand.
#ifndef KVASIR_TESTS_TESTING_ENGINE_CASES_H_
#define KVASIR_TESTS_TESTING_ENGINE_CASES_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "planner/rulesets/vllm/engine_case.h"
#include "planner/rulesets/vllm/engine_plan.h"

namespace kvasir::testing {

inline constexpr std::int64_t kGib = std::int64_t{1} << 30;

// bfloat16 caches with blocks of 16 tokens. A full page is 16 * heads * 2 * head_size * 2 bytes: 64 KiB for 8
// x 128.
[[nodiscard]] vllm::EngineSpec FullSpec(std::int64_t heads = 8, std::int64_t head_size = 128);
[[nodiscard]] vllm::EngineSpec SlidingSpec(std::int64_t window = 1024, std::int64_t heads = 8,
                                           std::int64_t head_size = 128);
[[nodiscard]] vllm::EngineSpec ChunkedSpec(std::int64_t chunk = 1024);
// One latent vector a token, blocks of 64 tokens: a page of 64 * head_size * 2 bytes, 72 KiB for 576.
[[nodiscard]] vllm::EngineSpec MlaSpec(std::int64_t head_size = 576);
[[nodiscard]] vllm::EngineSpec SlidingMlaSpec(std::int64_t window = 128, std::int64_t head_size = 576);
// One float32 state of `elements`, 4 bytes each; blocks of 2^17 tokens.
[[nodiscard]] vllm::EngineSpec MambaSpec(std::int64_t elements = 16384);
// 5 x 2048 bfloat16 numbers a token, blocks of 16 tokens.
[[nodiscard]] vllm::EngineSpec HiddenSpec(std::int64_t heads = 5, std::int64_t head_size = 2048);

// Grows a case layer by layer; one worker of `available_bytes` unless more are added.
class CaseBuilder {
 public:
  explicit CaseBuilder(std::int64_t max_model_len = 8192, std::int64_t available_bytes = 20 * kGib);

  CaseBuilder& Layer(std::string name, const vllm::EngineSpec& spec);
  // Layers named "<prefix>.<i>" with consecutive i over all calls.
  CaseBuilder& Layers(std::string_view prefix, const vllm::EngineSpec& spec, int count);
  // Further workers with the same layers.
  CaseBuilder& Worker(std::int64_t available_bytes);
  // Pipeline stages: worker w gets the layers [bounds[w], bounds[w + 1]).
  CaseBuilder& Stages(const std::vector<std::int32_t>& bounds,
                      const std::vector<std::int64_t>& available_bytes);

  [[nodiscard]] vllm::EngineConfig& config() { return case_.config; }
  [[nodiscard]] vllm::EngineCase& engine_case() { return case_; }

 private:
  vllm::EngineCase case_;
};

// Kimi-K3 on 8 tensor-parallel ranks (69 KDA and 24 MLA layers) with the 5 MLA layers of its DSpark draft: 98
// layers. `marked`: the draft's layers decode several non-causal tokens, as that engine says it.
[[nodiscard]] vllm::EngineCase KimiK3Dspark(bool marked = true);

// Numbers of layers of each group, in order.
[[nodiscard]] std::vector<std::size_t> GroupSizes(const vllm::EnginePlan& plan);

// The group's spec, or a wrapper's first.
[[nodiscard]] const vllm::EngineSpec& SpecOfGroup(const vllm::EnginePlan& plan, std::size_t group);

inline constexpr vllm::EngineVersion kBothVersions[] = {vllm::EngineVersion::k2026_08,
                                                        vllm::EngineVersion::k2026_11};

}  // namespace kvasir::testing

#endif  // KVASIR_TESTS_TESTING_ENGINE_CASES_H_
