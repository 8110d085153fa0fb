// docs/generated/capacity_differences.md: every row of a file of start-up logs that is not simply reproduced,
// with the reason.
#ifndef KVASIR_TESTS_TOOLS_CAPACITY_PAGE_H_
#define KVASIR_TESTS_TOOLS_CAPACITY_PAGE_H_

#include <string>
#include <vector>

#include "tests/tools/log_models.h"
#include "tests/tools/log_row.h"

namespace kvasir {

[[nodiscard]] std::string CapacityPage(const std::vector<LogRow>& rows, const LogModels& models);

}  // namespace kvasir

#endif  // KVASIR_TESTS_TOOLS_CAPACITY_PAGE_H_
