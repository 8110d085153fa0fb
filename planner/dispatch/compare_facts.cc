// Agreement between workers before anything is allocated.
#include <algorithm>
#include <iterator>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_format.h"
#include "common/base/error_reasons.h"
#include "common/base/typed_error.h"
#include "planner/dispatch/apply_machine.h"

namespace kvasir {

absl::Status CompareFacts(const std::vector<WorkerSlot>& workers) {
  // By fact, then value: who has it. The value that most workers have is taken for the right one; of equals,
  // the one that rank 0's side has.
  std::map<std::string, std::map<std::string, std::vector<const WorkerSlot*>>> values;
  for (const WorkerSlot& slot : workers) {
    for (const auto& [name, value] : slot.seen.facts) {
      if (slot.member) {
        values[name][value].push_back(&slot);
      }
    }
  }
  for (const auto& [name, owners] : values) {
    if (owners.size() < 2) {
      continue;
    }
    const auto usual = std::max_element(owners.begin(), owners.end(), [](const auto& a, const auto& b) {
      if (a.second.size() != b.second.size()) return a.second.size() < b.second.size();
      return a.second.front()->target.ranks.front() > b.second.front()->target.ranks.front();
    });
    const auto odd = owners.begin() == usual ? std::next(usual) : owners.begin();
    const WorkerTarget& target = odd->second.front()->target;
    return MakeError(
        {.code = absl::StatusCode::kFailedPrecondition,
         .reason = reason::kRanksDisagree,
         .message = absl::StrFormat("rank %d (%s) has %s = %s where others have %s; make them equal",
                                    target.ranks.front(), target.address, name, odd->first, usual->first),
         .field = "workers",
         .metadata = {{"rank", std::to_string(target.ranks.front())},
                      {"worker", target.address},
                      {"fact", name},
                      {"value", odd->first},
                      {"others", usual->first}}});
  }
  return absl::OkStatus();
}

}  // namespace kvasir
