#include "planner/request/launch_of_options.h"

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <utility>

#include "absl/strings/str_format.h"
#include "common/base/error_reasons.h"
#include "common/base/status_macros.h"
#include "common/base/typed_error.h"
#include "planner/request/backends.h"
#include "planner/request/build_request.h"

namespace kvasir {
namespace {

constexpr std::array kCacheWords = {
    std::pair{std::string_view("bf16"), std::string_view("bfloat16")},
    std::pair{std::string_view("f16"), std::string_view("float16")},
    std::pair{std::string_view("fp8_e4m3"), std::string_view("fp8")},
};

absl::Status SetCacheDtype(const PlanOptions& options, LaunchOptions& launch) {
  if (options.cache_dtype.empty() || options.cache_dtype == "auto") return absl::OkStatus();
  for (const auto& [ours, engine] : kCacheWords) {
    if (options.cache_dtype == ours) launch.kv_cache_dtype = engine;
  }
  if (launch.kv_cache_dtype.has_value()) return absl::OkStatus();
  return FieldError(reason::kUnknownValue, "cache_dtype",
                    absl::StrFormat("cache_dtype is \"%s\"; the engine keeps auto, bf16, f16 or fp8_e4m3",
                                    options.cache_dtype.substr(0, 64)));
}

// Ours is nobody else's: the engine then chooses.
absl::Status SetBackend(std::string_view field, const std::string& name, OptionalText& backend) {
  if (name.empty() || name == kDefaultBackend) return absl::OkStatus();
  for (const BackendRow& row : BackendRows()) {
    if (row.facts.name != name || row.engine.empty()) continue;
    backend = std::string(row.engine.substr(0, row.engine.find(' ')));
    return absl::OkStatus();
  }
  return FieldError(reason::kUnknownValue, field,
                    absl::StrFormat("%s is \"%s\", which the engine does not have; leave it out, or see "
                                    "docs/generated/backends.md",
                                    field, name.substr(0, 64)));
}

}  // namespace

absl::StatusOr<EngineLaunch> LaunchOf(const ModelDescription& target,
                                      const std::optional<ModelDescription>& draft,
                                      const PlanOptions& options, vllm::EngineVersion version) {
  EngineLaunch launch;
  launch.target = target;
  launch.draft = draft;
  launch.release = ReleaseOf(version);
  LaunchOptions& said = launch.options;
  said.model = target.name;
  said.tensor_parallel = options.tp;
  said.decode_context_parallel = options.dcp;
  if (options.dcp > 1) said.dcp_interleave = options.interleave;
  const auto longest = std::max_element(options.contexts.begin(), options.contexts.end());
  const bool limit = options.contexts.empty() ||  // 0 stands for the model's own
                     std::find(options.contexts.begin(), options.contexts.end(), 0) != options.contexts.end();
  if (!limit) said.max_model_len = *longest;
  if (options.block_tokens != 0) said.block_size = options.block_tokens;
  if (options.prefill_chunk != 0) said.max_num_batched_tokens = options.prefill_chunk;
  KVASIR_RETURN_IF_ERROR(SetCacheDtype(options, said));
  KVASIR_RETURN_IF_ERROR(SetBackend("target_backend", options.target_backend, said.attention_backend));
  KVASIR_RETURN_IF_ERROR(SetBackend("draft_backend", options.draft_backend, said.spec_attention_backend));
  if (draft.has_value()) {
    said.spec_model = draft->name;
    said.spec_tokens = DraftTokensOf(options, true);
  }
  return launch;
}

}  // namespace kvasir
