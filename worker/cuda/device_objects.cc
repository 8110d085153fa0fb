#include "worker/cuda/device_objects.h"

#include "common/base/status_macros.h"
#include "worker/cuda/cuda_status.h"

namespace kvasir::cuda {

absl::StatusOr<std::shared_ptr<DeviceBuffer>> DeviceBuffer::Make(Bytes bytes) {
  void* at = nullptr;
  KVASIR_RETURN_IF_ERROR(FromCuda(cudaMalloc(&at, static_cast<std::size_t>(bytes.value())), "cudaMalloc"));
  return std::shared_ptr<DeviceBuffer>(new DeviceBuffer(static_cast<std::byte*>(at), bytes));
}

// Frees report errors of work that was enqueued before; who enqueued it has heard of them.
DeviceBuffer::~DeviceBuffer() { (void)cudaFree(data_); }

absl::StatusOr<std::shared_ptr<StreamObject>> StreamObject::Make() {
  cudaStream_t stream = nullptr;
  KVASIR_RETURN_IF_ERROR(FromCuda(cudaStreamCreate(&stream), "cudaStreamCreate"));
  return std::shared_ptr<StreamObject>(new StreamObject(stream));
}

StreamObject::~StreamObject() { (void)cudaStreamDestroy(stream_); }

absl::StatusOr<std::unique_ptr<GraphCapture>> GraphCapture::Begin(cudaStream_t stream) {
  KVASIR_RETURN_IF_ERROR(
      FromCuda(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), "cudaStreamBeginCapture"));
  return std::unique_ptr<GraphCapture>(new GraphCapture(stream));
}

GraphCapture::~GraphCapture() {
  if (!open_) return;
  cudaGraph_t graph = nullptr;
  (void)cudaStreamEndCapture(stream_, &graph);
  if (graph != nullptr) (void)cudaGraphDestroy(graph);
  (void)cudaGetLastError();
}

absl::StatusOr<std::shared_ptr<void>> GraphCapture::End() {
  open_ = false;
  cudaGraph_t graph = nullptr;
  KVASIR_RETURN_IF_ERROR(FromCuda(cudaStreamEndCapture(stream_, &graph), "cudaStreamEndCapture"));
  cudaGraphExec_t exec = nullptr;
  const cudaError_t made = cudaGraphInstantiate(&exec, graph, 0);
  (void)cudaGraphDestroy(graph);
  KVASIR_RETURN_IF_ERROR(FromCuda(made, "cudaGraphInstantiate"));
  return std::shared_ptr<void>(
      exec, [](void* at) { (void)cudaGraphExecDestroy(static_cast<cudaGraphExec_t>(at)); });
}

absl::Status LaunchGraph(const std::shared_ptr<void>& graph, cudaStream_t stream) {
  return FromCuda(cudaGraphLaunch(static_cast<cudaGraphExec_t>(graph.get()), stream), "cudaGraphLaunch");
}

}  // namespace kvasir::cuda
