// The parts of a page, each a piece of HTML. Private to planner/cli/page.
#ifndef KVASIR_PLANNER_CLI_PAGE_PAGE_PARTS_H_
#define KVASIR_PLANNER_CLI_PAGE_PAGE_PARTS_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "planner/cli/page/plan_page.h"
#include "planner/core/capacity.h"

namespace kvasir::cli {

// One position of the slider.
struct Stop {
  CapacityRow row;
  std::vector<std::int64_t> pool_bytes;             // of one sequence, by pool; sums to bytes_per_request
  std::vector<std::optional<std::int64_t>> others;  // requests, by alternative; nullopt where it has no row
};
[[nodiscard]] std::vector<Stop> StopsOf(const Planned& planned, const std::vector<Alternative>& at_stops);

// What one owner has of the arena.
[[nodiscard]] std::int64_t OwnedBy(const Plan& plan, const std::string& owner);
// Parents that a pool takes at the planned load: the most requests of context_tokens.
[[nodiscard]] std::int64_t ParentsOf(const Plan& plan, std::size_t pool);

// Classes that give a pool, or a group of it, its colour; they repeat after 8 pools and 3 groups.
[[nodiscard]] std::string PoolClass(std::size_t pool);
[[nodiscard]] std::string GroupClass(std::size_t pool, std::size_t group);

// A <section>: heading and note beside the body. `body` is markup.
[[nodiscard]] std::string Section(std::string_view id, std::string_view title, std::string_view note,
                                  std::string_view body);

// The top of the page.
[[nodiscard]] std::string VerdictPart(const PlanRequest& request, const PlanOutcome& outcome);
// What stands in the way and the ways out.
[[nodiscard]] std::string ShortfallPart(const DoesNotFit& outcome);
[[nodiscard]] std::string RefusalsPart(const Refusals& refusals, const std::vector<std::string>& instead);
// Of a plan.
[[nodiscard]] std::string ArenaPart(const Plan& plan);
[[nodiscard]] std::string BlocksPart(const Plan& plan);
[[nodiscard]] std::string ContextPart(const Planned& planned, const std::vector<Alternative>& at_stops,
                                      const std::vector<Stop>& stops);
[[nodiscard]] std::string BytesPart(const Plan& plan);
// What was asked.
[[nodiscard]] std::string QuestionPart(const PlanRequest& request, const PlanOutcome& outcome);

// What the page's script and other programs read: JSON in ASCII.
[[nodiscard]] std::string PageData(const PlanRequest& request, const PlanOutcome& outcome,
                                   const PageFacts& facts, const std::vector<Stop>& stops);

}  // namespace kvasir::cli

#endif  // KVASIR_PLANNER_CLI_PAGE_PAGE_PARTS_H_
