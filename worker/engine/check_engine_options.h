// Judges what a RankEngine is to be made of, before anything is allocated.
#ifndef KVASIR_WORKER_ENGINE_CHECK_ENGINE_OPTIONS_H_
#define KVASIR_WORKER_ENGINE_CHECK_ENGINE_OPTIONS_H_

#include "absl/status/status.h"
#include "worker/engine/rank_engine.h"

namespace kvasir {

// The rank's place and communicator against the plan's topology, the draft against the plan, and the digests
// of both descriptions.
[[nodiscard]] absl::Status CheckEngineOptions(const RankEngineOptions& options);

}  // namespace kvasir

#endif  // KVASIR_WORKER_ENGINE_CHECK_ENGINE_OPTIONS_H_
