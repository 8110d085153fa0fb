// What the CUDA runtime hands out, freed with its object: memory, a stream, a graph that can be launched.
#ifndef KVASIR_WORKER_CUDA_DEVICE_OBJECTS_H_
#define KVASIR_WORKER_CUDA_DEVICE_OBJECTS_H_

#include <cuda_runtime.h>

#include <cstddef>
#include <memory>

#include "absl/status/statusor.h"
#include "common/base/units.h"

namespace kvasir::cuda {

// Of one cudaMalloc; aligned to 256 bytes, not zeroed.
class DeviceBuffer {
 public:
  static absl::StatusOr<std::shared_ptr<DeviceBuffer>> Make(Bytes bytes);
  DeviceBuffer(const DeviceBuffer&) = delete;
  DeviceBuffer& operator=(const DeviceBuffer&) = delete;
  ~DeviceBuffer();

  [[nodiscard]] std::byte* data() const { return data_; }
  [[nodiscard]] float* floats() const { return reinterpret_cast<float*>(data_); }
  [[nodiscard]] Bytes size() const { return size_; }

 private:
  DeviceBuffer(std::byte* data, Bytes size) : data_(data), size_(size) {}
  std::byte* data_;
  Bytes size_;
};

class StreamObject {
 public:
  static absl::StatusOr<std::shared_ptr<StreamObject>> Make();
  StreamObject(const StreamObject&) = delete;
  StreamObject& operator=(const StreamObject&) = delete;
  ~StreamObject();
  [[nodiscard]] cudaStream_t get() const { return stream_; }

 private:
  explicit StreamObject(cudaStream_t stream) : stream_(stream) {}
  cudaStream_t stream_;
};

// Between Begin and End what is enqueued on the stream is recorded, not run. A capture that is not ended is
// thrown away.
class GraphCapture {
 public:
  static absl::StatusOr<std::unique_ptr<GraphCapture>> Begin(cudaStream_t stream);
  GraphCapture(const GraphCapture&) = delete;
  GraphCapture& operator=(const GraphCapture&) = delete;
  ~GraphCapture();
  // Freed with the last copy of the pointer.
  absl::StatusOr<std::shared_ptr<void>> End();

 private:
  explicit GraphCapture(cudaStream_t stream) : stream_(stream) {}
  cudaStream_t stream_;
  bool open_ = true;
};

// Enqueues what GraphCapture::End gave.
[[nodiscard]] absl::Status LaunchGraph(const std::shared_ptr<void>& graph, cudaStream_t stream);

}  // namespace kvasir::cuda

#endif  // KVASIR_WORKER_CUDA_DEVICE_OBJECTS_H_
