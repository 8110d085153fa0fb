// The operations that cross ranks, over the two communicators of a rank. Everything is an AllGather followed
// by host arithmetic in rank order, so all ranks get the same bits.
#ifndef KVASIR_WORKER_CPU_COLLECTIVES_H_
#define KVASIR_WORKER_CPU_COLLECTIVES_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "worker/cpu/cpu_backend.h"
#include "worker/engine/communicator.h"
#include "worker/engine/launch.h"

namespace kvasir::cpu {

class Collectives {
 public:
  // A null communicator is a group of one rank. Borrowed; they outlive the object.
  Collectives(Communicator* tensor, Communicator* context, CpuKernels kernels);

  // Each returns the communicator's error.
  absl::Status GatherHeads(const GatherHeadsOp& op);
  absl::Status Combine(const CombineOp& op);
  absl::Status AllReduce(const AllReduceOp& op);
  absl::Status GatherColumns(const GatherColumnsOp& op);

 private:
  [[nodiscard]] std::int64_t Ranks(CommGroup group) const;
  [[nodiscard]] std::int64_t RankIn(CommGroup group) const;
  // `count` floats of every rank, rank-major, into *all.
  absl::Status Gather(CommGroup group, const float* mine, std::int64_t count, std::vector<float>* all);
  // [rows, cols] of every rank to [rows, ranks, cols].
  absl::Status GatherRows(CommGroup group, const float* in, std::int64_t rows, std::int64_t cols, float* out);

  Communicator* tensor_;
  Communicator* context_;
  CpuKernels kernels_;
  std::vector<float> gathered_;  // kept between calls: its size settles after the first step
  std::vector<float> gathered_lse_;
};

}  // namespace kvasir::cpu

#endif  // KVASIR_WORKER_CPU_COLLECTIVES_H_
