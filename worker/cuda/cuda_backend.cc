#include "worker/cuda/cuda_backend.h"

#include <cuda_runtime.h>

#include <utility>

#include "absl/strings/str_format.h"
#include "common/base/status_macros.h"
#include "worker/cuda/cuda_status.h"
#include "worker/cuda/device_objects.h"
#include "worker/cuda/dispatch.h"
#include "worker/cuda/list_runner.h"

namespace kvasir {
namespace {

using cuda::FromCuda;

class CudaMemory : public DeviceMemory {
 public:
  explicit CudaMemory(std::shared_ptr<cuda::DeviceBuffer> buffer) : buffer_(std::move(buffer)) {}
  [[nodiscard]] std::byte* data() const override { return buffer_->data(); }
  [[nodiscard]] Bytes size() const override { return buffer_->size(); }

 private:
  std::shared_ptr<cuda::DeviceBuffer> buffer_;
};

// A graph of CUDA's, or an operation between two of them that runs through the host.
struct Stretch {
  std::shared_ptr<void> graph;
  Launch host;  // where there is no graph
};

class CudaBackend : public Backend {
 public:
  CudaBackend(const CudaOptions& options, const cudaDeviceProp& properties,
              std::shared_ptr<cuda::StreamObject> stream)
      : device_(options.device),
        name_(properties.name),
        limits_{.architecture = properties.major * 10 + properties.minor,
                .shared_bytes_max = static_cast<std::int64_t>(properties.sharedMemPerBlockOptin)},
        memory_bytes_(static_cast<std::int64_t>(properties.totalGlobalMem)),
        runner_(limits_, std::move(stream), options.tensor, options.context) {}

  [[nodiscard]] DeviceFacts Describe() const override { return {"cuda", name_, memory_bytes_}; }

  absl::StatusOr<std::unique_ptr<DeviceMemory>> Allocate(Bytes bytes) override {
    KVASIR_RETURN_IF_ERROR(Select());
    if (bytes.value() < 0) return absl::ResourceExhaustedError("memory: less than no bytes asked for");
    auto buffer = cuda::DeviceBuffer::Make(bytes.value() == 0 ? Bytes(1) : bytes);
    if (absl::IsResourceExhausted(buffer.status())) return OutOfMemory(bytes, buffer.status());
    if (!buffer.ok()) return buffer.status();
    KVASIR_RETURN_IF_ERROR(Zero((*buffer)->data(), bytes));
    return std::make_unique<CudaMemory>(*std::move(buffer));
  }

  absl::Status Write(std::byte* to, std::span<const std::byte> from) override {
    return Move(to, from.data(), from.size(), cudaMemcpyHostToDevice);
  }
  absl::Status Read(std::span<std::byte> to, const std::byte* from) override {
    return Move(to.data(), from, to.size(), cudaMemcpyDeviceToHost);
  }
  absl::Status Copy(std::byte* to, const std::byte* from, Bytes bytes) override {
    return Move(to, from, static_cast<std::size_t>(bytes.value()), cudaMemcpyDeviceToDevice);
  }
  absl::Status Zero(std::byte* at, Bytes bytes) override {
    KVASIR_RETURN_IF_ERROR(Select());
    KVASIR_RETURN_IF_ERROR(
        FromCuda(cudaMemsetAsync(at, 0, static_cast<std::size_t>(bytes.value()), runner_.stream()),
                 "cudaMemsetAsync"));
    return FromCuda(cudaStreamSynchronize(runner_.stream()), "cudaStreamSynchronize");
  }

  absl::Status Run(const LaunchList& list) override {
    KVASIR_RETURN_IF_ERROR(Prepare(list));
    KVASIR_RETURN_IF_ERROR(runner_.ClearBadToken(memory_));
    for (const Launch& launch : list) {
      KVASIR_RETURN_IF_ERROR(runner_.IsHost(launch) ? runner_.RunOnHost(launch, memory_)
                                                    : runner_.Enqueue(launch, memory_));
    }
    return runner_.Finish(list, memory_);
  }

  absl::StatusOr<std::unique_ptr<Graph>> Capture(const LaunchList& list) override;
  absl::Status Replay(const std::vector<Stretch>& stretches, const LaunchList& list,
                      const cuda::ListMemory& memory);

 private:
  // The calling thread works on this device from now on.
  absl::Status Select() const { return FromCuda(cudaSetDevice(device_), "cudaSetDevice"); }

  absl::Status Prepare(const LaunchList& list) {
    KVASIR_RETURN_IF_ERROR(Select());
    KVASIR_RETURN_IF_ERROR(cuda::CheckShapes(list, limits_));
    return runner_.Reserve(list, memory_);
  }

