// The case table of the mixture of experts: routing in all its forms, and shapes that no lane count divides.
#ifndef KVASIR_TESTS_CONFORMANCE_EXPERTS_CASE_H_
#define KVASIR_TESTS_CONFORMANCE_EXPERTS_CASE_H_

#include <cstdint>
#include <iosfwd>
#include <vector>

#include "worker/engine/launch_experts.h"

namespace kvasir::testing {

struct ExpertsCase {
  const char* name = "";
  ScoreFunction score = ScoreFunction::kSigmoid;
  bool bias = false;
  bool normalise = true;
  float scale = 1;
  std::int64_t experts = 8, chosen = 2, groups = 1, groups_kept = 1;
  std::int64_t rows = 5, dim = 20, width = 12;
  GatedActivation activation = {};
};
void PrintTo(const ExpertsCase& c, std::ostream* out);

[[nodiscard]] const std::vector<ExpertsCase>& AllExpertsCases();

}  // namespace kvasir::testing

#endif  // KVASIR_TESTS_CONFORMANCE_EXPERTS_CASE_H_
