// The options that the engine plans with, after its own defaults: what a launch command did not say is
// decided by the model, the device and the release. Facts: vllm/engine/arg_utils.py,
// vllm/config/{vllm,cache,speculative}.py.
#ifndef KVASIR_PLANNER_REQUEST_ENGINE_SETTINGS_H_
#define KVASIR_PLANNER_REQUEST_ENGINE_SETTINGS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/models/model_description.h"
#include "planner/request/engine_release.h"
#include "planner/request/gpu_table.h"
#include "planner/request/launch_options.h"
#include "planner/rulesets/vllm/engine_spec.h"

namespace kvasir {

// What a launch is about: the models are found already, the rest is as it was said.
struct EngineLaunch {
  ModelDescription target;
  std::optional<ModelDescription> draft;  // of spec_model; not set for MTP layers and n-grams
  LaunchOptions options;
  EngineRelease release;
  std::optional<GpuRow> device;  // nullopt: not said; the device's defaults are assumed and listed
  // The target is an original's description, whose length its copy may have stretched.
  bool is_copy = false;
  bool did_start =
      false;  // it ran, perhaps in a fork: what the engine takes where nothing is said is not judged
};

struct EngineSettings {
  std::int64_t tp = 1;
  std::int64_t pp = 1;
  std::int64_t dcp = 1;
  std::int64_t pcp = 1;
  std::int64_t max_model_len = 0;  // tokens; with auto_fit the most
  bool auto_fit = false;
  std::int64_t max_num_batched_tokens = 0;
  std::int64_t max_num_seqs = 0;
  std::int64_t batches_in_flight = 1;  // the engine's max_concurrent_batches, as its planning reads it
  bool prefix_caching = true;
  vllm::MambaCacheMode mamba_cache_mode = vllm::MambaCacheMode::kNone;
  std::string cache_dtype;         // the engine's word, "auto" resolved to "bfloat16" and the like
  std::string backend;             // vLLM's name; empty: of neither kind, or not known
  std::int64_t kernel_block = 16;  // the smallest that the attention kernels take; tokens
  std::int64_t block = 16;         // before a hybrid's is raised; tokens
  bool block_was_said = false;
  bool of_one_size = false;  // the model's kernels take multiples of kernel_block only, whatever the backend
  std::string spec_method;   // empty: no drafting
  std::int64_t spec_tokens = 0;
  double gpu_memory_utilization = 0;
  std::vector<std::string> assumed;   // sentences: what was neither said nor follows from what was
  std::vector<std::string> warnings;  // sentences: what the engine will take otherwise than it was said
};

// InvalidArgument, naming flag, value and fix, where the engine would refuse the options before it plans: a
// parallelism that does not divide, a draft without a number of tokens, a length over the model's.
[[nodiscard]] absl::StatusOr<EngineSettings> SettingsOf(const EngineLaunch& launch);

// Whether any layer keeps a recurrent state, whether any keeps a latent row without a window, and whether an
// indexer picks among such rows.
[[nodiscard]] bool HasStates(const ModelDescription& model);
[[nodiscard]] bool HasLatent(const ModelDescription& model);
[[nodiscard]] bool IsSparse(const ModelDescription& model);

}  // namespace kvasir

#endif  // KVASIR_PLANNER_REQUEST_ENGINE_SETTINGS_H_
