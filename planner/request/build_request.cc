#include "planner/request/build_request.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/base/limits.h"
#include "common/models/draft_of.h"
#include "planner/request/backends.h"
#include "planner/request/shard_layer.h"

namespace kvasir {
namespace {

// Sizes are formed from these; a topology out of range is kept in the request as it is, for the core to
// refuse.
struct SafeTopology {
  std::int64_t tp = 1;
  std::int64_t dcp = 1;

  explicit SafeTopology(const PlanOptions& options) : tp(std::clamp<std::int64_t>(options.tp, 1, kRanksMax)) {
    if (options.dcp >= 1 && tp % options.dcp == 0) dcp = options.dcp;
  }
};

RollbackChoice RollbackOf(const PlanOptions& options, std::vector<Refusal>& refusals) {
  constexpr std::array kWords = {std::pair{std::string_view("auto"), RollbackChoice::kAuto},
                                 std::pair{std::string_view("none"), RollbackChoice::kNone},
                                 std::pair{std::string_view("snapshots"), RollbackChoice::kSnapshots},
                                 std::pair{std::string_view("replay"), RollbackChoice::kReplay}};
  for (const auto& [word, choice] : kWords) {
    if (options.state_rollback == word) return choice;
  }
  refusals.push_back(MakeRefusal(
      RuleId::kInvalidName, {},
      {{"value", options.state_rollback}, {"rule", "one of auto, none, snapshots, replay"}}, "rollback"));
  return RollbackChoice::kAuto;
}

// The ranks that the draft's rows are divided over.
std::int64_t DraftDcp(const PlanOptions& options, const SafeTopology& topology) {
  return options.draft_context == kDraftReplicated ? 1 : topology.dcp;
}

void CheckDraftContext(const PlanOptions& options, std::vector<Refusal>& refusals) {
  if (options.draft_context == kDraftSharded || options.draft_context == kDraftReplicated) return;
  refusals.push_back(MakeRefusal(RuleId::kInvalidName, {},
                                 {{"value", options.draft_context}, {"rule", "one of sharded, replicated"}},
                                 "draft_context"));
}

// The dtype of per-token caches of a model with `own` weights.
DType CacheDTypeOf(const PlanOptions& options, DType own, std::vector<Refusal>& refusals) {
  if (options.cache_dtype == "auto" || options.cache_dtype.empty()) return own;
  const std::optional<DType> dtype = ParseDType(options.cache_dtype);
  if (!dtype.has_value()) refusals.push_back(DtypeUnknown("cache_dtype", options.cache_dtype));
  return dtype.value_or(own);
}

void SetContexts(const PlanOptions& options, PlanRequest& request) {
  const std::int64_t limit = request.target.context_tokens;
  std::vector<std::int64_t> contexts;
  if (options.contexts.empty()) {
    for (const std::int64_t tokens : {8192, 32768, 131072}) {
      if (tokens < limit) contexts.push_back(tokens);
    }
    if (limit < kContextTokensMax) contexts.push_back(limit);
  }
  for (const std::int64_t tokens : options.contexts) contexts.push_back(tokens == 0 ? limit : tokens);
  std::sort(contexts.begin(), contexts.end());
  contexts.erase(std::unique(contexts.begin(), contexts.end()), contexts.end());
  request.context_tokens = contexts.back();
  if (contexts.size() > 1) request.capacity_contexts = std::move(contexts);
}

void AddRanks(const PlanOptions& options, std::int64_t tp, PlanRequest& request) {
  const std::vector<std::int64_t>& memory = options.kv_memory_bytes;
  const auto given = static_cast<std::int64_t>(memory.size());
  const std::int64_t ranks = given == 1 ? tp : std::min(given, kRanksMax + 1);
  for (std::int64_t rank = 0; rank < ranks; ++rank) {
    const std::int64_t bytes = memory[given == 1 ? 0 : static_cast<std::size_t>(rank)];
    request.ranks.push_back({Rank(static_cast<std::int32_t>(rank)), Bytes(bytes)});
  }
}

bool AllHeadsFit(const ModelInput& model, std::int64_t tp, std::int64_t dcp) {
  return std::all_of(model.layers.begin(), model.layers.end(),
                     [&](const CacheLayer& layer) { return HeadsFit(layer, tp, dcp); });
}

// The numbers of ranks that divide the heads of both models, where the asked one does not; else empty.
std::string PossibleTps(const ModelInput& target, const std::optional<ModelInput>& draft,
                        const SafeTopology& asked, std::int64_t draft_dcp) {
  const auto fits = [&](std::int64_t tp) {
    return tp % asked.dcp == 0 && AllHeadsFit(target, tp, asked.dcp) &&
           (!draft.has_value() || AllHeadsFit(*draft, tp, draft_dcp));
  };
  if (fits(asked.tp)) return "";
  std::string list;
  for (std::int64_t tp = 1; tp <= kRanksMax; ++tp) {
    if (fits(tp)) list += (list.empty() ? "" : ", ") + std::to_string(tp);
  }
  return list;
}

void AddRefusals(const ModelInput& model, PlanRequest& request) {
  request.early_refusals.insert(request.early_refusals.end(), model.refusals.begin(), model.refusals.end());
}

void AddLayers(const ModelInput& model, const ShardContext& context, PlanRequest& request) {
  for (const CacheLayer& layer : model.layers) {
    const auto place = static_cast<std::int64_t>(request.layers.size());
    LayerSpec spec = ShardLayer(layer, context, request.early_refusals);
    if (!layer.registration_index.has_value()) spec.registration_index = place;
    request.layers.push_back(std::move(spec));
  }
}

ShardContext ContextOf(const ModelInput& model, const PlanOptions& options, const std::string& backend,
                       std::vector<Refusal>& refusals) {
  const SafeTopology topology(options);
  ShardContext context;
  context.model = model.ref.name;
  context.tp = topology.tp;
  context.dcp = topology.dcp;
  context.dtype = CacheDTypeOf(options, model.dtype, refusals);
  context.causal = !model.draft.has_value() || model.draft_causal;
  context.backend = backend.empty() ? std::string(kDefaultBackend) : backend;
  context.recurrent_backend = KeepsState(context.backend) ? context.backend : std::string(kRecurrentBackend);
  return context;
}

// A list of explicit layers says nothing of widths and vocabularies (0): it takes the other model's, or 1.
void FillUnsaid(PlanRequest& request) {
  const auto fill = [](std::int64_t& a, std::int64_t& b) {
    if (a == 0) a = b == 0 ? 1 : b;
    if (b == 0) b = a;
  };
  DraftFacts none;
  DraftFacts& draft = request.draft.has_value() ? *request.draft : none;
  fill(request.target.hidden, draft.target_hidden);
  fill(request.target.vocab, draft.vocab);
}

}  // namespace

std::int64_t DraftTokensOf(const PlanOptions& options, bool has_draft) {
  if (options.draft_tokens != 0) return options.draft_tokens;
  return has_draft ? kDsparkDraftTokens : 0;
}

std::int64_t DraftTokensOf(const PlanOptions& options, const std::optional<ModelDescription>& draft) {
  if (options.draft_tokens != 0 || !draft.has_value() || !draft->draft.has_value())
    return DraftTokensOf(options, draft.has_value());
  const std::int64_t trained = TrainedTokens(*draft->draft);
  return trained > 0 ? trained : DraftTokensOf(options, true);
}

PlanRequest BuildRequest(const ModelInput& target, const std::optional<ModelInput>& draft,
                         const PlanOptions& options) {
  PlanRequest request;
  request.ruleset = options.ruleset;
  request.target = {target.ref, target.hidden, target.vocab, target.layers_total, target.context_tokens};
  request.backends = BackendsWithBlock(options.block_tokens);
  request.topology = {options.tp, options.dcp, options.interleave};
  request.draft_tokens = DraftTokensOf(options, draft.has_value());
  request.max_requests = options.max_requests;
  request.min_requests = options.min_requests;
  request.rollback = RollbackOf(options, request.early_refusals);
  SetContexts(options, request);
  request.prefill_chunk = options.prefill_chunk != 0 ? options.prefill_chunk
                                                     : std::min(kPrefillChunkDefault, request.context_tokens);
  AddRanks(options, SafeTopology(options).tp, request);

  CheckDraftContext(options, request.early_refusals);
  const SafeTopology topology(options);
  const std::int64_t draft_dcp = DraftDcp(options, topology);
  const std::string possible_tps = PossibleTps(target, draft, topology, draft_dcp);
  ShardContext context = ContextOf(target, options, options.target_backend, request.early_refusals);
  context.possible_tps = possible_tps;
  const std::int64_t drafted = std::min(request.draft_tokens, kDraftTokensMax);
  context.block_rows = draft.has_value() ? drafted + 1 : 1;
  AddRefusals(target, request);
  AddLayers(target, context, request);
  if (draft.has_value()) {
    request.draft = draft->draft;
    context = ContextOf(*draft, options, options.draft_backend, request.early_refusals);
    context.dcp = draft_dcp;
    context.possible_tps = possible_tps;
    context.block_rows = drafted + (draft->draft_anchor_row ? 1 : 0);
    AddRefusals(*draft, request);
    AddLayers(*draft, context, request);
  }
  FillUnsaid(request);
  SortRefusals(request.early_refusals);
  return request;
}

PlanRequest BuildRequest(const ModelDescription& target, const std::optional<ModelDescription>& draft,
                         const PlanOptions& options) {
  PlanOptions said = options;
  said.draft_tokens = DraftTokensOf(options, draft);
  StateScale scale;
  scale.draft_tokens = std::clamp<std::int64_t>(said.draft_tokens, 0, kDraftTokensMax);
  scale.tp = SafeTopology(options).tp;
  std::optional<ModelInput> draft_input;
  if (draft.has_value()) draft_input = InputOf(*draft, Role::kDraft, scale);
  return BuildRequest(InputOf(target, Role::kTarget, scale), draft_input, said);
}

}  // namespace kvasir
