// The tensors that a model's checkpoint must hold, as its family publishes them. docs/formats/checkpoint.md
// lists the names with their sources.
#ifndef KVASIR_COMMON_CHECKPOINT_EXPECTED_TENSORS_H_
#define KVASIR_COMMON_CHECKPOINT_EXPECTED_TENSORS_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "common/checkpoint/tensor_key.h"
#include "common/models/model_description.h"

namespace kvasir {

// Of one model; a description that asks for more is refused.
inline constexpr std::int64_t kExpectedTensorsMax = std::int64_t{4} << 20;

using TensorShape = std::vector<std::int64_t>;

struct ExpectedTensor {
  TensorKey key;
  std::string name;                 // as published, prefix included
  std::vector<TensorShape> shapes;  // any of these; the first is the usual one. Elements lie alike in all
  bool optional = false;
  std::string_view refusal = {};  // why a checkpoint that holds it is refused; empty: it is not
};

// In order: of the model, then layer by layer. FailedPrecondition (CHECKPOINT_UNSUPPORTED) names the model
// and what this version does not read: an architecture, a kind of layer, packed weights.
[[nodiscard]] absl::StatusOr<std::vector<ExpectedTensor>> ExpectedTensors(const ModelDescription& model);

// The name without the prefixes that checkpoints of one model differ in ("language_model.", "model."): equal
// for equal tensors.
[[nodiscard]] std::string_view BareName(std::string_view name);

// Whether a tensor of this bare name is known and not read: vision parts of a multimodal model, layers of
// multi-token prediction, stored rotary frequencies.
[[nodiscard]] bool IsPassedOver(const ModelDescription& model, std::string_view bare_name);

}  // namespace kvasir

#endif  // KVASIR_COMMON_CHECKPOINT_EXPECTED_TENSORS_H_
