// Random small requests that pass validation: every shape of layer, any number of ranks, tight and wide
// arenas.
#ifndef KVASIR_TESTS_PROPERTY_RANDOM_REQUEST_H_
#define KVASIR_TESTS_PROPERTY_RANDOM_REQUEST_H_

#include <cstdint>

#include "planner/core/plan_request.h"

namespace kvasir::testing {

// The same request for the same seed, with any standard library.
[[nodiscard]] PlanRequest RandomRequest(std::uint32_t seed);

}  // namespace kvasir::testing

#endif  // KVASIR_TESTS_PROPERTY_RANDOM_REQUEST_H_
