#include "common/models/catalogue_parts.h"

namespace kvasir::catalogue {

ModelDescription Make(const Frame& frame) {
  ModelDescription model;
  model.architecture = frame.architecture;
  model.hidden = frame.hidden;
  model.vocab = frame.vocab;
  model.context = frame.context;
  model.rms_eps = frame.eps;
  model.rope.theta = frame.theta;
  model.tied_embedding = frame.tied;
  model.multimodal = frame.multimodal;
  return model;
}

AttentionShape Heads(std::int64_t heads, std::int64_t kv_heads, std::int64_t dim) {
  AttentionShape attention;
  attention.heads = heads;
  attention.kv_heads = kv_heads;
  attention.head_dim = dim;
  attention.value_dim = dim;
  return attention;
}

AttentionShape Windowed(AttentionShape attention, std::int64_t window) {
  attention.window = window;
  return attention;
}

MlpShape Dense(std::int64_t intermediate) { return {.intermediate = intermediate}; }

MlpShape BySigmoid(MlpShape experts, double scale) {
  experts.scoring = ExpertScoring::kSigmoid;
  experts.correction_bias = true;
  experts.routed_scale = scale;
  return experts;
}

void Add(ModelDescription& model, std::int64_t count, const MixerShape& mixer, const MlpShape& mlp) {
  for (std::int64_t i = 0; i < count; ++i) {
    model.layers.push_back(
        {.index = static_cast<std::int32_t>(model.layers.size()), .mixer = mixer, .mlp = mlp});
  }
}

void AddAlternating(ModelDescription& model, std::int64_t count, std::int64_t period, const MixerShape& other,
                    const MixerShape& full, const MlpShape& mlp) {
  for (std::int64_t i = 1; i <= count; ++i) Add(model, 1, i % period == 0 ? full : other, mlp);
}

void PredictLikeLast(ModelDescription& model) {
  model.mtp_depth = 1;
  model.mtp_layers = {model.layers.back()};
  model.mtp_layers[0].index = 0;
}

WeightQuantisation Fp8Blocks() {
  constexpr WeightFormat kFormat{.bits = 8, .group = std::int64_t{128} * 128, .scale_bits = 32};
  WeightQuantisation q;
  q.method = "fp8";
  q.mixers = q.dense = q.experts = q.shared = kFormat;
  return q;
}

WeightQuantisation FourBitExperts(std::string_view method, std::int64_t scale_bits) {
  WeightQuantisation q;
  q.method = method;
  q.experts = {.bits = 4, .group = 32, .scale_bits = scale_bits};
  return q;
}

Rope Llama3Rope(double theta, double factor, double high_freq_factor) {
  Rope rope;
  rope.theta = theta;
  rope.factor = factor;
  rope.original_context = 8192;
  rope.kind = RopeKind::kLlama3;
  rope.high_freq_factor = high_freq_factor;
  return rope;
}

}  // namespace kvasir::catalogue
