// What a worker is asked to prepare, after everything in the request has been checked once (convert.h): later
// code trusts these values.
#ifndef KVASIR_WORKER_SERVICE_PREPARE_SPEC_H_
#define KVASIR_WORKER_SERVICE_PREPARE_SPEC_H_

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/models/model_description.h"
#include "common/plan/plan.h"
#include "worker/comm/socket.h"
#include "worker/engine/rank_engine.h"
#include "worker/engine/worker_machine.h"

namespace kvasir {

struct RankSite {
  std::string worker_address;  // host:port of the worker's gRPC server
  CommEndpoint comm;
  friend bool operator==(const RankSite& a, const RankSite& b) {
    return a.worker_address == b.worker_address && a.comm.host == b.comm.host && a.comm.port == b.comm.port;
  }
};

struct PreflightSettings {
  std::int64_t replays_per_graph = 3;
  std::int64_t compared_rows = 4;
  friend bool operator==(const PreflightSettings&, const PreflightSettings&) = default;
};

struct PrepareSpec {
  std::string deployment;
  PlanKey key;
  Plan plan;  // verified
  ModelDescription target;
  std::optional<ModelDescription> draft;
  std::int64_t weight_seed = 0;
  std::string target_checkpoint;    // as the request names it, unresolved; empty: synthetic weights
  std::string draft_checkpoint;     // the same; empty without a draft
  std::vector<std::int32_t> ranks;  // of this worker, ascending
  std::vector<RankSite> sites;      // by rank, all of the plan's
  std::chrono::milliseconds lease{0};
  std::chrono::milliseconds comm_timeout{0};
  std::optional<PreflightSettings> preflight;

  [[nodiscard]] bool leads() const { return ranks.front() == 0; }
};

struct MeasuredRank {
  std::int32_t rank = 0;
  RankMeasurement measurement;
};

struct TimedGraph {
  std::int32_t rank = 0;
  Pass pass = Pass::kTargetDecode;
  std::int64_t query_rows = 0;
  std::int64_t bucket = 0;
  std::int64_t replays = 0;
  std::chrono::nanoseconds shortest{0};
  std::chrono::nanoseconds median{0};
};

// The distance of a pass's rows from the reference kernels, in parts per billion of each row's largest value.
struct ComparedRows {
  std::int32_t rank = 0;
  Pass pass = Pass::kTargetDecode;
  std::int64_t rows = 0;
  std::int64_t error_ppb = 0;
  std::int64_t tolerance_ppb = 0;
  bool replay_equals_eager = true;
};

struct PreflightReport {
  std::vector<TimedGraph> graphs;         // by rank, then in plan order
  std::vector<ComparedRows> comparisons;  // by rank and pass
  std::int64_t collective_bytes = 0;
};

struct PrepareReport {
  std::vector<MeasuredRank> measurements;    // by rank
  std::optional<PreflightReport> preflight;  // where it was asked for
};

}  // namespace kvasir

#endif  // KVASIR_WORKER_SERVICE_PREPARE_SPEC_H_
