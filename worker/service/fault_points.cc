#include "worker/service/fault_points.h"

#include <unistd.h>

#include <algorithm>
#include <iterator>

#include "absl/strings/str_format.h"

namespace kvasir {

absl::Status FaultPoints::Add(std::string_view text) {
  const std::size_t equals = text.find('=');
  const std::string_view point = text.substr(0, equals);
  const std::string_view action = equals == std::string_view::npos ? "" : text.substr(equals + 1);
  const bool known = std::find(std::begin(kFaultPointNames), std::end(kFaultPointNames), point) !=
                     std::end(kFaultPointNames);
  if (!known || (action != "exit" && action != "hang")) {
    return absl::InvalidArgumentError(
        absl::StrFormat("--fault-point=%s; want a point (prepare.start, prepare.agreed, prepare.built, "
                        "commit.start, step.start), "
                        "'=', and exit or hang",
                        text));
  }
  Point added;
  added.action = action == "exit" ? FaultAction::kExit : FaultAction::kHang;
  points_.insert_or_assign(std::string(point), added);
  return absl::OkStatus();
}

void FaultPoints::Reach(std::string_view point) const {
  const auto found = points_.find(point);
  if (found == points_.end() || found->second.reached->exchange(true)) return;
  if (found->second.action == FaultAction::kExit) _exit(137);
  while (true) pause();
}

}  // namespace kvasir
