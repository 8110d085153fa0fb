// The index of a checkpoint: what is read, and the error of each way in which one can be wrong.
#include "common/checkpoint/safetensors_index.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "common/base/error_reasons.h"
#include "common/base/typed_error.h"
#include "tests/testing/matchers.h"

namespace kvasir {
namespace {

TEST(SafetensorsIndex, ReadsFilesAndTensorsAndPassesOverTheRest) {
  const auto index = ReadSafetensorsIndex(
      R"({"metadata":{"total_size":12,"deep":[[{"weight_map":{"x":1}}]]},"weight_map":)"
      R"({"b":"m-2.safetensors","a":"m-1.safetensors","c":"m-2.safetensors"},"more":[1,null,"x",2.5,true]})",
      "i");
  KVASIR_ASSERT_OK(index);
  EXPECT_EQ(index->files, (std::set<std::string>{"m-1.safetensors", "m-2.safetensors"}));
  EXPECT_EQ(index->file_of.size(), 3U);
  EXPECT_EQ(index->file_of.at("b"), "m-2.safetensors");
}

struct Case {
  std::string name;
  std::string text;
  std::string message;
};

void PrintTo(const Case& c, std::ostream* os) { *os << c.name; }

Case OfFile(std::string name, const std::string& file) {
  return {std::move(name), R"({"weight_map":{"a":")" + file + R"("}})", "expected a file of this directory"};
}

std::vector<Case> HostileIndexes() {
  return {
      {"Empty", "", "not valid JSON"},
      {"Number", "1", "expected an object with weight_map"},
      {"List", "[]", "expected an object with weight_map"},
      {"Unfinished", R"({"weight_map":{"a":)", "not valid JSON"},
      {"NulByte", std::string("{\"weight_map\":{\"a\":\"f.safetensors\"}}\0x", 38), "a NUL byte"},
      {"NoMap", R"({"metadata":{}})", "weight_map is missing"},
      {"MapIsList", R"({"weight_map":[]})", "expected an object with weight_map"},
      {"MapIsNull", R"({"weight_map":null})", "expected an object with weight_map"},
      {"MapIsEmpty", R"({"weight_map":{}})", "it names no tensor"},
      {"MapTwice", R"({"weight_map":{"a":"f.safetensors"},"weight_map":{"b":"f.safetensors"}})", "twice"},
      {"TensorTwice", R"({"weight_map":{"a":"f.safetensors","a":"g.safetensors"}})", "tensor a: weight_map"},
      {"FileIsNumber", R"({"weight_map":{"a":1}})", "tensor a: 1: expected the name of a file"},
      {"FileIsObject", R"({"weight_map":{"a":{}}})", "expected the name of a file"},
      {"FileIsList", R"({"weight_map":{"a":["f.safetensors"]}})", "expected the name of a file"},
      {"NoTensorName", R"({"weight_map":{"":"f.safetensors"}})", "a name of 0 bytes"},
      {"LongTensorName", R"({"weight_map":{")" + std::string(513, 'n') + R"(":"f.safetensors"}})",
       "513 bytes"},
      {"TooManyFiles",
       [] {
         std::string text = R"({"weight_map":{"first":"f.safetensors")";
         for (int i = 0; i < 4096; ++i) {
           text += ",\"t" + std::to_string(i) + "\":\"f" + std::to_string(i) + ".safetensors\"";
         }
         return text + "}}";
       }(),
       "more than 4096 files"},
      OfFile("FileEmpty", ""),
      OfFile("FileAbove", "../f.safetensors"),
      OfFile("FileBelow", "sub/f.safetensors"),
      OfFile("FileAbsolute", "/etc/f.safetensors"),
      OfFile("FileBackslash", "..\\\\f.safetensors"),
      OfFile("FileHidden", ".f.safetensors"),
      OfFile("FileOtherKind", "f.bin"),
      OfFile("FileNul", "f\\u0000.safetensors"),
      OfFile("FileSpace", "f g.safetensors"),
      OfFile("FileUnicode", "\\u00e9.safetensors"),
      OfFile("FileLong", std::string(300, 'f') + ".safetensors"),
  };
}

class HostileIndex : public ::testing::TestWithParam<Case> {};

TEST_P(HostileIndex, GivesATypedErrorThatNamesTheFault) {
  const auto index = ReadSafetensorsIndex(GetParam().text, "i.json");
  EXPECT_THAT(index, testing::StatusIs(absl::StatusCode::kInvalidArgument, GetParam().message));
  EXPECT_EQ(ReasonOf(index.status()), reason::kCheckpointInvalid);
}

INSTANTIATE_TEST_SUITE_P(Table, HostileIndex, ::testing::ValuesIn(HostileIndexes()),
                         [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace kvasir
