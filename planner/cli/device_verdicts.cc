#include "planner/cli/device_verdicts.h"

#include <cstddef>

#include "absl/strings/str_format.h"
#include "common/base/typed_error.h"
#include "planner/request/gpu_table.h"

namespace kvasir::cli {

std::string DevicesThatRefuse(const EngineLaunch& launch) {
  if (launch.device.has_value()) return "";
  std::string names;
  std::string why;
  std::size_t count = 0;
  for (const GpuRow& row : GpuTable()) {
    EngineLaunch there = launch;
    there.device = row;
    const absl::StatusOr<EngineSettings> settings = SettingsOf(there);
    if (settings.ok()) continue;
    if (why.empty()) why = ErrorOf(settings.status()).message;
    names += (names.empty() ? "" : ", ") + std::string(row.name);
    ++count;
  }
  if (count == 0) return "";
  const bool all = count == GpuTable().size();
  return absl::StrFormat("kernels were not judged, since no --gpu says where it runs; %s: %s",
                         all ? "every known device would refuse it" : names + " would refuse it", why);
}

}  // namespace kvasir::cli
