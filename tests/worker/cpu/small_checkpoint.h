// Reads a checkpoint of the DeepSeek family under tests/data/checkpoints (written by
// tools/reference/checkpoints.py) whole into memory, and lets a model use its weights where they lie.
#ifndef KVASIR_TESTS_WORKER_CPU_SMALL_CHECKPOINT_H_
#define KVASIR_TESTS_WORKER_CPU_SMALL_CHECKPOINT_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "common/models/model_description.h"
#include "worker/engine/role_model.h"

namespace kvasir::testing {

using TensorMap = std::map<std::string, std::vector<float>>;

// Every tensor of a safetensors file as floats; bf16, f32 and i32 elements.
[[nodiscard]] TensorMap ReadTensors(const std::string& path);

struct SmallCheckpoint {
  ModelDescription description;
  TensorMap tensors;                 // of the file, and those that BindWeights puts together
  std::vector<std::int32_t> tokens;  // of the reference
  std::vector<float> logits;         // [tokens, vocab]
};

// `name` is the folder's. Fails a check where the files are not what the generator writes.
[[nodiscard]] SmallCheckpoint ReadSmallCheckpoint(const std::string& name);

// Points the weights of `model`, which has the description's sizes on one rank, at the checkpoint's tensors.
void BindWeights(SmallCheckpoint& checkpoint, RoleModel* model);

}  // namespace kvasir::testing

#endif  // KVASIR_TESTS_WORKER_CPU_SMALL_CHECKPOINT_H_
