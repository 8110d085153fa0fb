// What devices would say of a launch that names none.
#ifndef KVASIR_PLANNER_CLI_DEVICE_VERDICTS_H_
#define KVASIR_PLANNER_CLI_DEVICE_VERDICTS_H_

#include <string>

#include "planner/request/engine_settings.h"

namespace kvasir::cli {

// A sentence: which of the known devices would refuse a launch that is taken where no device is named, and
// what the first of them says; their kernels do not run everything. Empty: none would, or the launch names
// its device.
[[nodiscard]] std::string DevicesThatRefuse(const EngineLaunch& launch);

}  // namespace kvasir::cli

#endif  // KVASIR_PLANNER_CLI_DEVICE_VERDICTS_H_
