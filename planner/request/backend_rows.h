// The rows of the backend table, as they are written down; backends.h sorts and serves them.
#ifndef KVASIR_PLANNER_REQUEST_BACKEND_ROWS_H_
#define KVASIR_PLANNER_REQUEST_BACKEND_ROWS_H_

#include <vector>

#include "planner/request/backends.h"

namespace kvasir {

[[nodiscard]] std::vector<BackendRow> MakeBackendRows();

}  // namespace kvasir

#endif  // KVASIR_PLANNER_REQUEST_BACKEND_ROWS_H_
