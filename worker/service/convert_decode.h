// The Decode stream's messages and the values behind them.
#ifndef KVASIR_WORKER_SERVICE_CONVERT_DECODE_H_
#define KVASIR_WORKER_SERVICE_CONVERT_DECODE_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kvasir/worker/v1/decode.pb.h"
#include "kvasir/worker/v1/deployment_state.pb.h"
#include "worker/engine/scheduler.h"
#include "worker/service/decode_sink.h"
#include "worker/service/leader_loop.h"
#include "worker/service/worker_node.h"

namespace kvasir {

// At least 1. The field's path is within `action`: "join.tag".
[[nodiscard]] absl::Status CheckTag(const char* field, std::int64_t tag);

// Limits that do not depend on a plan; field paths are those of JoinRequest. `fresh_seed` is for a request
// that names none.
[[nodiscard]] absl::StatusOr<SequenceRequest> ToSequenceRequest(const worker::v1::JoinRequest& join,
                                                                std::uint64_t fresh_seed);
[[nodiscard]] absl::StatusOr<JoinTerms> ToJoinTerms(const worker::v1::JoinRequest& join);

// A status becomes an ErrorEvent; the scheduler's field names become those of JoinRequest.
[[nodiscard]] worker::v1::DecodeResponse FromDecodeEvent(const DecodeEvent& event);

[[nodiscard]] worker::v1::DeploymentState FromView(const DeploymentView& view);

}  // namespace kvasir

#endif  // KVASIR_WORKER_SERVICE_CONVERT_DECODE_H_
