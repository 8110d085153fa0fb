// Golden text: compared byte for byte; `tools/golden` (UPDATE_GOLDEN=1) rewrites it and `git diff` is the
// review.
#ifndef KVASIR_TESTS_TESTING_GOLDEN_H_
#define KVASIR_TESTS_TESTING_GOLDEN_H_

#include <string_view>

namespace kvasir::testing {

// `name` is a path under tests/golden, for example "plan/kimi_k3_dspark.txt".
void ExpectGolden(std::string_view name, std::string_view text);

}  // namespace kvasir::testing

#endif  // KVASIR_TESTS_TESTING_GOLDEN_H_
