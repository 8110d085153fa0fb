// Attention beside recurrent layers: Nemotron, Falcon, Granite.
#include <optional>
#include <string>

#include "common/base/limits.h"
#include "common/models/catalogue_parts.h"

namespace kvasir::catalogue {
namespace {

// What the blocks of a Nemotron-H pattern stand for: M, *, - (dense) and E (experts).
struct Blocks {
  std::int64_t mamba_heads;
  std::int64_t mamba_dim;
  std::int64_t state_dim;
  AttentionShape attention;
  MlpShape mlp;
};

void AddBlocks(ModelDescription& m, std::string_view pattern, const Blocks& blocks) {
  const Mamba2Shape mamba{.heads = blocks.mamba_heads,
                          .head_dim = blocks.mamba_dim,
                          .state_dim = blocks.state_dim,
                          .groups = 8,
                          .conv_kernel = 4};
  for (const char letter : pattern) {
    if (letter == 'M') Add(m, 1, mamba, {});
    if (letter == '*') Add(m, 1, blocks.attention, {});
    if (letter == '-' || letter == 'E') Add(m, 1, NoMixer{}, blocks.mlp);
  }
}

// `head`, then `body` `times` times, then `tail`.
std::string Pattern(std::string_view head, std::string_view body, int times, std::string_view tail) {
  std::string out(head);
  for (int i = 0; i < times; ++i) out += body;
  return out.append(tail);
}

ModelDescription NemotronH(std::int64_t hidden, std::int64_t context, const std::string& pattern,
                           const Blocks& blocks) {
  ModelDescription m = Make({.architecture = "NemotronHForCausalLM",
                             .hidden = hidden,
                             .vocab = 131072,
                             .context = context,
                             .eps = 1e-5});
  AddBlocks(m, pattern, blocks);
  return m;
}

// The same with one step of prediction: attention, then experts.
ModelDescription Predicting(ModelDescription m, const Blocks& blocks) {
  ModelDescription ahead;
  AddBlocks(ahead, "*E", blocks);
  m.mtp_depth = 1;
  m.mtp_layers = ahead.layers;
  return m;
}

MlpShape NemotronExperts(std::int64_t experts, std::int64_t per_token, std::int64_t width,
                         std::int64_t latent) {
  return {.experts = experts,
          .experts_per_token = per_token,
          .shared_experts = 1,
          .expert_intermediate = width,
          .shared_intermediate = 2 * width,
          .latent = latent,
          .gated = false};
}

ModelDescription Nano30B() {
  const Blocks blocks{64, 64, 128, Heads(32, 2, 128), NemotronExperts(128, 6, 1856, 0)};
  return NemotronH(2688, 262144, Pattern("MEMEM*", "EMEMEM*", 4, "EMEMEMEM*EMEMEMEME"), blocks);
}

ModelDescription Super120B() {
  const Blocks blocks{128, 64, 128, Heads(32, 2, 128), NemotronExperts(512, 22, 2688, 1024)};
  const std::string pattern = Pattern("MEMEMEM*EMEMEMEM*EMEMEMEM*", "EMEMEMEMEM*", 4, "EMEMEMEM*EMEMEMEME");
  return Predicting(NemotronH(4096, 262144, pattern, blocks), blocks);
}

ModelDescription Nano9BV2() {
  const Blocks blocks{128, 80, 128, Heads(40, 8, 128), {.intermediate = 15680, .gated = false}};
  return NemotronH(4480, 131072, "M-M-M-MM-M-M-M*-M-M-M*-M-M-M-M*-M-M-M-M*-M-MM-M-M-M-M-M-", blocks);
}

ModelDescription NemotronH56B() {
  const Blocks blocks{256, 64, 256, Heads(64, 8, 128), {.intermediate = 32768, .gated = false}};
  return NemotronH(8192, 8192, Pattern("M-M-M-M*", "-M-M-M-M-M*", 9, "-M-M-M-M-M-"), blocks);
}

ModelDescription FalconMamba7B() {
  ModelDescription m = Make({.architecture = "FalconMambaForCausalLM",
                             .hidden = 4096,
                             .vocab = 65024,
                             .context = kContextTokensMax,
                             .eps = 1e-5});
  Add(m, 64, Mamba1Shape{.inner = 8192, .state_dim = 16, .conv_kernel = 4, .step_rank = 256}, {});
  return m;
}

// Attention and Mamba-2 side by side in every layer.
ModelDescription FalconH1(const Frame& frame, std::int64_t layers, const AttentionShape& attention,
                          std::int64_t intermediate, const Mamba2Shape& mamba) {
  ModelDescription m = Make(frame);
  Add(m, layers, attention, Dense(intermediate));
  for (ModelLayer& layer : m.layers) layer.extra = {mamba};
  return m;
}

Mamba2Shape PlainMamba2(std::int64_t heads, std::int64_t dim, std::int64_t state_dim) {
  return {.heads = heads,
          .head_dim = dim,
          .state_dim = state_dim,
          .groups = 1,
          .conv_kernel = 4,
          .state_dtype = std::nullopt,
          .draft_rows = false};
}

ModelDescription FalconH1Of1B() {
  return FalconH1({.architecture = "FalconH1ForCausalLM",
                   .hidden = 2048,
                   .vocab = 65537,
                   .context = 131072,
                   .eps = 1e-5,
                   .theta = 1e11},
                  24, Heads(8, 2, 128), 4608, PlainMamba2(48, 64, 256));
}

ModelDescription FalconH1Of7B() {
  return FalconH1({.architecture = "FalconH1ForCausalLM",
                   .hidden = 3072,
                   .vocab = 130048,
                   .context = 262144,
                   .eps = 1e-5,
                   .theta = 1e11},
                  44, Heads(12, 2, 128), 12288, PlainMamba2(24, 128, 256));
}

// Attention in every tenth layer, from the sixth on.
ModelDescription Granite4H(const MlpShape& mlp) {
  ModelDescription m = Make({.architecture = "GraniteMoeHybridForCausalLM",
                             .hidden = 1536,
                             .vocab = 100352,
                             .context = 131072,
                             .eps = 1e-5,
                             .tied = true});
  Add(m, 40, PlainMamba2(48, 64, 128), mlp);
  for (ModelLayer& layer : m.layers) {
    if (layer.index % 10 == 5) layer.mixer = Heads(12, 4, 128);
  }
  return m;
}

// Nemotron-NAS: which of the 80 Llama layers lost their attention, and what each MLP's width became.
struct NasRun {
  int layers;
  bool attends;
  std::int64_t intermediate;
};

ModelDescription Super49B() {
  constexpr NasRun kRuns[] = {
      {1, true, 14336},  {5, true, 28672},  {2, false, 14336}, {3, true, 28672}, {1, false, 17920},
      {30, true, 28672}, {1, false, 7168},  {2, false, 14336}, {1, false, 7168}, {1, false, 28672},
      {1, false, 7168},  {1, false, 14336}, {3, false, 7168},  {1, true, 28672}, {1, false, 7168},
      {2, false, 5632},  {1, false, 7168},  {3, false, 5632},  {2, false, 7168}, {2, false, 2816},
      {2, false, 5632},  {2, false, 2816},  {1, false, 5632},  {2, false, 2816}, {9, true, 28672}};
  ModelDescription m = Make(
      {.architecture = "DeciLMForCausalLM", .hidden = 8192, .vocab = 128256, .context = 131072, .eps = 1e-5});
  m.rope = Llama3Rope(5e5, 8, 4);
  for (const NasRun& run : kRuns) {
    Add(m, run.layers, run.attends ? MixerShape(Heads(64, 8, 128)) : MixerShape(NoMixer{}),
        Dense(run.intermediate));
  }
  return m;
}

constexpr Entry kEntries[] = {
    {"nemotron-3-nano-30b", "nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B-BF16", Nano30B},
    {"nemotron-3-super-120b", "nvidia/NVIDIA-Nemotron-3-Super-120B-A12B-FP8", Super120B},
    {"nemotron-nano-9b-v2", "nvidia/NVIDIA-Nemotron-Nano-9B-v2", Nano9BV2},
    {"nemotron-h-56b", "nvidia/Nemotron-H-56B-Base-8K", NemotronH56B},
    {"nemotron-super-49b", "nvidia/Llama-3_3-Nemotron-Super-49B-v1", Super49B},
    {"falcon-mamba-7b", "tiiuae/falcon-mamba-7b", FalconMamba7B},
    {"falcon-h1-1.5b", "tiiuae/Falcon-H1-1.5B", FalconH1Of1B},
    {"falcon-h1-7b", "tiiuae/Falcon-H1-7B", FalconH1Of7B},
    {"granite-4.0-h-1b", "ibm-granite/granite-4.0-h-1b", [] { return Granite4H(Dense(4096)); }},
    {"granite-4.0-h-tiny", "ibm-granite/granite-4.0-h-tiny",
     [] {
       return Granite4H({.experts = 64,
                         .experts_per_token = 6,
                         .shared_experts = 1,
                         .expert_intermediate = 512,
                         .shared_intermediate = 1024});
     }},
};

}  // namespace

std::span<const Entry> HybridModels() { return kEntries; }

}  // namespace kvasir::catalogue
