#include "planner/dispatch/apply_spec.h"

#include <algorithm>
#include <map>

#include "absl/strings/str_format.h"
#include "common/base/error_reasons.h"
#include "common/base/typed_error.h"

namespace kvasir {
namespace {

absl::Status CheckOne(const WorkerTarget& worker, std::size_t index, std::int64_t rank_count,
                      std::map<std::int32_t, std::string>& owners) {
  const std::string field = absl::StrFormat("workers[%d].ranks", index);
  if (worker.ranks.empty()) {
    return FieldError(reason::kMissingField, field, absl::StrFormat("worker %s has no rank", worker.address));
  }
  for (const std::int32_t rank : worker.ranks) {
    if (rank < 0 || rank >= rank_count) {
      return FieldError(reason::kValueOutOfRange, field,
                        absl::StrFormat("rank %d of worker %s is outside 0 to %d, the ranks of the plan",
                                        rank, worker.address, rank_count - 1));
    }
    const auto [owner, fresh] = owners.emplace(rank, worker.address);
    if (!fresh) {
      return FieldError(reason::kDuplicateItem, field,
                        absl::StrFormat("rank %d is given to %s and to %s; give it once", rank, owner->second,
                                        worker.address));
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status ArrangeWorkers(std::vector<WorkerTarget>& workers, std::int64_t rank_count) {
  std::map<std::string, std::size_t> addresses;
  std::map<std::int32_t, std::string> owners;
  for (std::size_t i = 0; i < workers.size(); ++i) {
    const auto [first, fresh] = addresses.emplace(workers[i].address, i);
    if (!fresh) {
      return FieldError(reason::kDuplicateItem, absl::StrFormat("workers[%d].address", i),
                        absl::StrFormat("worker %s is also workers[%d]; list all its ranks in one entry",
                                        workers[i].address, first->second));
    }
    if (absl::Status one = CheckOne(workers[i], i, rank_count, owners); !one.ok()) {
      return one;
    }
  }
  for (std::int32_t rank = 0; rank < rank_count; ++rank) {
    if (!owners.contains(rank)) {
      return FieldError(
          reason::kRanksIncomplete, "workers",
          absl::StrFormat("no worker has rank %d; the plan has ranks 0 to %d", rank, rank_count - 1));
    }
  }
  for (WorkerTarget& worker : workers) {
    std::sort(worker.ranks.begin(), worker.ranks.end());
  }
  std::sort(workers.begin(), workers.end(),
            [](const WorkerTarget& a, const WorkerTarget& b) { return a.ranks.front() < b.ranks.front(); });
  return absl::OkStatus();
}

}  // namespace kvasir
