#include "worker/weights/checkpoint_weights.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "absl/strings/str_format.h"
#include "common/base/error_reasons.h"
#include "common/base/sha256.h"
#include "common/base/status_macros.h"
#include "common/checkpoint/checkpoint_error.h"
#include "common/checkpoint/element_reader.h"
#include "common/checkpoint/expected_tensors.h"

namespace kvasir {
namespace {

constexpr std::string_view kTargetPrefix = "target.";
constexpr std::string_view kDraftPrefix = "draft.";
constexpr std::size_t kDigestBytes = 1024;  // of a tensor

// Dimensions of 1 say nothing about where an element lies.
TensorShape WithoutOnes(TensorShape shape) {
  shape.erase(std::remove(shape.begin(), shape.end(), 1), shape.end());
  return shape;
}

// A tensor of the engine's: one stored matrix, or equal ones, each below the other.
struct Stack {
  std::vector<StoredMatrix> matrices = {};
  std::int64_t rows_each = 0;  // as stored

  void Read(std::int64_t row, std::int64_t col_begin, std::int64_t cols, float* out) const {
    ReadRow(matrices[static_cast<std::size_t>(row / rows_each)], row % rows_each, col_begin, cols, out);
  }
};

std::vector<float> ReadPart(const Stack& stack, const TensorPart& part) {
  std::vector<float> values(static_cast<std::size_t>(part.blocks * part.rows * part.cols));
  float* out = values.data();
  for (std::int64_t block = 0; block < part.blocks; ++block) {
    for (std::int64_t r = 0; r < part.rows; ++r, out += part.cols) {
      stack.Read(part.row_begin + block * part.row_step + r, part.col_begin, part.cols, out);
    }
  }
  return values;
}

// The same where the matrix holds the tensor's columns as rows.
std::vector<float> ReadTransposedPart(const Stack& stack, const TensorPart& part) {
  std::vector<float> values(static_cast<std::size_t>(part.blocks * part.rows * part.cols));
  std::vector<float> column(static_cast<std::size_t>(part.rows));
  for (std::int64_t block = 0; block < part.blocks; ++block) {
    for (std::int64_t c = 0; c < part.cols; ++c) {
      stack.Read(part.col_begin + c, part.row_begin + block * part.row_step, part.rows, column.data());
      for (std::int64_t r = 0; r < part.rows; ++r) {
        values[static_cast<std::size_t>((block * part.rows + r) * part.cols + c)] =
            column[static_cast<std::size_t>(r)];
      }
    }
  }
  return values;
}

// The keys of the stored tensors behind an engine's name without its role; empty where there are none.
// Experts are stored one by one, the engine has one tensor of them all: "layers.3.experts_gate".
std::vector<TensorKey> KeysOf(std::string_view name, const ModelTensors& tensors) {
  constexpr std::string_view kAllExperts = "experts_";
  const std::size_t at = name.find(kAllExperts);
  if (at == std::string_view::npos) {
    const std::optional<TensorKey> key = ParseKey(name);
    return key.has_value() && tensors.contains(*key) ? std::vector<TensorKey>{*key}
                                                     : std::vector<TensorKey>();
  }
  const std::string first =
      absl::StrFormat("%sexperts.0.%s", name.substr(0, at), name.substr(at + kAllExperts.size()));
  std::vector<TensorKey> keys;
  for (std::optional<TensorKey> key = ParseKey(first); key.has_value() && tensors.contains(*key);
       ++key->expert) {
    keys.push_back(*key);
  }
  return keys;
}

absl::Status Mismatch(const std::string& directory, const std::string& tensor, std::string value,
                      std::string fix) {
  return ToStatus({reason::kCheckpointMismatch, directory, tensor, std::move(value), std::move(fix)});
}

}  // namespace

absl::StatusOr<CheckpointWeights::Role> CheckpointWeights::OpenRole(const ModelDirectory& model) {
  KVASIR_ASSIGN_OR_RETURN(Checkpoint checkpoint, Checkpoint::Open(model.directory, model.root));
  KVASIR_ASSIGN_OR_RETURN(ModelTensors tensors, CheckTensors(checkpoint, *model.model));
  return Role{std::move(checkpoint), std::move(tensors)};
}

absl::StatusOr<std::unique_ptr<CheckpointWeights>> CheckpointWeights::Open(
    const ModelDirectory& target, const std::optional<ModelDirectory>& draft) {
  std::unique_ptr<CheckpointWeights> weights(new CheckpointWeights);
  KVASIR_ASSIGN_OR_RETURN(weights->target_, OpenRole(target));
  if (draft.has_value()) {
    KVASIR_ASSIGN_OR_RETURN(weights->draft_, OpenRole(*draft));
  }
  return weights;
}

absl::StatusOr<std::string> CheckpointWeights::Digest() const {
  std::string text;
  for (const std::optional<Role>* role : {&target_, &draft_}) {
    if (!role->has_value()) continue;
    text += "model\n";
    for (const auto& [key, tensor] : (*role)->tensors) {
      if (key.expert >= 0) continue;
      const TensorEntry& entry = tensor.weight->entry;
      KVASIR_ASSIGN_OR_RETURN(const std::string_view bytes, (*role)->checkpoint.Bytes(*tensor.weight));
      text += absl::StrFormat("%s %s %s ", entry.name, StoredTypeName(entry.type), ShapeText(entry.shape));
      text += bytes.substr(0, kDigestBytes);
    }
  }
  return Sha256Hex(text);
}

absl::StatusOr<std::vector<float>> CheckpointWeights::Read(const WeightSpec& spec,
                                                           const TensorPart& part) const {
  const std::string_view name = spec.Name();
  const bool of_draft = name.starts_with(kDraftPrefix);
  const std::optional<Role>& role = of_draft ? draft_ : target_;
  if (!role.has_value()) return Mismatch("", spec.Name(), "", "no checkpoint of a draft was given");
  const std::string& directory = role->checkpoint.directory();
  const std::vector<TensorKey> keys =
      KeysOf(name.substr(of_draft ? kDraftPrefix.size() : kTargetPrefix.size()), role->tensors);
  const auto count = static_cast<std::int64_t>(keys.size());
  if (count == 0 || spec.rows % count != 0) {
    return Mismatch(directory, spec.Name(), count == 0 ? "missing" : absl::StrFormat("%d tensors", count),
                    "the engine needs it for this model");
  }
  Stack stack{.rows_each = spec.transposed ? spec.cols : spec.rows / count};
  const std::int64_t cols = spec.transposed ? spec.rows : spec.cols;
  for (const TensorKey& key : keys) {
    const ModelTensor& tensor = role->tensors.at(key);
    const TensorEntry& entry = tensor.weight->entry;
    if (WithoutOnes(entry.shape) != WithoutOnes({stack.rows_each, cols})) {
      return Mismatch(directory, entry.name, ShapeText(entry.shape),
                      absl::StrFormat("the engine reads it as [%d, %d]", stack.rows_each, cols));
    }
    StoredMatrix& matrix = stack.matrices.emplace_back(
        StoredMatrix{.type = entry.type, .rows = stack.rows_each, .cols = cols, .bytes = {}, .scales = {}});
    KVASIR_ASSIGN_OR_RETURN(matrix.bytes, role->checkpoint.Bytes(*tensor.weight));
    if (tensor.scales != nullptr) {
      KVASIR_ASSIGN_OR_RETURN(matrix.scales, role->checkpoint.Bytes(*tensor.scales));
    }
  }
  return spec.transposed ? ReadTransposedPart(stack, part) : ReadPart(stack, part);
}

}  // namespace kvasir
