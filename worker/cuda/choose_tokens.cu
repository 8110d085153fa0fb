// Choice of tokens: argmax, and DSpark's Markov chain, the only sequential part of a drafted block: a few
// launches for each of its rows.
#include "worker/cuda/dot.cuh"
#include "worker/cuda/element.cuh"
#include "worker/cuda/kernels.h"
#include "worker/cuda/workspace.h"

namespace kvasir::cuda {
namespace {

// The lowest index of the largest logit, for all threads of the block; a NaN anywhere, or a largest one that
// is infinite, sets *fault and gives 0.
__device__ Indexed LargestLogit(const float* logits, std::int64_t vocab, std::int32_t* fault) {
  Indexed mine{-INFINITY, vocab};
  int nans = 0;
  for (std::int64_t i = threadIdx.x; i < vocab; i += kBlock) {
    if (std::isnan(logits[i])) ++nans;
    if (Larger({logits[i], i}, mine)) mine = {logits[i], i};
  }
  const Indexed largest = BlockLargest(mine);
  if (BlockSum(nans) == 0 && std::isfinite(largest.value)) return largest;
  if (threadIdx.x == 0) *fault = 1;
  return {0, -1};
}

__global__ void ArgmaxKernel(ArgmaxOp op) {
  const Indexed largest = LargestLogit(op.logits + blockIdx.x * op.vocab, op.vocab, op.fault);
  if (threadIdx.x == 0) op.ids[blockIdx.x] = largest.index < 0 ? 0 : static_cast<std::int32_t>(largest.index);
}

// The first id at which the running sum of exp((logit - top) / temperature) exceeds draw times their sum.
// Each thread sums a run of ids; one thread looks for the run, and in it for the id.
__device__ std::int64_t Sampled(const float* logits, std::int64_t vocab, float top, double temperature,
                                double draw) {
  __shared__ double runs[kBlock];
  const std::int64_t run = (vocab + kBlock - 1) / kBlock;
  const auto weight = [&](std::int64_t i) {
    return exp((static_cast<double>(logits[i]) - static_cast<double>(top)) / temperature);
  };
  const std::int64_t first = threadIdx.x * run;
  double mine = 0;
  for (std::int64_t i = first; i < first + run && i < vocab; ++i) mine += weight(i);
  runs[threadIdx.x] = mine;
  __syncthreads();
  double total = 0;
  for (int t = 0; t < kBlock; ++t) total += runs[t];
  const double threshold = draw * total;
  double sum = 0;
  int t = 0;
  while (t + 1 < kBlock && !(sum + runs[t] > threshold)) sum += runs[t++];
  std::int64_t last = -1;
  for (std::int64_t i = t * run; i < (t + 1) * run && i < vocab; ++i) {
    const double w = weight(i);
    if (!(w > 0)) continue;
    sum += w;
    last = i;
    if (sum > threshold) break;
  }
  __syncthreads();
  return last;  // -1: rounding left no weight in the last run
}

__global__ void BeginChainKernel(MarkovChainOp op, BadToken bad, MarkovScratch scratch) {
  const std::int64_t b = blockIdx.x;
  const std::int32_t anchor = op.anchors[b];
  const bool known = anchor >= 0 && anchor < op.vocab;
  if (threadIdx.x == 0) {
    scratch.Tokens()[b] = known ? anchor : 0;
    if (!known) atomicMin(bad.word, static_cast<DeviceWord>(b) << 32 | static_cast<std::uint32_t>(anchor));
  }
  for (std::int64_t j = threadIdx.x; j < op.rank; j += kBlock) scratch.StateOf(b)[j] = 0;
}

// mixed = mix * [s; e; h] + bias, the parts that the head has each summed by itself, in their order.
// grid: (outputs, requests)
__global__ void MixKernel(MarkovChainOp op, std::int64_t k, MarkovScratch scratch) {
  const std::int64_t b = blockIdx.y;
  const bool rnn = op.head == MarkovHead::kRnn;
  const std::int64_t outputs = rnn ? 3 * op.rank : op.rank;
  const std::int64_t n = FirstOutput() + OutputOfThread();
  const float* e = op.w1 + scratch.Tokens()[b] * op.rank;
  const float* h = op.hidden + (b * op.query_rows + k) * op.hidden_dim;
  const std::int64_t width = op.hidden_dim + (rnn ? 2 : 1) * op.rank;
  const float* weight = n < outputs ? op.mix + n * width : nullptr;
  const auto next = [&weight](std::int64_t count) {
    const float* at = weight;
    if (weight != nullptr) weight += count;
    return at;
  };
  float sum = n < outputs ? op.mix_bias[n] : 0;
  if (rnn) {
    sum += DotOfOutput(scratch.StateOf(b), next(op.rank), op.rank);
    sum += DotOfOutput(e, next(op.rank), op.rank);
    sum += DotOfOutput(h, next(op.hidden_dim), op.hidden_dim);
  } else {
    sum += DotOfOutput(h, next(op.hidden_dim), op.hidden_dim);
    sum += DotOfOutput(e, next(op.rank), op.rank);
  }
  if (n < outputs && LaneOfThread() == 0) scratch.MixedOf(b)[n] = sum;
}

// m of the head, and its new state; a block per request.
__global__ void HeadKernel(MarkovChainOp op, MarkovScratch scratch) {
  const std::int64_t b = blockIdx.x;
  const float* e = op.w1 + scratch.Tokens()[b] * op.rank;
  const float* mixed = scratch.MixedOf(b);
  float* state = scratch.StateOf(b);
  float* m = scratch.MOf(b);
  for (std::int64_t j = threadIdx.x; j < op.rank; j += kBlock) {
    if (op.head == MarkovHead::kVanilla) {
      m[j] = e[j];
    } else if (op.head == MarkovHead::kGated) {
      m[j] = Sigmoid(mixed[j]) * e[j];
    } else {
      const float gate = Sigmoid(mixed[j]);
      state[j] = gate * state[j] + (1.0F - gate) * tanhf(mixed[op.rank + j]);
      m[j] = tanhf(mixed[2 * op.rank + j]);
    }
  }
}

// logits = base + m * w2; grid: (vocabulary, requests)
__global__ void BiasKernel(MarkovChainOp op, std::int64_t k, MarkovScratch scratch) {
  const std::int64_t n = GridThread();
  if (n >= op.vocab) return;
  const float* m = scratch.MOf(blockIdx.y);
  float bias = 0;
  for (std::int64_t j = 0; j < op.rank; ++j) bias += op.w2[j * op.vocab + n] * m[j];
  const std::int64_t at = (blockIdx.y * op.query_rows + k) * op.vocab + n;
  op.logits[at] = op.base[at] + bias;
}

// Confidences, then the token; a block per request.
__global__ void DraftKernel(MarkovChainOp op, std::int64_t k, MarkovScratch scratch) {
  const std::int64_t b = blockIdx.x;
  const std::int64_t row = b * op.query_rows + k;
  if (op.confidence != nullptr) {
    const float* h = op.hidden + row * op.hidden_dim;
    const float* e = op.w1 + scratch.Tokens()[b] * op.rank;
    const std::int64_t count = op.hidden_dim + (op.confidence_markov ? op.rank : 0);
    float sum = 0;
    for (std::int64_t i = threadIdx.x; i < count; i += kBlock)
      sum += op.confidence[i] * (i < op.hidden_dim ? h[i] : e[i - op.hidden_dim]);
    const float raw = BlockSum(sum) + *op.confidence_bias;
    if (threadIdx.x == 0) {
      if (!std::isfinite(raw)) *op.fault = 1;
      op.confidences[row] = Sigmoid(raw);
    }
  }
  const float* logits = op.logits + row * op.vocab;
  const Indexed largest = LargestLogit(logits, op.vocab, op.fault);
  const double temperature = op.temperatures != nullptr ? op.temperatures[b] : 0;
  std::int64_t token = largest.index < 0 ? 0 : largest.index;
  if (largest.index >= 0 && temperature != 0) {
    const std::int64_t drawn = Sampled(logits, op.vocab, largest.value, temperature, op.draws[row]);
    if (drawn >= 0) token = drawn;
  }
  __syncthreads();  // the token before is read until here
  if (threadIdx.x != 0) return;
  op.drafted[row] = static_cast<std::int32_t>(token);
  scratch.Tokens()[b] = static_cast<std::int32_t>(token);
}

}  // namespace

void Argmax(const ArgmaxOp& op, cudaStream_t stream) {
  KVASIR_LAUNCH(ArgmaxKernel, BlocksFor(op.rows, 1), kBlock, 0, stream, op);
}

void MarkovChain(const MarkovChainOp& op, BadToken bad, float* at, cudaStream_t stream) {
  const MarkovScratch scratch = MarkovScratchOf(op, at);
  const unsigned requests = BlocksFor(op.requests, 1);
  KVASIR_LAUNCH(BeginChainKernel, requests, kBlock, 0, stream, op, bad, scratch);
  for (std::int64_t k = 0; k < op.query_rows; ++k) {
    if (op.rank > 0) {
      const std::int64_t outputs = op.head == MarkovHead::kRnn ? 3 * op.rank : op.rank;
      if (op.head != MarkovHead::kVanilla)
        KVASIR_LAUNCH(MixKernel, dim3(BlocksFor(outputs, kOutputs), requests), kBlock, 0, stream, op, k,
                      scratch);
      KVASIR_LAUNCH(HeadKernel, requests, kBlock, 0, stream, op, scratch);
      KVASIR_LAUNCH(BiasKernel, dim3(BlocksFor(op.vocab, kBlock), requests), kBlock, 0, stream, op, k,
                    scratch);
    }
    KVASIR_LAUNCH(DraftKernel, requests, kBlock, 0, stream, op, k, scratch);
  }
}

}  // namespace kvasir::cuda
