// Checkpoint directories: single files and indexes, and what is wrong with broken ones.
#include "common/checkpoint/checkpoint.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <string>
#include <vector>

#include "common/base/error_reasons.h"
#include "common/base/typed_error.h"
#include "tests/testing/checkpoint_writer.h"
#include "tests/testing/matchers.h"

namespace kvasir {
namespace {

using testing::FreshDirectory;
using testing::RandomTensor;
using testing::WriteCheckpoint;
using testing::WriteFile;
using testing::WrittenTensor;

std::vector<WrittenTensor> FiveTensors() {
  return {RandomTensor("e", StoredType::kF32, {3, 4}, 1), RandomTensor("a", StoredType::kBf16, {7}, 2),
          RandomTensor("c", StoredType::kI64, {}, 3), RandomTensor("b", StoredType::kF16, {2, 0}, 4),
          RandomTensor("d", StoredType::kU8, {5, 1}, 5)};
}

TEST(Checkpoint, HoldsTheSameTensorsHoweverTheyAreDealtToFiles) {
  for (const std::int64_t files : {1, 2, 5}) {
    const std::string directory = FreshDirectory(std::to_string(files));
    WriteCheckpoint(directory, FiveTensors(), files);
    const auto checkpoint = Checkpoint::Open(directory);
    KVASIR_ASSERT_OK(checkpoint);
    ASSERT_EQ(checkpoint->tensors().size(), 5U);
    EXPECT_EQ(checkpoint->tensors().front().entry.name, "a");
    for (const WrittenTensor& written : FiveTensors()) {
      const StoredTensor* tensor = checkpoint->Find(written.name);
      ASSERT_NE(tensor, nullptr) << written.name;
      EXPECT_EQ(tensor->entry.type, written.type);
      EXPECT_EQ(tensor->entry.shape, written.shape);
      const auto bytes = checkpoint->Bytes(*tensor);
      KVASIR_ASSERT_OK(bytes);
      EXPECT_EQ(*bytes, written.bytes);
    }
    EXPECT_EQ(checkpoint->Find("f"), nullptr);
  }
}

TEST(Checkpoint, AFileThatShrinksIsAnErrorAndNotTheEndOfTheProcess) {
  const std::string directory = FreshDirectory("");
  WriteCheckpoint(directory, FiveTensors());
  const auto checkpoint = Checkpoint::Open(directory);
  KVASIR_ASSERT_OK(checkpoint);
  std::filesystem::resize_file(directory + "/model.safetensors", 10);
  const auto bytes = checkpoint->Bytes(checkpoint->tensors().front());
  EXPECT_THAT(bytes, testing::StatusIs(absl::StatusCode::kDataLoss, "has 10 now"));
  EXPECT_EQ(ReasonOf(bytes.status()), reason::kCheckpointUnreadable);
}

TEST(Checkpoint, AFileThatIsReplacedByAnotherKeepsItsBytes) {
  const std::string directory = FreshDirectory("");
  WriteCheckpoint(directory, FiveTensors());
  const auto checkpoint = Checkpoint::Open(directory);
  KVASIR_ASSERT_OK(checkpoint);
  WriteFile(directory + "/new", "x");
  std::filesystem::rename(directory + "/new", directory + "/model.safetensors");
  const auto bytes = checkpoint->Bytes(*checkpoint->Find("d"));
  KVASIR_ASSERT_OK(bytes);
  EXPECT_EQ(*bytes, FiveTensors()[4].bytes);
}

TEST(Checkpoint, FollowsSymbolicLinksToFiles) {
  const std::string blobs = FreshDirectory("blobs");
  WriteCheckpoint(blobs, FiveTensors());
  const std::string directory = FreshDirectory("links");
  std::filesystem::create_symlink(blobs + "/model.safetensors", directory + "/model.safetensors");
  KVASIR_EXPECT_OK(Checkpoint::Open(directory));
}

struct Broken {
  std::string name;
  void (*change)(const std::string& directory);  // of an intact checkpoint in two files
  absl::StatusCode code;
  std::string message;
};

void PrintTo(const Broken& c, std::ostream* os) { *os << c.name; }

constexpr char kFirst[] = "/model-00001-of-00002.safetensors";
constexpr char kSecond[] = "/model-00002-of-00002.safetensors";
constexpr char kIndex[] = "/model.safetensors.index.json";

class BrokenCheckpoint : public ::testing::TestWithParam<Broken> {};

TEST_P(BrokenCheckpoint, SaysWhatIsWrong) {
  const std::string directory = FreshDirectory("");
  WriteCheckpoint(directory, FiveTensors(), 2);
  KVASIR_ASSERT_OK(Checkpoint::Open(directory));
  GetParam().change(directory);
  EXPECT_THAT(Checkpoint::Open(directory), testing::StatusIs(GetParam().code, GetParam().message));
}

INSTANTIATE_TEST_SUITE_P(
    Table, BrokenCheckpoint,
    ::testing::Values(
        Broken{"NothingThere", [](const std::string& d) { std::filesystem::remove_all(d); },
               absl::StatusCode::kNotFound, "it holds neither model.safetensors.index.json nor"},
        Broken{"NoIndex", [](const std::string& d) { std::filesystem::remove(d + kIndex); },
               absl::StatusCode::kNotFound, "it holds neither"},
        Broken{"MissingFile", [](const std::string& d) { std::filesystem::remove(d + kSecond); },
               absl::StatusCode::kNotFound, "model-00002-of-00002.safetensors: there is no such file"},
        Broken{"EmptyFile", [](const std::string& d) { WriteFile(d + kSecond, ""); },
               absl::StatusCode::kInvalidArgument, "the file is empty"},
        Broken{"TruncatedFile",
               [](const std::string& d) {
                 std::filesystem::resize_file(d + kSecond, std::filesystem::file_size(d + kSecond) - 1);
               },
               absl::StatusCode::kInvalidArgument, "it is truncated"},
        Broken{"FileIsDirectory",
               [](const std::string& d) {
                 std::filesystem::remove(d + kSecond);
                 std::filesystem::create_directory(d + kSecond);
               },
               absl::StatusCode::kInvalidArgument, "expected a regular file"},
        Broken{"FileIsPipe",
               [](const std::string& d) {
                 std::filesystem::remove(d + kSecond);
                 ASSERT_EQ(::mkfifo((d + kSecond).c_str(), 0600), 0);
               },
               absl::StatusCode::kInvalidArgument, "expected a regular file"},
        Broken{"IndexIsDirectory",
               [](const std::string& d) {
                 std::filesystem::remove(d + kIndex);
                 std::filesystem::create_directory(d + kIndex);
               },
               absl::StatusCode::kInvalidArgument, "expected a regular file"},
        Broken{
            "TensorInBothFiles",
            [](const std::string& d) {
              WriteFile(d + kSecond,
                        testing::SafetensorsBytes({FiveTensors()[0], FiveTensors()[1], FiveTensors()[3]}));
            },
            absl::StatusCode::kInvalidArgument,
            "tensor e: both model-00001-of-00002.safetensors and model-00002-of-00002.safetensors hold it"},
        Broken{"TensorNotInItsFile",
               [](const std::string& d) {
                 WriteFile(d + kSecond, testing::SafetensorsBytes({FiveTensors()[1]}));
               },
               absl::StatusCode::kInvalidArgument,
               "tensor b: file \"model-00002-of-00002.safetensors\": that file"},
        Broken{"TensorNotInIndex",
               [](const std::string& d) {
                 WriteFile(d + kSecond,
                           testing::SafetensorsBytes({FiveTensors()[1], FiveTensors()[3],
                                                      RandomTensor("z", StoredType::kU8, {1}, 1)}));
               },
               absl::StatusCode::kInvalidArgument,
               "tensor z: model-00002-of-00002.safetensors holds it, weight_map"},
        Broken{"TensorInTheOtherFile",
               [](const std::string& d) {
                 std::filesystem::rename(d + kFirst, d + "/x");
                 std::filesystem::rename(d + kSecond, d + kFirst);
                 std::filesystem::rename(d + "/x", d + kSecond);
               },
               absl::StatusCode::kInvalidArgument, "it lies in model-00001-of-00002.safetensors"},
        Broken{"ManyNamesOfOneFile",
               [](const std::string& d) {
                 std::string index = R"({"weight_map":{)";
                 for (int i = 0; i < 4; ++i) {
                   const std::string file = "/copy" + std::to_string(i) + ".safetensors";
                   WriteFile(d + file, testing::SafetensorsBytes(
                                           {RandomTensor("p" + std::to_string(i), StoredType::kU8, {1}, 1),
                                            RandomTensor("q" + std::to_string(i), StoredType::kU8, {1}, 1)}));
                   index += (i > 0 ? ",\"p" : "\"p") + std::to_string(i) + "\":\"" + file.substr(1) + "\"";
                 }
                 WriteFile(d + kIndex, index + "}}");
               },
               absl::StatusCode::kInvalidArgument,
               "the files before copy3.safetensors hold more than the 4 tensors of weight_map"}),
    [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace kvasir
