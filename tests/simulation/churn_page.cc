#include "tests/simulation/churn_page.h"

#include <algorithm>
#include <limits>
#include <utility>
#include <variant>

#include "absl/strings/str_format.h"
#include "common/base/status_macros.h"
#include "common/models/catalogue.h"
#include "common/models/draft_of.h"
#include "planner/core/capacity.h"
#include "planner/core/outcome.h"
#include "planner/core/wide.h"
#include "planner/request/build_request.h"
#include "planner/rulesets/make_plan.h"
#include "tests/simulation/churn.h"

namespace kvasir::testing {
namespace {

constexpr std::int64_t kGiB = std::int64_t{1} << 30;
constexpr std::int64_t kContextTokens = 131072;
constexpr std::int64_t kRequestsAsked = 4096;  // more than any arena here holds: memory is what limits

// Hundredths of a percent, rounded down.
std::int64_t ShareOf(std::int64_t part, std::int64_t whole) { return Saturated(Wide{part} * 10000 / whole); }

std::string PercentText(std::int64_t share) { return absl::StrFormat("%d.%02d", share / 100, share % 100); }

// To the nearest hundredth.
std::string GiBText(std::int64_t bytes) {
  const std::int64_t hundredths = Saturated((Wide{bytes} * 100 + kGiB / 2) / kGiB);
  return absl::StrFormat("%d.%02d", hundredths / 100, hundredths % 100);
}

// Per 1000 sequences, rounded down.
std::int64_t PerThousand(std::int64_t count, std::int64_t sequences) {
  return Saturated(Wide{count} * 1000 / sequences);
}

ChurnCase CaseOf(std::string target, std::string draft, std::int64_t memory_bytes) {
  ChurnCase made{.target = std::move(target), .draft = std::move(draft), .options = {}};
  made.options.kv_memory_bytes = {memory_bytes};
  made.options.contexts = {kContextTokens};
  made.options.max_requests = kRequestsAsked;
  made.options.cache_dtype = "bf16";
  return made;
}

}  // namespace

std::vector<ChurnCase> ChurnCases() {
  std::vector<ChurnCase> cases;
  for (const std::int64_t memory : {kGiB * 468 / 10, kGiB * 20}) {
    for (const char* const dtype : {"bf16", "fp8_e4m3"}) {
      for (const char* const rollback : {"snapshots", "replay"}) {
        ChurnCase& k3 = cases.emplace_back(CaseOf("kimi-k3", "kimi-k3-dspark", memory));
        k3.options.tp = 8;
        k3.options.dcp = 8;
        k3.options.cache_dtype = dtype;
        k3.options.target_backend = "triton";
        k3.options.draft_backend = "triton";
        k3.options.state_rollback = rollback;
      }
    }
  }
  for (const ChurnCase& hybrid : {CaseOf("qwen3.5-27b", "qwen3.6-27b-dflash", kGiB * 80),
                                  CaseOf("qwen3.5-35b-a3b", "mtp", kGiB * 20)}) {
    for (const char* const rollback : {"snapshots", "replay"}) {
      cases.push_back(hybrid);
      cases.back().options.state_rollback = rollback;
    }
  }
  cases.push_back(CaseOf("gpt-oss-120b", "gpt-oss-120b-eagle3", kGiB * 20));
  return cases;
}

absl::StatusOr<Plan> PlanOf(const ChurnCase& churn_case) {
  KVASIR_ASSIGN_OR_RETURN(const ModelDescription target, FindInCatalogue(churn_case.target));
  absl::StatusOr<ModelDescription> draft =
      churn_case.draft == "mtp" ? MtpDraft(target) : FindInCatalogue(churn_case.draft);
  KVASIR_RETURN_IF_ERROR(draft.status());
  PlanOptions options = churn_case.options;
  if (draft->draft.has_value()) options.draft_tokens = TrainedTokens(*draft->draft);
  const PlanOutcome outcome = MakePlan(BuildRequest(target, *draft, options));
  if (const auto* const planned = std::get_if<Planned>(&outcome)) return planned->plan;
  const auto* const refusals = std::get_if<Refusals>(&outcome);
  if (refusals == nullptr) return absl::ResourceExhaustedError("does not fit");
  return absl::InvalidArgumentError(RefusalText(refusals->refusals.front()));
}

ChurnRow RunChurnCase(const ChurnCase& churn_case, const Plan& plan, Workload workload,
                      std::span<const std::uint64_t> seeds, std::int64_t fills) {
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
  ChurnRow row{.pair = churn_case.target + " + " + churn_case.draft,
               .memory = GiBText(churn_case.options.kv_memory_bytes.front()) + " GiB",
               .caches = churn_case.options.cache_dtype,
               .rollback = std::string(StateRollbackName(plan.rollback)),
               .workload = workload,
               .pools = static_cast<std::int64_t>(plan.pools.size()),
               .planned_requests = CapacityAt(plan, 8192).requests,
               .baseline_share = kMost,
               .fixed_share = kMost,
               .compacted_share = kMost};
  for (const std::uint64_t seed : seeds) {
    const std::vector<Arrival> arrivals = ArrivalsFor(workload, plan, fills, seed);
    const ChurnResult fungible = RunChurn(plan, arrivals, Allocator::kFungible);
    const ChurnResult fixed = RunChurn(plan, arrivals, Allocator::kPools);
    const ChurnResult compacted = RunChurn(plan, arrivals, Allocator::kCompacted);
    row.baseline_share = std::min(row.baseline_share, ShareOf(fungible.mean_bytes, plan.arena_bytes.value()));
    row.fixed_share = std::min(row.fixed_share, ShareOf(fixed.mean_bytes, fungible.mean_bytes));
    row.compacted_share = std::min(row.compacted_share, ShareOf(compacted.mean_bytes, fungible.mean_bytes));
    row.fixed_stranded = std::max(row.fixed_stranded, fixed.stranded_parents);
    row.compacted_stranded = std::max(row.compacted_stranded, compacted.stranded_parents);
    row.sequences += static_cast<std::int64_t>(arrivals.size());
    row.moved_parents += compacted.moved_parents;
    row.moved_bytes += compacted.moved_bytes;
  }
  return row;
}

std::string ChurnPage(const std::vector<ChurnRow>& rows) {
  std::string page =
      "# What churn leaves of a plan\n\n"
      "Generated by tests/simulation/churn_page.cc; `tools/golden` rewrites it. A queue is never empty: "
      "sequences\n"
      "are admitted first come first served, reserve all their tokens at once in the engine's own pools, "
      "and\n"
      "leave. `steady` draws lognormal lengths of median 8,192; `phases` are prompts of 1k and of 50k tokens "
      "in\n"
      "turns. Seeds and counts stand in tests/simulation/churn_test.cc, what is measured exactly in "
      "`churn.h`\n"
      "beside it.\n\n"
      "*   baseline: the mean load of an allocator whose bytes are fungible, one counter over the whole "
      "arena, in\n"
      "    percent of the arena.\n"
      "*   fixed, compacted: the mean load of the pools in percent of the baseline's, where no block moves, "
      "and\n"
      "    where at most one parent a step is emptied while the next sequence waits. These three are the "
      "least\n"
      "    of the seeds, rounded down.\n"
      "*   stranded: the most parents that would have been free beside a sequence that waited, and one, had "
      "every\n"
      "    pool stood in as few parents as its blocks fill; where no block moves, and with compaction. A "
      "plan\n"
      "    guarantees that compaction leaves no more than its pools and one.\n"
      "*   moved: with compaction, for 1,000 sequences; bytes on each rank. "
      "`tests/bench/bench_compaction.cc`\n"
      "    times a moved parent.\n\n"
      "| pair | memory | caches | rollback | workload | 8k requests planned | baseline | fixed | compacted | "
      "stranded | "
      "parents moved | GiB moved |\n"
      "|---|---|---|---|---|---|---|---|---|---|---|---|\n";
  for (const ChurnRow& row : rows) {
    page += absl::StrFormat(
        "| %s | %s | %s | %s | %s | %d | %s | %s | %s | %d, %d | %d | %s |\n", row.pair, row.memory,
        row.caches, row.rollback, WorkloadName(row.workload), row.planned_requests,
        PercentText(row.baseline_share), PercentText(row.fixed_share), PercentText(row.compacted_share),
        row.fixed_stranded, row.compacted_stranded, PerThousand(row.moved_parents, row.sequences),
        GiBText(PerThousand(row.moved_bytes, row.sequences)));
  }
  return page;
}

}  // namespace kvasir::testing
