// Random engine cases of every kind of layer, small and large memory, stages and options.
#ifndef KVASIR_TESTS_PROPERTY_RANDOM_ENGINE_CASE_H_
#define KVASIR_TESTS_PROPERTY_RANDOM_ENGINE_CASE_H_

#include <cstdint>

#include "planner/rulesets/vllm/engine_case.h"

namespace kvasir::testing {

// The same case for the same seed, with any standard library.
[[nodiscard]] vllm::EngineCase RandomEngineCase(std::uint32_t seed);

}  // namespace kvasir::testing

#endif  // KVASIR_TESTS_PROPERTY_RANDOM_ENGINE_CASE_H_
