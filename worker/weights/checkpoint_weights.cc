#include "worker/weights/checkpoint_weights.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "absl/strings/str_format.h"
#include "common/base/error_reasons.h"
#include "common/base/status_macros.h"
#include "common/checkpoint/checkpoint_error.h"
#include "common/checkpoint/element_reader.h"
#include "common/checkpoint/expected_tensors.h"

namespace kvasir {
namespace {

constexpr std::string_view kTargetPrefix = "target.";
constexpr std::string_view kDraftPrefix = "draft.";

// Dimensions of 1 say nothing about where an element lies.
TensorShape WithoutOnes(TensorShape shape) {
  shape.erase(std::remove(shape.begin(), shape.end(), 1), shape.end());
  return shape;
}

std::vector<float> ReadPart(const StoredMatrix& matrix, const TensorPart& part) {
  std::vector<float> values(static_cast<std::size_t>(part.blocks * part.rows * part.cols));
  float* out = values.data();
  for (std::int64_t block = 0; block < part.blocks; ++block) {
    for (std::int64_t r = 0; r < part.rows; ++r, out += part.cols) {
      ReadRow(matrix, part.row_begin + block * part.row_step + r, part.col_begin, part.cols, out);
    }
  }
  return values;
}

// The same where the matrix holds the tensor's columns as rows.
std::vector<float> ReadTransposedPart(const StoredMatrix& matrix, const TensorPart& part) {
  std::vector<float> values(static_cast<std::size_t>(part.blocks * part.rows * part.cols));
  std::vector<float> column(static_cast<std::size_t>(part.rows));
  for (std::int64_t block = 0; block < part.blocks; ++block) {
    for (std::int64_t c = 0; c < part.cols; ++c) {
      ReadRow(matrix, part.col_begin + c, part.row_begin + block * part.row_step, part.rows, column.data());
      for (std::int64_t r = 0; r < part.rows; ++r) {
        values[static_cast<std::size_t>((block * part.rows + r) * part.cols + c)] =
            column[static_cast<std::size_t>(r)];
      }
    }
  }
  return values;
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

absl::StatusOr<std::vector<float>> CheckpointWeights::Read(const WeightSpec& spec,
                                                           const TensorPart& part) const {
  const std::string_view name = spec.Name();
  const bool of_draft = name.starts_with(kDraftPrefix);
  const std::optional<Role>& role = of_draft ? draft_ : target_;
  if (!role.has_value()) return Mismatch("", spec.Name(), "", "no checkpoint of a draft was given");
  const std::string& directory = role->checkpoint.directory();
  const std::optional<TensorKey> key =
      ParseKey(name.substr(of_draft ? kDraftPrefix.size() : kTargetPrefix.size()));
  const auto found = key.has_value() ? role->tensors.find(*key) : role->tensors.end();
  if (found == role->tensors.end()) {
    return Mismatch(directory, spec.Name(), "missing", "the engine needs it for this model");
  }
  const ModelTensor& tensor = found->second;
  const TensorEntry& entry = tensor.weight->entry;
  const std::int64_t rows = spec.transposed ? spec.cols : spec.rows;
  const std::int64_t cols = spec.transposed ? spec.rows : spec.cols;
  if (WithoutOnes(entry.shape) != WithoutOnes({rows, cols})) {
    return Mismatch(directory, entry.name, ShapeText(entry.shape),
                    absl::StrFormat("the engine reads it as [%d, %d]", rows, cols));
  }
  StoredMatrix matrix{.type = entry.type, .rows = rows, .cols = cols, .bytes = {}, .scales = {}};
  KVASIR_ASSIGN_OR_RETURN(matrix.bytes, role->checkpoint.Bytes(*tensor.weight));
  if (tensor.scales != nullptr) {
    KVASIR_ASSIGN_OR_RETURN(matrix.scales, role->checkpoint.Bytes(*tensor.scales));
  }
  return spec.transposed ? ReadTransposedPart(matrix, part) : ReadPart(matrix, part);
}

}  // namespace kvasir
