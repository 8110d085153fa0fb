// The models' published shapes, written as facts of ours; a test compares them with public configurations
// where those are at hand. The demo pair is ours: small enough to decode on a laptop, of the same kinds as
// Kimi-K3 and its draft.
#include "common/models/catalogue.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_format.h"
#include "common/base/edit_distance.h"
#include "common/base/error_reasons.h"
#include "common/base/typed_error.h"
#include "common/models/config_error.h"

namespace kvasir {
namespace {

ModelDescription Named(std::string name, std::string architecture) {
  ModelDescription model;
  model.name = std::move(name);
  model.architecture = std::move(architecture);
  return model;
}

// `layers` layers of one mixer: the first `dense` with a dense MLP, the rest with experts.
void AddLayers(ModelDescription& model, std::int64_t layers, std::int64_t dense, const MlpShape& dense_mlp,
               const MlpShape& experts, const MixerShape& mixer) {
  for (std::int64_t i = 0; i < layers; ++i) {
    model.layers.push_back({static_cast<std::int32_t>(i), mixer, i < dense ? dense_mlp : experts});
  }
}

MlpShape Dense(std::int64_t intermediate) { return {.intermediate = intermediate}; }

// MLA layers are every fourth and the last; the others are KDA.
void MixKda(ModelDescription& model, const KdaShape& kda) {
  for (ModelLayer& layer : model.layers) {
    const bool mla = layer.index % 4 == 3 || static_cast<std::size_t>(layer.index) + 1 == model.layers.size();
    if (!mla) layer.mixer = kda;
  }
}

ModelDescription KimiK3() {
  ModelDescription m = Named("moonshotai/Kimi-K3", "KimiK3ForConditionalGeneration");
  m.hidden = 7168;
  m.vocab = 163840;
  m.context = 1048576;
  m.rms_eps = 1e-5;
  const MlaShape mla{.heads = 96,
                     .q_lora_rank = 1536,
                     .kv_lora_rank = 512,
                     .nope_dim = 128,
                     .rope_dim = 64,
                     .value_dim = 128,
                     .rotate = false,
                     .output_gate = true};
  const MlpShape experts{
      .experts = 896, .experts_per_token = 16, .shared_experts = 2, .expert_intermediate = 3072};
  AddLayers(m, 93, 1, Dense(33792), experts, mla);
  MixKda(m, {.heads = 96, .head_dim = 128, .conv_kernel = 4});
  return m;
}

ModelDescription KimiK3Dspark() {
  ModelDescription m = Named("Inferact/Kimi-K3-DSpark", "K3DSparkModel");
  m.hidden = 7168;
  m.vocab = 163840;
  m.context = 1048576;
  m.rms_eps = 1e-5;
  m.rope = {.theta = 50000, .factor = 32, .original_context = 32768, .mscale = 1, .mscale_all_dim = 1};
  const MlaShape mla{.heads = 64,
                     .q_lora_rank = 1536,
                     .kv_lora_rank = 512,
                     .nope_dim = 128,
                     .rope_dim = 64,
                     .value_dim = 128};
  AddLayers(m, 5, 5, Dense(14336), {}, mla);
  m.draft = DraftShape{.target_taps = {2, 23, 47, 71, 89},
                       .target_hidden = 7168,
                       .target_layers = 93,
                       .mask_token = 163837,
                       .markov_rank = 256,
                       .confidence_head = true,
                       .own_embedding = true};
  return m;
}

ModelDescription KimiLinear48B() {
  ModelDescription m = Named("moonshotai/Kimi-Linear-48B-A3B-Instruct", "KimiLinearForCausalLM");
  m.hidden = 2304;
  m.vocab = 163840;
  m.context = 1048576;
  m.rms_eps = 1e-5;
  const MlaShape mla{
      .heads = 32, .kv_lora_rank = 512, .nope_dim = 128, .rope_dim = 64, .value_dim = 128, .rotate = false};
  const MlpShape experts{
      .experts = 256, .experts_per_token = 8, .shared_experts = 1, .expert_intermediate = 1024};
  AddLayers(m, 27, 1, Dense(9216), experts, mla);
  MixKda(m, {.heads = 32, .head_dim = 128, .conv_kernel = 4});
  return m;
}

ModelDescription DeepseekV2Lite() {
  ModelDescription m = Named("deepseek-ai/DeepSeek-V2-Lite", "DeepseekV2ForCausalLM");
  m.hidden = 2048;
  m.vocab = 102400;
  m.context = 163840;
  m.rope = {.factor = 40, .original_context = 4096, .mscale = 0.707, .mscale_all_dim = 0.707};
  const MlaShape mla{.heads = 16, .kv_lora_rank = 512, .nope_dim = 128, .rope_dim = 64, .value_dim = 128};
  const MlpShape experts{
      .experts = 64, .experts_per_token = 6, .shared_experts = 2, .expert_intermediate = 1408};
  AddLayers(m, 27, 1, Dense(10944), experts, mla);
  return m;
}

ModelDescription DeepseekV3Shape(std::string name) {
  ModelDescription m = Named(std::move(name), "DeepseekV3ForCausalLM");
  m.hidden = 7168;
  m.vocab = 129280;
  m.context = 163840;
  m.rope = {.factor = 40, .original_context = 4096, .mscale = 1, .mscale_all_dim = 1};
  const MlaShape mla{.heads = 128,
                     .q_lora_rank = 1536,
                     .kv_lora_rank = 512,
                     .nope_dim = 128,
                     .rope_dim = 64,
                     .value_dim = 128};
  const MlpShape experts{
      .experts = 256, .experts_per_token = 8, .shared_experts = 1, .expert_intermediate = 2048};
  AddLayers(m, 61, 3, Dense(18432), experts, mla);
  return m;
}

ModelDescription DeepseekV3() { return DeepseekV3Shape("deepseek-ai/DeepSeek-V3"); }
ModelDescription DeepseekR1() { return DeepseekV3Shape("deepseek-ai/DeepSeek-R1"); }

ModelDescription KimiK2() {
  ModelDescription m = Named("moonshotai/Kimi-K2-Instruct", "DeepseekV3ForCausalLM");
  m.hidden = 7168;
  m.vocab = 163840;
  m.context = 131072;
  m.rope = {.theta = 50000,
            .factor = 32,
            .original_context = 4096,
            .beta_fast = 1,
            .beta_slow = 1,
            .mscale = 1,
            .mscale_all_dim = 1};
  const MlaShape mla{.heads = 64,
                     .q_lora_rank = 1536,
                     .kv_lora_rank = 512,
                     .nope_dim = 128,
                     .rope_dim = 64,
                     .value_dim = 128};
  const MlpShape experts{
      .experts = 384, .experts_per_token = 8, .shared_experts = 1, .expert_intermediate = 2048};
  AddLayers(m, 61, 1, Dense(18432), experts, mla);
  return m;
}

// Equal in target and draft, so that the two differ in behaviour only.
constexpr MlaShape kDemoMla{
    .heads = 8, .q_lora_rank = 48, .kv_lora_rank = 64, .nope_dim = 32, .rope_dim = 16, .value_dim = 32};

ModelDescription DemoTarget() {
  ModelDescription m = Named("kvasir/demo-target", "DeepseekV3ForCausalLM");
  m.hidden = 128;
  m.vocab = 512;
  m.context = 4096;
  AddLayers(m, 4, 4, Dense(256), {}, kDemoMla);
  return m;
}

ModelDescription DemoDspark() {
  ModelDescription m = Named("kvasir/demo-dspark", "K3DSparkModel");
  m.hidden = 128;
  m.vocab = 512;
  m.context = 4096;
  m.rope = {.factor = 4, .original_context = 1024, .mscale = 1, .mscale_all_dim = 1};
  AddLayers(m, 2, 2, Dense(256), {}, kDemoMla);
  m.draft = DraftShape{.target_taps = {0, 2, 3},
                       .target_hidden = 128,
                       .target_layers = 4,
                       .mask_token = 258,
                       .markov_rank = 16};
  return m;
}

struct Entry {
  std::string_view name;
  ModelDescription (*make)();
  std::string_view summary;
};

constexpr std::array kEntries = {
    Entry{"deepseek-r1", DeepseekR1, "61 MLA layers, 256 experts; the shape of DeepSeek-V3"},
    Entry{"deepseek-v2-lite", DeepseekV2Lite, "27 MLA layers, 64 experts"},
    Entry{"deepseek-v3", DeepseekV3, "61 MLA layers, 256 experts"},
    Entry{"demo-dspark", DemoDspark, "2 MLA layers; drafts for demo-target"},
    Entry{"demo-target", DemoTarget, "4 MLA layers; decodes on a laptop"},
    Entry{"kimi-k2", KimiK2, "61 MLA layers, 384 experts"},
    Entry{"kimi-k3", KimiK3, "69 KDA and 24 MLA layers, 896 experts"},
    Entry{"kimi-k3-dspark", KimiK3Dspark, "5 MLA layers; drafts blocks without a mask for kimi-k3"},
    Entry{"kimi-linear-48b", KimiLinear48B, "20 KDA and 7 MLA layers, 256 experts"},
};

std::string Lower(std::string_view text) {
  std::string out(text);
  for (char& c : out) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return out;
}

absl::Status NotFound(std::string_view name) {
  const std::string wanted = Lower(name.substr(0, 64));
  std::vector<std::pair<std::size_t, std::string_view>> near;
  near.reserve(kEntries.size());
  for (const Entry& entry : kEntries) near.emplace_back(EditDistance(wanted, entry.name), entry.name);
  std::sort(near.begin(), near.end());
  TypedError error;
  error.code = absl::StatusCode::kNotFound;
  error.reason = reason::kModelUnknown;
  error.message = absl::StrFormat("model \"%s\" is not in the catalogue; nearest: %s, %s, %s",
                                  ShownText(name, 64), near[0].second, near[1].second, near[2].second);
  error.metadata = {{"model", ShownText(name, 64)}, {"nearest", std::string(near[0].second)}};
  return MakeError(error);
}

}  // namespace

std::vector<CatalogueEntry> ListCatalogue() {
  std::vector<CatalogueEntry> out;
  for (const Entry& entry : kEntries) {
    const ModelDescription model = entry.make();
    out.push_back({std::string(entry.name), model.name, model.draft.has_value(), std::string(entry.summary)});
  }
  return out;
}

absl::StatusOr<ModelDescription> FindInCatalogue(std::string_view name) {
  const std::string wanted = Lower(name);
  for (const Entry& entry : kEntries) {
    if (wanted == entry.name) return entry.make();
    ModelDescription model = entry.make();
    if (wanted == Lower(model.name)) return model;
  }
  return NotFound(name);
}

}  // namespace kvasir
