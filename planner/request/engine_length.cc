#include "planner/request/engine_length.h"

#include <algorithm>
#include <optional>
#include <variant>

#include "absl/strings/str_format.h"
#include "common/base/error_reasons.h"
#include "common/base/limits.h"
#include "common/base/typed_error.h"

namespace kvasir {
namespace {

std::int64_t Stretched(std::int64_t tokens, double factor) {
  const double stretched = static_cast<double>(tokens) * factor;
  return stretched < static_cast<double>(kContextTokensMax) ? static_cast<std::int64_t>(stretched)
                                                            : kContextTokensMax;
}

// Of the first layer that has one.
std::optional<std::int64_t> WindowOf(const ModelDescription& model) {
  for (const ModelLayer& layer : model.layers) {
    const auto* attention = std::get_if<AttentionShape>(&layer.mixer);
    if (attention != nullptr && attention->window > 0) return attention->window;
  }
  return std::nullopt;
}

}  // namespace

std::int64_t EngineLengthLimit(const ModelDescription& model) {
  if (model.architecture.substr(0, 6) == "Gemma3") return model.context;
  switch (model.rope.kind) {
    case RopeKind::kYarn:
      return model.rope.original_context > 0 ? Stretched(model.rope.original_context, model.rope.factor)
                                             : model.context;
    case RopeKind::kLinear:
    case RopeKind::kDynamic:
    case RopeKind::kProportional:
      return Stretched(model.context, model.rope.factor);
    case RopeKind::kLlama3:
    case RopeKind::kLongrope:
      return model.context;
  }
  return model.context;
}

std::int64_t EngineLengthUnsaid(const ModelDescription& model) {
  const bool longrope = model.rope.kind == RopeKind::kLongrope && model.rope.original_context > 0;
  return longrope ? model.rope.original_context : EngineLengthLimit(model);
}

absl::Status SetEngineLength(const EngineLaunch& launch, EngineSettings& settings) {
  const LaunchOptions& said = launch.options;
  std::int64_t limit = EngineLengthLimit(launch.target);
  if (said.disable_sliding_window.value_or(false))
    limit = std::min(limit, WindowOf(launch.target).value_or(limit));
  const std::int64_t unsaid = std::min(limit, EngineLengthUnsaid(launch.target));
  settings.auto_fit = said.max_model_len == kFitMaxModelLen;
  settings.max_model_len = settings.auto_fit ? unsaid : said.max_model_len.value_or(unsaid);
  if (!settings.auto_fit && !said.max_model_len.has_value() && unsaid < limit) {
    settings.assumed.push_back(absl::StrFormat(
        "--max-model-len %d, the length before the model's LongRoPE stretches it; say up to %d", unsaid,
        limit));
  }
  if (launch.is_copy && (settings.max_model_len > limit || !said.max_model_len.has_value())) {
    settings.assumed.push_back(absl::StrFormat(
        "--max-model-len %d: the original ends at %d, and what its copy says is not known here; give its "
        "config.json",
        settings.max_model_len, limit));
    return absl::OkStatus();
  }
  if (settings.max_model_len > limit && !said.allow_long_model_len.value_or(false)) {
    return FieldError(
        reason::kValueOutOfRange, "--max-model-len",
        absl::StrFormat(
            "--max-model-len %d is over the model's %d; the engine raises ValueError; use at most "
            "%d, or set VLLM_ALLOW_LONG_MAX_MODEL_LEN=1",
            settings.max_model_len, limit, limit));
  }
  return absl::OkStatus();
}

}  // namespace kvasir
