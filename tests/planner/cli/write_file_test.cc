#include "planner/cli/write_file.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <filesystem>
#include <iterator>
#include <string>

#include "tests/testing/matchers.h"
#include "tests/testing/shared_data.h"

namespace kvasir::cli {
namespace {

namespace fs = std::filesystem;

class WriteFileTest : public ::testing::Test {
 protected:
  WriteFileTest() : root_(fs::path(::testing::TempDir()) / "kvasir_write_file") {
    fs::remove_all(root_);
    fs::create_directories(root_);
  }
  ~WriteFileTest() override { fs::remove_all(root_); }

  std::string Path(const char* name) const { return (root_ / name).string(); }
  std::string Read(const char* name) const { return testing::ReadFile(Path(name)).value_or("none"); }
  std::ptrdiff_t Count() const {
    return std::distance(fs::directory_iterator(root_), fs::directory_iterator());
  }

  const fs::path root_;
};

TEST_F(WriteFileTest, TheNewTextTakesThePlaceOfTheOld) {
  for (const std::string text : {"first, and long", "", "second"}) {
    ASSERT_TRUE(WriteFile(Path("a"), text).ok());
    EXPECT_EQ(Read("a"), text);
  }
  EXPECT_EQ(Count(), 1);
}

TEST_F(WriteFileTest, ALinkIsFollowed) {
  ASSERT_TRUE(WriteFile(Path("a"), "old").ok());
  fs::create_symlink(Path("a"), Path("link"));
  ASSERT_TRUE(WriteFile(Path("link"), "new").ok());
  EXPECT_EQ(Read("a"), "new");
  EXPECT_TRUE(fs::is_symlink(Path("link")));
  EXPECT_EQ(Count(), 2);
}

TEST_F(WriteFileTest, ALinkToNothingIsFollowed) {
  fs::create_symlink("a", Path("middle"));
  fs::create_symlink(Path("middle"), Path("link"));
  ASSERT_TRUE(WriteFile(Path("link"), "new").ok());
  EXPECT_EQ(Read("a"), "new");
  EXPECT_TRUE(fs::is_symlink(Path("link")));
  EXPECT_TRUE(fs::is_symlink(Path("middle")));
  EXPECT_EQ(Count(), 3);
}

TEST_F(WriteFileTest, PermissionsAreKept) {
  ASSERT_TRUE(WriteFile(Path("a"), "old").ok());
  const fs::perms only_mine = fs::perms::owner_read | fs::perms::owner_write;
  fs::permissions(Path("a"), only_mine);
  ASSERT_TRUE(WriteFile(Path("a"), "new").ok());
  EXPECT_EQ(fs::status(Path("a")).permissions(), only_mine);
}

TEST_F(WriteFileTest, AFailureSaysWhyAndLeavesNothing) {
  fs::create_symlink(Path("b"), Path("a"));
  fs::create_symlink(Path("a"), Path("b"));
  EXPECT_THAT(WriteFile(Path("none/a"), "x"),
              testing::StatusIs(absl::StatusCode::kUnavailable, "none/a: cannot be written: No such file"));
  EXPECT_FALSE(WriteFile(Path("a"), "x").ok());
  EXPECT_FALSE(WriteFile(root_.string(), "x").ok());
  EXPECT_THAT(WriteFile("/dev/full", "x"),
              testing::StatusIs(absl::StatusCode::kUnavailable, "/dev/full: cannot be written: No space"));
  EXPECT_EQ(Count(), 2);
}

}  // namespace
}  // namespace kvasir::cli
