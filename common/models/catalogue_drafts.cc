// Drafts that are not part of their target: EAGLE, EAGLE-3, DFlash, DFlare, DSpark, Domino.
#include <vector>

#include "common/models/catalogue_parts.h"

namespace kvasir::catalogue {
namespace {

// Layers of grouped-query attention with a dense MLP.
struct Layers {
  std::int64_t count;
  AttentionShape attention;
  std::int64_t intermediate;
};

ModelDescription Draft(const Frame& frame, const Layers& layers, const DraftShape& draft) {
  ModelDescription m = Make(frame);
  Add(m, layers.count, layers.attention, Dense(layers.intermediate));
  m.draft = draft;
  m.draft->target_hidden = m.hidden;
  return m;
}

// One layer, token by token; a head of 32,000 frequent tokens.
ModelDescription Eagle3(const Frame& frame, const AttentionShape& attention, std::int64_t intermediate,
                        const std::vector<std::int64_t>& taps) {
  DraftShape draft;
  draft.method = DraftMethod::kEagle3;
  draft.causal = draft.windowed_causal = true;
  draft.target_taps = taps;
  draft.own_head = true;
  draft.head_vocab = 32000;
  return Draft(frame, {1, attention, intermediate}, draft);
}

// The first EAGLE: the target's own head.
ModelDescription Eagle1() {
  DraftShape draft;
  draft.method = DraftMethod::kEagle;
  draft.causal = draft.windowed_causal = true;
  ModelDescription m = Draft({.architecture = "EagleLlamaForCausalLM",
                              .hidden = 4096,
                              .vocab = 128256,
                              .context = 8192,
                              .eps = 1e-5},
                             {1, Heads(32, 8, 128), 14336}, draft);
  m.dtype = DType::kF16;
  return m;
}

ModelDescription YuhuiliEagle3() {
  ModelDescription m = Eagle3({.architecture = "Eagle3LlamaForCausalLM",
                               .hidden = 4096,
                               .vocab = 128256,
                               .context = 2048,
                               .eps = 1e-5},
                              Heads(32, 8, 128), 14336, {});
  m.dtype = DType::kF16;
  return m;
}

ModelDescription DeepseekV3Eagle3() {
  ModelDescription m = Eagle3({.architecture = "LlamaForCausalLMEagle3",
                               .hidden = 7168,
                               .vocab = 129280,
                               .context = 163840,
                               .eps = 1e-5},
                              Heads(56, 8, 128), 40960, {1, 29, 57});
  m.dtype = DType::kF16;
  return m;
}

// Drafts of a whole block; what is trained for it.
DraftShape Block(DraftMethod method, std::int64_t block, std::int64_t target_layers, std::int64_t mask,
                 const std::vector<std::int64_t>& taps) {
  DraftShape draft;
  draft.method = method;
  draft.block = block;
  draft.target_layers = target_layers;
  draft.mask_token = mask;
  draft.target_taps = taps;
  if (method == DraftMethod::kDspark) {
    draft.markov_rank = 256;
    draft.confidence_head = true;
  }
  return draft;
}

Frame Qwen3Frame(std::string_view architecture, std::int64_t hidden, bool tied) {
  return {.architecture = architecture,
          .hidden = hidden,
          .vocab = 151936,
          .context = 40960,
          .theta = 1e6,
          .tied = tied};
}

Frame Qwen35Frame(std::string_view architecture, std::int64_t hidden, bool tied) {
  return {.architecture = architecture,
          .hidden = hidden,
          .vocab = 248320,
          .context = 262144,
          .theta = 1e7,
          .tied = tied};
}

ModelDescription KimiK3Dspark() {
  ModelDescription m = Make(
      {.architecture = "K3DSparkModel", .hidden = 7168, .vocab = 163840, .context = 1048576, .eps = 1e-5});
  m.rope = {.theta = 50000, .factor = 32, .original_context = 32768, .mscale = 1, .mscale_all_dim = 1};
  const MlaShape mla{.heads = 64,
                     .q_lora_rank = 1536,
                     .kv_lora_rank = 512,
                     .nope_dim = 128,
                     .rope_dim = 64,
                     .value_dim = 128};
  Add(m, 5, mla, Dense(14336));
  DraftShape draft = Block(DraftMethod::kDspark, 0, 93, 163837, {2, 23, 47, 71, 89});
  draft.target_hidden = 7168;
  draft.own_embedding = true;
  m.draft = draft;
  return m;
}

ModelDescription KimiK3DsparkGqa() {
  ModelDescription m = Draft(
      {.architecture = "DSparkDraftModel", .hidden = 7168, .vocab = 163840, .context = 65536, .eps = 1e-5},
      {5, Heads(64, 16, 64), 14336}, Block(DraftMethod::kDspark, 7, 93, 163824, {7, 23, 51, 67, 83}));
  m.rope = {.factor = 16, .original_context = 4096};
  return m;
}

ModelDescription Glm52Dspark() {
  return Draft({.architecture = "DSparkDraftModel",
                .hidden = 6144,
                .vocab = 154880,
                .context = 1048576,
                .eps = 1e-5,
                .theta = 8e6},
               {5, Heads(64, 16, 64), 12288},
               Block(DraftMethod::kDspark, 7, 78, 154856, {1, 19, 38, 57, 76}));
}

// Four layers with a window, causal inside the block, and a full one, which is not.
ModelDescription Qwen36Dflash() {
  DraftShape draft = Block(DraftMethod::kDflash, 16, 64, 248070, {1, 16, 31, 46, 61});
  draft.windowed_causal = true;
  ModelDescription m = Draft(Qwen35Frame("DFlashDraftModel", 5120, false),
                             {4, Windowed(Heads(32, 8, 128), 2048), 17408}, draft);
  Add(m, 1, Heads(32, 8, 128), Dense(17408));
  return m;
}

ModelDescription Qwen35Domino() {
  DraftShape draft = Block(DraftMethod::kDomino, 16, 32, 248070, {3, 11, 19, 27, 31});
  draft.gru_dim = 1024;
  draft.gru_embedding = 256;
  return Draft(Qwen35Frame("DominoDraftModel", 2560, true), {5, Heads(32, 8, 128), 9216}, draft);
}

ModelDescription Qwen3_4B(std::string_view architecture, std::int64_t layers, bool tied,
                          const DraftShape& draft) {
  return Draft(Qwen3Frame(architecture, 2560, tied), {layers, Heads(32, 8, 128), 9728}, draft);
}

ModelDescription Qwen3_8B(std::string_view architecture, const DraftShape& draft) {
  return Draft(Qwen3Frame(architecture, 4096, false), {5, Heads(32, 8, 128), 12288}, draft);
}

const std::vector<std::int64_t>& Taps36() {
  static const std::vector<std::int64_t> kTaps = {1, 9, 17, 25, 33};
  return kTaps;
}

constexpr Entry kEntries[] = {
    {"deepseek-v3-eagle3", "SpecForge/deepseek-v3-671b-eagle3", DeepseekV3Eagle3},
    {"glm-5.2-dspark", "SpecForge/glm-5.2-dspark", Glm52Dspark},
    {"gpt-oss-120b-eagle3", "SpecForge/gpt-oss-120B-eagle3",
     [] {
       return Eagle3({.architecture = "LlamaForCausalLMEagle3",
                      .hidden = 2880,
                      .vocab = 201088,
                      .context = 4096,
                      .eps = 1e-5},
                     Heads(64, 8, 64), 17280, {1, 17, 33});
     }},
    {"kimi-k3-dspark", "Inferact/Kimi-K3-DSpark", KimiK3Dspark},
    {"kimi-k3-dspark-gqa", "SpecForge/kimi-k3-dspark", KimiK3DsparkGqa},
    {"llama-3-8b-eagle", "yuhuili/EAGLE-LLaMA3-Instruct-8B", Eagle1},
    {"llama-3.1-8b-eagle3", "yuhuili/EAGLE3-LLaMA3.1-Instruct-8B", YuhuiliEagle3},
    {"qwen3-4b-dflare", "AngelSlim/qwen3_dflare",
     [] {
       return Qwen3_4B("QwenDFlareDraftModel", 7, true,
                       Block(DraftMethod::kDflare, 16, 36, 151669, {1, 5, 9, 13, 17, 21, 25, 29, 33}));
     }},
    {"qwen3-4b-dspark", "SpecForge/qwen3-4b-dspark",
     [] {
       return Qwen3_4B("DSparkDraftModel", 5, false, Block(DraftMethod::kDspark, 7, 36, 151669, Taps36()));
     }},
    {"qwen3-8b-dflash", "z-lab/Qwen3-8B-DFlash-b16",
     [] { return Qwen3_8B("DFlashDraftModel", Block(DraftMethod::kDflash, 16, 36, 151669, Taps36())); }},
    {"qwen3-8b-dspark", "SpecForge/qwen3-8b-dspark",
     [] { return Qwen3_8B("DSparkDraftModel", Block(DraftMethod::kDspark, 7, 36, 151669, Taps36())); }},
    {"qwen3-8b-eagle3", "sglang-test/Qwen3-8B_eagle3",
     [] { return Eagle3(Qwen3Frame("LlamaForCausalLMEagle3", 4096, false), Heads(32, 8, 128), 12288, {}); }},
    {"qwen3.5-4b-domino", "SpecForge/qwen3.5-4b-domino", Qwen35Domino},
    {"qwen3.6-27b-dflash", "SpecForge/qwen3.6-27b-dflash", Qwen36Dflash},
};

}  // namespace

std::span<const Entry> DraftModels() { return kEntries; }

}  // namespace kvasir::catalogue
