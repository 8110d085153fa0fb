// How much room a deployment has, seen from outside.
#ifndef KVASIR_TESTS_TOOLS_SOAK_ROOM_H_
#define KVASIR_TESTS_TOOLS_SOAK_ROOM_H_

#include <string>

#include "absl/status/statusor.h"
#include "kvasir/worker/v1/worker_service.grpc.pb.h"

namespace kvasir::soak {

// Joins requests that reserve less and less, each twice, on a deployment that is otherwise idle, and cancels
// all of them: which were admitted. With fewer free blocks it is another answer. "512 - 256 - ...".
[[nodiscard]] absl::StatusOr<std::string> MeasureRoom(worker::v1::WorkerService::Stub& leader);

}  // namespace kvasir::soak

#endif  // KVASIR_TESTS_TOOLS_SOAK_ROOM_H_
