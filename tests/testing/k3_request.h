// The request every figure of this project starts from: Kimi-K3 (69 KDA and 24 MLA layers) with the DSpark
// draft of 5 MLA layers, built from layer specs directly, without the front end.
#ifndef KVASIR_TESTS_TESTING_K3_REQUEST_H_
#define KVASIR_TESTS_TESTING_K3_REQUEST_H_

#include <cstdint>
#include <string>
#include <vector>

#include "planner/core/plan_request.h"

namespace kvasir::testing {

struct K3Options {
  std::int64_t tp = 8;
  std::int64_t dcp = 8;
  std::int64_t draft_tokens = 7;  // 0: no draft
  RollbackChoice rollback = RollbackChoice::kAuto;
  std::int64_t context_tokens = 131072;
  std::int64_t kv_memory_bytes = 50251117568;  // 46.8 GiB, rounded down
};

[[nodiscard]] PlanRequest K3Request(const K3Options& options = {});

// A backend that can do everything for `layouts`, with these page sizes. For requests that are to be planned.
[[nodiscard]] BackendFacts AbleBackend(std::string name, std::vector<LayoutKind> layouts,
                                       std::vector<std::int64_t> page_tokens);

}  // namespace kvasir::testing

#endif  // KVASIR_TESTS_TESTING_K3_REQUEST_H_
