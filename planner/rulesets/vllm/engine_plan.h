// What the engine makes of an EngineCase. Layers and specs are indices: of EngineCase::layers, and of
// EnginePlan::specs, which holds each distinct spec once.
#ifndef KVASIR_PLANNER_RULESETS_VLLM_ENGINE_PLAN_H_
#define KVASIR_PLANNER_RULESETS_VLLM_ENGINE_PLAN_H_

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "planner/rulesets/vllm/engine_failure.h"
#include "planner/rulesets/vllm/engine_spec.h"

namespace kvasir::vllm {

// The engine's wrapper for layers of one type and different pages: each layer keeps its spec.
struct UniformTypeSpecs {
  struct Member {
    std::int32_t layer = 0;
    std::int32_t spec = 0;
    friend bool operator==(const Member&, const Member&) = default;
  };
  std::int64_t block_size = 0;       // tokens
  std::vector<Member> members = {};  // at least one
  friend bool operator==(const UniformTypeSpecs&, const UniformTypeSpecs&) = default;
};

// One merged spec for all layers, or the wrapper.
using GroupSpec = std::variant<std::int32_t, UniformTypeSpecs>;

// Layers that share a block table. After projection to a pipeline stage `layers` may be empty; a wrapper then
// still holds the layers of the other stages, as in the engine.
struct EngineGroup {
  std::vector<std::int32_t> layers = {};
  GroupSpec spec = std::int32_t{0};
  bool eagle = false;  // the engine's is_eagle_group: the draft's, whose last block a prefix hit drops
  friend bool operator==(const EngineGroup&, const EngineGroup&) = default;
};

// A piece of the cache allocation. 2026-08: `layers` share one buffer; where block_stride is not 0 all
// tensors alias one allocation and each begins `offset` into every block. 2026-11: layer l's block b begins
// at offset + l * layer_stride + b * block_stride of one allocation of `size` bytes.
struct EngineTensor {
  std::int64_t size = 0;  // bytes
  std::vector<std::int32_t> layers = {};
  std::int64_t offset = 0;        // bytes
  std::int64_t block_stride = 0;  // bytes
  std::int64_t layer_stride = 0;  // bytes; 2026-11
  friend bool operator==(const EngineTensor&, const EngineTensor&) = default;
};

struct EngineWorkerPlan {
  std::int64_t num_blocks = 0;
  std::vector<EngineTensor> tensors = {};
  std::vector<EngineGroup> groups = {};  // projected to this worker
  friend bool operator==(const EngineWorkerPlan&, const EngineWorkerPlan&) = default;
};

// The numbers behind the engine's memory check. nullopt: computing it raises. Needed and estimated are those
// of the final max_model_len.
struct EngineWorkerNumbers {
  std::optional<std::int64_t> pool_bytes_per_block = {};
  std::optional<std::int64_t> needed_bytes = {};             // of one request of max_model_len
  std::optional<std::int64_t> check_memory = {};             // available without the null block
  std::optional<std::int64_t> estimated_max_model_len = {};  // tokens; 0: not even one
  friend bool operator==(const EngineWorkerNumbers&, const EngineWorkerNumbers&) = default;
};

// What this engine would do under `python -O`, or by a set's order, or a defect that its users meet here.
struct EngineWarning {
  std::string about = {};  // "python -O", "PYTHONHASHSEED", "defect"
  std::string message = {};
  std::string address = {};  // of the issue or pull request; may be empty
  friend bool operator==(const EngineWarning&, const EngineWarning&) = default;
};

// With a failure, what was computed before it is kept: `groups` if grouping succeeded, and so on.
struct EnginePlan {
  EngineVersion version = EngineVersion::k2026_08;
  std::optional<EngineFailure> failure = {};
  std::vector<EngineSpec> specs = {};

  bool attention_free = false;               // no layers
  std::optional<bool> is_spec_uniform = {};  // nullopt: asking raises
  std::optional<bool> is_type_uniform = {};  // nullopt: asking raises
  bool grouped = false;                      // `groups` is the engine's answer
  std::vector<EngineGroup> groups = {};      // global, before projection
  std::vector<EngineWorkerNumbers> per_worker = {};
  std::vector<EngineWorkerPlan> workers = {};      // empty on a failure before
  std::vector<std::int32_t> scheduler_specs = {};  // one a group: a wrapper's first member
  std::int64_t max_model_len = 0;                  // tokens, after auto fit
  bool needs_kv_cache_zeroing = false;
  bool has_mixed_precision_kv_cache = false;
  std::optional<double> max_concurrency = {};  // requests of max_model_len
  std::optional<std::int64_t> kv_cache_size_tokens = {};
  std::optional<std::int64_t> scheduler_block_size = {};  // tokens
  std::optional<std::int64_t> hash_block_size = {};       // tokens
  std::vector<EngineWarning> warnings = {};
  std::vector<std::string> log = {};  // lines that the engine logs about padding and fallbacks, in order
};

}  // namespace kvasir::vllm

#endif  // KVASIR_PLANNER_RULESETS_VLLM_ENGINE_PLAN_H_
