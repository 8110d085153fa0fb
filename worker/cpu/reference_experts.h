// The mixture of experts in the slowest way that is plain to read, in double. The conformance tests measure
// every backend against it, and a rank can run on it (CpuKernels::kReference). Where two experts' scores are
// closer than float can tell, it may choose other ones than a kernel in float.
#ifndef KVASIR_WORKER_CPU_REFERENCE_EXPERTS_H_
#define KVASIR_WORKER_CPU_REFERENCE_EXPERTS_H_

#include "worker/engine/launch_experts.h"

namespace kvasir::cpu {

void ReferenceRouteExperts(const RouteExpertsOp& op);
void ReferenceExpertMlp(const ExpertMlpOp& op);

}  // namespace kvasir::cpu

#endif  // KVASIR_WORKER_CPU_REFERENCE_EXPERTS_H_
