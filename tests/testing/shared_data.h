// Public model configurations and peer results live outside the repository. With KVASIR_SHARED_DATA set a
// missing file is a failure; without it such tests are skipped and counted as skipped.
#ifndef KVASIR_TESTS_TESTING_SHARED_DATA_H_
#define KVASIR_TESTS_TESTING_SHARED_DATA_H_

#include <optional>
#include <string>
#include <string_view>

namespace kvasir::testing {

// The folder named by KVASIR_SHARED_DATA, or nullopt.
[[nodiscard]] std::optional<std::string> SharedDataDir();

// The whole file, or nullopt if it cannot be read.
[[nodiscard]] std::optional<std::string> ReadFile(std::string_view path);

}  // namespace kvasir::testing

// Skips the test where the data folder is not given.
#define KVASIR_SHARED_DATA_OR_SKIP(variable)                                         \
  const auto kvasir_data_dir = ::kvasir::testing::SharedDataDir();                   \
  if (!kvasir_data_dir.has_value()) GTEST_SKIP() << "KVASIR_SHARED_DATA is not set"; \
  const std::string& variable = *kvasir_data_dir

#endif  // KVASIR_TESTS_TESTING_SHARED_DATA_H_
