// Small checkpoints, written by tests: files of given tensors, and all tensors of a model with seeded values.
#ifndef KVASIR_TESTS_TESTING_CHECKPOINT_WRITER_H_
#define KVASIR_TESTS_TESTING_CHECKPOINT_WRITER_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "common/checkpoint/expected_tensors.h"
#include "common/checkpoint/stored_type.h"
#include "common/models/model_description.h"

namespace kvasir::testing {

struct WrittenTensor {
  std::string name;
  StoredType type = StoredType::kF32;
  TensorShape shape;
  std::string bytes;
};

// Seeded bytes: finite values between -2 and 2 in the readable types, and as they come in others.
[[nodiscard]] WrittenTensor RandomTensor(std::string name, StoredType type, TensorShape shape, unsigned seed);

// The tensors that `model` must have, matrices in `type` and vectors in F32; with F8_E4M3 the matrices of
// layers have scales, the others are BF16.
[[nodiscard]] std::vector<WrittenTensor> RandomModel(const ModelDescription& model, StoredType type,
                                                     unsigned seed);

// 8 bytes of length, then `json`, then `data`.
[[nodiscard]] std::string FileBytes(std::string_view json, std::string_view data);
[[nodiscard]] std::string SafetensorsBytes(const std::vector<WrittenTensor>& tensors);
[[nodiscard]] std::string IndexText(const std::vector<std::vector<WrittenTensor>>& files);

void WriteFile(const std::string& path, std::string_view bytes);
// One file, or an index and `files` of them with the tensors dealt out in turn. The directory is made.
void WriteCheckpoint(const std::string& directory, const std::vector<WrittenTensor>& tensors,
                     std::int64_t files = 1);

// An empty directory of this test; `name` tells several apart.
[[nodiscard]] std::string FreshDirectory(std::string_view name);

}  // namespace kvasir::testing

#endif  // KVASIR_TESTS_TESTING_CHECKPOINT_WRITER_H_