  absl::Status Move(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind) {
    KVASIR_RETURN_IF_ERROR(Select());
    KVASIR_RETURN_IF_ERROR(
        FromCuda(cudaMemcpyAsync(to, from, bytes, kind, runner_.stream()), "cudaMemcpyAsync"));
    return FromCuda(cudaStreamSynchronize(runner_.stream()), "cudaStreamSynchronize");
  }

  [[nodiscard]] absl::Status OutOfMemory(Bytes asked, const absl::Status& status) const {
    std::size_t free = 0;
    std::size_t total = 0;
    (void)cudaGetLastError();
    if (cudaMemGetInfo(&free, &total) != cudaSuccess) return status;
    return absl::ResourceExhaustedError(absl::StrFormat(
        "memory: %d bytes asked for, %d of %d bytes are free on this device", asked.value(), free, total));
  }

  int device_;
  std::string name_;
  cuda::DeviceLimits limits_;
  Bytes memory_bytes_;
  cuda::ListRunner runner_;
  cuda::ListMemory memory_;  // of what runs next; graphs keep the one they were captured with
};

class CudaGraph : public Graph {
 public:
  CudaGraph(CudaBackend& backend, LaunchList list, std::vector<Stretch> stretches, cuda::ListMemory memory)
      : backend_(backend),
        list_(std::move(list)),
        stretches_(std::move(stretches)),
        memory_(std::move(memory)) {}
  absl::Status Replay() override { return backend_.Replay(stretches_, list_, memory_); }

 private:
  CudaBackend& backend_;
  const LaunchList list_;  // for what to say of a bad token
  const std::vector<Stretch> stretches_;
  const cuda::ListMemory memory_;
};

absl::StatusOr<std::unique_ptr<Graph>> CudaBackend::Capture(const LaunchList& list) {
  KVASIR_RETURN_IF_ERROR(Prepare(list));
  std::vector<Stretch> stretches;
  std::unique_ptr<cuda::GraphCapture> capture;
  const auto end = [&]() -> absl::Status {
    if (capture == nullptr) return absl::OkStatus();
    KVASIR_ASSIGN_OR_RETURN(std::shared_ptr<void> graph, capture->End());
    capture.reset();
    stretches.push_back({std::move(graph), {}});
    return absl::OkStatus();
  };
  for (const Launch& launch : list) {
    if (runner_.IsHost(launch)) {
      KVASIR_RETURN_IF_ERROR(end());
      stretches.push_back({nullptr, launch});
      continue;
    }
    if (capture == nullptr) {
      KVASIR_ASSIGN_OR_RETURN(capture, cuda::GraphCapture::Begin(runner_.stream()));
    }
    KVASIR_RETURN_IF_ERROR(runner_.Enqueue(launch, memory_));
  }
  KVASIR_RETURN_IF_ERROR(end());
  return std::make_unique<CudaGraph>(*this, list, std::move(stretches), memory_);
}

absl::Status CudaBackend::Replay(const std::vector<Stretch>& stretches, const LaunchList& list,
                                 const cuda::ListMemory& memory) {
  KVASIR_RETURN_IF_ERROR(Select());
  KVASIR_RETURN_IF_ERROR(runner_.ClearBadToken(memory));
  for (const Stretch& stretch : stretches) {
    KVASIR_RETURN_IF_ERROR(stretch.graph != nullptr ? cuda::LaunchGraph(stretch.graph, runner_.stream())
                                                    : runner_.RunOnHost(stretch.host, memory));
  }
  return runner_.Finish(list, memory);
}

}  // namespace

absl::StatusOr<std::vector<std::string>> CudaDevices() {
  int count = 0;
  KVASIR_RETURN_IF_ERROR(FromCuda(cudaGetDeviceCount(&count), "cudaGetDeviceCount"));
  std::vector<std::string> names;
  for (int device = 0; device < count; ++device) {
    cudaDeviceProp properties;
    KVASIR_RETURN_IF_ERROR(FromCuda(cudaGetDeviceProperties(&properties, device), "cudaGetDeviceProperties"));
    names.emplace_back(properties.name);
  }
  return names;
}

absl::StatusOr<std::unique_ptr<Backend>> MakeCudaBackend(const CudaOptions& options) {
  KVASIR_RETURN_IF_ERROR(FromCuda(cudaSetDevice(options.device), "cudaSetDevice"));
  cudaDeviceProp properties;
  KVASIR_RETURN_IF_ERROR(
      FromCuda(cudaGetDeviceProperties(&properties, options.device), "cudaGetDeviceProperties"));
  KVASIR_ASSIGN_OR_RETURN(std::shared_ptr<cuda::StreamObject> stream, cuda::StreamObject::Make());
  return std::make_unique<CudaBackend>(options, properties, std::move(stream));
}

}  // namespace kvasir
