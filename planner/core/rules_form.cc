// Numbers within limits, names that can be written, digests.
#include <algorithm>
#include <string_view>
#include <utility>

#include "absl/strings/str_format.h"
#include "common/base/limits.h"
#include "planner/core/rules.h"

namespace kvasir::rules {
namespace {

constexpr std::int64_t kContextsMax = 64;
constexpr std::int64_t kRegistrationMax = std::int64_t{1} << 20;
constexpr std::int64_t kMixerBytesMax = 32;

std::vector<std::string> Subjects(std::string_view subject) {
  if (subject.empty()) return {};
  return {std::string(subject)};
}

void CheckName(std::string_view field, const std::string& name, std::string_view subject, Found& found) {
  const auto size = static_cast<std::int64_t>(name.size());
  if (size >= 1 && size <= kNameBytesMax) return;
  const std::string shown = size == 0 ? name : name.substr(0, 32) + "...";
  found.push_back(MakeRefusal(RuleId::kInvalidName, Subjects(subject),
                              {{"value", shown}, {"rule", absl::StrFormat("1 to %d bytes", kNameBytesMax)}},
                              field));
}

// Group names are made of it, so it is a word.
void CheckMixer(const LayerSpec& layer, Found& found) {
  const auto is_word = [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_'; };
  const auto size = static_cast<std::int64_t>(layer.mixer.size());
  if (size >= 1 && size <= kMixerBytesMax && std::all_of(layer.mixer.begin(), layer.mixer.end(), is_word))
    return;
  found.push_back(MakeRefusal(RuleId::kInvalidName, {layer.name},
                              {{"value", layer.mixer.substr(0, kMixerBytesMax)},
                               {"rule", absl::StrFormat("1 to %d of a-z, 0-9 and _", kMixerBytesMax)}},
                              "layers[].mixer"));
}

void CheckModel(const std::string& field, const ModelRef& ref, Found& found) {
  CheckName(field + ".ref.name", ref.name, "", found);
  if (ref.digest.size() == 64 && ref.digest.find_first_not_of("0123456789abcdef") == std::string::npos)
    return;
  found.push_back(MakeRefusal(RuleId::kModelDigestInvalid, {ref.name}, {{"value", ref.digest.substr(0, 64)}},
                              field + ".ref.digest"));
}

// The paths of a list of tensors, for messages.
struct TensorPaths {
  std::string_view size;
  std::string_view name;
  std::string_view elements;
  std::string_view dtype;
};
constexpr TensorPaths kStatePaths{"layers[].layout.states.size", "layers[].layout.states[].name",
                                  "layers[].layout.states[].elements", "layers[].layout.states[].dtype"};
constexpr TensorPaths kRingPaths{"layers[].layout.ring.size", "layers[].layout.ring[].name",
                                 "layers[].layout.ring[].elements", "layers[].layout.ring[].dtype"};

void CheckTensors(const TensorPaths& paths, const LayerSpec& layer, const std::vector<StateTensor>& tensors,
                  Found& found) {
  CheckRange(paths.size, static_cast<std::int64_t>(tensors.size()), 0, kStateTensorsMax, layer.name, found);
  for (const StateTensor& tensor : tensors) {
    CheckName(paths.name, tensor.name, layer.name, found);
    CheckRange(paths.elements, tensor.elements, 1, kStateElementsMax, layer.name, found);
    if (DTypeName(tensor.dtype) != "invalid") continue;
    found.push_back(DtypeUnknown(paths.dtype, std::to_string(static_cast<int>(tensor.dtype))));
  }
}

void CheckLayout(const LayerSpec& layer, Found& found) {
  const LayoutKey& layout = layer.layout;
  CheckRange("layers[].layout.kind", static_cast<int>(layout.kind), 0, static_cast<int>(LayoutKind::kState),
             layer.name, found);
  CheckRange("layers[].layout.alignment_bytes", layout.alignment_bytes, 1, kAlignmentBytesMax, layer.name,
             found);
  CheckTensors(kStatePaths, layer, layout.states, found);
  CheckTensors(kRingPaths, layer, layout.ring, found);
  if (layout.kind == LayoutKind::kState) return;
  if (DTypeName(layout.dtype) == "invalid") {
    found.push_back(DtypeUnknown("layers[].layout.dtype", std::to_string(static_cast<int>(layout.dtype))));
  }
  const std::int64_t heads_max = layout.kind == LayoutKind::kLatent ? 1 : kHeadsMax;
  CheckRange("layers[].layout.heads", layout.heads, 1, heads_max, layer.name, found);
  CheckRange("layers[].layout.key_dim", layout.key_dim, 1, kDimMax, layer.name, found);
  CheckRange("layers[].layout.value_dim", layout.value_dim, 0, kDimMax, layer.name, found);
}

void CheckLayer(const LayerSpec& layer, Found& found) {
  CheckName("layers[].name", layer.name, LayerIdText(layer.id), found);
  CheckMixer(layer, found);
  CheckRange("layers[].id.role", static_cast<int>(layer.id.role), 0, static_cast<int>(Role::kDraft),
             layer.name, found);
  CheckRange("layers[].id.index", layer.id.index, 0, kLayersMax - 1, layer.name, found);
  CheckRange("layers[].id.cache", layer.id.cache, 0, kLayersMax - 1, layer.name, found);
  CheckRange("layers[].registration_index", layer.registration_index, 0, kRegistrationMax, layer.name, found);
  CheckLayout(layer, found);
  CheckRange("layers[].behaviour.mixer", static_cast<int>(layer.behaviour.mixer), 0,
             static_cast<int>(Mixer::kRecurrent), layer.name, found);
  CheckRange("layers[].behaviour.window", layer.behaviour.window, 0, kContextTokensMax, layer.name, found);
  CheckRange("layers[].behaviour.block_rows", layer.behaviour.block_rows, 1, kDraftTokensMax + 1, layer.name,
             found);
  CheckRange("layers[].lifetime.kind", static_cast<int>(layer.lifetime.kind), 0,
             static_cast<int>(LifetimeKind::kPerSequence), layer.name, found);
}

void CheckFacts(const PlanRequest& request, Found& found) {
  CheckModel("target", request.target.ref, found);
  CheckRange("target.hidden", request.target.hidden, 1, kDimMax, "", found);
  CheckRange("target.vocab", request.target.vocab, 1, kStateElementsMax, "", found);
  CheckRange("target.layers", request.target.layers, 1, kLayersMax, "", found);
  CheckRange("target.context_tokens", request.target.context_tokens, 1, kContextTokensMax, "", found);
  if (!request.draft.has_value()) return;
  const DraftFacts& draft = *request.draft;
  CheckModel("draft", draft.ref, found);
  CheckRange("draft.target_hidden", draft.target_hidden, 1, kDimMax, "", found);
  CheckRange("draft.target_layers", draft.target_layers, 0, kLayersMax, "", found);
  CheckRange("draft.vocab", draft.vocab, 1, kStateElementsMax, "", found);
  CheckRange("draft.draft_tokens_max", draft.draft_tokens_max, 0, kDraftTokensMax, "", found);
}

void CheckLimits(const PlanRequest& request, Found& found) {
  CheckRange("topology.tp", request.topology.tp, 1, kRanksMax, "", found);
  CheckRange("topology.dcp", request.topology.dcp, 1, kRanksMax, "", found);
  CheckRange("topology.interleave", request.topology.interleave, 1, kBlockTokensMax, "", found);
  CheckRange("rollback", static_cast<int>(request.rollback), 0, static_cast<int>(RollbackChoice::kReplay), "",
             found);
  CheckRange("context_tokens", request.context_tokens, 1, kContextTokensMax, "", found);
  CheckRange("max_requests", request.max_requests, 1, kRequestsMax, "", found);
  CheckRange("min_requests", request.min_requests, 1, kRequestsMax, "", found);
  CheckRange("prefill_chunk", request.prefill_chunk, 1, kContextTokensMax, "", found);
  for (const std::int64_t context : request.capacity_contexts) {
    CheckRange("capacity_contexts[]", context, 1, kContextTokensMax, "", found);
  }
  for (const RankMemory& rank : request.ranks) {
    CheckRange("ranks[].kv_memory", rank.kv_memory.value(), 1, kArenaBytesMax,
               "rank " + std::to_string(rank.rank.value()), found);
  }
}

void CheckBackendForm(const BackendFacts& facts, Found& found) {
  CheckName("backends[].name", facts.name, "", found);
  CheckRange("backends[].page_tokens.size", static_cast<std::int64_t>(facts.page_tokens.size()), 0,
             kPageSizesMax, facts.name, found);
  if (static_cast<std::int64_t>(facts.page_tokens.size()) > kPageSizesMax) return;
  for (const std::int64_t tokens : facts.page_tokens) {
    CheckRange("backends[].page_tokens[]", tokens, 1, kBlockTokensMax, facts.name, found);
  }
}

}  // namespace

void CheckRange(std::string_view field, std::int64_t value, std::int64_t min, std::int64_t max,
                std::string_view subject, Found& found) {
  if (value >= min && value <= max) return;
  found.push_back(MakeRefusal(
      RuleId::kValueOutOfRange, Subjects(subject),
      {{"value", std::to_string(value)}, {"min", std::to_string(min)}, {"max", std::to_string(max)}}, field));
}

bool CheckForm(const PlanRequest& request, Found& found) {
  const std::size_t before = found.size();
  CheckRange("layers.size", static_cast<std::int64_t>(request.layers.size()), 0, kLayersMax, "", found);
  CheckRange("backends.size", static_cast<std::int64_t>(request.backends.size()), 0, kBackendsMax, "", found);
  CheckRange("ranks.size", static_cast<std::int64_t>(request.ranks.size()), 0, kRanksMax, "", found);
  CheckRange("capacity_contexts.size", static_cast<std::int64_t>(request.capacity_contexts.size()), 0,
             kContextsMax, "", found);
  if (request.draft.has_value()) {
    CheckRange("draft.target_taps.size", static_cast<std::int64_t>(request.draft->target_taps.size()), 0,
               kLayersMax, "", found);
  }
  if (found.size() != before) return false;
  CheckFacts(request, found);
  CheckLimits(request, found);
  for (const BackendFacts& facts : request.backends) CheckBackendForm(facts, found);
  for (const LayerSpec& layer : request.layers) CheckLayer(layer, found);
  return true;
}

}  // namespace kvasir::rules
