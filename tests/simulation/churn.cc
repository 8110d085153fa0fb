#include "tests/simulation/churn.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <memory>
#include <optional>

#include "common/base/check.h"
#include "planner/core/capacity.h"
#include "planner/core/wide.h"
#include "tests/simulation/sequence_room.h"

namespace kvasir::testing {
namespace {

// The load over time, from a first step on.
class MeanLoad {
 public:
  void Start(std::int64_t step) {
    if (!start_.has_value()) start_ = step;
  }
  void Add(std::int64_t bytes, std::int64_t steps) {
    if (start_.has_value()) sum_ += Wide{bytes} * steps;
  }
  void Finish(std::int64_t step, ChurnResult& result) const {
    result.steps = step - *start_;
    KVASIR_CHECK(result.steps > 0);
    result.mean_bytes = Saturated(sum_ / result.steps);
  }

 private:
  std::optional<std::int64_t> start_;
  Wide sum_ = 0;
};

}  // namespace

ChurnResult RunChurn(const Plan& plan, const std::vector<Arrival>& arrivals, Allocator allocator) {
  const std::unique_ptr<SequenceRoom> room = MakeRoom(plan, allocator);
  const std::vector<PoolLoad> loads = LoadsOf(plan);
  std::vector<std::int64_t> bytes;
  bytes.reserve(arrivals.size());
  for (const Arrival& arrival : arrivals) bytes.push_back(ReservedBytes(loads, arrival.tokens));

  ChurnResult result;
  MeanLoad mean;
  std::map<std::int64_t, std::vector<std::size_t>> leaving;  // by step
  std::int64_t step = 0;
  std::int64_t load = 0;
  std::size_t next = 0;
  for (;;) {
    while (!leaving.empty() && leaving.begin()->first <= step) {
      for (const std::size_t sequence : leaving.begin()->second) {
        room->Release(sequence);
        load -= bytes[sequence];
      }
      leaving.erase(leaving.begin());
    }
    for (; next < arrivals.size() && room->Reserve(next, arrivals[next].tokens); ++next) {
      load += bytes[next];
      leaving[step + arrivals[next].steps].push_back(next);
    }
    if (next == arrivals.size()) break;
    if (next >= arrivals.size() / 4) mean.Start(step);
    const std::int64_t moved = room->MoveOneParent(arrivals[next].tokens);
    if (moved > 0) {
      ++result.moved_parents;
      result.moved_bytes += moved;
    } else {
      result.stranded_parents =
          std::max(result.stranded_parents, room->StrandedParents(arrivals[next].tokens));
    }
    KVASIR_CHECK(moved > 0 || !leaving.empty());
    const std::int64_t until = moved > 0 ? step + 1 : leaving.begin()->first;
    mean.Add(load, until - step);
    step = until;
  }
  mean.Finish(step, result);
  return result;
}

}  // namespace kvasir::testing
