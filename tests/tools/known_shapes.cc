#include "tests/tools/known_shapes.h"

#include <array>
#include <cstdint>
#include <string>
#include <utility>

#include "absl/status/status.h"

namespace kvasir {
namespace {

// Models with the same attention in every layer.
struct Uniform {
  std::string_view name;
  std::int32_t layers;
  std::int64_t kv_heads;
  std::int64_t dim;
};
constexpr std::array kUniform = {
    Uniform{"deepseek-r1-distill-llama-8b", 32, 8, 128},
    Uniform{"deepseek-r1-distill-llama-70b", 80, 8, 128},
    Uniform{"deepseek-r1-distill-qwen-7b", 28, 4, 128},
    Uniform{"deepseek-r1-distill-qwen-14b", 48, 8, 128},
    Uniform{"deepseek-r1-distill-qwen-32b", 64, 8, 128},
    Uniform{"devstral-small", 40, 8, 128},
    Uniform{"glm-4.5-air", 46, 8, 128},
    Uniform{"hermes-4-70b", 80, 8, 128},
    Uniform{"llama-3.1-405b", 126, 8, 128},
    Uniform{"llama-3.2-1b", 16, 8, 64},
    Uniform{"llama-3.3-70b", 80, 8, 128},
    Uniform{"magistral-small", 40, 8, 128},
    Uniform{"mistral-7b", 32, 8, 128},
    Uniform{"mistral-small-3.2-24b", 40, 8, 128},
    Uniform{"opt-125m", 12, 12, 64},
    Uniform{"phi-4", 40, 10, 128},
    Uniform{"qwen2-7b", 28, 4, 128},
    Uniform{"qwen2.5-0.5b", 24, 2, 64},
    Uniform{"qwen2.5-3b", 36, 2, 128},
    Uniform{"qwen2.5-7b", 28, 4, 128},
    Uniform{"qwen2.5-14b", 48, 8, 128},
    Uniform{"qwen2.5-32b", 64, 8, 128},
    Uniform{"qwen2.5-72b", 80, 8, 128},
    Uniform{"qwen2.5-coder-7b", 28, 4, 128},
    Uniform{"qwen2.5-coder-32b", 64, 8, 128},
    Uniform{"qwen2.5-vl-72b", 80, 8, 128},
    Uniform{"qwen3-coder-30b-a3b", 48, 4, 128},
    Uniform{"qwen3-coder-480b-a35b", 62, 8, 128},
    Uniform{"qwen3-vl-30b-a3b", 48, 4, 128},
    Uniform{"qwq-32b", 64, 8, 128},
};

ModelDescription Named(std::string name, std::int64_t context) {
  ModelDescription model;
  model.name = std::move(name);
  model.context = context;
  return model;
}

void Append(ModelDescription& model, const MixerShape& mixer) {
  ModelLayer layer;
  layer.index = static_cast<std::int32_t>(model.layers.size());
  layer.mixer = mixer;
  model.layers.push_back(std::move(layer));
}

ModelDescription Make(const Uniform& row) {
  ModelDescription model = Named(std::string(row.name), 1 << 20);
  for (int i = 0; i < row.layers; ++i) {
    Append(
        model,
        AttentionShape{
            .heads = row.kv_heads * 4, .kv_heads = row.kv_heads, .head_dim = row.dim, .value_dim = row.dim});
  }
  return model;
}

ModelDescription Latent(std::string_view name, int layers, std::int64_t lora, std::int64_t rope) {
  ModelDescription model = Named(std::string(name), 1 << 20);
  for (int i = 0; i < layers; ++i)
    Append(model, MlaShape{.heads = 64, .kv_lora_rank = lora, .rope_dim = rope});
  return model;
}

// Full attention in every `every`-th layer, gated delta nets between; one MTP layer of full attention.
ModelDescription Gated(std::string_view name, int layers, int every, std::int64_t kv_heads,
                       std::int64_t value_heads) {
  const AttentionShape full{.heads = kv_heads * 6, .kv_heads = kv_heads, .head_dim = 256, .value_dim = 256};
  ModelDescription model = Named(std::string(name), 1 << 20);
  for (int i = 0; i < layers; ++i) {
    if ((i + 1) % every == 0) {
      Append(model, full);
    } else {
      Append(model, GatedDeltaShape{.key_heads = 16,
                                    .value_heads = value_heads,
                                    .key_dim = 128,
                                    .value_dim = 128,
                                    .conv_kernel = 4,
                                    .state_dtype = DType::kF32});
    }
  }
  ModelLayer mtp;
  mtp.mixer = full;
  model.mtp_layers.push_back(mtp);
  model.mtp_depth = 1;
  return model;
}

ModelDescription NemotronNano4b() {
  ModelDescription model = Named("nemotron-3-nano-4b", 1 << 20);
  for (int i = 0; i < 25; ++i) {
    if (i % 6 == 5) {
      Append(model, AttentionShape{.heads = 32, .kv_heads = 8, .head_dim = 128, .value_dim = 128});
    } else {
      Append(model,
             Mamba2Shape{.heads = 96, .head_dim = 80, .state_dim = 128, .groups = 8, .conv_kernel = 4});
    }
  }
  return model;
}

struct Other {
  std::string_view name;
  ModelDescription (*make)(std::string_view name);
};
constexpr std::array kOther = {
    Other{"glm-4.7-flash", [](std::string_view name) { return Latent(name, 47, 512, 64); }},
    Other{"mistral-large-3", [](std::string_view name) { return Latent(name, 61, 512, 64); }},
    Other{"mistral-small-4-119b", [](std::string_view name) { return Latent(name, 36, 256, 64); }},
    Other{"nemotron-3-nano-4b", [](std::string_view) { return NemotronNano4b(); }},
    Other{"qwen3.5-9b", [](std::string_view name) { return Gated(name, 32, 4, 4, 32); }},
};

}  // namespace

std::vector<std::string_view> KnownShapes() {
  std::vector<std::string_view> names;
  names.reserve(kUniform.size() + kOther.size());
  for (const Uniform& row : kUniform) names.push_back(row.name);
  for (const Other& row : kOther) names.push_back(row.name);
  return names;
}

absl::StatusOr<ModelDescription> KnownShape(std::string_view name) {
  for (const Uniform& row : kUniform) {
    if (row.name == name) return Make(row);
  }
  for (const Other& row : kOther) {
    if (row.name == name) return row.make(name);
  }
  return absl::NotFoundError("no shape \"" + std::string(name) + "\"");
}

}  // namespace kvasir
