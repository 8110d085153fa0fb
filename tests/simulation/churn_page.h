// The simulation over plans of catalogue pairs, and the page that says what it found.
#ifndef KVASIR_TESTS_SIMULATION_CHURN_PAGE_H_
#define KVASIR_TESTS_SIMULATION_CHURN_PAGE_H_

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/plan/plan.h"
#include "planner/request/plan_options.h"
#include "tests/simulation/arrivals.h"

namespace kvasir::testing {

struct ChurnCase {
  std::string target;  // of the catalogue
  std::string draft;   // the same, or "mtp": the target's own layers for that
  PlanOptions options;
};
// Every pair at every memory, cache type and rollback that the page has.
[[nodiscard]] std::vector<ChurnCase> ChurnCases();
// InvalidArgument with the first refusal, or ResourceExhausted, where there is none.
[[nodiscard]] absl::StatusOr<Plan> PlanOf(const ChurnCase& churn_case);

// One plan under one workload, over all seeds. Shares are in hundredths of a percent, rounded down, and the
// least of the seeds.
struct ChurnRow {
  std::string pair;      // "kimi-k3 + kimi-k3-dspark"
  std::string memory;    // "46.80 GiB"
  std::string caches;    // "bf16"
  std::string rollback;  // "snapshots"
  Workload workload = Workload::kSteady;
  std::int64_t pools = 0;
  std::int64_t planned_requests = 0;  // of 8192 tokens
  std::int64_t baseline_share = 0;    // of the arena, that the fungible allocator fills
  std::int64_t fixed_share = 0;       // of the baseline's load, where no block moves
  std::int64_t compacted_share = 0;   // of the baseline's load, with compaction
  std::int64_t fixed_stranded = 0;    // ChurnResult::stranded_parents, the most of the seeds
  std::int64_t compacted_stranded = 0;
  std::int64_t sequences = 0;  // of all seeds together, as what follows
  std::int64_t moved_parents = 0;
  std::int64_t moved_bytes = 0;
};
[[nodiscard]] ChurnRow RunChurnCase(const ChurnCase& churn_case, const Plan& plan, Workload workload,
                                    std::span<const std::uint64_t> seeds, std::int64_t fills);

[[nodiscard]] std::string ChurnPage(const std::vector<ChurnRow>& rows);

}  // namespace kvasir::testing

#endif  // KVASIR_TESTS_SIMULATION_CHURN_PAGE_H_
