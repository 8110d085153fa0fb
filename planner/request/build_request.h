// From models and options to the core's PlanRequest: sizes per rank, behaviour and lifetime of each layer,
// the backend table. Used by the command line and by the service, so that both ask the planner the same
// question.
#ifndef KVASIR_PLANNER_REQUEST_BUILD_REQUEST_H_
#define KVASIR_PLANNER_REQUEST_BUILD_REQUEST_H_

#include <cstdint>
#include <optional>

#include "common/models/model_description.h"
#include "planner/core/plan_request.h"
#include "planner/request/cache_layer.h"
#include "planner/request/plan_options.h"

namespace kvasir {

inline constexpr std::int64_t kDsparkDraftTokens = 7;  // what DSpark drafts are trained and launched with
inline constexpr std::int64_t kPrefillChunkDefault = 2048;

// Tokens drafted per step: the option, or the method's number; 0 without a draft.
[[nodiscard]] std::int64_t DraftTokensOf(const PlanOptions& options, bool has_draft);
// The option, or what the draft was trained for, or the method's number; 0 without a draft.
[[nodiscard]] std::int64_t DraftTokensOf(const PlanOptions& options,
                                         const std::optional<ModelDescription>& draft);

// Total: what is wrong becomes a refusal in `early_refusals` (heads that tensor parallelism does not divide,
// a dtype or a role that is unknown) or is left in the request for the core to refuse (a topology out of
// range, an unknown backend). Sharded over context when dcp > 1: latent caches and key-value caches without a
// window. The ranks of one DCP group then hold the same key-value heads and different tokens.
[[nodiscard]] PlanRequest BuildRequest(const ModelInput& target, const std::optional<ModelInput>& draft,
                                       const PlanOptions& options);
[[nodiscard]] PlanRequest BuildRequest(const ModelDescription& target,
                                       const std::optional<ModelDescription>& draft,
                                       const PlanOptions& options);

}  // namespace kvasir

#endif  // KVASIR_PLANNER_REQUEST_BUILD_REQUEST_H_
