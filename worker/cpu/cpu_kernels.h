// The operations of launch.h on the host, one function per operation. Each source file holds one family.
// Attention and combine stand in paged_decode.h, combine.h and the reference_* files, recurrent layers in
// recurrent.h.
#ifndef KVASIR_WORKER_CPU_CPU_KERNELS_H_
#define KVASIR_WORKER_CPU_CPU_KERNELS_H_

#include "absl/status/status.h"
#include "worker/engine/launch.h"

namespace kvasir::cpu {

// linear.cc
void Linear(const LinearOp& op);
void AbsorbQuery(const AbsorbQueryOp& op);
void ProjectValue(const ProjectValueOp& op);

// norm_rope.cc
void RmsNorm(const RmsNormOp& op);
void Rope(const RopeOp& op);

// elementwise.cc
// InvalidArgument for an id outside the table; nothing is read from outside it.
absl::Status Embed(const EmbedOp& op);
void Add(const AddOp& op);
void SwiGlu(const SwiGluOp& op);
void SigmoidGate(const SigmoidGateOp& op);
void CopyRows(const CopyRowsOp& op);

// residuals.cc
void MixResiduals(const MixResidualsOp& op);

// experts.cc
void RouteExperts(const RouteExpertsOp& op);
void ExpertMlp(const ExpertMlpOp& op);

// cache_write.cc
void CacheWrite(const CacheWriteOp& op);

// markov.cc
void Argmax(const ArgmaxOp& op);
absl::Status MarkovChain(const MarkovChainOp& op);

}  // namespace kvasir::cpu

#endif  // KVASIR_WORKER_CPU_CPU_KERNELS_H_
