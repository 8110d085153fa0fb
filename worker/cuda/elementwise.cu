// One thread per element.
#include "worker/cuda/element.cuh"
#include "worker/cuda/kernels.h"

namespace kvasir::cuda {
namespace {

// Enough to fill a device; threads take further elements in strides of the grid.
[[nodiscard]] unsigned GridFor(std::int64_t elements) {
  constexpr std::int64_t kBlocksMost = 4096;
  const std::int64_t blocks = BlocksFor(elements, kBlock);
  return static_cast<unsigned>(blocks < kBlocksMost ? blocks : kBlocksMost);
}

// A row of a bad id is zeros; nothing is read from outside the table.
__global__ void EmbedKernel(EmbedOp op, BadToken bad) {
  for (std::int64_t i = GridThread(); i < op.rows * op.hidden; i += GridThreads()) {
    const std::int64_t row = i / op.hidden;
    const std::int64_t id = op.ids[row];
    if (id >= 0 && id < op.vocab) {
      op.out[i] = op.table[id * op.hidden + i % op.hidden];
      continue;
    }
    op.out[i] = 0;
    const auto word = static_cast<DeviceWord>(row) << 32 | static_cast<std::uint32_t>(id);
    if (i % op.hidden == 0) atomicMin(bad.word, word);
  }
}

__global__ void AddKernel(AddOp op) {
  for (std::int64_t i = GridThread(); i < op.count; i += GridThreads()) op.x[i] += op.y[i];
}

__global__ void SwiGluKernel(SwiGluOp op) {
  for (std::int64_t i = GridThread(); i < op.rows * op.cols; i += GridThreads())
    op.out[i] = Gated(op.activation, op.gate[i], op.up[i]);
}

__global__ void SigmoidGateKernel(SigmoidGateOp op) {
  for (std::int64_t i = GridThread(); i < op.count; i += GridThreads()) op.x[i] *= Sigmoid(op.gate[i]);
}

__global__ void CopyRowsKernel(CopyRowsOp op) {
  for (std::int64_t i = GridThread(); i < op.rows * op.cols; i += GridThreads()) {
    const std::int64_t row = i / op.cols;
    const std::int64_t col = i % op.cols;
    op.out[row * op.out_stride + col] = op.in[row * op.in_stride + col];
  }
}

}  // namespace

void Embed(const EmbedOp& op, BadToken bad, cudaStream_t stream) {
  KVASIR_LAUNCH(EmbedKernel, GridFor(op.rows * op.hidden), kBlock, 0, stream, op, bad);
}
void Add(const AddOp& op, cudaStream_t stream) {
  KVASIR_LAUNCH(AddKernel, GridFor(op.count), kBlock, 0, stream, op);
}
void SwiGlu(const SwiGluOp& op, cudaStream_t stream) {
  KVASIR_LAUNCH(SwiGluKernel, GridFor(op.rows * op.cols), kBlock, 0, stream, op);
}
void SigmoidGate(const SigmoidGateOp& op, cudaStream_t stream) {
  KVASIR_LAUNCH(SigmoidGateKernel, GridFor(op.count), kBlock, 0, stream, op);
}
void CopyRows(const CopyRowsOp& op, cudaStream_t stream) {
  KVASIR_LAUNCH(CopyRowsKernel, GridFor(op.rows * op.cols), kBlock, 0, stream, op);
}

}  // namespace kvasir::cuda
