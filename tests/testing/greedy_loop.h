// Greedy decoding of one sequence over ModelRanks, plain and speculative, in the few lines that DESIGN
// section 3 describes. The engine has its own loop; this one only drives passes.
#ifndef KVASIR_TESTS_TESTING_GREEDY_LOOP_H_
#define KVASIR_TESTS_TESTING_GREEDY_LOOP_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "tests/testing/model_ranks.h"

namespace kvasir::testing {

struct GreedyRun {
  std::vector<std::int32_t> tokens;  // generated
  std::int64_t drafted = 0;
  std::int64_t accepted = 0;
};

struct GreedyOptions {
  std::vector<std::int32_t> prompt;
  std::int64_t tokens = 64;
  std::int64_t draft_tokens = 0;  // N; 0: no speculation
  std::int32_t mask_token = 0;
  std::vector<std::int64_t> blocks;
};

absl::StatusOr<GreedyRun> RunGreedy(ModelRanks& ranks, const GreedyOptions& options);

}  // namespace kvasir::testing

#endif  // KVASIR_TESTS_TESTING_GREEDY_LOOP_H_
