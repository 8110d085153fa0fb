#include "tests/testing/k3_request.h"

#include <string>
#include <utility>

#include "absl/strings/str_format.h"

namespace kvasir::testing {
namespace {

constexpr std::int32_t kTargetLayers = 93;
constexpr std::int32_t kDraftLayers = 5;
constexpr std::int64_t kKdaHeads = 96;
constexpr std::int64_t kHeadDim = 128;
constexpr std::int64_t kConvKernel = 4;

// MLA at 3, 7, ..., 91 and in the last layer.
bool IsMla(std::int32_t index) { return index % 4 == 3 || index == kTargetLayers - 1; }

LayerSpec MlaLayer(const K3Options& options, Role role, std::int32_t index) {
  LayerSpec layer;
  layer.mixer = "mla";
  layer.layout = {.kind = LayoutKind::kLatent,
                  .sharded = options.dcp > 1,
                  .dtype = DType::kBf16,
                  .heads = 1,
                  .key_dim = 512,
                  .value_dim = 64,
                  .alignment_bytes = 16,
                  .states = {},
                  .ring = {}};
  const bool draft = role == Role::kDraft;
  layer.behaviour = {.role = role,
                     .mixer = Mixer::kAttention,
                     .causal = !draft,
                     .window = 0,
                     .block_rows = draft ? options.draft_tokens : options.draft_tokens + 1,
                     .backend = draft ? "mla_block" : "mla"};
  layer.id = {.role = role, .index = index, .cache = 0};
  return layer;
}

LayerSpec KdaLayer(const K3Options& options, std::int32_t index) {
  const std::int64_t heads = kKdaHeads / options.tp;
  const std::int64_t rows = kConvKernel - 1 + options.draft_tokens;
  LayerSpec layer;
  layer.id = {.role = Role::kTarget, .index = index, .cache = 0};
  layer.mixer = "kda";
  layer.layout.kind = LayoutKind::kState;
  layer.layout.states = {{.name = "recurrent", .elements = heads * kHeadDim * kHeadDim, .dtype = DType::kF32},
                         {.name = "conv", .elements = rows * 3 * heads * kHeadDim, .dtype = DType::kBf16}};
  if (options.draft_tokens > 0) {
    layer.layout.ring = {{.name = "decay", .elements = heads * kHeadDim, .dtype = DType::kF32},
                         {.name = "beta", .elements = heads, .dtype = DType::kF32}};
  }
  layer.behaviour = {.role = Role::kTarget,
                     .mixer = Mixer::kRecurrent,
                     .causal = true,
                     .window = 0,
                     .block_rows = options.draft_tokens + 1,
                     .backend = "kda"};
  layer.lifetime = {.kind = LifetimeKind::kPerSequence, .window = 0, .copies = 1};
  return layer;
}

}  // namespace

BackendFacts AbleBackend(std::string name, std::vector<LayoutKind> layouts,
                         std::vector<std::int64_t> page_tokens) {
  return {.name = std::move(name),
          .layouts = std::move(layouts),
          .cache_dtypes = {DType::kBf16, DType::kF16, DType::kF32, DType::kFp8E4M3},
          .page_tokens = std::move(page_tokens),
          .causal_multi_token = true,
          .non_causal_multi_token = true,
          .causal_multi_token_dcp = true,
          .non_causal_multi_token_dcp = true,
          .lse = true,
          .graphs = true};
}

PlanRequest K3Request(const K3Options& options) {
  PlanRequest request;
  request.target = {.ref = {.name = "moonshotai/Kimi-K3", .digest = std::string(64, 'a')},
                    .hidden = 7168,
                    .vocab = 163840,
                    .layers = kTargetLayers,
                    .context_tokens = 1048576};
  request.backends = {AbleBackend("mla", {LayoutKind::kLatent}, {64}),
                      AbleBackend("mla_block", {LayoutKind::kLatent}, {64}),
                      AbleBackend("kda", {LayoutKind::kState}, {})};
  request.topology = {.tp = options.tp, .dcp = options.dcp, .interleave = 1};
  for (std::int32_t rank = 0; rank < options.tp; ++rank) {
    request.ranks.push_back({.rank = Rank(rank), .kv_memory = Bytes(options.kv_memory_bytes)});
  }
  request.draft_tokens = options.draft_tokens;
  request.rollback = options.rollback;
  request.context_tokens = options.context_tokens;
  for (std::int32_t i = 0; i < kTargetLayers; ++i) {
    request.layers.push_back(IsMla(i) ? MlaLayer(options, Role::kTarget, i) : KdaLayer(options, i));
    request.layers.back().name = absl::StrFormat("target.layers.%d", i);
  }
  if (options.draft_tokens > 0) {
    request.draft = DraftFacts{.ref = {.name = "Inferact/Kimi-K3-DSpark", .digest = std::string(64, 'b')},
                               .target_hidden = 7168,
                               .target_layers = kTargetLayers,
                               .vocab = 163840,
                               .draft_tokens_max = 7,
                               .target_taps = {2, 23, 47, 71, 89}};
    for (std::int32_t i = 0; i < kDraftLayers; ++i) {
      request.layers.push_back(MlaLayer(options, Role::kDraft, i));
      request.layers.back().name = absl::StrFormat("draft.layers.%d", i);
    }
  }
  for (std::size_t i = 0; i < request.layers.size(); ++i) {
    request.layers[i].registration_index = static_cast<std::int64_t>(i);
  }
  return request;
}

}  // namespace kvasir::testing
