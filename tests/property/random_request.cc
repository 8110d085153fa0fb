#include "tests/property/random_request.h"

#include <random>
#include <string>
#include <vector>

#include "tests/testing/k3_request.h"

namespace kvasir::testing {
namespace {

class Maker {
 public:
  explicit Maker(std::uint32_t seed) : random_(seed) {}

  PlanRequest Make() {
    request_.topology = Pick<Topology>({{1, 1, 1}, {2, 1, 1}, {2, 2, 1}, {4, 2, 8}, {8, 8, 1}, {6, 3, 4}});
    request_.draft_tokens = Pick<std::int64_t>({0, 0, 1, 3, 7});
    request_.context_tokens = Pick<std::int64_t>({1, 100, 4096, 40000, 200000});
    request_.max_requests = Pick<std::int64_t>({1, 3, 16});
    request_.min_requests = Pick<std::int64_t>({1, 1, 2, 9});
    request_.prefill_chunk = Pick<std::int64_t>({1, 512, 2048});
    request_.backends = {AbleBackend("rows", {LayoutKind::kKeyValue, LayoutKind::kLatent},
                                     Pick<std::vector<std::int64_t>>({{64}, {16, 32, 64, 128}, {8, 64}})),
                         AbleBackend("state", {LayoutKind::kState}, {})};
    const std::int64_t memory = std::int64_t{1} << Pick<int>({22, 26, 30, 34, 36});
    for (std::int32_t rank = 0; rank < request_.topology.tp; ++rank) {
      request_.ranks.push_back(
          {.rank = Rank(rank), .kv_memory = Bytes(memory + static_cast<std::int64_t>(random_() % 100000))});
    }
    const std::int32_t target_layers = 1 + Pick<std::int32_t>({0, 3, 11, 23});
    request_.target = {.ref = {.name = "random/target", .digest = std::string(64, '3')},
                       .hidden = 64,
                       .vocab = 1000,
                       .layers = target_layers,
                       .context_tokens = 1 << 20};
    AddLayers(Role::kTarget, target_layers);
    if (request_.draft_tokens > 0) AddDraft();
    return std::move(request_);
  }

 private:
  template <class T>
  T Pick(std::vector<T> values) {
    return values[random_() % values.size()];
  }

  void AddDraft() {
    request_.draft = DraftFacts{.ref = {.name = "random/draft", .digest = std::string(64, '4')},
                                .target_hidden = 64,
                                .target_layers = request_.target.layers,
                                .vocab = 1000,
                                .draft_tokens_max = 0,
                                .target_taps = {0}};
    AddLayers(Role::kDraft, Pick<std::int32_t>({1, 2, 5}));
  }

  // Two or three kinds of layer alternate, as in real models.
  void AddLayers(Role role, std::int32_t count) {
    std::vector<LayerSpec> kinds;
    const std::int64_t rows =
        request_.draft_tokens + (role == Role::kTarget ? 1 : Pick<std::int64_t>({0, 1}));
    const bool causal = role == Role::kTarget || Pick<int>({0, 1}) == 1;
    for (int i = 0; i < 3; ++i) {
      LayerSpec layer = role == Role::kDraft        ? RowLayer()
                        : Pick<int>({0, 0, 1}) == 0 ? RowLayer()
                                                    : StateLayer();
      layer.behaviour.role = role;
      layer.behaviour.block_rows = rows;
      layer.behaviour.causal = causal;
      kinds.push_back(layer);
    }
    const std::uint32_t period = Pick<std::uint32_t>({1, 2, 3});
    for (std::int32_t i = 0; i < count; ++i) {
      LayerSpec layer = kinds[static_cast<std::uint32_t>(i) % period];
      layer.id = {.role = role, .index = i, .cache = 0};
      layer.name = LayerIdText(layer.id);
      layer.registration_index = static_cast<std::int64_t>(request_.layers.size());
      request_.layers.push_back(layer);
    }
  }

  LayerSpec RowLayer() {
    LayerSpec layer;
    layer.mixer = Pick<std::string>({"mla", "attention"});
    const bool latent = layer.mixer == "mla";
    layer.layout.kind = latent ? LayoutKind::kLatent : LayoutKind::kKeyValue;
    layer.layout.heads = latent ? 1 : Pick<std::int64_t>({1, 4});
    layer.layout.key_dim = Pick<std::int64_t>({16, 64, 100, 512});
    layer.layout.value_dim = Pick<std::int64_t>({0, 16, 64});
    layer.layout.dtype = Pick<DType>({DType::kBf16, DType::kF32, DType::kFp8E4M3});
    layer.layout.alignment_bytes = Pick<std::int64_t>({16, 16, 256, 576});
    layer.behaviour.backend = "rows";
    const std::int64_t window = Pick<std::int64_t>({0, 0, 128, 1000});
    if (window > 0) {
      layer.behaviour.window = window;
      layer.lifetime = {.kind = LifetimeKind::kBoundedWindow, .window = window, .copies = 0};
    } else {
      layer.layout.sharded = request_.topology.dcp > 1 && Pick<int>({0, 1, 1}) == 1;
    }
    return layer;
  }

  LayerSpec StateLayer() {
    LayerSpec layer;
    layer.mixer = Pick<std::string>({"kda", "mamba2"});
    layer.layout.kind = LayoutKind::kState;
    layer.layout.states = {{"recurrent", Pick<std::int64_t>({64, 4096, 100000}), DType::kF32},
                           {"conv", Pick<std::int64_t>({1, 300}), DType::kBf16}};
    if (Pick<int>({0, 1}) == 1) layer.layout.ring = {{"input", Pick<std::int64_t>({10, 500}), DType::kF32}};
    layer.behaviour.mixer = Mixer::kRecurrent;
    layer.behaviour.backend = "state";
    layer.lifetime = {.kind = LifetimeKind::kPerSequence, .window = 0, .copies = 1};
    return layer;
  }

  std::mt19937 random_;
  PlanRequest request_;
};

}  // namespace

PlanRequest RandomRequest(std::uint32_t seed) { return Maker(seed).Make(); }

}  // namespace kvasir::testing
