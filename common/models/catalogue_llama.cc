// Llama, Mistral, Phi and other dense decoders.
#include "common/models/catalogue_parts.h"

namespace kvasir::catalogue {
namespace {

// A dense decoder without windows.
ModelDescription Plain(const Frame& frame, std::int64_t layers, const AttentionShape& attention,
                       std::int64_t intermediate) {
  ModelDescription m = Make(frame);
  Add(m, layers, attention, Dense(intermediate));
  return m;
}

ModelDescription Llama2() {
  ModelDescription m = Plain(
      {.architecture = "LlamaForCausalLM", .hidden = 4096, .vocab = 32000, .context = 4096, .eps = 1e-5}, 32,
      Heads(32, 32, 128), 11008);
  m.dtype = DType::kF16;
  return m;
}

ModelDescription Llama3(std::int64_t hidden, std::int64_t layers, std::int64_t heads,
                        std::int64_t intermediate, double factor, bool tied) {
  ModelDescription m = Plain({.architecture = "LlamaForCausalLM",
                              .hidden = hidden,
                              .vocab = 128256,
                              .context = 131072,
                              .eps = 1e-5,
                              .tied = tied},
                             layers, Heads(heads, 8, 128), intermediate);
  m.rope = Llama3Rope(5e5, factor, 4);
  return m;
}

// Chunks, with a full layer in every fourth place.
ModelDescription Llama4Scout() {
  ModelDescription m = Make({.architecture = "Llama4ForConditionalGeneration",
                             .hidden = 5120,
                             .vocab = 202048,
                             .context = 10485760,
                             .eps = 1e-5,
                             .multimodal = true});
  m.rope = Llama3Rope(5e5, 16, 1);
  AttentionShape chunked = Heads(40, 8, 128);
  chunked.chunk = 8192;
  AddAlternating(m, 48, 4, chunked, Heads(40, 8, 128),
                 {.experts = 16, .experts_per_token = 1, .shared_experts = 1, .expert_intermediate = 8192});
  return m;
}

ModelDescription MistralNemo() {
  return Plain({.architecture = "MistralForCausalLM",
                .hidden = 5120,
                .vocab = 131072,
                .context = 131072,
                .eps = 1e-5,
                .theta = 1e6},
               40, Heads(32, 8, 128), 14336);
}

ModelDescription Mixtral(std::int64_t hidden, std::int64_t layers, std::int64_t heads, std::int64_t context,
                         std::int64_t width) {
  ModelDescription m = Make({.architecture = "MixtralForCausalLM",
                             .hidden = hidden,
                             .vocab = 32000,
                             .context = context,
                             .eps = 1e-5,
                             .theta = 1e6});
  Add(m, layers, Heads(heads, 8, 128), {.experts = 8, .experts_per_token = 2, .expert_intermediate = width});
  return m;
}

ModelDescription Devstral2() {
  ModelDescription m = Plain({.architecture = "Ministral3ForCausalLM",
                              .hidden = 12288,
                              .vocab = 131072,
                              .context = 262144,
                              .eps = 1e-5},
                             88, Heads(96, 8, 128), 28672);
  m.rope = {.theta = 1e6, .factor = 64, .original_context = 4096, .beta_fast = 4};
  m.quantisation.method = "fp8";
  m.quantisation.mixers.bits = m.quantisation.dense.bits = 8;
  m.quantisation.experts.bits = m.quantisation.shared.bits = 8;
  return m;
}

// All layers have the window.
ModelDescription Phi3Mini4k() {
  return Plain(
      {.architecture = "Phi3ForCausalLM", .hidden = 3072, .vocab = 32064, .context = 4096, .eps = 1e-5}, 32,
      Windowed(Heads(32, 32, 96), 2047), 8192);
}

ModelDescription Phi4Mini() {
  ModelDescription m = Plain({.architecture = "Phi3ForCausalLM",
                              .hidden = 3072,
                              .vocab = 200064,
                              .context = 131072,
                              .eps = 1e-5,
                              .tied = true},
                             32, Windowed(Heads(24, 8, 128), 262144), 8192);
  m.rope.kind = RopeKind::kLongrope;
  m.rope.original_context = 4096;
  m.rope.partial = 0.75;
  return m;
}

// Three layers with a window, then a full one.
ModelDescription ThreeToOne(const Frame& frame, std::int64_t intermediate, const Rope& rope) {
  ModelDescription m = Make(frame);
  m.rope = rope;
  AddAlternating(m, 64, 4, Windowed(Heads(40, 8, 128), 4096), Heads(40, 8, 128), Dense(intermediate));
  return m;
}

ModelDescription Olmo31() {
  return ThreeToOne({.architecture = "Olmo3ForCausalLM", .hidden = 5120, .vocab = 100278, .context = 65536},
                    27648, {.theta = 5e5, .factor = 8, .original_context = 8192});
}

ModelDescription Exaone4() {
  return ThreeToOne(
      {.architecture = "Exaone4ForCausalLM", .hidden = 5120, .vocab = 102400, .context = 131072, .eps = 1e-5},
      27392, Llama3Rope(1e6, 16, 4));
}

ModelDescription Command(std::int64_t hidden, std::int64_t layers, std::int64_t heads,
                         std::int64_t intermediate, std::int64_t context) {
  ModelDescription m = Make({.architecture = "Cohere2ForCausalLM",
                             .hidden = hidden,
                             .vocab = 256000,
                             .context = context,
                             .eps = 1e-5,
                             .theta = 5e4,
                             .tied = true});
  AddAlternating(m, layers, 4, Windowed(Heads(heads, 8, 128), 4096), Heads(heads, 8, 128),
                 Dense(intermediate));
  return m;
}

ModelDescription SeedOss() {
  return Plain({.architecture = "SeedOssForCausalLM",
                .hidden = 5120,
                .vocab = 155136,
                .context = 524288,
                .theta = 1e7},
               64, Heads(80, 8, 128), 27648);
}

ModelDescription Hunyuan(std::int64_t hidden, std::int64_t layers, std::int64_t intermediate,
                         std::int64_t vocab, std::int64_t context) {
  return Plain({.architecture = "HunYuanDenseV1ForCausalLM",
                .hidden = hidden,
                .vocab = vocab,
                .context = context,
                .eps = 1e-5,
                .tied = true},
               layers, Heads(32, 8, 128), intermediate);
}

ModelDescription BartLargeCnn() {
  ModelDescription m = Make({.architecture = "BartForConditionalGeneration",
                             .hidden = 1024,
                             .vocab = 50264,
                             .context = 1024,
                             .eps = 1e-5,
                             .tied = true});
  Add(m, 12, Heads(16, 16, 64), {.intermediate = 4096, .gated = false});
  for (ModelLayer& layer : m.layers) layer.extra = {CrossAttentionShape{16, 16, 64, 64, 1024}};
  m.encoder = EncoderShape{.layers = 12, .heads = 16, .head_dim = 64, .intermediate = 4096, .tokens = 1024};
  return m;
}

constexpr Entry kEntries[] = {
    {"llama-2-7b", "meta-llama/Llama-2-7b-hf", Llama2},
    {"llama-3.1-8b", "meta-llama/Llama-3.1-8B-Instruct",
     [] { return Llama3(4096, 32, 32, 14336, 8, false); }},
    {"llama-3.1-70b", "meta-llama/Llama-3.1-70B-Instruct",
     [] { return Llama3(8192, 80, 64, 28672, 8, false); }},
    {"llama-3.2-3b", "meta-llama/Llama-3.2-3B-Instruct", [] { return Llama3(3072, 28, 24, 8192, 32, true); }},
    {"llama-4-scout", "meta-llama/Llama-4-Scout-17B-16E-Instruct", Llama4Scout},
    {"mistral-nemo", "mistralai/Mistral-Nemo-Instruct-2407", MistralNemo},
    {"mixtral-8x7b", "mistralai/Mixtral-8x7B-v0.1", [] { return Mixtral(4096, 32, 32, 32768, 14336); }},
    {"mixtral-8x22b", "mistralai/Mixtral-8x22B-v0.1", [] { return Mixtral(6144, 56, 48, 65536, 16384); }},
    {"devstral-2-123b", "mistralai/Devstral-2-123B-Instruct-2512", Devstral2},
    {"phi-3-mini-4k", "microsoft/Phi-3-mini-4k-instruct", Phi3Mini4k},
    {"phi-4-mini-reasoning", "microsoft/Phi-4-mini-reasoning", Phi4Mini},
    {"olmo-3.1-32b", "allenai/Olmo-3.1-32B-Instruct", Olmo31},
    {"exaone-4.0-32b", "LGAI-EXAONE/EXAONE-4.0-32B", Exaone4},
    {"command-a", "CohereLabs/c4ai-command-a-03-2025", [] { return Command(12288, 64, 96, 36864, 131072); }},
    {"command-r7b", "CohereLabs/c4ai-command-r7b-12-2024",
     [] { return Command(4096, 32, 32, 14336, 131072); }},
    {"seed-oss-36b", "ByteDance-Seed/Seed-OSS-36B-Instruct", SeedOss},
    {"hunyuan-4b", "tencent/Hunyuan-4B-Instruct", [] { return Hunyuan(3072, 36, 8192, 120818, 262144); }},
    {"hunyuan-7b", "tencent/Hunyuan-7B-Instruct", [] { return Hunyuan(4096, 32, 14336, 128167, 32768); }},
    {"bart-large-cnn", "facebook/bart-large-cnn", BartLargeCnn},
};

}  // namespace

std::span<const Entry> LlamaModels() { return kEntries; }

}  // namespace kvasir::catalogue
