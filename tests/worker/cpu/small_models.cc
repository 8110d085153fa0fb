#include "tests/worker/cpu/small_models.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <ostream>
#include <random>

namespace kvasir::testing {
namespace {

ModelDescription Small(const char* name, std::int32_t layers) {
  ModelDescription m;
  m.name = name;
  m.architecture = "DeepseekV3ForCausalLM";
  m.hidden = 48;
  m.vocab = 96;
  m.context = 1024;
  for (std::int32_t i = 0; i < layers; ++i) {
    const MlaShape mla{
        .heads = 8, .q_lora_rank = 20, .kv_lora_rank = 24, .nope_dim = 12, .rope_dim = 8, .value_dim = 10};
    m.layers.push_back({.index = i, .mixer = mla, .mlp = {.intermediate = 64}});
  }
  return m;
}

MlaShape& MlaOf(ModelDescription& m, std::size_t layer) { return std::get<MlaShape>(m.layers[layer].mixer); }

ModelVariant NopeWithGate() {
  ModelVariant v = PlainModels();
  v.name = "direct queries, NoPE, output gate";
  for (std::size_t i = 0; i < v.target.layers.size(); ++i) {
    MlaOf(v.target, i).q_lora_rank = 0;
    MlaOf(v.target, i).rotate = false;
    MlaOf(v.target, i).output_gate = true;
  }
  return v;
}

ModelVariant YarnTarget() {
  ModelVariant v = PlainModels();
  v.name = "YaRN with unequal mscales";
  v.target.rope = {.theta = 50000, .factor = 8, .original_context = 64, .mscale = 1.0, .mscale_all_dim = 0.5};
  return v;
}

ModelVariant Undivided() {
  ModelVariant v = PlainModels();
  v.name = "vocabulary and MLP that ranks do not divide";
  v.target.vocab = v.draft.vocab = 97;
  v.target.layers[1].mlp.intermediate = 63;
  v.draft.layers[0].mlp.intermediate = 65;
  return v;
}

ModelVariant OwnTables() {
  ModelVariant v = PlainModels();
  v.name = "causal draft with its own tables, hidden size and no Markov head";
  v.draft.hidden = 32;
  v.draft.draft->causal = true;
  v.draft.draft->own_embedding = true;
  v.draft.draft->own_head = true;
  v.draft.draft->markov_rank = 0;
  return v;
}

ModelVariant GatedHead() {
  ModelVariant v = PlainModels();
  v.name = "gated Markov head, confidence that sees it";
  v.draft.draft->markov_head = MarkovHead::kGated;
  v.draft.draft->confidence_head = true;
  return v;
}

ModelVariant RecurrentHead() {
  ModelVariant v = PlainModels();
  v.name = "recurrent Markov head, confidence of the hidden state alone";
  v.draft.draft->markov_head = MarkovHead::kRnn;
  v.draft.draft->confidence_head = true;
  v.draft.draft->confidence_markov = false;
  return v;
}

ModelVariant GroupedQueryDraft() {
  ModelVariant v = PlainModels();
  v.name = "draft with keys and values per head";
  v.draft.architecture = "DFlashDraftModel";
  v.draft.draft->method = DraftMethod::kDflash;
  v.draft.draft->markov_rank = 0;
  v.draft.draft->own_embedding = false;
  for (ModelLayer& layer : v.draft.layers) {
    layer.mixer = AttentionShape{.heads = 8, .kv_heads = 4, .head_dim = 12, .value_dim = 12};
  }
  return v;
}

ModelVariant SoftmaxExperts() {
  ModelVariant v = PlainModels();
  v.name = "experts by softmax, of a width that ranks do not divide";
  v.target.layers[1].mlp = v.target.layers[2].mlp = {.experts = 8,
                                                     .experts_per_token = 3,
                                                     .shared_experts = 2,
                                                     .expert_intermediate = 15,
                                                     .scoring = ExpertScoring::kSoftmax,
                                                     .groups = 4,
                                                     .groups_kept = 2,
                                                     .normalise = false,
                                                     .routed_scale = 4.0};
  return v;
}

ModelVariant LatentExperts() {
  ModelVariant v = SigmoidExperts();
  v.name = "experts in a normed latent, SiTU";
  for (ModelLayer& layer : v.target.layers) {
    layer.mlp.situ_beta = 4;
    layer.mlp.situ_linear_beta = 2.5;
    if (layer.mlp.experts == 0) continue;
    layer.mlp.latent = 20;
    layer.mlp.latent_norm = true;
  }
  v.target.layers[2].mlp.latent_norm = false;
  v.target.layers[2].mlp.shared_experts = 0;
  return v;
}

}  // namespace

ModelVariant SigmoidExperts() {
  ModelVariant v = PlainModels();
  v.name = "experts by sigmoid, groups and bias";
  v.target.layers[1].mlp = v.target.layers[2].mlp =
      v.draft.layers[1].mlp = {.experts = 16,
                               .experts_per_token = 4,
                               .shared_experts = 1,
                               .expert_intermediate = 16,
                               .scoring = ExpertScoring::kSigmoid,
                               .correction_bias = true,
                               .groups = 4,
                               .groups_kept = 2,
                               .routed_scale = 2.5};
  return v;
}

namespace {

ModelVariant AttentionOverResiduals(std::int64_t block) {
  ModelVariant v = SigmoidExperts();
  v.name = "attention over residuals of blocks of " + std::to_string(block);
  v.target.residual_block = block;
  return v;
}

}  // namespace

void PrintTo(const ModelVariant& v, std::ostream* out) { *out << v.name; }

ModelVariant PlainModels() {
  ModelVariant v{"plain", Small("small-target", 3), Small("small-draft", 2)};
  v.draft.rope = {.factor = 4, .original_context = 256, .mscale = 1, .mscale_all_dim = 1};
  v.draft.draft = DraftShape{
      .target_taps = {0, 2}, .target_hidden = 48, .target_layers = 3, .mask_token = 95, .markov_rank = 16};
  return v;
}

std::vector<ModelVariant> AllModelVariants() {
  return {PlainModels(),
          NopeWithGate(),
          YarnTarget(),
          Undivided(),
          OwnTables(),
          SigmoidExperts(),
          SoftmaxExperts(),
          LatentExperts(),
          GatedHead(),
          RecurrentHead(),
          AttentionOverResiduals(1),
          AttentionOverResiduals(2),
          AttentionOverResiduals(5),
          GroupedQueryDraft()};
}

ModelRanksOptions OptionsOf(const ModelVariant& variant, std::int64_t tp, std::int64_t dcp, DType dtype) {
  ModelRanksOptions options;
  options.target = variant.target;
  options.draft = variant.draft;
  options.topology = {.tp = tp, .dcp = dcp, .interleave = 1};
  options.block_tokens = 8;
  options.blocks = 40;
  options.rows_max = 96;
  options.dtype = dtype;
  options.seed = 7;
  return options;
}

std::vector<std::int32_t> RandomTokens(std::size_t count, std::int64_t vocab, unsigned seed) {
  std::mt19937 random(seed);
  std::uniform_int_distribution<std::int32_t> token(0, static_cast<std::int32_t>(vocab) - 1);
  std::vector<std::int32_t> tokens(count);
  for (std::int32_t& value : tokens) value = token(random);
  return tokens;
}

std::vector<std::int64_t> ShuffledBlocks(std::size_t count, std::int64_t first) {
  std::vector<std::int64_t> blocks(count);
  std::iota(blocks.begin(), blocks.end(), first);
  std::mt19937 random(static_cast<unsigned>(first));
  std::shuffle(blocks.begin(), blocks.end(), random);
  return blocks;
}

template <class T>
double RelativeDifference(std::span<const float> got, std::span<const T> want) {
  if (got.size() != want.size()) return std::numeric_limits<double>::infinity();
  double difference = 0;
  double magnitude = 0;
  for (std::size_t i = 0; i < got.size(); ++i) {
    const double a = static_cast<double>(got[i]);
    const double b = static_cast<double>(want[i]);
    if (!std::isfinite(a) || !std::isfinite(b)) return std::numeric_limits<double>::infinity();
    difference = std::max(difference, std::abs(a - b));
    magnitude = std::max(magnitude, std::abs(b));
  }
  return magnitude == 0 ? difference : difference / magnitude;
}

template double RelativeDifference<float>(std::span<const float>, std::span<const float>);
template double RelativeDifference<double>(std::span<const float>, std::span<const double>);

}  // namespace kvasir::testing
