// What speculative steps cost by their rows, learned from the times they took; for choose_verify_rows.h. Rank
// 0 learns and puts the cost into each StepPlan, so that all ranks choose alike.
#ifndef KVASIR_WORKER_ENGINE_STEP_COST_H_
#define KVASIR_WORKER_ENGINE_STEP_COST_H_

#include <cstdint>
#include <map>

namespace kvasir {

// fixed + row * rows of the verify pass, in any one unit. As it stands here rows are free, and all are
// verified, as where the draft has no confidence head.
inline constexpr std::int64_t kStepCostMax = std::int64_t{1} << 53;
struct StepCost {
  std::int64_t fixed = 1;  // each from 0 to kStepCostMax
  std::int64_t row = 0;
  friend bool operator==(const StepCost&, const StepCost&) = default;
};

// Steps of equally many requests differ in the rows of the verify pass alone; each number of requests has its
// own line through them, time = fixed + row * rows, in which older steps count less and less. Where nothing
// was measured yet all rows are free. Two of 32 steps are for measuring: one verifies everything, the next
// nothing, so that the line has two ends however the choice falls.
class StepCostEstimate {
 public:
  // Of the next step, of `requests` requests.
  [[nodiscard]] StepCost Next(std::int64_t requests);
  // It verified `drafted` tokens of each request and took so long.
  void Add(std::int64_t requests, std::int64_t drafted, std::int64_t nanoseconds);

 private:
  // Weighted sums over steps; x: rows, y: nanoseconds.
  struct Line {
    std::int64_t steps = 0;
    double weight = 0, x = 0, y = 0, xx = 0, xy = 0;
  };
  std::map<std::int64_t, Line> lines_;  // by requests
};

}  // namespace kvasir

#endif  // KVASIR_WORKER_ENGINE_STEP_COST_H_
