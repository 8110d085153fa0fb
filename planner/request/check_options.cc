#include "planner/request/check_options.h"

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>

#include "absl/strings/str_format.h"
#include "common/base/error_reasons.h"
#include "common/base/limits.h"
#include "common/base/status_macros.h"
#include "common/base/typed_error.h"

namespace kvasir {
namespace {

absl::Status CheckRange(std::string_view field, std::int64_t value, std::int64_t min, std::int64_t max) {
  if (value >= min && value <= max) return absl::OkStatus();
  return FieldError(reason::kValueOutOfRange, field,
                    absl::StrFormat("%s is %d; it must be from %d to %d", field, value, min, max));
}

absl::Status CheckWord(std::string_view field, const std::string& value,
                       std::initializer_list<std::string_view> words) {
  std::string known;
  for (const std::string_view word : words) {
    if (value == word) return absl::OkStatus();
    known += (known.empty() ? "" : ", ") + std::string(word);
  }
  return FieldError(reason::kUnknownValue, field,
                    absl::StrFormat("%s is \"%s\": want one of %s", field, value.substr(0, 64), known));
}

}  // namespace

absl::Status CheckPlanOptions(const PlanOptions& options) {
  KVASIR_RETURN_IF_ERROR(CheckRange("tp", options.tp, 1, kRanksMax));
  KVASIR_RETURN_IF_ERROR(CheckRange("dcp", options.dcp, 1, kRanksMax));
  KVASIR_RETURN_IF_ERROR(CheckRange("interleave", options.interleave, 1, kBlockTokensMax));
  KVASIR_RETURN_IF_ERROR(CheckRange("max_requests", options.max_requests, 1, kRequestsMax));
  KVASIR_RETURN_IF_ERROR(CheckRange("min_requests", options.min_requests, 1, kRequestsMax));
  KVASIR_RETURN_IF_ERROR(CheckRange("draft_tokens", options.draft_tokens, 0, kDraftTokensMax));
  KVASIR_RETURN_IF_ERROR(CheckRange("block_tokens", options.block_tokens, 0, kBlockTokensMax));
  KVASIR_RETURN_IF_ERROR(CheckRange("prefill_chunk", options.prefill_chunk, 0, kContextTokensMax));
  for (const std::int64_t context : options.contexts) {
    KVASIR_RETURN_IF_ERROR(CheckRange("context", context, 0, kContextTokensMax));
  }
  for (const std::int64_t bytes : options.kv_memory_bytes) {
    KVASIR_RETURN_IF_ERROR(CheckRange("kv_memory", bytes, 0, kArenaBytesMax));
  }
  KVASIR_RETURN_IF_ERROR(
      CheckWord("state_rollback", options.state_rollback, {"auto", "none", "snapshots", "replay"}));
  return CheckWord("draft_context", options.draft_context, {kDraftSharded, kDraftReplicated});
}

}  // namespace kvasir
