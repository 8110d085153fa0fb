// A plan and where it is to run: everything that an apply needs, and all that the planner remembers of it.
#ifndef KVASIR_PLANNER_DISPATCH_APPLY_SPEC_H_
#define KVASIR_PLANNER_DISPATCH_APPLY_SPEC_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"

namespace kvasir {

struct WorkerTarget {
  std::string address = {};              // host:port of the worker's gRPC server
  std::vector<std::int32_t> ranks = {};  // ascending, at least one
  friend bool operator==(const WorkerTarget&, const WorkerTarget&) = default;
};

// Milliseconds.
struct ApplyTimes {
  std::int64_t prepare_ms = 600'000;  // for one worker to prepare
  std::int64_t commit_ms = 10'000;    // for one worker to commit
  std::int64_t drain_ms = 30'000;     // that sequences of an old plan may go on
  std::int64_t comm_ms = 10'000;      // that a collective waits for its peers
  friend bool operator==(const ApplyTimes&, const ApplyTimes&) = default;
};

// A commit is sent only while more than twice its deadline is left of the lease, so a lease is much longer.
[[nodiscard]] constexpr std::int64_t LeaseMs(const ApplyTimes& times) { return times.commit_ms * 4 + 5'000; }

struct PreflightSettings {
  std::int32_t replays_per_graph = 0;  // 0: the worker's default
  std::int32_t compared_rows = 0;      // 0: the worker's default
  friend bool operator==(const PreflightSettings&, const PreflightSettings&) = default;
};

struct ApplySpec {
  std::string plan_id = {};  // SHA-256 of plan_text
  std::string plan_text = {};
  std::string target_model_text = {};
  std::string draft_model_text = {};  // empty without a draft
  std::int64_t weight_seed = 0;
  std::string target_checkpoint = {};      // directory on every worker's machine; empty: synthetic weights
  std::string draft_checkpoint = {};       // empty without a draft
  std::vector<WorkerTarget> workers = {};  // by lowest rank: the first one has rank 0 and leads
  ApplyTimes times = {};
  friend bool operator==(const ApplySpec&, const ApplySpec&) = default;
};

// InvalidArgument (RANKS_INCOMPLETE, DUPLICATE_ITEM, ...) with the field of ApplyPlanRequest unless the
// workers have every rank of 0 .. rank_count - 1 exactly once. Sorts workers by lowest rank and each worker's
// ranks.
[[nodiscard]] absl::Status ArrangeWorkers(std::vector<WorkerTarget>& workers, std::int64_t rank_count);

}  // namespace kvasir

#endif  // KVASIR_PLANNER_DISPATCH_APPLY_SPEC_H_
