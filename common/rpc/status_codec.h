// absl::Status (with the payloads of common/base/typed_error.h) <-> grpc::Status with google.rpc details.
// On the wire every error has one ErrorInfo of domain "kvasir.dev"; InvalidArgument with a field also has a
// BadRequest, FailedPrecondition a PreconditionFailure, an advice to wait a RetryInfo.
#ifndef KVASIR_COMMON_RPC_STATUS_CODEC_H_
#define KVASIR_COMMON_RPC_STATUS_CODEC_H_

#include <grpcpp/support/status.h>

#include "absl/status/status.h"

namespace kvasir {

inline constexpr char kErrorDomain[] = "kvasir.dev";

[[nodiscard]] grpc::Status ToGrpcStatus(const absl::Status& status);

// Total: details that do not parse, or of another domain, leave a status with code and message. A transport
// failure (UNAVAILABLE without details) stays without a reason of ours.
[[nodiscard]] absl::Status FromGrpcStatus(const grpc::Status& status);

}  // namespace kvasir

#endif  // KVASIR_COMMON_RPC_STATUS_CODEC_H_
