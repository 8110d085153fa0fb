#include "worker/engine/check_engine_options.h"

#include <string>

#include "absl/strings/str_format.h"
#include "common/base/error_reasons.h"
#include "common/base/status_macros.h"
#include "common/base/typed_error.h"
#include "common/models/model_text.h"

namespace kvasir {
namespace {

absl::Status CheckDigest(const char* field, const ModelDescription& model, const ModelRef& planned) {
  const std::string digest = ModelDigest(model);
  if (digest == planned.digest) return absl::OkStatus();
  return FieldError(reason::kModelDigestMismatch, field,
                    absl::StrFormat("%s: the description of %s has digest %s, the plan names %s with %s",
                                    field, model.name, digest, planned.name, planned.digest));
}

}  // namespace

absl::Status CheckEngineOptions(const RankEngineOptions& options) {
  const Plan& plan = options.plan;
  if (options.place.topology != plan.topology || options.place.rank < 0 ||
      options.place.rank >= plan.topology.tp) {
    return FieldError(reason::kValueOutOfRange, "place",
                      absl::StrFormat("place: rank %d of tp %d, dcp %d; the plan has tp %d, dcp %d",
                                      options.place.rank, options.place.topology.tp,
                                      options.place.topology.dcp, plan.topology.tp, plan.topology.dcp));
  }
  const std::int64_t ranks = options.communicator != nullptr ? options.communicator->size() : 1;
  const std::int64_t rank = options.communicator != nullptr ? options.communicator->rank() : 0;
  if (ranks != plan.topology.tp || rank != options.place.rank) {
    return FieldError(reason::kRanksIncomplete, "communicator",
                      absl::StrFormat("communicator: rank %d of %d, want rank %d of %d", rank, ranks,
                                      options.place.rank, plan.topology.tp));
  }
  if (options.draft.has_value() != (plan.draft_tokens > 0) ||
      (options.draft.has_value() && !options.draft->draft.has_value())) {
    return FieldError(
        reason::kConflictingFields, "draft",
        absl::StrFormat("draft: the plan drafts %d tokens; give the description of a draft if and "
                        "only if it drafts some",
                        plan.draft_tokens));
  }
  KVASIR_RETURN_IF_ERROR(CheckDigest("target", options.target, plan.target));
  return options.draft.has_value() ? CheckDigest("draft", *options.draft, plan.draft) : absl::OkStatus();
}

}  // namespace kvasir
