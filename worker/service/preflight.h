// Proves a plan on this worker's device before anybody loads weights: exactly the plan's arena, synthetic
// weights of the true shapes per rank (a checkpoint is opened and checked, and not read), every graph
// captured, replayed, timed, and compared with the eager run (bit for bit) and with the reference kernels
// (within a tolerance). Everything is freed when it returns.
//
// Where the whole model does not fit, or its MLPs are mixtures of experts, the MLPs and the vocabulary shrink
// and the cache path stays as it is: attention of every layer, with its true heads, dims and pages.
#ifndef KVASIR_WORKER_SERVICE_PREFLIGHT_H_
#define KVASIR_WORKER_SERVICE_PREFLIGHT_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "worker/engine/backend.h"
#include "worker/engine/communicator.h"
#include "worker/service/prepare_spec.h"

namespace kvasir {

// Distance of a row's logits from the reference kernels', relative to the row's largest value: bf16 caches
// round at 2^-8, and a rounding that falls the other way in one layer is amplified by those above it.
inline constexpr std::int64_t kPreflightTolerancePpb = 20'000'000;

struct PreflightBackends {
  std::unique_ptr<Backend> device;
  std::unique_ptr<Backend> reference;  // runs launch lists over the device's memory
};

struct RankPreflight {
  MeasuredRank measured;
  std::vector<TimedGraph> graphs;
  std::vector<ComparedRows> comparisons;
  std::int64_t collective_bytes = 0;
};

// On the rank's thread, at the same time on all ranks of the plan. PREFLIGHT_FAILED names rank, pass and both
// values; else the errors of RankEngine::Create and of collectives.
[[nodiscard]] absl::StatusOr<RankPreflight> RunPreflight(const PrepareSpec& spec, std::int32_t rank,
                                                         Communicator& tensor,
                                                         const PreflightBackends& backends);

// The model with MLPs and vocabulary shrunk to what `ranks` ranks can divide; the cache path is unchanged.
[[nodiscard]] ModelDescription CachePathOf(const ModelDescription& model, std::int64_t ranks);

}  // namespace kvasir

#endif  // KVASIR_WORKER_SERVICE_PREFLIGHT_H_
