#include "tests/testing/window_request.h"

#include <string>

#include "tests/testing/k3_request.h"

namespace kvasir::testing {
namespace {

constexpr std::int32_t kTargetLayers = 12;
constexpr std::int32_t kDraftLayers = 2;
constexpr std::int64_t kWindow = 1024;

PlanRequest Base() {
  PlanRequest request;
  request.target = {.ref = {.name = "example/target", .digest = std::string(64, '1')},
                    .hidden = 1024,
                    .vocab = 32000,
                    .layers = kTargetLayers,
                    .context_tokens = 131072};
  request.backends = {AbleBackend("flash", {LayoutKind::kKeyValue}, {16, 32, 64})};
  request.context_tokens = 4096;
  request.max_requests = 4;
  request.prefill_chunk = 512;
  return request;
}

}  // namespace

LayerSpec AttentionLayer(Role role, std::int32_t index, std::int64_t draft_tokens) {
  LayerSpec layer;
  layer.id = {.role = role, .index = index, .cache = 0};
  layer.name = std::string(RoleName(role)) + ".layers." + std::to_string(index);
  layer.registration_index = index + (role == Role::kDraft ? kTargetLayers : 0);
  layer.mixer = "attention";
  layer.layout.kind = LayoutKind::kKeyValue;
  layer.layout.heads = 2;
  layer.layout.key_dim = 64;
  layer.layout.value_dim = 64;
  layer.behaviour.role = role;
  layer.behaviour.backend = "flash";
  layer.behaviour.block_rows = role == Role::kDraft ? draft_tokens : draft_tokens + 1;
  layer.behaviour.causal = role == Role::kTarget;
  return layer;
}

PlanRequest WindowRequest(const WindowOptions& options) {
  PlanRequest request = Base();
  request.context_tokens = options.context_tokens;
  request.draft_tokens = options.draft_tokens;
  request.topology = {.tp = 4, .dcp = options.dcp, .interleave = 16};
  for (std::int32_t rank = 0; rank < 4; ++rank) {
    request.ranks.push_back({.rank = Rank(rank), .kv_memory = Bytes(options.kv_memory_bytes)});
  }
  for (std::int32_t i = 0; i < kTargetLayers; ++i) {
    LayerSpec layer = AttentionLayer(Role::kTarget, i, options.draft_tokens);
    if (i % 3 == 2) {
      layer.layout.sharded = options.dcp > 1;
    } else {
      layer.lifetime = {.kind = LifetimeKind::kBoundedWindow, .window = kWindow, .copies = 0};
      layer.behaviour.window = kWindow;
    }
    request.layers.push_back(layer);
  }
  if (options.draft_tokens == 0) return request;
  request.draft = DraftFacts{.ref = {.name = "example/draft", .digest = std::string(64, '2')},
                             .target_hidden = 1024,
                             .target_layers = kTargetLayers,
                             .vocab = 32000,
                             .draft_tokens_max = 0,
                             .target_taps = {1, 6, 11}};
  for (std::int32_t i = 0; i < kDraftLayers; ++i) {
    request.layers.push_back(AttentionLayer(Role::kDraft, i, options.draft_tokens));
    request.layers.back().layout.sharded = options.dcp > 1;
  }
  return request;
}

PlanRequest TinyRequest() {
  PlanRequest request = Base();
  request.target.layers = 1;
  request.ranks = {{.rank = Rank(0), .kv_memory = Bytes(std::int64_t{64} << 20)}};
  request.layers = {AttentionLayer(Role::kTarget, 0, 0)};
  return request;
}

}  // namespace kvasir::testing
