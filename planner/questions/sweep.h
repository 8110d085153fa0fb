// A grid of questions and what each admits: parallelism, blocks, cache types, drafted tokens, lengths,
// devices, rulesets. The points that no other beats are marked: at one length, fewer ranks and more requests.
#ifndef KVASIR_PLANNER_QUESTIONS_SWEEP_H_
#define KVASIR_PLANNER_QUESTIONS_SWEEP_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "planner/questions/plan_question.h"

namespace kvasir {

inline constexpr std::int64_t kSweepPointsMax = 100'000;

// Values of each axis; an empty axis keeps the question's own value. A dcp that does not divide a tp is not a
// point of the grid.
struct SweepAxes {
  std::vector<std::string> rulesets;
  std::vector<std::int64_t> tp;
  std::vector<std::int64_t> dcp;
  std::vector<std::int64_t> block_tokens;
  std::vector<std::string> cache_dtypes;
  std::vector<std::string> state_rollbacks;
  std::vector<std::int64_t> draft_tokens;
  std::vector<std::int64_t> contexts;  // tokens; 0: the model's limit. Each is planned for itself.
  std::vector<std::int64_t> kv_memory_bytes;
  std::vector<GpuRow> devices;  // instead of memory
};

// kMayFit: with the most that the device leaves, and not with the least.
enum class SweepVerdict : std::int8_t { kFits, kMayFit, kDoesNotFit, kRefused };
// fits | may_fit | does_not_fit | refused
[[nodiscard]] std::string_view SweepVerdictName(SweepVerdict verdict);

struct SweepPoint {
  PlanOptions options;              // with one context, as it was asked, and one memory
  std::int64_t context_tokens = 0;  // as it was planned; 0: it was refused before
  std::string_view device;          // GpuRow::name; empty: memory was given
  SweepVerdict verdict = SweepVerdict::kRefused;
  std::int64_t requests = 0;           // of the context; 0 unless it fits
  std::int64_t requests_most = 0;      // with the most that the device leaves; else as `requests`
  std::int64_t bytes_per_request = 0;  // per rank; 0: not known, as under a vllm ruleset
  std::string plan_id;                 // of ruleset native
  std::string why;                     // unless it fits: a rule or field, or how many bytes are missing
  bool on_front = false;               // fits, and none of its length has no more ranks and more requests
};

struct SweepProgress {
  std::int64_t done = 0;
  std::int64_t points = 0;
};
// After each point, whose place on the front is not known yet; false ends the sweep. Null: never ends early.
using SweepStep = std::function<bool(const SweepPoint&, const SweepProgress&)>;

// Points of the grid. InvalidArgument: more than kSweepPointsMax, or an axis with a value twice.
[[nodiscard]] absl::StatusOr<std::int64_t> CountPoints(const PlanQuestion& base, const SweepAxes& axes);
// Combinations that are no points. CountPoints must accept the axes.
[[nodiscard]] std::int64_t CountLeftOut(const PlanQuestion& base, const SweepAxes& axes);

// In the order of the axes, the last of them fastest; those that were asked when it ended early. CountPoints
// must accept the axes. The front is marked among all points returned.
[[nodiscard]] std::vector<SweepPoint> Sweep(const PlanQuestion& base, const SweepAxes& axes,
                                            const SweepStep& step = {});

// Marks the points of each length that no other point of that length beats.
void MarkFront(std::vector<SweepPoint>& points);

}  // namespace kvasir

#endif  // KVASIR_PLANNER_QUESTIONS_SWEEP_H_
