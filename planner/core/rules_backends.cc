// What kernels can do, and the page sizes they have in common.
#include <algorithm>
#include <iterator>
#include <tuple>
#include <utility>

#include "planner/core/rules.h"
#include "planner/core/stage_text.h"

namespace kvasir::rules {
namespace {

using Table = std::map<std::string, const BackendFacts*>;

// Layers that fail one rule in one way are named together; the map key is (rule, backend, operands).
class PerBackend {
 public:
  void Add(RuleId rule, const LayerSpec& layer, std::vector<Operand> operands) {
    operands.insert(operands.begin(), {"backend", layer.behaviour.backend});
    layers_[{rule, std::move(operands)}].push_back(layer.name);
  }
  void AppendTo(Found& found) const {
    for (const auto& [key, names] : layers_) found.push_back(MakeRefusal(key.first, names, key.second));
  }

 private:
  std::map<std::pair<RuleId, std::vector<Operand>>, std::vector<std::string>> layers_;
};

std::string DTypesText(const std::vector<DType>& dtypes) {
  std::vector<std::string> names;
  names.reserve(dtypes.size());
  for (const DType dtype : dtypes) names.emplace_back(DTypeName(dtype));
  return names.empty() ? "none" : JoinedText(names);
}

template <class T>
bool Contains(const std::vector<T>& values, T value) {
  return std::find(values.begin(), values.end(), value) != values.end();
}

void CheckMultiToken(const BackendFacts& facts, const LayerSpec& layer, std::int64_t dcp,
                     PerBackend& refused) {
  const BehaviourKey& behaviour = layer.behaviour;
  if (behaviour.block_rows <= 1) return;
  const std::vector<Operand> rows = {{"rows", std::to_string(behaviour.block_rows)}};
  const std::vector<Operand> rows_dcp = {rows[0], {"dcp", std::to_string(dcp)}};
  const bool able = behaviour.causal ? facts.causal_multi_token : facts.non_causal_multi_token;
  const bool able_dcp = behaviour.causal ? facts.causal_multi_token_dcp : facts.non_causal_multi_token_dcp;
  if (!able) {
    refused.Add(behaviour.causal ? RuleId::kBackendCausalMultiToken : RuleId::kDraftBackendNonCausal, layer,
                rows);
  } else if (layer.layout.sharded && !able_dcp) {
    refused.Add(behaviour.causal ? RuleId::kBackendCausalMultiTokenDcp : RuleId::kDraftBackendNonCausalDcp,
                layer, rows_dcp);
  }
}

void CheckLayer(const BackendFacts& facts, const LayerSpec& layer, std::int64_t dcp, PerBackend& refused) {
  if (!Contains(facts.layouts, layer.layout.kind)) {
    refused.Add(RuleId::kBackendLayoutUnsupported, layer,
                {{"layout", std::string(LayoutKindName(layer.layout.kind))}});
  }
  if (layer.layout.kind != LayoutKind::kState && !Contains(facts.cache_dtypes, layer.layout.dtype)) {
    refused.Add(
        RuleId::kBackendDtypeUnsupported, layer,
        {{"dtype", std::string(DTypeName(layer.layout.dtype))}, {"known", DTypesText(facts.cache_dtypes)}});
  }
  CheckMultiToken(facts, layer, dcp, refused);
  if (layer.layout.sharded && !facts.lse) {
    refused.Add(RuleId::kBackendLseMissing, layer, {{"dcp", std::to_string(dcp)}});
  }
  if (!facts.graphs) refused.Add(RuleId::kBackendGraphsMissing, layer, {});
}

Table TableOf(const PlanRequest& request, Found& found) {
  Table table;
  std::map<std::string, std::int64_t> counts;
  for (const BackendFacts& facts : request.backends) {
    table.try_emplace(facts.name, &facts);
    ++counts[facts.name];
  }
  for (const auto& [name, count] : counts) {
    if (count < 2) continue;
    found.push_back(MakeRefusal(RuleId::kBackendDuplicate, {name}, {{"count", std::to_string(count)}}));
  }
  return table;
}

// The backends of a pool's layers, by name, and the page sizes that all of them declare.
struct PoolPages {
  std::map<std::string, const BackendFacts*> backends;
  std::vector<std::string> layers;
};

std::vector<std::int64_t> CommonPages(const PoolPages& pool) {
  std::vector<std::int64_t> common = pool.backends.begin()->second->page_tokens;
  for (const auto& [name, facts] : pool.backends) {
    std::vector<std::int64_t> both;
    std::set_intersection(common.begin(), common.end(), facts->page_tokens.begin(), facts->page_tokens.end(),
                          std::back_inserter(both));
    common = std::move(both);
  }
  return common;
}

void CheckPages(const Topology& topology, const std::map<PoolKey, PoolPages>& pools, Found& found,
                std::map<PoolKey, std::vector<std::int64_t>>& page_tokens) {
  for (const auto& [key, pool] : pools) {
    std::vector<std::int64_t> common = CommonPages(pool);
    std::vector<std::string> backends;
    std::string pages;
    for (const auto& [name, facts] : pool.backends) {
      backends.push_back(name);
      if (!pages.empty()) pages += " and ";
      pages += name + " [" + NumbersText(facts->page_tokens) + "]";
    }
    if (common.empty()) {
      found.push_back(MakeRefusal(RuleId::kNoCommonPageSize, pool.layers, {{"pages", pages}}));
      continue;
    }
    const std::string all = NumbersText(common);
    if (key.second && topology.interleave >= 1) {
      std::erase_if(common, [&](std::int64_t tokens) { return tokens % topology.interleave != 0; });
    }
    if (common.empty()) {
      found.push_back(MakeRefusal(RuleId::kInterleaveNotDividingBlock, backends,
                                  {{"interleave", std::to_string(topology.interleave)}, {"pages", all}}));
      continue;
    }
    page_tokens[key] = std::move(common);
  }
}

}  // namespace

void CheckBackends(const PlanRequest& request, Found& found,
                   std::map<PoolKey, std::vector<std::int64_t>>& page_tokens) {
  const Table table = TableOf(request, found);
  std::vector<std::string> known;
  for (const auto& [name, facts] : table) known.push_back(name);
  const std::string known_text = known.empty() ? "none" : JoinedText(known);
  PerBackend refused;
  std::map<PoolKey, PoolPages> pools;
  for (const LayerSpec& layer : request.layers) {
    const auto at = table.find(layer.behaviour.backend);
    if (at == table.end()) {
      refused.Add(RuleId::kBackendUnknown, layer, {{"known", known_text}});
      continue;
    }
    CheckLayer(*at->second, layer, request.topology.dcp, refused);
    if (layer.layout.kind == LayoutKind::kState || layer.lifetime.kind == LifetimeKind::kPerSequence)
      continue;
    PoolPages& pool = pools[PoolKeyOf(layer)];
    pool.backends.emplace(at->first, at->second);
    pool.layers.push_back(layer.name);
  }
  refused.AppendTo(found);
  CheckPages(request.topology, pools, found, page_tokens);
}

}  // namespace kvasir::rules
