#include "planner/wire/options_to_proto.h"

#include <cstdint>

namespace kvasir {

plan::v1::PlanOptions OptionsToProto(const PlanOptions& options) {
  plan::v1::PlanOptions out;
  out.mutable_topology()->set_tp(static_cast<std::int32_t>(options.tp));
  out.mutable_topology()->set_dcp(static_cast<std::int32_t>(options.dcp));
  out.mutable_topology()->set_interleave_tokens(static_cast<std::int32_t>(options.interleave));
  out.mutable_kv_memory_bytes()->Add(options.kv_memory_bytes.begin(), options.kv_memory_bytes.end());
  out.mutable_context_tokens()->Add(options.contexts.begin(), options.contexts.end());
  out.set_request_count_min(static_cast<std::int32_t>(options.min_requests));
  out.set_request_count_max(static_cast<std::int32_t>(options.max_requests));
  out.set_prefill_chunk_tokens(options.prefill_chunk);
  out.set_cache_dtype(options.cache_dtype);
  out.set_draft_tokens(static_cast<std::int32_t>(options.draft_tokens));
  out.set_state_rollback(options.state_rollback);
  out.set_target_backend(options.target_backend);
  out.set_draft_backend(options.draft_backend);
  out.set_block_tokens(options.block_tokens);
  out.set_draft_context(options.draft_context);
  out.set_ruleset(options.ruleset);
  return out;
}

}  // namespace kvasir
