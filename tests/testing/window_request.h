// A small model with every per-token shape that Kimi-K3 lacks: grouped-query attention, sliding windows, and
// a draft of the target's own layout. Also a builder of single layers for tests that need an odd one.
#ifndef KVASIR_TESTS_TESTING_WINDOW_REQUEST_H_
#define KVASIR_TESTS_TESTING_WINDOW_REQUEST_H_

#include <cstdint>

#include "planner/core/plan_request.h"

namespace kvasir::testing {

struct WindowOptions {
  std::int64_t dcp = 2;  // of tp 4
  std::int64_t draft_tokens = 3;
  std::int64_t context_tokens = 32768;
  std::int64_t kv_memory_bytes = std::int64_t{2} << 30;
};

// 12 target layers, each third one full and the others with a window of 1024 tokens; 2 draft layers.
[[nodiscard]] PlanRequest WindowRequest(const WindowOptions& options = {});

// A full-attention layer of 2 heads x (64 + 64), not sharded, of backend "flash".
[[nodiscard]] LayerSpec AttentionLayer(Role role, std::int32_t index, std::int64_t draft_tokens);

// One target layer of that kind on one rank without a draft: the least request that is planned.
[[nodiscard]] PlanRequest TinyRequest();

}  // namespace kvasir::testing

#endif  // KVASIR_TESTS_TESTING_WINDOW_REQUEST_H_
