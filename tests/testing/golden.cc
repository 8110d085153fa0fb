#include "tests/testing/golden.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

namespace kvasir::testing {

void ExpectGolden(std::string_view name, std::string_view text) {
  const std::filesystem::path path = std::filesystem::path(KVASIR_GOLDEN_DIR) / name;
  if (std::getenv("UPDATE_GOLDEN") != nullptr) {
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path, std::ios::binary) << text;
    return;
  }
  std::ifstream file(path, std::ios::binary);
  ASSERT_TRUE(file) << path << " is missing; run: tools/golden";
  std::ostringstream want;
  want << file.rdbuf();
  EXPECT_EQ(std::string(text), want.str()) << path << " differs; if intended run: tools/golden";
}

}  // namespace kvasir::testing
