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
#include "planner/request/check_options.h"
#include "planner/request/engine_drafting.h"
#include "planner/request/engine_length.h"

namespace kvasir {
namespace {

// Our words and the engine's.
constexpr std::array kCacheWords = {
    std::pair{std::string_view("auto"), std::string_view("auto")},
    std::pair{std::string_view("bf16"), std::string_view("bfloat16")},
    std::pair{std::string_view("f16"), std::string_view("float16")},
    std::pair{std::string_view("fp8_e4m3"), std::string_view("fp8")},
};

absl::Status SetCacheDtype(const std::string& word, LaunchOptions& options) {
  for (const auto& [ours, engine] : kCacheWords) {
    if (word == ours) options.kv_cache_dtype = engine;
  }
  if (options.kv_cache_dtype.has_value()) return absl::OkStatus();
  return FieldError(
      reason::kUnknownValue, "cache_dtype",
      absl::StrFormat("cache dtype \"%s\": the engine keeps auto, bf16, f16 or fp8_e4m3 for these flags; a "
                      "launch command after -- takes all of its own words",
                      word.substr(0, 64)));
}

// The engine's first name of one of our backends; our own, which it does not have, leaves the choice to it.
absl::Status SetBackend(std::string_view field, const std::string& name, OptionalText& backend) {
  if (name.empty() || name == kDefaultBackend) return absl::OkStatus();
  for (const BackendRow& row : BackendRows()) {
    if (row.facts.name != name || row.engine.empty()) continue;
    backend = std::string(row.engine.substr(0, row.engine.find(' ')));
    return absl::OkStatus();
  }
  return FieldError(reason::kUnknownValue, field,
                    absl::StrFormat("backend \"%s\": the engine has none of that name; "
                                    "docs/generated/backends.md lists them",
                                    name.substr(0, 64)));
}

}  // namespace

absl::StatusOr<EngineLaunch> LaunchOf(const ModelDescription& target,
                                      const std::optional<ModelDescription>& draft, const PlanOptions& asked,
                                      EngineRelease release) {
  KVASIR_RETURN_IF_ERROR(CheckPlanOptions(asked));
  EngineLaunch launch;
  launch.target = target;
  launch.draft = draft;
  launch.release = release;
  LaunchOptions& options = launch.options;
  options.model = target.name;
  options.tensor_parallel = asked.tp;
  options.decode_context_parallel = asked.dcp;
  options.dcp_interleave = asked.interleave;
  KVASIR_RETURN_IF_ERROR(SetCacheDtype(asked.cache_dtype, options));
  options.max_num_seqs = asked.max_requests;
  if (asked.block_tokens != 0) options.block_size = asked.block_tokens;
  if (asked.prefill_chunk != 0) options.max_num_batched_tokens = asked.prefill_chunk;
  KVASIR_RETURN_IF_ERROR(SetBackend("target_backend", asked.target_backend, options.attention_backend));
  std::int64_t longest = 0;
  for (const std::int64_t tokens : asked.contexts) {
    longest = tokens == 0 ? EngineLengthLimit(target) : std::max(longest, tokens);
  }
  if (longest != 0) options.max_model_len = longest;
  const bool own_layers = draft.has_value() && draft->draft.has_value() &&
                          draft->draft->method == DraftMethod::kMtp && draft->layers == target.mtp_layers;
  if (own_layers) {
    launch.draft.reset();  // they lie in the target's checkpoint: the engine is told the method alone
  } else if (draft.has_value()) {
    options.spec_model = draft->name;
  }
  if (draft.has_value()) {
    if (draft->draft.has_value()) options.spec_method = std::string(EngineMethodOf(draft->draft->method));
    options.spec_tokens = DraftTokensOf(asked, draft);
    KVASIR_RETURN_IF_ERROR(SetBackend("draft_backend", asked.draft_backend, options.spec_attention_backend));
  }
  if (draft.has_value() && asked.dcp > 1 && asked.draft_context == kDraftReplicated) {
    return FieldError(reason::kUnknownValue, "draft_context",
                      "the engine shards a draft's cache over context like its target's; leave draft_context "
                      "sharded, or set dcp to 1");
  }
  if (asked.state_rollback == "replay") options.replay_ssm = true;
  if (!asked.kv_memory_bytes.empty()) {
    options.kv_cache_memory_bytes =
        *std::min_element(asked.kv_memory_bytes.begin(), asked.kv_memory_bytes.end());
  }
  return launch;
}

}  // namespace kvasir
