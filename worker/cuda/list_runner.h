// Enqueues launch lists on a stream, and does what cannot be enqueued: collectives over other ranks.
#ifndef KVASIR_WORKER_CUDA_LIST_RUNNER_H_
#define KVASIR_WORKER_CUDA_LIST_RUNNER_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "worker/cuda/device_objects.h"
#include "worker/cuda/dispatch.h"
#include "worker/engine/communicator.h"
#include "worker/engine/launch.h"

namespace kvasir::cuda {

// The memory that a list needs beside the engine's: scratch of its operations, what its collectives gather,
// and a word for a bad token. Lists may share one that is large enough for each.
struct ListMemory {
  std::shared_ptr<DeviceBuffer> scratch, gathered, bad_token;
};

class ListRunner {
 public:
  ListRunner(const DeviceLimits& device, std::shared_ptr<StreamObject> stream, Communicator* tensor,
             Communicator* context)
      : device_(device), stream_(std::move(stream)), tensor_(tensor), context_(context) {}

  [[nodiscard]] cudaStream_t stream() const { return stream_->get(); }

  // Makes `memory` large enough for the list; what was there may still be used by others.
  absl::Status Reserve(const LaunchList& list, ListMemory& memory) const;
  // Whether the operation has to wait for other ranks, and so runs through the host.
  [[nodiscard]] bool IsHost(const Launch& launch) const;
  // One that is not IsHost, of a shape that the device has a kernel for.
  absl::Status Enqueue(const Launch& launch, const ListMemory& memory) const;
  // One that is IsHost: waits for the stream, gathers, and enqueues the rest.
  absl::Status RunOnHost(const Launch& launch, const ListMemory& memory);
  absl::Status ClearBadToken(const ListMemory& memory) const;
  // Waits for all that was enqueued. InvalidArgument where a token of the list was outside its table.
  absl::Status Finish(const LaunchList& list, const ListMemory& memory) const;

 private:
  [[nodiscard]] Communicator* Group(CommGroup group) const {
    return group == CommGroup::kTensor ? tensor_ : context_;
  }
  [[nodiscard]] std::int64_t Ranks(CommGroup group) const;
  [[nodiscard]] std::int64_t RankIn(CommGroup group) const;
  [[nodiscard]] std::int64_t GatheredFloats(const Launch& launch) const;
  // All ranks' `count` floats, one rank after the other, to `to`.
  absl::Status Gather(CommGroup group, const float* mine, std::int64_t count, float* to);

  DeviceLimits device_;
  std::shared_ptr<StreamObject> stream_;
  Communicator* tensor_;
  Communicator* context_;
  std::vector<float> mine_, all_;  // on the host
};

}  // namespace kvasir::cuda

#endif  // KVASIR_WORKER_CUDA_LIST_RUNNER_H_
