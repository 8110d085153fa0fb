#include <gmock/gmock.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>

// Every test process has a ::testing::TempDir() of its own, gone with it: tests run beside each other, from
// several checkouts too.
int main(int argc, char** argv) {
  ::testing::InitGoogleMock(&argc, argv);
  std::string folder = (std::filesystem::temp_directory_path() / "kvasir_test_XXXXXX").string();
  if (mkdtemp(folder.data()) == nullptr || setenv("TEST_TMPDIR", folder.c_str(), /*overwrite=*/1) != 0) {
    std::perror(folder.c_str());
    return 1;
  }
  const int result = RUN_ALL_TESTS();
  std::error_code ignored;
  std::filesystem::remove_all(folder, ignored);
  return result;
}
