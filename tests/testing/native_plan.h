// Plans of the native ruleset for lists of caches: what repro tests set against an engine's plan.
#ifndef KVASIR_TESTS_TESTING_NATIVE_PLAN_H_
#define KVASIR_TESTS_TESTING_NATIVE_PLAN_H_

#include <string>
#include <vector>

#include "common/plan/plan.h"
#include "planner/core/outcome.h"
#include "planner/request/cache_layer.h"

namespace kvasir::testing {

struct NativeLayers {
  int count = 0;
  std::variant<KeyValueCache, LatentCache, StateCache> cache;
};

// A target of these layers, in this order, on one rank with 64 GiB for 8,192 tokens.
[[nodiscard]] PlanOutcome NativeOutcome(const std::vector<NativeLayers>& target,
                                        const std::vector<NativeLayers>& draft = {});

// The plan; the test fails, and an empty plan is returned, where there is none.
[[nodiscard]] Plan NativePlan(const std::vector<NativeLayers>& target,
                              const std::vector<NativeLayers>& draft = {});

// Bytes of blocks that hold no layer's page, of all bytes of blocks, in hundredths of a percent; the worst
// pool.
[[nodiscard]] std::int64_t WorstPaddingBasisPoints(const Plan& plan);

// Grouped-query caches of 8 heads of 128, a latent one of 512 + 64, a recurrent one of 32 heads of 128 x 128.
[[nodiscard]] KeyValueCache NativeFull();
[[nodiscard]] KeyValueCache NativeSliding(std::int64_t window = 1024);
[[nodiscard]] LatentCache NativeLatent();
[[nodiscard]] StateCache NativeState(std::int64_t heads = 32);

}  // namespace kvasir::testing

#endif  // KVASIR_TESTS_TESTING_NATIVE_PLAN_H_
