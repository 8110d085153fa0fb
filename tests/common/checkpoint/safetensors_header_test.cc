// Headers of safetensors files: what is read, and the error of each way in which one can be wrong.
#include "common/checkpoint/safetensors_header.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "common/base/error_reasons.h"
#include "common/base/typed_error.h"
#include "tests/testing/checkpoint_writer.h"
#include "tests/testing/matchers.h"

namespace kvasir {
namespace {

using ::kvasir::testing::FileBytes;

TEST(SafetensorsHeader, ReadsTensorsByNameWithOffsetsFromTheStartOfTheFile) {
  const std::string json =
      R"({"b":{"dtype":"BF16","shape":[2,3],"data_offsets":[4,16]},)"
      R"("a":{"shape":[],"data_offsets":[0,4],"dtype":"F32"},"__metadata__":{"format":"pt"}}   )";
  const auto header = ReadSafetensorsHeader(FileBytes(json, std::string(16, 'x')), "f");
  KVASIR_ASSERT_OK(header);
  const std::int64_t data = 8 + static_cast<std::int64_t>(json.size());
  ASSERT_EQ(header->tensors.size(), 2U);
  EXPECT_EQ(header->tensors[0], (TensorEntry{"a", StoredType::kF32, {}, data, data + 4}));
  EXPECT_EQ(header->tensors[1], (TensorEntry{"b", StoredType::kBf16, {2, 3}, data + 4, data + 16}));
  EXPECT_EQ(header->metadata.at("format"), "pt");
}

TEST(SafetensorsHeader, ReadsAFileWithoutTensorsAndTensorsWithoutElements) {
  KVASIR_EXPECT_OK(ReadSafetensorsHeader(FileBytes("{}", ""), "f"));
  const std::string_view empty = R"({"a":{"dtype":"I64","shape":[0,5],"data_offsets":[0,0]},)"
                                 R"("b":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},)"
                                 R"("c":{"dtype":"U8","shape":[0],"data_offsets":[1,1]}})";
  KVASIR_EXPECT_OK(ReadSafetensorsHeader(FileBytes(empty, "x"), "f"));
}

struct Case {
  std::string name;
  std::string bytes;
  std::string message;  // a part of it
};

void PrintTo(const Case& c, std::ostream* os) { *os << c.name; }

Case OfJson(std::string name, std::string_view json, std::string message) {
  return {std::move(name), FileBytes(json, "01234567"), std::move(message)};
}

// `fields` of the one tensor "a".
Case OfTensor(std::string name, const std::string& fields, std::string message) {
  return OfJson(std::move(name), R"({"a":{)" + fields + "}}", std::move(message));
}

std::string Length(std::string_view bytes) { return std::string(bytes); }

const std::string kGood = R"("dtype":"F32","shape":[2],"data_offsets":[0,8])";

std::vector<Case> HostileFiles() {
  return {
      {"Empty", "", "0 bytes: shorter than the 8 bytes of a header's length"},
      {"SevenBytes", "1234567", "7 bytes: shorter"},
      {"LengthOfNothing", Length(std::string(8, '\0')), "does not begin with '{'"},
      {"LengthBeyondFile", Length(std::string("\x09\0\0\0\0\0\0\0{}", 10)), "header of 9 bytes"},
      {"LengthOverLimit", Length(std::string("\x01\xe1\xf5\x05\0\0\0\0{}", 10)),
       "at most 100000000 are read"},
      {"LengthNegative", Length(std::string(8, '\xff') + "{}"), "header of 18446744073709551615 bytes"},
      {"LengthMinimum", Length(std::string("\0\0\0\0\0\0\0\x80{}", 10)),
       "header of 9223372036854775808 bytes"},
      {"Zip", std::string("PK\x03\x04") + std::string(60, 'x'), "this is no safetensors file"},
      OfJson("SpaceFirst", " {}", "does not begin with '{'"),
      OfJson("ByteOrderMark", "\xef\xbb\xbf{}", "does not begin with '{'"),
      OfJson("List", "[]", "does not begin with '{'"),
      OfJson("Unfinished", R"({"a":)", "not valid JSON"),
      OfJson("Trailing", "{}{}", "not valid JSON"),
      OfJson("Comment", "{/* */}", "not valid JSON"),
      OfJson("BadUtf8", "{\"\xff\":1}", "not valid JSON"),
      OfJson("NulByte", std::string_view("{}\0", 3), "not valid JSON"),
      OfJson("BytesOfNoTensor", "{}", "its tensors end at 0"),
      OfJson("TensorIsNumber", R"({"a":1})", "a tensor is an object"),
      OfJson("TensorIsNull", R"({"a":null})", "a tensor is an object"),
      OfJson("TensorIsList", R"({"a":[]})", "a tensor is an object"),
      OfJson("TensorIsText", R"({"a":"F32"})", "a tensor is an object"),
      OfJson("NoName", R"({"":{)" + kGood + "}}", "has no name"),
      OfJson("LongName", R"({")" + std::string(513, 'n') + R"(":{)" + kGood + "}}", "a name of 513 bytes"),
      OfJson("NameTwice", R"({"a":{)" + kGood + R"(},"a":{)" + kGood + "}}",
             "tensor a: the header names it twice"),
      OfJson("MetadataIsList", R"({"__metadata__":[]})", "__metadata__ is an object of strings"),
      OfJson("MetadataNumber", R"({"__metadata__":{"k":1}})", "holds strings only, at \"k\""),
      OfJson("MetadataNested", R"({"__metadata__":{"k":{}}})", "holds strings only"),
      OfJson("MetadataKeyTwice", R"({"__metadata__":{"k":"1","k":"2"}})", "names this key twice"),
      OfJson("MetadataTwice", R"({"__metadata__":{},"__metadata__":{}})", "it stands there twice"),
      OfTensor("NoDtype", R"("shape":[2],"data_offsets":[0,8])", "its dtype is missing"),
      OfTensor("NoShape", R"("dtype":"F32","data_offsets":[0,8])", "its shape is missing"),
      OfTensor("NoOffsets", R"("dtype":"F32","shape":[2])", "its data_offsets are missing"),
      OfTensor("UnknownField", kGood + R"(,"more":1)", "field \"more\""),
      OfTensor("DtypeTwice", R"("dtype":"F32",)" + kGood, "field \"dtype\": it stands there twice"),
      OfTensor("DtypeUnknown", R"("dtype":"F4","shape":[2],"data_offsets":[0,8])",
               "dtype \"F4\": expected one of BOOL"),
      OfTensor("DtypeLowerCase", R"("dtype":"f32","shape":[2],"data_offsets":[0,8])", "dtype \"f32\""),
      OfTensor("DtypeNumber", R"("dtype":3,"shape":[2],"data_offsets":[0,8])", "dtype 3: expected a string"),
      OfTensor("DtypeList", R"("dtype":["F32"],"shape":[2],"data_offsets":[0,8])", "dtype [...]"),
      OfTensor("ShapeNumber", R"("dtype":"F32","shape":2,"data_offsets":[0,8])", "shape 2: expected a list"),
      OfTensor("ShapeObject", R"("dtype":"F32","shape":{},"data_offsets":[0,8])",
               "shape {...}: expected a list"),
      OfTensor("ShapeNested", R"("dtype":"F32","shape":[[2]],"data_offsets":[0,8])", "shape entry [...]"),
      OfTensor("ShapeNegative", R"("dtype":"F32","shape":[-2],"data_offsets":[0,8])", "shape entry -2"),
      OfTensor("ShapeReal", R"("dtype":"F32","shape":[2.0],"data_offsets":[0,8])", "shape entry 2.0"),
      OfTensor("ShapeText", R"("dtype":"F32","shape":["2"],"data_offsets":[0,8])", "shape entry \"2\""),
      OfTensor("ShapeTrue", R"("dtype":"F32","shape":[true],"data_offsets":[0,8])", "shape entry true"),
      OfTensor("ShapeHuge", R"("dtype":"F32","shape":[9223372036854775808],"data_offsets":[0,8])",
               "below 2^63"),
      OfTensor("ShapeBeyond64Bits", R"("dtype":"F32","shape":[99999999999999999999],"data_offsets":[0,8])",
               "shape entry 99999999999999999999"),
      OfTensor("ShapeOverflows", R"("dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,8])",
               "its bytes overflow 64 bits"),
      OfTensor("ShapeTypeOverflows", R"("dtype":"F64","shape":[2305843009213693952],"data_offsets":[0,8])",
               "its bytes overflow 64 bits"),
      OfTensor("RankOverLimit", R"("dtype":"F32","shape":[1,1,1,1,1,1,1,1,2],"data_offsets":[0,8])",
               "more than 8 dimensions"),
      OfTensor("OffsetsNumber", R"("dtype":"F32","shape":[2],"data_offsets":8)",
               "data_offsets 8: expected a list"),
      OfTensor("OffsetsNone", R"("dtype":"F32","shape":[2],"data_offsets":[])", "data_offsets of 0 entries"),
      OfTensor("OffsetsOne", R"("dtype":"F32","shape":[2],"data_offsets":[0])", "data_offsets of 1 entries"),
      OfTensor("OffsetsThree", R"("dtype":"F32","shape":[2],"data_offsets":[0,8,9])", "there are more"),
      OfTensor("OffsetsNegative", R"("dtype":"F32","shape":[2],"data_offsets":[-8,0])",
               "data_offsets entry -8"),
      OfTensor("OffsetsTwice", kGood + R"(,"data_offsets":[0,8])", "it stands there twice"),
      OfTensor("OffsetsBackwards", R"("dtype":"F32","shape":[2],"data_offsets":[8,0])",
               "begin is behind end"),
      OfTensor("OffsetsTooFew", R"("dtype":"F32","shape":[3],"data_offsets":[0,8])",
               "they span 8 bytes; F32 elements of shape [3] take 12"),
      OfTensor("OffsetsTooMany", R"("dtype":"BF16","shape":[2],"data_offsets":[0,8])", "take 4"),
      OfTensor("OffsetsBeyondFile", R"("dtype":"F32","shape":[3],"data_offsets":[0,12])",
               "holds 8 bytes behind"),
      OfTensor("OffsetsAtTheEnd",
               R"("dtype":"U8","shape":[1],"data_offsets":[9223372036854775806,9223372036854775807])",
               "holds 8 bytes behind its header"),
      OfTensor("HoleBefore", R"("dtype":"F32","shape":[1],"data_offsets":[4,8])", "bytes 0 to 4 before it"),
      OfTensor("RestBehind", R"("dtype":"F32","shape":[1],"data_offsets":[0,4])", "its tensors end at 4"),
      OfJson(
          "HoleBetween",
          R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},"b":{"dtype":"U8","shape":[4],"data_offsets":[4,8]}})",
          "tensor b: data_offsets [4, 8]: bytes 2 to 4 before it belong to no tensor"),
      OfJson(
          "Overlap",
          R"({"a":{"dtype":"U8","shape":[5],"data_offsets":[0,5]},"b":{"dtype":"U8","shape":[4],"data_offsets":[4,8]}})",
          "tensor b: data_offsets [4, 8]: it overlaps tensor a, which ends at 5"),
      OfJson(
          "ManyPairsOfMetadata",
          [] {
            std::string text = R"({"__metadata__":{"a":"")";
            for (int i = 0; i < 4096; ++i) text += ",\"" + std::to_string(i) + "\":\"\"";
            return text + "}}";
          }(),
          "more than 4096 pairs"),
      OfJson("SameBytes", R"({"a":{)" + kGood + R"(},"b":{)" + kGood + "}}", "it overlaps tensor a"),
      OfJson("Deep", R"({"a":)" + std::string(100000, '['), "a tensor is an object"),
      OfJson(
          "DeepObjects",
          [] {
            std::string text;
            for (int i = 0; i < 20000; ++i) text += R"({"a":)";
            return text;
          }(),
          "field \"a\""),
  };
}

