// Kimi Delta Attention's recurrence: a block per request and head keeps the state in shared memory and goes
// through the rows; its threads own columns of it (value elements). The same steps take in rows that are
// replayed.
#include "worker/cuda/kernels.h"
#include "worker/cuda/recurrent.cuh"
#include "worker/cuda/shared_bytes.h"

namespace kvasir::cuda {
namespace {

// In shared memory.
struct State {
  float* s;      // [dim, dim + 1]: keys by values; a row is one longer, so that columns meet in no bank
  float* key;    // [dim]
  float* decay;  // [dim]
  float* query;  // [dim]
  std::int64_t dim;
  DType dtype;

  [[nodiscard]] __device__ float& At(std::int64_t d, std::int64_t e) const { return s[d * (dim + 1) + e]; }
};

[[nodiscard]] __device__ State StateIn(float* shared, std::int64_t dim, DType dtype) {
  State state;
  state.s = shared;
  state.key = shared + dim * (dim + 1);
  state.decay = state.key + dim;
  state.query = state.decay + dim;
  state.dim = dim;
  state.dtype = dtype;
  return state;
}

// From zeros where `from` is null.
__device__ void Load(const State& state, const float* from) {
  for (std::int64_t i = threadIdx.x; i < state.dim * state.dim; i += kBlock)
    state.At(i / state.dim, i % state.dim) = from == nullptr ? 0 : from[i];
}

__device__ void Store(const State& state, float* to) {
  for (std::int64_t i = threadIdx.x; i < state.dim * state.dim; i += kBlock)
    to[i] = state.At(i / state.dim, i % state.dim);
}

// Column e: S = diag(decay) S;  u = beta (v - S^T k);  S = S + k u^T. Returns S^T q. `key` is rounded
// already.
__device__ float Step(const State& state, std::int64_t e, float v, float beta) {
  float read = 0;
  for (std::int64_t d = 0; d < state.dim; ++d) {
    float& s = state.At(d, e);
    s *= state.decay[d];
    read += s * state.key[d];
  }
  const float update = Rounded(beta * (v - read), state.dtype);
  float out = 0;
  for (std::int64_t d = 0; d < state.dim; ++d) {
    float& s = state.At(d, e);
    s += update * state.key[d];
    out += s * state.query[d];
  }
  return out;
}

[[nodiscard]] __device__ float* RingPart(std::byte* arena, const StateGeometry& place,
                                         const std::int64_t* table, std::int64_t row_heads) {
  return reinterpret_cast<float*>(arena + StateOffset(place, table, 0)) + row_heads;
}

// grid: (heads, requests)
__global__ void KdaStepKernel(KdaStepOp op) {
  KVASIR_DYNAMIC_SHARED(float, shared);
  const State state = StateIn(shared, op.dim, op.dtype);
  const std::int64_t h = blockIdx.x;
  const std::int64_t b = blockIdx.y;
  const std::int64_t* table = op.block_table + b * op.table_width;
  const auto copy_at = [&](std::int64_t copy) {
    return reinterpret_cast<float*>(op.arena + StateOffset(op.state, table, copy)) + h * op.dim * op.dim;
  };
  bool begun = false;
  for (std::int64_t i = 0; i < op.query_rows; ++i) {
    const std::int64_t r = b * op.query_rows + i;
    float* out = op.out + (r * op.heads + h) * op.dim;
    if (op.bounds[r] == 0) {
      for (std::int64_t e = threadIdx.x; e < op.dim; e += kBlock) out[e] = 0;
      continue;
    }
    if (!begun) Load(state, op.reads[b] >= 0 ? copy_at(op.reads[b]) : nullptr);
    begun = true;
    const std::int64_t at = r * op.row_stride + h * op.dim;
    const float* decay = op.decay + (r * op.heads + h) * op.dim;
    const float beta = op.beta[r * op.heads + h];
    const bool keeps = op.keeps_rows && i > 0;
    for (std::int64_t d = threadIdx.x; d < op.dim; d += kBlock) {
      state.key[d] = Rounded(op.k[at + d], op.dtype);
      state.decay[d] = decay[d];
      state.query[d] = op.q[at + d];
      if (keeps) RingPart(op.arena, op.ring_decay, table, ((i - 1) * op.heads + h) * op.dim)[d] = decay[d];
    }
    if (keeps && threadIdx.x == 0) *RingPart(op.arena, op.ring_beta, table, (i - 1) * op.heads + h) = beta;
    __syncthreads();
    for (std::int64_t e = threadIdx.x; e < op.dim; e += kBlock) {
      out[e] = Step(state, e, op.v[at + e], beta);
      if (!std::isfinite(out[e])) *op.fault = 1;
    }
    __syncthreads();
    if (op.writes[r] >= 0) Store(state, copy_at(op.writes[r]));
  }
}

// The key of a replayed row, convolved and normalised again as the pass did it; left in state.key.
__device__ void ReplayKey(const KdaReplayOp& op, const History& history, std::int64_t h,
                          std::int64_t position, const State& state) {
  float squares = 0;
  for (std::int64_t d = threadIdx.x; d < op.dim; d += kBlock) {
    const std::int64_t c = h * op.dim + d;
    const float own = history.Load(position, op.k_begin + c);
    const float key =
        Convolved(history, op.k_begin + c, op.k_weight + c * op.kernel, op.kernel, position, own);
    state.key[d] = key;
    squares += key * key;
  }
  const float factor = 1.0F / sqrtf(BlockSum(squares) + op.eps);
  for (std::int64_t d = threadIdx.x; d < op.dim; d += kBlock)
    state.key[d] = Rounded(state.key[d] * factor, op.dtype);
}

// grid: (heads, requests)
__global__ void KdaReplayKernel(KdaReplayOp op) {
  KVASIR_DYNAMIC_SHARED(float, shared);
  const std::int64_t h = blockIdx.x;
  const std::int64_t b = blockIdx.y;
  const std::int64_t rows = op.replays[b];
  const std::int64_t bound = op.bounds[b * op.query_rows];
  if (rows == 0 || bound == 0) return;
  const State state = StateIn(shared, op.dim, op.dtype);
  const std::int64_t* table = op.block_table + b * op.table_width;
  float* stored = reinterpret_cast<float*>(op.arena + StateOffset(op.state, table, 0)) + h * op.dim * op.dim;
  Load(state, op.reads[b] >= 0 ? stored : nullptr);
  History history;
  history.at = op.arena + StateOffset(op.conv, table, 0);
  history.dtype = op.dtype;
  history.tokens = op.history;
  history.stride = op.history_stride;
  for (std::int64_t row = 0; row < rows; ++row) {
    const std::int64_t position = bound - 1 - rows + row;
    ReplayKey(op, history, h, position, state);
    const float* decay = RingPart(op.arena, op.ring_decay, table, (row * op.heads + h) * op.dim);
    const float beta = *RingPart(op.arena, op.ring_beta, table, row * op.heads + h);
    for (std::int64_t d = threadIdx.x; d < op.dim; d += kBlock) {
      state.decay[d] = decay[d];
      state.query[d] = 0;
    }
    __syncthreads();
    for (std::int64_t e = threadIdx.x; e < op.dim; e += kBlock) {
      const std::int64_t c = h * op.dim + e;
      const float own = history.Load(position, op.v_begin + c);
      const float v =
          Convolved(history, op.v_begin + c, op.v_weight + c * op.kernel, op.kernel, position, own);
      (void)Step(state, e, v, beta);
    }
    __syncthreads();
  }
  Store(state, stored);
}

}  // namespace

void KdaStep(const KdaStepOp& op, cudaStream_t stream) {
  const auto shared = static_cast<std::size_t>(KdaSharedBytes(op.dim));
  (void)cudaFuncSetAttribute(KdaStepKernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                             static_cast<int>(shared));
  const dim3 grid(BlocksFor(op.heads, 1), BlocksFor(op.requests, 1));
  KVASIR_LAUNCH(KdaStepKernel, grid, kBlock, shared, stream, op);
}

void KdaReplay(const KdaReplayOp& op, cudaStream_t stream) {
  const auto shared = static_cast<std::size_t>(KdaSharedBytes(op.dim));
  (void)cudaFuncSetAttribute(KdaReplayKernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                             static_cast<int>(shared));
  const dim3 grid(BlocksFor(op.heads, 1), BlocksFor(op.requests, 1));
  KVASIR_LAUNCH(KdaReplayKernel, grid, kBlock, shared, stream, op);
}

}  // namespace kvasir::cuda
