#include "planner/request/shard_layer.h"

namespace kvasir {
namespace {

bool IsSharded(const KeyValueCache& cache, std::int64_t dcp) { return dcp > 1 && cache.window == 0; }

// Fewer key-value heads than ranks are repeated.
bool KeyValueFits(std::int64_t kv_heads, std::int64_t ranks) {
  return kv_heads < 1 || kv_heads % ranks == 0 || ranks % kv_heads == 0;
}

struct HeadsFitIn {
  std::int64_t tp = 1;
  std::int64_t dcp = 1;
  bool operator()(const KeyValueCache& cache) const {
    return cache.heads % tp == 0 && KeyValueFits(cache.kv_heads, IsSharded(cache, dcp) ? tp / dcp : tp);
  }
  bool operator()(const LatentCache& cache) const { return cache.heads % tp == 0; }
  bool operator()(const StateCache& cache) const { return cache.heads % tp == 0; }
};

struct Shard {
  const ShardContext& context;
  const CacheLayer& layer;
  LayerSpec& spec;
  std::vector<Refusal>& refusals;

  void operator()(const KeyValueCache& cache) const {
    Divide("attention heads", cache.heads);
    spec.layout.kind = LayoutKind::kKeyValue;
    spec.layout.sharded = IsSharded(cache, context.dcp);
    spec.query_heads = QueryHeads(cache.heads);
    spec.layout.heads =
        KeyValueHeads(cache.kv_heads, spec.layout.sharded ? context.tp / context.dcp : context.tp);
    spec.layout.key_dim = cache.key_dim;
    spec.layout.value_dim = cache.value_dim;
    PerToken(cache.window);
  }

  void operator()(const LatentCache& cache) const {
    Divide("attention heads", cache.heads);
    spec.layout.kind = LayoutKind::kLatent;
    spec.layout.sharded = context.dcp > 1 && cache.window == 0;
    spec.query_heads = QueryHeads(cache.heads);
    spec.layout.heads = 1;
    spec.layout.key_dim = cache.latent_dim;
    spec.layout.value_dim = cache.rope_dim;
    PerToken(cache.window);
  }

  void operator()(const StateCache& cache) const {
    Divide("recurrent heads", cache.heads);
    spec.layout.kind = LayoutKind::kState;
    spec.layout.dtype = DType::kF32;
    spec.layout.states = cache.states;
    spec.layout.ring = cache.ring;
    for (StateTensor& tensor : spec.layout.states) tensor.elements /= context.tp;
    for (StateTensor& tensor : spec.layout.ring) tensor.elements /= context.tp;
    spec.behaviour.mixer = Mixer::kRecurrent;
    spec.lifetime = {LifetimeKind::kPerSequence, 0, 1};
    if (layer.backend.empty()) spec.behaviour.backend = context.recurrent_backend;
  }

  void PerToken(std::int64_t window) const {
    spec.layout.dtype = layer.dtype.value_or(context.dtype);
    spec.behaviour.window = window;
    spec.lifetime = window > 0 ? LifetimeKey{LifetimeKind::kBoundedWindow, window, 0} : LifetimeKey{};
  }

  // Key-value heads on each of `ranks` ranks: max(1, kv / ranks).
  [[nodiscard]] std::int64_t KeyValueHeads(std::int64_t kv_heads, std::int64_t ranks) const {
    if (!KeyValueFits(kv_heads, ranks)) Refuse("key-value heads", kv_heads);
    return kv_heads >= 1 && kv_heads < ranks ? 1 : kv_heads / ranks;
  }

  // Over a sharded context each rank attends with the heads of its whole context group.
  [[nodiscard]] std::int64_t QueryHeads(std::int64_t heads) const {
    return heads / context.tp * (spec.layout.sharded ? context.dcp : 1);
  }

  void Divide(const char* what, std::int64_t heads) const {
    if (heads % context.tp != 0) Refuse(what, heads);
  }

  void Refuse(const char* what, std::int64_t heads) const {
    refusals.push_back(HeadsNotDivisibleByTp(context.model, what, heads, context.tp, context.possible_tps));
  }
};

}  // namespace

bool HeadsFit(const CacheLayer& layer, std::int64_t tp, std::int64_t dcp) {
  return std::visit(HeadsFitIn{tp, dcp}, layer.cache);
}

LayerSpec ShardLayer(const CacheLayer& layer, const ShardContext& context, std::vector<Refusal>& refusals) {
  LayerSpec spec;
  spec.id = layer.id;
  spec.registration_index = layer.registration_index.value_or(0);
  spec.name = layer.name;
  spec.mixer = layer.mixer;
  spec.behaviour.role = layer.id.role;
  spec.behaviour.causal = layer.causal.value_or(context.causal);
  spec.behaviour.block_rows = context.block_rows;
  spec.behaviour.backend = layer.backend.empty() ? context.backend : layer.backend;
  std::visit(Shard{context, layer, spec, refusals}, layer.cache);
  return spec;
}

}  // namespace kvasir
