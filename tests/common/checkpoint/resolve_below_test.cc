// Directories that an apply may name: below the worker's root, and nowhere else.
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "common/base/error_reasons.h"
#include "common/base/typed_error.h"
#include "common/checkpoint/checkpoint.h"
#include "common/checkpoint/mapped_file.h"
#include "tests/testing/checkpoint_writer.h"
#include "tests/testing/matchers.h"

namespace kvasir {
namespace {

namespace fs = std::filesystem;

class ResolveBelowTest : public ::testing::Test {
 protected:
  void SetUp() override {
    base_ = testing::FreshDirectory("");
    root_ = base_ + "/root";
    fs::create_directories(root_ + "/models/small");
    fs::create_directories(base_ + "/root2");
    fs::create_directories(base_ + "/outside");
    testing::WriteFile(base_ + "/root/file", "x");
    fs::create_directory_symlink("models/small", root_ + "/link");
    fs::create_directory_symlink(base_ + "/outside", root_ + "/leads-out");
    fs::create_directory_symlink(root_, base_ + "/root-link");
  }
  std::string base_;
  std::string root_;
};

TEST_F(ResolveBelowTest, FindsDirectoriesBelowTheRoot) {
  const std::string small = fs::canonical(root_ + "/models/small").string();
  for (const std::string& name : {std::string("models/small"), std::string("./models/../models/small/"),
                                  std::string("link"), root_ + "/models/small", root_ + "/link"}) {
    const auto place = ResolveBelow(root_, name);
    KVASIR_ASSERT_OK(place) << name;
    EXPECT_EQ(place->directory, small) << name;
    EXPECT_EQ(place->root, fs::canonical(root_).string());
  }
  KVASIR_EXPECT_OK(ResolveBelow(root_, "."));
  KVASIR_EXPECT_OK(ResolveBelow(root_ + "/", "models"));
  KVASIR_EXPECT_OK(ResolveBelow(base_ + "/root-link", base_ + "/root-link/models"));
  KVASIR_EXPECT_OK(ResolveBelow(base_ + "/root-link", "link"));
}

TEST_F(ResolveBelowTest, RefusesWhatLiesOutsideWithoutSayingWhetherItIsThere) {
  for (const std::string& name :
       {std::string(".."), std::string("../outside"), std::string("../no-such"),
        std::string("models/../../outside"), base_ + "/outside", base_ + "/root2", base_ + "/no-such",
        std::string("/"), std::string("/etc"), std::string("leads-out")}) {
    EXPECT_EQ(ReasonOf(ResolveBelow(root_, name).status()), reason::kCheckpointPath) << name;
  }
  for (const char* name : {"no-such", "file", "models/none", "file/x"}) {
    EXPECT_EQ(ReasonOf(ResolveBelow(root_, name).status()), reason::kCheckpointNotFound) << name;
  }
}

TEST_F(ResolveBelowTest, WithoutARootNothingIsRead) {
  const auto place = ResolveBelow("", root_);
  EXPECT_THAT(place,
              testing::StatusIs(absl::StatusCode::kInvalidArgument, "start it with --checkpoint-root"));
  EXPECT_EQ(ReasonOf(ResolveBelow(base_ + "/none", "x").status()), reason::kCheckpointNotFound);
}

TEST_F(ResolveBelowTest, AFileThatLinksOutOfTheRootIsRefused) {
  const testing::WrittenTensor tensor = testing::RandomTensor("a", StoredType::kF32, {2}, 1);
  testing::WriteCheckpoint(base_ + "/outside", {tensor});
  fs::create_directory(root_ + "/linked");
  fs::create_symlink(base_ + "/outside/model.safetensors", root_ + "/linked/model.safetensors");
  const auto place = ResolveBelow(root_, "linked");
  KVASIR_ASSERT_OK(place);
  EXPECT_EQ(ReasonOf(Checkpoint::Open(place->directory, place->root).status()), reason::kCheckpointPath);
  testing::WriteCheckpoint(root_ + "/models/small", {tensor});
  fs::remove(root_ + "/linked/model.safetensors");
  fs::create_symlink("../models/small/model.safetensors", root_ + "/linked/model.safetensors");
  KVASIR_EXPECT_OK(Checkpoint::Open(place->directory, place->root));
}

TEST(IsBelow, ComparesWholeNames) {
  EXPECT_TRUE(IsBelow("/a", "/a"));
  EXPECT_TRUE(IsBelow("/a/", "/a/b"));
  EXPECT_TRUE(IsBelow("/", "/b"));
  EXPECT_FALSE(IsBelow("/a", "/ab"));
  EXPECT_FALSE(IsBelow("/a/b", "/a"));
  EXPECT_FALSE(IsBelow("/a", ""));
}

}  // namespace
}  // namespace kvasir
