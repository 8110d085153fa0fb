#include "planner/core/canonical.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "common/base/limits.h"
#include "planner/core/stage_text.h"

namespace kvasir {
namespace {

template <class T>
void SortUnique(std::vector<T>& values) {
  std::sort(values.begin(), values.end());
  values.erase(std::unique(values.begin(), values.end()), values.end());
}

// Total, so that even two layers of one id have one order; the keys come last and rarely matter.
bool LayerBefore(const LayerSpec& a, const LayerSpec& b) {
  if (a.id != b.id) return a.id < b.id;
  return std::tie(a.name, a.registration_index, a.mixer, a.layout, a.behaviour, a.lifetime) <
         std::tie(b.name, b.registration_index, b.mixer, b.layout, b.behaviour, b.lifetime);
}

bool BackendBefore(const BackendFacts& a, const BackendFacts& b) {
  const auto key = [](const BackendFacts& f) {
    return std::tie(f.name, f.layouts, f.cache_dtypes, f.page_tokens, f.causal_multi_token,
                    f.non_causal_multi_token, f.causal_multi_token_dcp, f.non_causal_multi_token_dcp, f.lse,
                    f.graphs);
  };
  return key(a) < key(b);
}

bool RankBefore(const RankMemory& a, const RankMemory& b) {
  return std::tie(a.rank, a.kv_memory) < std::tie(b.rank, b.kv_memory);
}

// Layers of equal keys on one line, in the order of their first.
std::string LayersText(const std::vector<LayerSpec>& layers) {
  std::map<std::string, std::size_t> places;
  std::vector<std::pair<std::string, std::vector<LayerId>>> lines;
  for (const LayerSpec& layer : layers) {
    std::string keys = absl::StrFormat("%s; %s%s; %s; %s", layer.mixer, LayoutText(layer.layout),
                                       layer.layout.sharded ? " sharded" : "", BehaviourText(layer.behaviour),
                                       LifetimeText(layer.lifetime));
    const auto [at, added] = places.try_emplace(keys, lines.size());
    if (added) lines.emplace_back(std::move(keys), std::vector<LayerId>());
    lines[at->second].second.push_back(layer.id);
  }
  std::string text;
  for (const auto& [keys, ids] : lines) text += absl::StrFormat("layers %s: %s\n", LayerIdsText(ids), keys);
  return text;
}

std::string BackendText(const BackendFacts& facts) {
  std::string text = absl::StrFormat("backend %s: pages {%s}", facts.name, NumbersText(facts.page_tokens));
  for (const LayoutKind kind : facts.layouts) text += absl::StrFormat(" %s", LayoutKindName(kind));
  for (const DType dtype : facts.cache_dtypes) text += absl::StrFormat(" %s", DTypeName(dtype));
  if (facts.causal_multi_token) text += " causal_multi_token";
  if (facts.non_causal_multi_token) text += " non_causal_multi_token";
  if (facts.causal_multi_token_dcp) text += " causal_multi_token_dcp";
  if (facts.non_causal_multi_token_dcp) text += " non_causal_multi_token_dcp";
  if (facts.lse) text += " lse";
  if (facts.graphs) text += " graphs";
  return text + "\n";
}

std::string_view ChoiceName(RollbackChoice choice) {
  switch (choice) {
    case RollbackChoice::kAuto:
      return "auto";
    case RollbackChoice::kNone:
      return "none";
    case RollbackChoice::kSnapshots:
      return "snapshots";
    case RollbackChoice::kReplay:
      return "replay";
  }
  return "invalid";
}

}  // namespace

Canonical Canonicalize(PlanRequest request) {
  Canonical out{.request = std::move(request), .arena_bytes = Bytes()};
  PlanRequest& r = out.request;
  for (LayerSpec& layer : r.layers) {
    if (r.topology.dcp == 1) layer.layout.sharded = false;
  }
  std::sort(r.layers.begin(), r.layers.end(), LayerBefore);
  for (BackendFacts& facts : r.backends) {
    SortUnique(facts.layouts);
    SortUnique(facts.cache_dtypes);
    SortUnique(facts.page_tokens);
  }
  std::sort(r.backends.begin(), r.backends.end(), BackendBefore);
  std::sort(r.ranks.begin(), r.ranks.end(), RankBefore);
  if (r.draft.has_value()) SortUnique(r.draft->target_taps);
  SortUnique(r.capacity_contexts);
  // A chunk is part of a prompt. What is out of range stays for the rules to refuse.
  if (r.context_tokens >= 1 && r.prefill_chunk <= kContextTokensMax) {
    r.prefill_chunk = std::min(r.prefill_chunk, r.context_tokens);
  }
  if (r.ranks.empty()) return out;
  out.arena_bytes = r.ranks.front().kv_memory;
  for (const RankMemory& rank : r.ranks) out.arena_bytes = std::min(out.arena_bytes, rank.kv_memory);
  return out;
}

std::string ToText(const Canonical& canonical) {
  const PlanRequest& r = canonical.request;
  std::string text = absl::StrFormat("ruleset %s\n", r.ruleset);
  text += absl::StrFormat("target %s: %d layers, hidden %d, vocabulary %d, context %d\n", r.target.ref.name,
                          r.target.layers, r.target.hidden, r.target.vocab, r.target.context_tokens);
  if (r.draft.has_value()) {
    text +=
        absl::StrFormat("draft %s: taps {%s}, target hidden %d, target layers %d, vocabulary %d, block %d\n",
                        r.draft->ref.name, NumbersText(r.draft->target_taps), r.draft->target_hidden,
                        r.draft->target_layers, r.draft->vocab, r.draft->draft_tokens_max);
  }
  text += absl::StrFormat("topology tp %d, dcp %d, interleave %d\n", r.topology.tp, r.topology.dcp,
                          r.topology.interleave);
  text += absl::StrFormat(
      "limits draft_tokens %d, rollback %s, context %d, max_requests %d, min_requests %d, "
      "prefill_chunk %d\n",
      r.draft_tokens, ChoiceName(r.rollback), r.context_tokens, r.max_requests, r.min_requests,
      r.prefill_chunk);
  text += absl::StrFormat("arena %d bytes, the least of %d ranks\n", canonical.arena_bytes.value(),
                          r.ranks.size());
  for (const BackendFacts& facts : r.backends) text += BackendText(facts);
  return text + LayersText(r.layers);
}

absl::Status Verify(const Canonical& canonical) {
  const PlanRequest& r = canonical.request;
  for (std::size_t i = 1; i < r.layers.size(); ++i) {
    if (r.layers[i].id < r.layers[i - 1].id)
      return absl::InternalError("canonical: layers are not sorted by id");
  }
  for (std::size_t i = 1; i < r.ranks.size(); ++i) {
    if (r.ranks[i].rank < r.ranks[i - 1].rank) return absl::InternalError("canonical: ranks are not sorted");
  }
  std::size_t equal = 0;
  for (const RankMemory& rank : r.ranks) {
    if (rank.kv_memory < canonical.arena_bytes)
      return absl::InternalError("canonical: the arena is not the least");
    if (rank.kv_memory == canonical.arena_bytes) ++equal;
  }
  if (!r.ranks.empty() && equal == 0) return absl::InternalError("canonical: the arena is no rank's memory");
  return absl::OkStatus();
}

}  // namespace kvasir
