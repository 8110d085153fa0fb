#include "common/plan/verify.h"

#include <string>

#include "absl/strings/str_format.h"
#include "common/base/limits.h"
#include "common/base/status_macros.h"
#include "common/plan/verify_parts.h"

namespace kvasir {
namespace verify {

absl::Status Broken(const Field& field, const std::string& value, const std::string& rule) {
  return absl::InvalidArgumentError(absl::StrFormat("plan: %s is %s, must be %s", field.Text(), value, rule));
}

absl::Status CheckEqual(const Field& field, std::int64_t value, std::int64_t want, std::string_view reason) {
  if (value == want) return absl::OkStatus();
  return Broken(field, std::to_string(value), absl::StrFormat("%d: %s", want, reason));
}

absl::Status CheckRange(const Field& field, std::int64_t value, std::int64_t min, std::int64_t max) {
  if (value >= min && value <= max) return absl::OkStatus();
  return Broken(field, std::to_string(value), absl::StrFormat("from %d to %d", min, max));
}

absl::Status CheckName(const Field& field, const std::string& name) {
  if (!name.empty() && static_cast<std::int64_t>(name.size()) <= kNameBytesMax) return absl::OkStatus();
  return Broken(field + ".size", std::to_string(name.size()), absl::StrFormat("from 1 to %d", kNameBytesMax));
}

}  // namespace verify

namespace {

using verify::Broken;
using verify::CheckEqual;
using verify::CheckName;
using verify::CheckRange;
using verify::Field;

absl::Status CheckModel(const Field& field, const ModelRef& model) {
  KVASIR_RETURN_IF_ERROR(CheckName(field + ".name", model.name));
  if (model.digest.size() == 64 && model.digest.find_first_not_of("0123456789abcdef") == std::string::npos) {
    return absl::OkStatus();
  }
  return Broken(field + ".digest", absl::StrFormat("'%s'", model.digest), "64 lower-case hex digits");
}

absl::Status CheckTopology(const Topology& topology) {
  KVASIR_RETURN_IF_ERROR(CheckRange("topology.tp", topology.tp, 1, kRanksMax));
  KVASIR_RETURN_IF_ERROR(CheckRange("topology.dcp", topology.dcp, 1, topology.tp));
  KVASIR_RETURN_IF_ERROR(CheckRange("topology.interleave", topology.interleave, 1, kBlockTokensMax));
  if (topology.tp % topology.dcp == 0) return absl::OkStatus();
  return Broken("topology.dcp", std::to_string(topology.dcp),
                absl::StrFormat("a divisor of tp %d", topology.tp));
}

absl::Status CheckLimits(const Plan& plan) {
  KVASIR_RETURN_IF_ERROR(CheckName("ruleset", plan.ruleset));
  KVASIR_RETURN_IF_ERROR(CheckModel("target", plan.target));
  KVASIR_RETURN_IF_ERROR(CheckRange("draft_tokens", plan.draft_tokens, 0, kDraftTokensMax));
  if (plan.draft_tokens > 0) {
    KVASIR_RETURN_IF_ERROR(CheckModel("draft", plan.draft));
  } else if (plan.draft != ModelRef()) {
    return Broken("draft.name", absl::StrFormat("'%s'", plan.draft.name), "empty: draft_tokens is 0");
  }
  KVASIR_RETURN_IF_ERROR(CheckRange("context_tokens", plan.context_tokens, 1, kContextTokensMax));
  KVASIR_RETURN_IF_ERROR(CheckRange("max_requests", plan.max_requests, 1, kRequestsMax));
  return CheckRange("prefill_chunk", plan.prefill_chunk, 1, kContextTokensMax);
}

absl::Status CheckArena(const Plan& plan) {
  const std::int64_t arena = plan.arena_bytes.value();
  const std::int64_t parent = plan.parent_bytes.value();
  KVASIR_RETURN_IF_ERROR(CheckRange("arena_bytes", arena, 1, kArenaBytesMax));
  KVASIR_RETURN_IF_ERROR(CheckRange("parent_bytes", parent, 1, arena));
  KVASIR_RETURN_IF_ERROR(CheckEqual("parents", plan.parents, arena / parent, "arena_bytes / parent_bytes"));
  // The null parent and at least one for each pool, or no sequence could ever run.
  return CheckRange("parents", plan.parents, 1 + static_cast<std::int64_t>(plan.pools.size()),
                    kArenaBytesMax);
}

}  // namespace

absl::Status VerifyPlan(const Plan& plan) {
  KVASIR_RETURN_IF_ERROR(CheckLimits(plan));
  KVASIR_RETURN_IF_ERROR(CheckTopology(plan.topology));
  KVASIR_RETURN_IF_ERROR(
      CheckRange("pools.size", static_cast<std::int64_t>(plan.pools.size()), 1, kPoolsMax));
  KVASIR_RETURN_IF_ERROR(CheckArena(plan));
  KVASIR_RETURN_IF_ERROR(verify::Groups(plan));
  KVASIR_RETURN_IF_ERROR(verify::Pools(plan));
  KVASIR_RETURN_IF_ERROR(verify::Graphs(plan));
  return verify::Attribution(plan);
}

}  // namespace kvasir
