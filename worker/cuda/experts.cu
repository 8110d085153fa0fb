// A mixture of experts: a block routes a row; then, expert after expert of a row's choice, their MLPs are
// added up, so that a row's bits depend on its own values alone.
#include "worker/cuda/dot.cuh"
#include "worker/cuda/element.cuh"
#include "worker/cuda/kernels.h"
#include "worker/cuda/shared_bytes.h"

namespace kvasir::cuda {
namespace {

// One row's numbers, in shared memory.
struct RowScores {
  float* score;          // [experts]
  float* choice;         // [experts]: what experts are chosen by
  float* group;          // [groups]: what each counts
  unsigned char* taken;  // [experts]: experts or groups that are marked
};

[[nodiscard]] __device__ RowScores ScoresIn(const RouteExpertsOp& op, float* shared) {
  RowScores row;
  row.score = shared;
  row.choice = row.score + op.experts;
  row.group = row.choice + op.experts;
  row.taken = reinterpret_cast<unsigned char*>(row.group + op.groups);
  return row;
}

// Whether all of the choices are numbers.
__device__ bool Score(const RouteExpertsOp& op, const float* logits, const RowScores& row) {
  Indexed mine{-INFINITY, op.experts};
  for (std::int64_t e = threadIdx.x; e < op.experts; e += kBlock) {
    if (Larger({logits[e], e}, mine)) mine = {logits[e], e};
  }
  const float largest = BlockLargest(mine).value;
  float part = 0;
  for (std::int64_t e = threadIdx.x; e < op.experts; e += kBlock) {
    row.score[e] = op.score == ScoreFunction::kSigmoid ? Sigmoid(logits[e]) : expf(logits[e] - largest);
    part += row.score[e];
  }
  const float sum = BlockSum(part);
  int nans = 0;
  for (std::int64_t e = threadIdx.x; e < op.experts; e += kBlock) {
    if (op.score == ScoreFunction::kSoftmax) row.score[e] /= sum;
    row.choice[e] = op.bias == nullptr ? row.score[e] : row.score[e] + op.bias[e];
    if (std::isnan(row.choice[e])) ++nans;
  }
  return BlockSum(nans) == 0;
}

// Marks the `picks` largest values, of equals the lowest index first.
__device__ void MarkLargest(const float* values, std::int64_t count, std::int64_t picks,
                            unsigned char* taken) {
  for (std::int64_t i = threadIdx.x; i < count; i += kBlock) taken[i] = 0;
  __syncthreads();
  for (std::int64_t pick = 0; pick < picks; ++pick) {
    Indexed mine{-INFINITY, count};
    for (std::int64_t i = threadIdx.x; i < count; i += kBlock) {
      if (taken[i] == 0 && Larger({values[i], i}, mine)) mine = {values[i], i};
    }
    const Indexed largest = BlockLargest(mine);
    if (threadIdx.x == 0) taken[largest.index] = 1;
    __syncthreads();
  }
}

// Nothing outside the groups that are kept can be chosen any more.
__device__ void KeepBestGroups(const RouteExpertsOp& op, const RowScores& row) {
  if (op.groups == op.groups_kept) return;
  const std::int64_t size = op.experts / op.groups;
  for (std::int64_t g = threadIdx.x; g < op.groups; g += kBlock) {
    float first = -INFINITY;
    float second = -INFINITY;
    for (std::int64_t e = g * size; e < (g + 1) * size; ++e) {
      second = fmaxf(second, fminf(first, row.choice[e]));
      first = fmaxf(first, row.choice[e]);
    }
    row.group[g] = op.bias == nullptr ? first : first + second;
  }
  __syncthreads();
  MarkLargest(row.group, op.groups, op.groups_kept, row.taken);
  for (std::int64_t e = threadIdx.x; e < op.experts; e += kBlock) {
    if (row.taken[e / size] == 0) row.choice[e] = -INFINITY;
  }
  __syncthreads();
}

// In ascending order of the experts.
__device__ void WriteChoice(const RouteExpertsOp& op, const RowScores& row, std::int32_t* ids,
                            float* weights) {
  float sum = 0;
  std::int64_t j = 0;
  for (std::int64_t e = 0; e < op.experts; ++e) {
    if (row.taken[e] == 0) continue;
    ids[j] = static_cast<std::int32_t>(e);
    weights[j++] = row.score[e];
    sum += row.score[e];
  }
  for (j = 0; j < op.chosen; ++j) {
    if (op.normalise) weights[j] /= sum + 1e-20F;
    weights[j] *= op.scale;
  }
}

// grid: (rows)
__global__ void RouteKernel(RouteExpertsOp op) {
  KVASIR_DYNAMIC_SHARED(float, shared);
  const RowScores row = ScoresIn(op, shared);
  std::int32_t* ids = op.ids + blockIdx.x * op.chosen;
  float* weights = op.weights + blockIdx.x * op.chosen;
  if (!Score(op, op.logits + blockIdx.x * op.experts, row)) {
    if (threadIdx.x == 0) *op.fault = 1;
    for (std::int64_t j = threadIdx.x; j < op.chosen; j += kBlock) {
      ids[j] = static_cast<std::int32_t>(j);
      weights[j] = 0;
    }
    return;
  }
  KeepBestGroups(op, row);
  MarkLargest(row.choice, op.experts, op.chosen, row.taken);
  if (threadIdx.x == 0) WriteChoice(op, row, ids, weights);
}

// inner = act(gate * in, up * in) of expert number j of each row; grid: (outputs, rows)
__global__ void InnerKernel(ExpertMlpOp op, std::int64_t j) {
  const std::int64_t n = FirstOutput() + OutputOfThread();
  const std::int64_t expert = op.ids[blockIdx.y * op.chosen + j];
  const float* in = op.in + blockIdx.y * op.dim;
  const std::int64_t at = (expert * op.width + n) * op.dim;
  const bool mine = n < op.width;
  const float gate = DotOfOutput(in, mine ? op.gate + at : nullptr, op.dim);
  const float up = DotOfOutput(in, mine ? op.up + at : nullptr, op.dim);
  if (mine && LaneOfThread() == 0) op.inner[blockIdx.y * op.width + n] = Gated(op.activation, gate, up);
}

// out += weight * down * inner, out = for the first; grid: (outputs, rows)
__global__ void DownKernel(ExpertMlpOp op, std::int64_t j) {
  const std::int64_t n = FirstOutput() + OutputOfThread();
  const std::int64_t expert = op.ids[blockIdx.y * op.chosen + j];
  const float* inner = op.inner + blockIdx.y * op.width;
  const bool mine = n < op.dim;
  const float sum = DotOfOutput(inner, mine ? op.down + (expert * op.dim + n) * op.width : nullptr, op.width);
  if (!mine || LaneOfThread() != 0) return;
  float& out = op.out[blockIdx.y * op.dim + n];
  out = (j == 0 ? 0 : out) + op.weights[blockIdx.y * op.chosen + j] * sum;
}

}  // namespace

void RouteExperts(const RouteExpertsOp& op, cudaStream_t stream) {
  const auto shared = static_cast<std::size_t>(RouteSharedBytes(op.experts, op.groups));
  KVASIR_LAUNCH(RouteKernel, BlocksFor(op.rows, 1), kBlock, shared, stream, op);
}

void ExpertMlp(const ExpertMlpOp& op, cudaStream_t stream) {
  const unsigned rows = BlocksFor(op.rows, 1);
  for (std::int64_t j = 0; j < op.chosen; ++j) {
    KVASIR_LAUNCH(InnerKernel, dim3(BlocksFor(op.width, kOutputs), rows), kBlock, 0, stream, op, j);
    KVASIR_LAUNCH(DownKernel, dim3(BlocksFor(op.dim, kOutputs), rows), kBlock, 0, stream, op, j);
  }
}

}  // namespace kvasir::cuda
