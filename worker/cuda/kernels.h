// The operations of worker/engine/launch.h on a device, one function per operation. Each enqueues on a stream
// and returns; what the operation reads from memory is read when it runs, so that a captured call is right
// for the next step. Sizes are judged before (dispatch.h): a function is not called with a shape that it does
// not have.
//
// Every output element is computed from its own row alone, sums in one order whatever the batch, no atomics
// on numbers: two runs give the same bits (DESIGN section 3).
#ifndef KVASIR_WORKER_CUDA_KERNELS_H_
#define KVASIR_WORKER_CUDA_KERNELS_H_

#include <cuda_runtime.h>

#include <cstdint>

#include "worker/cuda/dispatch.h"
#include "worker/engine/launch.h"

namespace kvasir::cuda {

// Token ids outside their table, which end a step: the least of (row << 32 | id), all ones where there is
// none.
using DeviceWord = unsigned long long;  // NOLINT(google-runtime-int): what CUDA's atomics take
inline constexpr DeviceWord kNoBadToken = ~DeviceWord{0};
struct BadToken {
  DeviceWord* word;  // on the device
};

// elementwise.cu
void Embed(const EmbedOp& op, BadToken bad, cudaStream_t stream);
void Add(const AddOp& op, cudaStream_t stream);
void SwiGlu(const SwiGluOp& op, cudaStream_t stream);
void SigmoidGate(const SigmoidGateOp& op, cudaStream_t stream);
void CopyRows(const CopyRowsOp& op, cudaStream_t stream);

// norm_rope.cu
void RmsNorm(const RmsNormOp& op, cudaStream_t stream);
void Rope(const RopeOp& op, cudaStream_t stream);
void L2Norm(const L2NormOp& op, cudaStream_t stream);
void MixResiduals(const MixResidualsOp& op, cudaStream_t stream);

// linear.cu
void Linear(const LinearOp& op, cudaStream_t stream);
void AbsorbQuery(const AbsorbQueryOp& op, cudaStream_t stream);
void ProjectValue(const ProjectValueOp& op, cudaStream_t stream);

// cache_write.cu
void CacheWrite(const CacheWriteOp& op, cudaStream_t stream);

// decode.cu; `kernel` takes the shape (dispatch.h), `scratch` as workspace.h says
void MlaDecode(const MlaDecodeOp& op, DecodeKernelId kernel, float* scratch, cudaStream_t stream);
void GqaDecode(const GqaDecodeOp& op, DecodeKernelId kernel, float* scratch, cudaStream_t stream);

// combine.cu: `partial` and `lse` are those of all `ranks`, one after the other.
void Combine(const CombineOp& op, std::int64_t ranks, std::int64_t rank, cudaStream_t stream);
// gathered [ranks, rows, cols] -> out [rows, ranks, cols]
void InterleaveRanks(const float* gathered, std::int64_t ranks, std::int64_t rows, std::int64_t cols,
                     float* out, cudaStream_t stream);
// x = sum of gathered [ranks, count], ranks in order
void SumRanks(const float* gathered, std::int64_t ranks, std::int64_t count, float* x, cudaStream_t stream);

// choose_tokens.cu
void Argmax(const ArgmaxOp& op, cudaStream_t stream);
void MarkovChain(const MarkovChainOp& op, BadToken bad, float* scratch, cudaStream_t stream);

// experts.cu
void RouteExperts(const RouteExpertsOp& op, cudaStream_t stream);
void ExpertMlp(const ExpertMlpOp& op, cudaStream_t stream);

// recurrent.cu
void ShortConv(const ShortConvOp& op, cudaStream_t stream);
void KdaGate(const KdaGateOp& op, cudaStream_t stream);
// kda.cu
void KdaReplay(const KdaReplayOp& op, cudaStream_t stream);
void KdaStep(const KdaStepOp& op, cudaStream_t stream);

}  // namespace kvasir::cuda

#endif  // KVASIR_WORKER_CUDA_KERNELS_H_
