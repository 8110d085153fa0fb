#include "tests/conformance/experts_case.h"

#include <ostream>

namespace kvasir::testing {

void PrintTo(const ExpertsCase& c, std::ostream* out) { *out << c.name; }

const std::vector<ExpertsCase>& AllExpertsCases() {
  constexpr auto kSoftmax = ScoreFunction::kSoftmax;
  static const std::vector<ExpertsCase> cases = {
      {.name = "sigmoid"},
      {.name = "softmax", .score = kSoftmax},
      {.name = "softmax, weights as they are", .score = kSoftmax, .normalise = false},
      {.name = "softmax, scaled", .score = kSoftmax, .normalise = false, .scale = 16},
      {.name = "groups by their best", .score = kSoftmax, .groups = 4, .groups_kept = 2},
      {.name = "one group of many", .experts = 12, .chosen = 3, .groups = 4, .groups_kept = 1},
      {.name = "bias", .bias = true, .scale = 2.5F},
      {.name = "groups by their two best",
       .bias = true,
       .scale = 2.5F,
       .experts = 32,
       .chosen = 6,
       .groups = 8,
       .groups_kept = 3},
      {.name = "softmax with a bias", .score = kSoftmax, .bias = true, .groups = 2, .groups_kept = 1},
      {.name = "one expert", .experts = 1, .chosen = 1},
      {.name = "the best alone", .score = kSoftmax, .normalise = false, .experts = 7, .chosen = 1},
      {.name = "all experts", .bias = true, .experts = 5, .chosen = 5},
      {.name = "all of the groups kept", .bias = true, .chosen = 4, .groups = 4, .groups_kept = 2},
      {.name = "one row", .rows = 1},
      {.name = "many rows", .bias = true, .experts = 16, .chosen = 4, .rows = 67},
      {.name = "odd sizes", .rows = 3, .dim = 17, .width = 33},
      {.name = "width 1", .dim = 16, .width = 1},
      {.name = "SiTU", .dim = 32, .width = 16, .activation = {.situ_beta = 4, .situ_linear_beta = 25}},
      {.name = "SiTU without a limit", .activation = {.situ_beta = 1}},
      {.name = "DeepSeek-V3's numbers",
       .bias = true,
       .scale = 2.5F,
       .experts = 256,
       .chosen = 8,
       .groups = 8,
       .groups_kept = 4,
       .rows = 9,
       .dim = 48,
       .width = 16},
      {.name = "Kimi-K3's numbers",
       .bias = true,
       .experts = 896,
       .chosen = 16,
       .rows = 2,
       .dim = 32,
       .width = 8,
       .activation = {.situ_beta = 4, .situ_linear_beta = 25}},
  };
  return cases;
}

}  // namespace kvasir::testing
