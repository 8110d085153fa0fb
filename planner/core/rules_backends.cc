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

// How a backend fails a layer.
struct Fault {
  RuleId rule;
  std::vector<Operand> operands;
};
using Faults = std::vector<Fault>;

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

void FindMultiTokenFaults(const BackendFacts& facts, const LayerSpec& layer, std::int64_t dcp,
                          Faults& faults) {
  const BehaviourKey& behaviour = layer.behaviour;
  if (behaviour.block_rows <= 1) return;
  const std::string rows = std::to_string(behaviour.block_rows);
  const bool able = behaviour.causal ? facts.causal_multi_token : facts.non_causal_multi_token;
  const bool able_dcp = behaviour.causal ? facts.causal_multi_token_dcp : facts.non_causal_multi_token_dcp;
  if (!able) {
    faults.push_back({behaviour.causal ? RuleId::kBackendCausalMultiToken : RuleId::kDraftBackendNonCausal,
                      {{"rows", rows}}});
  } else if (layer.layout.sharded && !able_dcp) {
    faults.push_back(
        {behaviour.causal ? RuleId::kBackendCausalMultiTokenDcp : RuleId::kDraftBackendNonCausalDcp,
         {{"rows", rows}, {"dcp", std::to_string(dcp)}}});
  }
  if (facts.block_rows_max > 0 && behaviour.block_rows > facts.block_rows_max) {
    faults.push_back({RuleId::kBackendBlockRowsUnsupported,
                      {{"rows", rows}, {"max", std::to_string(facts.block_rows_max)}}});
  }
}

bool TakesHeads(const BackendFacts& facts, std::int64_t heads) {
  if (heads == 0) return true;
  if (facts.heads_max > 0 && heads > facts.heads_max) return false;
  for (const HeadTile& rule : facts.head_tiles) {
    if (rule.heads_max != 0 && heads > rule.heads_max) continue;
    return heads <= rule.tile || heads % rule.tile == 0;
  }
  return true;
}

std::string HeadsText(const BackendFacts& facts) {
  std::string text;
  if (facts.heads_max > 0) text = "at most " + std::to_string(facts.heads_max);
  for (const HeadTile& rule : facts.head_tiles) {
    if (!text.empty()) text += ", ";
    text += "tiles of " + std::to_string(rule.tile);
    if (rule.heads_max != 0) text += " up to " + std::to_string(rule.heads_max);
  }
  return text;
}

// Everything about one backend that does not fit one layer.
Faults FaultsOf(const BackendFacts& facts, const LayerSpec& layer, std::int64_t dcp) {
  Faults faults;
  if (!Contains(facts.layouts, layer.layout.kind)) {
    faults.push_back(
        {RuleId::kBackendLayoutUnsupported, {{"layout", std::string(LayoutKindName(layer.layout.kind))}}});
  }
  if (layer.layout.kind != LayoutKind::kState && !Contains(facts.cache_dtypes, layer.layout.dtype)) {
    faults.push_back(
        {RuleId::kBackendDtypeUnsupported,
         {{"dtype", std::string(DTypeName(layer.layout.dtype))}, {"known", DTypesText(facts.cache_dtypes)}}});
  }
  FindMultiTokenFaults(facts, layer, dcp, faults);
  if (layer.layout.kind != LayoutKind::kState && !TakesHeads(facts, layer.query_heads)) {
    faults.push_back({RuleId::kBackendHeadsUnsupported,
                      {{"heads", std::to_string(layer.query_heads)}, {"takes", HeadsText(facts)}}});
  }
  if (layer.layout.sharded && !facts.lse) {
    faults.push_back({RuleId::kBackendLseMissing, {{"dcp", std::to_string(dcp)}}});
  }
  if (!facts.graphs) faults.push_back({RuleId::kBackendGraphsMissing, {}});
  return faults;
}

// The backends of the table that fit the layer as it is.
std::string Alternatives(const Table& table, const LayerSpec& layer, std::int64_t dcp) {
  std::vector<std::string> names;
  for (const auto& [name, facts] : table) {
    if (FaultsOf(*facts, layer, dcp).empty()) names.push_back(name);
  }
  return names.empty() ? "" : JoinedText(names);
}

// Layers that fail one rule in one way are named together; the map key is (rule, operands).
class PerBackend {
 public:
  void Add(Fault fault, const LayerSpec& layer) {
    fault.operands.insert(fault.operands.begin(), {"backend", layer.behaviour.backend});
    layers_[{fault.rule, std::move(fault.operands)}].push_back(layer.name);
  }
  void AppendTo(Found& found) const {
    for (const auto& [key, names] : layers_) found.push_back(MakeRefusal(key.first, names, key.second));
  }

 private:
  std::map<std::pair<RuleId, std::vector<Operand>>, std::vector<std::string>> layers_;
};

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
      refused.Add({RuleId::kBackendUnknown, {{"known", known_text}}}, layer);
      continue;
    }
    Faults faults = FaultsOf(*at->second, layer, request.topology.dcp);
    if (!faults.empty()) {
      const std::string alternatives = Alternatives(table, layer, request.topology.dcp);
      for (Fault& fault : faults) {
        fault.operands.push_back({"alternatives", alternatives});
        refused.Add(std::move(fault), layer);
      }
    }
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
