// PreparePlan's messages and the values behind them. Everything that can be wrong in a request is found here,
// once.
#ifndef KVASIR_WORKER_SERVICE_CONVERT_PREPARE_H_
#define KVASIR_WORKER_SERVICE_CONVERT_PREPARE_H_

#include <cstddef>

#include "absl/status/statusor.h"
#include "kvasir/worker/v1/worker_service.pb.h"
#include "worker/comm/facts.h"
#include "worker/service/prepare_spec.h"

namespace kvasir {

// `places`: ranks that this worker can host. Besides field errors: PLAN_HASH_MISMATCH, PLAN_TEXT_INVALID,
// PLAN_INVALID, MODEL_TEXT_INVALID, MODEL_DIGEST_MISMATCH, RANKS_INCOMPLETE, RANK_CAPACITY.
[[nodiscard]] absl::StatusOr<PrepareSpec> ToPrepareSpec(const worker::v1::PreparePlanRequest& request,
                                                        std::size_t places);

[[nodiscard]] worker::v1::PreparePlanResponse FromPrepareReport(const PrepareSpec& spec,
                                                                const PrepareReport& report,
                                                                const RankFacts& facts);

}  // namespace kvasir

#endif  // KVASIR_WORKER_SERVICE_CONVERT_PREPARE_H_
