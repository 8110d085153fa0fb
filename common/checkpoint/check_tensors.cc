#include "common/checkpoint/check_tensors.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_format.h"
#include "common/base/checked_math.h"
#include "common/base/error_reasons.h"
#include "common/base/status_macros.h"
#include "common/base/typed_error.h"
#include "common/checkpoint/checkpoint_error.h"
#include "common/checkpoint/element_reader.h"
#include "common/checkpoint/expected_tensors.h"
#include "common/models/config_error.h"

namespace kvasir {
namespace {

constexpr std::string_view kScaleSuffix = "_scale_inv";

struct Problem {
  std::string tensor;
  std::string found;
  std::string expected;
};

std::string ShapesText(const std::vector<TensorShape>& shapes) {
  std::string text;
  for (const TensorShape& shape : shapes) {
    text += (text.empty() ? "" : " or ") + ShapeText(shape);
  }
  return text;
}

// Takes the checkpoint's tensors one after the other; what is left at the end is surplus.
class Matcher {
 public:
  Matcher(const Checkpoint& checkpoint, const ModelDescription& model)
      : checkpoint_(checkpoint), model_(model) {
    for (const StoredTensor& tensor : checkpoint.tensors()) {
      const auto [at, fresh] = left_.emplace(BareName(tensor.entry.name), &tensor);
      if (fresh) continue;
      problems_.push_back({tensor.entry.name, "it is there", "only one of it and " + at->second->entry.name});
    }
  }

  void Take(const ExpectedTensor& expected) {
    const std::string_view bare = BareName(expected.name);
    const StoredTensor* weight = Pop(bare);
    if (weight == nullptr) {
      if (!expected.optional) problems_.push_back({expected.name, "missing", ShapesText(expected.shapes)});
      return;
    }
    const TensorEntry& entry = weight->entry;
    if (!expected.refusal.empty() && refused_.empty()) {
      refused_ = entry.name;
      refusal_ = expected.refusal;
    }
    if (std::find(expected.shapes.begin(), expected.shapes.end(), entry.shape) == expected.shapes.end()) {
      problems_.push_back({entry.name, ShapeText(entry.shape), ShapesText(expected.shapes)});
      return;
    }
    if (!IsReadable(entry.type)) {
      problems_.push_back({entry.name, absl::StrFormat("%s elements", StoredTypeName(entry.type)),
                           "BF16, F16, F32 or F8_E4M3"});
      return;
    }
    ModelTensor tensor{.weight = weight};
    if (entry.type == StoredType::kF8E4M3 && !TakeScales(bare, entry, tensor)) return;
    found_.emplace(expected.key, tensor);
  }

  absl::StatusOr<ModelTensors> Finish() {
    if (!refused_.empty()) {
      return ToStatus({.reason = reason::kCheckpointUnsupported,
                       .file = checkpoint_.directory(),
                       .tensor = refused_,
                       .fix = std::string(refusal_)});
    }
    for (const auto& [bare, tensor] : left_) {
      if (IsPassedOver(model_, bare)) continue;
      problems_.push_back({tensor->entry.name, ShapeText(tensor->entry.shape), "no such tensor"});
    }
    if (problems_.empty()) return std::move(found_);
    return Mismatch();
  }

 private:
  const StoredTensor* Pop(std::string_view bare) {
    const auto at = left_.find(bare);
    if (at == left_.end()) return nullptr;
    const StoredTensor* tensor = at->second;
    left_.erase(at);
    return tensor;
  }

  bool TakeScales(std::string_view bare, const TensorEntry& weight, ModelTensor& tensor) {
    const std::string name = absl::StrFormat("%s%s", weight.name, kScaleSuffix);
    if (weight.shape.size() != 2) {
      problems_.push_back({weight.name, "F8_E4M3 elements", "BF16, F16 or F32; only matrices have scales"});
      return false;
    }
    const TensorShape shape = {CeilDiv(weight.shape[0], kScaleBlock), CeilDiv(weight.shape[1], kScaleBlock)};
    tensor.scales = Pop(absl::StrFormat("%s%s", bare, kScaleSuffix));
    if (tensor.scales == nullptr) {
      problems_.push_back({name, "missing", "F32 " + ShapeText(shape) + ", the scales of F8_E4M3 elements"});
      return false;
    }
    const TensorEntry& scales = tensor.scales->entry;
    if (scales.shape == shape && scales.type == StoredType::kF32) return true;
    problems_.push_back({scales.name,
                         absl::StrFormat("%s %s", StoredTypeName(scales.type), ShapeText(scales.shape)),
                         "F32 " + ShapeText(shape)});
    return false;
  }

  absl::Status Mismatch() const {
    const auto count = static_cast<std::int64_t>(problems_.size());
    std::string message =
        absl::StrFormat("%s does not fit model %s, %d faults; give the checkpoint of this model:",
                        ShownText(checkpoint_.directory(), 256), model_.name, count);
    for (std::int64_t i = 0; i < std::min(count, kTensorProblemsShown); ++i) {
      const Problem& problem = problems_[static_cast<std::size_t>(i)];
      message += absl::StrFormat("%s tensor %s: %s, the model has %s", i == 0 ? "" : ";",
                                 ShownText(problem.tensor, 256), problem.found, problem.expected);
    }
    if (count > kTensorProblemsShown)
      message += absl::StrFormat("; and %d more", count - kTensorProblemsShown);
    const Problem& first = problems_.front();
    return MakeError({.code = absl::StatusCode::kInvalidArgument,
                      .reason = reason::kCheckpointMismatch,
                      .message = std::move(message),
                      .metadata = {{"tensor", ShownText(first.tensor, 256)},
                                   {"found", first.found},
                                   {"expected", first.expected},
                                   {"problems", std::to_string(count)}}});
  }

  const Checkpoint& checkpoint_;
  const ModelDescription& model_;
  std::map<std::string_view, const StoredTensor*> left_;  // by bare name
  std::vector<Problem> problems_;
  std::string refused_;
  std::string_view refusal_;
  ModelTensors found_;
};

}  // namespace

absl::StatusOr<ModelTensors> CheckTensors(const Checkpoint& checkpoint, const ModelDescription& model) {
  KVASIR_ASSIGN_OR_RETURN(const std::vector<ExpectedTensor> expected, ExpectedTensors(model));
  Matcher matcher(checkpoint, model);
  for (const ExpectedTensor& tensor : expected) matcher.Take(tensor);
  return matcher.Finish();
}

}  // namespace kvasir
