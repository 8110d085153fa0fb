#include "common/checkpoint/expected_tensors.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>

#include "absl/status/status.h"
#include "absl/strings/str_format.h"
#include "common/base/checked_math.h"
#include "common/base/error_reasons.h"
#include "common/base/status_macros.h"
#include "common/checkpoint/checkpoint_error.h"
#include "common/checkpoint/tensor_families.h"

namespace kvasir {
namespace {

struct FamilyRow {
  std::string_view architecture;
  TensorFamily family;
};

constexpr std::array kFamilies = {
    FamilyRow{"DeepseekV2ForCausalLM", TensorFamily::kDeepseek},
    FamilyRow{"DeepseekV3ForCausalLM", TensorFamily::kDeepseek},
    FamilyRow{"KimiLinearForCausalLM", TensorFamily::kKimiLinear},
    FamilyRow{"KimiK3ForConditionalGeneration", TensorFamily::kKimiK3},
    FamilyRow{"K3DSparkModel", TensorFamily::kK3Dspark},
    FamilyRow{"DSparkDraftModel", TensorFamily::kBlockDraft},
    FamilyRow{"Qwen3DSparkModel", TensorFamily::kBlockDraft},
    FamilyRow{"DFlashDraftModel", TensorFamily::kBlockDraft},
    FamilyRow{"QwenDFlashDraftModel", TensorFamily::kBlockDraft},
};

absl::Status Unsupported(const ModelDescription& model, std::string value, std::string fix) {
  return ToStatus({reason::kCheckpointUnsupported, model.name, "", std::move(value), std::move(fix)});
}

absl::StatusOr<TensorFamily> FamilyOf(const ModelDescription& model) {
  std::string known;
  for (const FamilyRow& row : kFamilies) {
    if (row.architecture == model.architecture) return row.family;
    known += absl::StrFormat("%s%s", known.empty() ? "" : ", ", row.architecture);
  }
  return Unsupported(model, "architecture " + model.architecture, "checkpoints are read of " + known);
}

absl::Status CheckSize(const ModelDescription& model) {
  constexpr std::int64_t kOfLayer = 64;  // more than any layer has beside its experts
  std::int64_t count = kOfLayer;
  for (const ModelLayer& layer : model.layers) count += kOfLayer + 3 * layer.mlp.experts;
  if (count <= kExpectedTensorsMax) return absl::OkStatus();
  return Unsupported(model, absl::StrFormat("about %d tensors", count),
                     absl::StrFormat("at most %d are read", kExpectedTensorsMax));
}

// The N of "layers.N.", or -1.
std::int64_t LayerOf(std::string_view name) {
  constexpr std::string_view kLayers = "layers.";
  if (!name.starts_with(kLayers)) return -1;
  const std::string_view rest = name.substr(kLayers.size());
  std::int64_t layer = 0;
  const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), layer);
  if (error != std::errc() || end == rest.data() + rest.size() || *end != '.') return -1;
  return layer;
}

// Whether `name` is of a layer behind the model's own.
bool IsPredictingLayer(const ModelDescription& model, std::string_view name) {
  const std::int64_t layer = LayerOf(name);
  const auto own = static_cast<std::int64_t>(model.layers.size());
  const auto predicting = static_cast<std::int64_t>(model.mtp_layers.size());
  return layer >= own && layer < own + std::max(model.mtp_depth, predicting);
}

}  // namespace

absl::StatusOr<std::vector<ExpectedTensor>> ExpectedTensors(const ModelDescription& model) {
  KVASIR_ASSIGN_OR_RETURN(const TensorFamily family, FamilyOf(model));
  const std::string& method = model.quantisation.method;
  if (!method.empty() && method != "fp8") {
    return Unsupported(model, "quantisation " + method,
                       "weights are read as bf16, f16, f32, or fp8 with a scale for each block of 128 x 128");
  }
  KVASIR_RETURN_IF_ERROR(CheckSize(model));
  TensorList list(model, family);
  list.AddModel();
  for (const ModelLayer& layer : model.layers) list.AddLayer(layer);
  if (!list.unsupported().empty()) return Unsupported(model, list.unsupported(), "this is not read");
  return list.Take();
}

std::string_view BareName(std::string_view name) {
  for (const std::string_view prefix : {std::string_view("language_model."), std::string_view("model.")}) {
    if (name.starts_with(prefix)) name.remove_prefix(prefix.size());
  }
  return name;
}

bool IsPassedOver(const ModelDescription& model, std::string_view bare_name) {
  if (bare_name.ends_with(".rotary_emb.inv_freq")) return true;
  // An MTP module shares its checkpoint with the target.
  if (model.draft.has_value() && model.draft->method == DraftMethod::kMtp) {
    return LayerOf(bare_name) != model.draft->target_layers;
  }
  const bool vision = bare_name.starts_with("vision_tower.") || bare_name.starts_with("mm_projector.");
  return (model.multimodal && vision) || IsPredictingLayer(model, bare_name);
}

}  // namespace kvasir
