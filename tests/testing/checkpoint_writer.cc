#include "tests/testing/checkpoint_writer.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <random>
#include <utility>

#include "absl/strings/str_format.h"
#include "common/base/check.h"
#include "common/base/checked_math.h"
#include "common/checkpoint/element_reader.h"
#include "common/checkpoint/safetensors_header.h"
#include "common/geometry/bf16.h"

namespace kvasir::testing {
namespace {

std::int64_t Elements(const TensorShape& shape) {
  std::int64_t count = 1;
  for (const std::int64_t size : shape) count *= size;
  return count;
}

template <typename T>
void Append(std::string& bytes, T value) {
  const std::size_t at = bytes.size();
  bytes.resize(at + sizeof(T));
  std::memcpy(bytes.data() + at, &value, sizeof(T));
}

std::string FileName(std::size_t index, std::size_t count) {
  return absl::StrFormat("model-%05d-of-%05d.safetensors", index + 1, count);
}

}  // namespace

WrittenTensor RandomTensor(std::string name, StoredType type, TensorShape shape, unsigned seed) {
  WrittenTensor tensor{.name = std::move(name), .type = type, .shape = std::move(shape), .bytes = {}};
  std::mt19937 random(seed);
  std::uniform_int_distribution<int> part(-255, 255);
  for (std::int64_t i = 0; i < Elements(tensor.shape); ++i) {
    const int number = part(random);
    const float value = static_cast<float>(number) / 128.0F;
    switch (type) {
      case StoredType::kF32:
        Append(tensor.bytes, value);
        break;
      case StoredType::kBf16:
        Append(tensor.bytes, FloatToBf16(value));
        break;
      case StoredType::kF16:  // exponents 0 to 15: below 2, subnormal ones too
        Append(tensor.bytes, static_cast<std::uint16_t>((number & 0x8000) | ((number * 61) & 0x3fff)));
        break;
      case StoredType::kF8E4M3:  // no NaN
        Append(tensor.bytes, static_cast<std::uint8_t>(number & 0xbf));
        break;
      default:
        for (std::int64_t b = 0; b < StoredTypeBytes(type); ++b)
          tensor.bytes.push_back(static_cast<char>(number));
    }
  }
  return tensor;
}

std::vector<WrittenTensor> RandomModel(const ModelDescription& model, StoredType type, unsigned seed) {
  const absl::StatusOr<std::vector<ExpectedTensor>> expected = ExpectedTensors(model);
  KVASIR_CHECK(expected.ok());
  std::vector<WrittenTensor> tensors;
  for (const ExpectedTensor& tensor : *expected) {
    if (tensor.optional) continue;
    const TensorShape& shape = tensor.shapes.front();
    const bool matrix = shape.size() > 1;
    const bool scaled = type == StoredType::kF8E4M3 && shape.size() == 2 && tensor.key.layer >= 0;
    const StoredType plain = type == StoredType::kF8E4M3 ? StoredType::kBf16 : type;
    const StoredType written = scaled ? type : plain;
    tensors.push_back(RandomTensor(tensor.name, matrix ? written : StoredType::kF32, shape, ++seed));
    if (!scaled) continue;
    tensors.push_back(RandomTensor(tensor.name + "_scale_inv", StoredType::kF32,
                                   {CeilDiv(shape[0], kScaleBlock), CeilDiv(shape[1], kScaleBlock)}, ++seed));
  }
  return tensors;
}

std::string FileBytes(std::string_view json, std::string_view data) {
  std::string bytes;
  Append(bytes, static_cast<std::uint64_t>(json.size()));
  return bytes.append(json).append(data);
}

std::string SafetensorsBytes(const std::vector<WrittenTensor>& tensors) {
  std::string json = R"({"__metadata__":{"format":"pt"})";
  std::string data;
  for (const WrittenTensor& tensor : tensors) {
    json += absl::StrFormat(R"(,"%s":{"dtype":"%s","shape":%s,"data_offsets":[%d,%d]})", tensor.name,
                            StoredTypeName(tensor.type), ShapeText(tensor.shape), data.size(),
                            data.size() + tensor.bytes.size());
    data += tensor.bytes;
  }
  return FileBytes(json + "}", data);
}

std::string IndexText(const std::vector<std::vector<WrittenTensor>>& files) {
  std::string text = R"({"metadata":{"total_size":0},"weight_map":{)";
  const char* separator = "";
  for (std::size_t i = 0; i < files.size(); ++i) {
    for (const WrittenTensor& tensor : files[i]) {
      text += absl::StrFormat(R"(%s"%s":"%s")", separator, tensor.name, FileName(i, files.size()));
      separator = ",";
    }
  }
  return text + "}}";
}

void WriteFile(const std::string& path, std::string_view bytes) {
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  KVASIR_CHECK(file.good());
}

void WriteCheckpoint(const std::string& directory, const std::vector<WrittenTensor>& tensors,
                     std::int64_t files) {
  std::filesystem::create_directories(directory);
  if (files == 1) {
    WriteFile(directory + "/model.safetensors", SafetensorsBytes(tensors));
    return;
  }
  std::vector<std::vector<WrittenTensor>> dealt(static_cast<std::size_t>(files));
  for (std::size_t i = 0; i < tensors.size(); ++i) dealt[i % dealt.size()].push_back(tensors[i]);
  for (std::size_t i = 0; i < dealt.size(); ++i) {
    WriteFile(directory + "/" + FileName(i, dealt.size()), SafetensorsBytes(dealt[i]));
  }
  WriteFile(directory + "/model.safetensors.index.json", IndexText(dealt));
}

std::string FreshDirectory(std::string_view name) {
  const ::testing::TestInfo* test = ::testing::UnitTest::GetInstance()->current_test_info();
  std::string leaf = absl::StrFormat("%s.%s.%s", test->test_suite_name(), test->name(), name);
  for (char& c : leaf) {
    if (c == '/') c = '_';
  }
  const std::string path = ::testing::TempDir() + "/kvasir_" + leaf;
  std::filesystem::remove_all(path);
  std::filesystem::create_directories(path);
  return path;
}

}  // namespace kvasir::testing
