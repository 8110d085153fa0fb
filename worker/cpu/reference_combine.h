// The definition of CombineOp (launch.h), over the gathered parts of all ranks of a group, in double.
#ifndef KVASIR_WORKER_CPU_REFERENCE_COMBINE_H_
#define KVASIR_WORKER_CPU_REFERENCE_COMBINE_H_

#include <cstdint>

#include "worker/engine/launch.h"

namespace kvasir::cpu {

// What every rank contributed, rank-major, and which of the heads are ours.
struct GatheredPartials {
  const float* partial;  // [ranks, rows, heads_local * ranks, dim]
  const float* lse;      // [ranks, rows, heads_local * ranks], natural log
  std::int64_t ranks;
  std::int64_t rank;  // keeps the heads rank * heads_local .. (rank + 1) * heads_local - 1
};

// M = max lse_r; LSE = M + ln sum exp(lse_r - M); out = sum exp(lse_r - LSE) out_r, ranks ascending. Ranks
// with lse -inf are skipped, never multiplied. A NaN or +inf lse, or a partial that is not finite and has
// weight, sets *fault to 1.
void ReferenceCombine(const CombineOp& op, const GatheredPartials& parts);

}  // namespace kvasir::cpu

#endif  // KVASIR_WORKER_CPU_REFERENCE_COMBINE_H_