class HostileHeader : public ::testing::TestWithParam<Case> {};

TEST_P(HostileHeader, GivesATypedErrorThatNamesTheFault) {
  const auto header = ReadSafetensorsHeader(GetParam().bytes, "weights/f.safetensors");
  EXPECT_THAT(header, testing::StatusIs(absl::StatusCode::kInvalidArgument, GetParam().message));
  const TypedError error = ErrorOf(header.status());
  EXPECT_EQ(error.reason, reason::kCheckpointInvalid);
  EXPECT_EQ(error.metadata.at("file"), "weights/f.safetensors");
}

INSTANTIATE_TEST_SUITE_P(Table, HostileHeader, ::testing::ValuesIn(HostileFiles()),
                         [](const auto& test) { return test.param.name; });

TEST(SafetensorsHeader, EveryTruncationOfAFileIsAnError) {
  const std::string whole =
      testing::SafetensorsBytes({testing::RandomTensor("model.a", StoredType::kBf16, {3, 2}, 1),
                                 testing::RandomTensor("model.b", StoredType::kF32, {2}, 2)});
  KVASIR_ASSERT_OK(ReadSafetensorsHeader(whole, "f"));
  for (std::size_t size = 0; size < whole.size(); ++size) {
    const auto header = ReadSafetensorsHeader(std::string_view(whole).substr(0, size), "f");
    ASSERT_FALSE(header.ok()) << size;
    ASSERT_EQ(ReasonOf(header.status()), reason::kCheckpointInvalid) << size;
  }
  EXPECT_FALSE(ReadSafetensorsHeader(whole + "x", "f").ok());
}

TEST(SafetensorsHeader, EveryFlippedBitGivesAHeaderOrATypedError) {
  const std::string whole = testing::SafetensorsBytes({testing::RandomTensor("a", StoredType::kF32, {2}, 1)});
  for (std::size_t bit = 0; bit < whole.size() * 8; ++bit) {
    std::string bytes = whole;
    bytes[bit / 8] = static_cast<char>(bytes[bit / 8] ^ (1 << (bit % 8)));
    const auto header = ReadSafetensorsHeader(bytes, "f");
    ASSERT_TRUE(header.ok() || ReasonOf(header.status()) == reason::kCheckpointInvalid) << bit;
  }
}

}  // namespace
}  // namespace kvasir
