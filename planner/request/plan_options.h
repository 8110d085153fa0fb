// What a person or a client asks for, beside the two models. Nothing here is checked: build_request.h makes
// the core's request of it, and the core judges every value.
#ifndef KVASIR_PLANNER_REQUEST_PLAN_OPTIONS_H_
#define KVASIR_PLANNER_REQUEST_PLAN_OPTIONS_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace kvasir {

// Words of PlanOptions::draft_context.
inline constexpr std::string_view kDraftSharded = "sharded";
inline constexpr std::string_view kDraftReplicated = "replicated";

// As many run together as must fit; and at least 16.
[[nodiscard]] constexpr std::int64_t DefaultMaxRequests(std::int64_t min_requests) {
  return min_requests > 16 ? min_requests : 16;
}

struct PlanOptions {
  std::string ruleset = "native";
  std::int64_t tp = 1;
  std::int64_t dcp = 1;
  std::int64_t interleave = 1;                // tokens
  std::vector<std::int64_t> kv_memory_bytes;  // one value for every rank, or one for each rank in order
  // Context lengths in tokens; 0 is the model's limit. The longest is what must fit; more than one become the
  // columns of the capacity table. Empty: 8k, 32k and 128k as far as the model goes, and the model's limit.
  std::vector<std::int64_t> contexts;
  std::int64_t max_requests = 16;
  std::int64_t min_requests = 1;
  std::int64_t draft_tokens = 0;          // 0: the draft method's own number; none without a draft
  std::string cache_dtype = "auto";       // of per-token caches: auto (the model's), bf16, f16, f32, fp8_e4m3
  std::string target_backend;             // a name of backends.h; empty: kDefaultBackend
  std::string draft_backend;              // the same
  std::int64_t block_tokens = 0;          // 0: the planner chooses
  std::string state_rollback = "auto";    // auto, none, snapshots, replay
  std::string draft_context = "sharded";  // sharded, replicated: the draft's rows over the ranks of a context
  std::int64_t prefill_chunk = 0;         // tokens; 0: 2048, or the context where that is shorter
};

}  // namespace kvasir

#endif  // KVASIR_PLANNER_REQUEST_PLAN_OPTIONS_H_
