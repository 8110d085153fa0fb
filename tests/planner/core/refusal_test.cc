// Every rule of the closed list: a request that breaks exactly it, and its neighbour that does not.
#include "planner/core/refusal.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "planner/core/compatibility.h"
#include "planner/core/outcome.h"
#include "planner/rulesets/make_plan.h"
#include "tests/testing/golden.h"
#include "tests/testing/k3_request.h"
#include "tests/testing/window_request.h"

namespace kvasir {
namespace {

using testing::AttentionLayer;
using testing::K3Request;
using testing::TinyRequest;
using testing::WindowRequest;

using Found = std::vector<Refusal>;
using Change = std::function<void(PlanRequest&)>;

Found RefusalsOf(const PlanRequest& request) {
  const PlanOutcome outcome = MakePlan(request);
  const auto* refusals = std::get_if<Refusals>(&outcome);
  return refusals == nullptr ? Found() : refusals->refusals;
}

// How to break a rule, and how to come close without breaking it.
struct RuleCase {
  RuleId rule;
  std::function<Found()> broken;
  std::function<Found()> neighbour;
};

RuleCase Requests(RuleId rule, PlanRequest (*base)(), const Change& broken, const Change& neighbour) {
  const auto changed = [base](const Change& change) {
    return [base, change] {
      PlanRequest request = base();
      change(request);
      return RefusalsOf(request);
    };
  };
  return {rule, changed(broken), changed(neighbour)};
}

PlanRequest K3() { return K3Request(); }
PlanRequest Window() { return WindowRequest(); }
PlanRequest Tiny() { return TinyRequest(); }
void Same(PlanRequest&) {}

BackendFacts& Backend(PlanRequest& request, const std::string& name) {
  return *std::find_if(request.backends.begin(), request.backends.end(),
                       [&](const BackendFacts& facts) { return facts.name == name; });
}

Found FromCompatibility(const Compatibility& answer) {
  const auto* refusal = std::get_if<Refusal>(&answer);
  return refusal == nullptr ? Found() : Found{*refusal};
}

void AddSecondLayer(PlanRequest& r) {
  r.layers.push_back(AttentionLayer(Role::kTarget, 1, 0));
  r.target.layers = 2;
}

// 16 pools are the limit: the full layer's and 15 windows.
void AddWindows(PlanRequest& r, int count) {
  for (int i = 1; i <= count; ++i) {
    LayerSpec layer = AttentionLayer(Role::kTarget, i, 0);
    layer.lifetime = {.kind = LifetimeKind::kBoundedWindow, .window = 16 * i, .copies = 0};
    layer.behaviour.window = 16 * i;
    r.layers.push_back(layer);
  }
}

std::vector<RuleCase> FormCases() {
  return {
      Requests(
          RuleId::kRulesetUnknown, Tiny, [](PlanRequest& r) { r.ruleset = "nativ"; }, Same),
      Requests(
          RuleId::kValueOutOfRange, Tiny, [](PlanRequest& r) { r.max_requests = 4097; },
          [](PlanRequest& r) { r.max_requests = 4096; }),
      Requests(
          RuleId::kInvalidName, Tiny, [](PlanRequest& r) { r.layers[0].name.clear(); },
          [](PlanRequest& r) { r.layers[0].name = std::string(256, 'x'); }),
      Requests(
          RuleId::kModelDigestInvalid, Tiny, [](PlanRequest& r) { r.target.ref.digest[0] = 'A'; },
          [](PlanRequest& r) { r.target.ref.digest[0] = 'a'; }),
      Requests(
          RuleId::kNoTargetLayers, Tiny, [](PlanRequest& r) { r.layers.clear(); }, Same),
      Requests(
          RuleId::kDuplicateLayerId, Tiny,
          [](PlanRequest& r) {
            AddSecondLayer(r);
            r.layers[1].id = r.layers[0].id;
          },
          AddSecondLayer),
      Requests(
          RuleId::kDuplicateLayerName, Tiny,
          [](PlanRequest& r) {
            AddSecondLayer(r);
            r.layers[1].name = r.layers[0].name;
          },
          AddSecondLayer),
      Requests(
          RuleId::kDuplicateRegistrationIndex, Tiny,
          [](PlanRequest& r) {
            AddSecondLayer(r);
            r.layers[1].registration_index = 0;
          },
          AddSecondLayer),
      Requests(
          RuleId::kRoleMismatch, Tiny, [](PlanRequest& r) { r.layers[0].behaviour.role = Role::kDraft; },
          Same),
      Requests(
          RuleId::kLayoutInconsistent, Tiny,
          [](PlanRequest& r) {
            r.layers[0].layout.states = {{.name = "s", .elements = 1, .dtype = DType::kF32}};
          },
          Same),
      Requests(
          RuleId::kLifetimeMismatch, Tiny, [](PlanRequest& r) { r.layers[0].behaviour.window = 64; },
          [](PlanRequest& r) {
            r.layers[0].behaviour.window = 64;
            r.layers[0].lifetime = {.kind = LifetimeKind::kBoundedWindow, .window = 64, .copies = 0};
          }),
      {RuleId::kDtypeUnknown,
       [] {
         PlanRequest r = TinyRequest();
         r.early_refusals.push_back(DtypeUnknown("options.kv_cache_dtype", "fp7"));
         return RefusalsOf(r);
       },
       [] { return RefusalsOf(TinyRequest()); }},
      Requests(
          RuleId::kTooManyPools, Tiny, [](PlanRequest& r) { AddWindows(r, 16); },
          [](PlanRequest& r) { AddWindows(r, 15); }),
      {RuleId::kCacheKindUnsupported,
       [] {
         PlanRequest r = TinyRequest();
         r.early_refusals.push_back(
             CacheKindUnsupported({"target.layers.0.1"}, "compressor", "it belongs to a compressed cache"));
         return RefusalsOf(r);
       },
       [] { return RefusalsOf(TinyRequest()); }},
  };
}

std::vector<RuleCase> TopologyCases() {
  return {
      {RuleId::kHeadsNotDivisibleByTp,
       [] {
         PlanRequest r = TinyRequest();
         r.early_refusals.push_back(
             HeadsNotDivisibleByTp("example/target", "attention heads", 6, 4, "1, 2, 3, 6"));
         return RefusalsOf(r);
       },
       [] { return RefusalsOf(TinyRequest()); }},
      Requests(
          RuleId::kDcpNotDividingTp, Window, [](PlanRequest& r) { r.topology.dcp = 3; },
          [](PlanRequest& r) { r.topology.dcp = 4; }),
      Requests(
          RuleId::kInterleaveNotDividingBlock, Window, [](PlanRequest& r) { r.topology.interleave = 48; },
          [](PlanRequest& r) { r.topology.interleave = 64; }),
      Requests(
          RuleId::kRankMissing, Window, [](PlanRequest& r) { r.ranks.pop_back(); }, Same),
      Requests(
          RuleId::kRankDuplicate, Window, [](PlanRequest& r) { r.ranks.push_back(r.ranks[0]); }, Same),
      Requests(
          RuleId::kRankOutOfRange, Window,
          [](PlanRequest& r) { r.ranks.push_back({.rank = Rank(4), .kv_memory = Bytes(1 << 30)}); }, Same),
      Requests(
          RuleId::kWindowLayerSharded, Window, [](PlanRequest& r) { r.layers[0].layout.sharded = true; },
          [](PlanRequest& r) {
            r.layers[0].layout.sharded = true;
            r.topology.dcp = 1;
          }),
      Requests(
          RuleId::kStateLayerSharded, K3, [](PlanRequest& r) { r.layers[0].layout.sharded = true; }, Same),
  };
}

std::vector<RuleCase> ModelCases() {
  return {
      Requests(
          RuleId::kContextOverModelLimit, K3, [](PlanRequest& r) { r.context_tokens = 1048577; },
          [](PlanRequest& r) { r.context_tokens = 1048576; }),
      Requests(
          RuleId::kTargetNotCausal, Tiny, [](PlanRequest& r) { r.layers[0].behaviour.causal = false; }, Same),
      Requests(
          RuleId::kDraftMissing, K3, [](PlanRequest& r) { r.draft.reset(); }, Same),
      Requests(
          RuleId::kDraftTokensMissing, Tiny,
          [](PlanRequest& r) {
            r.draft = WindowRequest().draft;
            r.draft->target_layers = 0;
            r.draft->target_taps = {0};
          },
          Same),
      Requests(
          RuleId::kDraftTokensOutOfRange, Window, [](PlanRequest& r) { r.draft->draft_tokens_max = 2; },
          [](PlanRequest& r) { r.draft->draft_tokens_max = 3; }),
      Requests(
          RuleId::kDraftTapBeyondTarget, K3, [](PlanRequest& r) { r.draft->target_taps.push_back(93); },
          [](PlanRequest& r) { r.draft->target_taps.push_back(92); }),
      Requests(
          RuleId::kDraftHiddenMismatch, K3, [](PlanRequest& r) { r.draft->target_hidden = 7169; }, Same),
      Requests(
          RuleId::kDraftVocabularyMismatch, K3, [](PlanRequest& r) { r.draft->vocab = 163839; }, Same),
      Requests(
          RuleId::kDraftTargetLayersMismatch, K3, [](PlanRequest& r) { r.draft->target_layers = 61; },
          [](PlanRequest& r) { r.draft->target_layers = 0; }),
      Requests(
          RuleId::kBlockRowsMismatch, Window,
          [](PlanRequest& r) { r.layers.back().behaviour.block_rows = 5; },
          [](PlanRequest& r) {
            // A draft that also decodes its anchor has one row more, in all its layers.
            for (LayerSpec& layer : r.layers) {
              if (layer.id.role == Role::kDraft) layer.behaviour.block_rows = 4;
            }
          }),
  };
}

std::vector<RuleCase> BackendCases() {
  return {
      Requests(
          RuleId::kBackendDuplicate, K3, [](PlanRequest& r) { r.backends.push_back(r.backends[0]); }, Same),
      Requests(
          RuleId::kBackendUnknown, K3, [](PlanRequest& r) { Backend(r, "kda").name = "kda2"; }, Same),
      Requests(
          RuleId::kBackendLayoutUnsupported, K3,
          [](PlanRequest& r) { Backend(r, "mla").layouts = {LayoutKind::kKeyValue}; }, Same),
      Requests(
          RuleId::kBackendDtypeUnsupported, K3,
          [](PlanRequest& r) { Backend(r, "mla_block").cache_dtypes = {DType::kFp8E4M3}; }, Same),
      Requests(
          RuleId::kBackendCausalMultiToken, K3,
          [](PlanRequest& r) { Backend(r, "mla").causal_multi_token = false; },
          [](PlanRequest& r) { Backend(r, "mla_block").causal_multi_token = false; }),
      Requests(
          RuleId::kBackendCausalMultiTokenDcp, K3,
          [](PlanRequest& r) { Backend(r, "mla").causal_multi_token_dcp = false; },
          [](PlanRequest& r) { Backend(r, "kda").causal_multi_token_dcp = false; }),
      Requests(
          RuleId::kDraftBackendNonCausal, K3,
          [](PlanRequest& r) { Backend(r, "mla_block").non_causal_multi_token = false; },
          [](PlanRequest& r) { Backend(r, "mla").non_causal_multi_token = false; }),
      Requests(
          RuleId::kDraftBackendNonCausalDcp, K3,
          [](PlanRequest& r) { Backend(r, "mla_block").non_causal_multi_token_dcp = false; },
          [](PlanRequest& r) {
            Backend(r, "mla_block").non_causal_multi_token_dcp = false;
            r.topology.dcp = 1;
          }),
      Requests(
          RuleId::kBackendLseMissing, K3, [](PlanRequest& r) { Backend(r, "mla").lse = false; },
          [](PlanRequest& r) { Backend(r, "kda").lse = false; }),
      Requests(
          RuleId::kBackendGraphsMissing, K3, [](PlanRequest& r) { Backend(r, "kda").graphs = false; }, Same),
      Requests(
          RuleId::kNoCommonPageSize, K3,
          [](PlanRequest& r) { Backend(r, "mla_block").page_tokens = {32, 128}; },
          [](PlanRequest& r) { Backend(r, "mla_block").page_tokens = {32, 64, 128}; }),
      Requests(
          RuleId::kBackendHeadsUnsupported, K3,
          [](PlanRequest& r) {
            Backend(r, "mla").head_tiles = {{8, 8}, {32, 16}, {0, 64}};
            r.layers[3].query_heads = 96;
          },
          [](PlanRequest& r) {
            Backend(r, "mla").head_tiles = {{8, 8}, {32, 16}, {0, 64}};
            r.layers[3].query_heads = 128;
          }),
      Requests(
          RuleId::kBackendBlockRowsUnsupported, K3,
          [](PlanRequest& r) { Backend(r, "mla").block_rows_max = 7; },
          [](PlanRequest& r) { Backend(r, "mla").block_rows_max = 8; }),
      Requests(
          RuleId::kRollbackRequired, K3, [](PlanRequest& r) { r.rollback = RollbackChoice::kNone; },
          [](PlanRequest& r) { r.rollback = RollbackChoice::kReplay; }),
      Requests(
          RuleId::kRollbackReplayWithoutRing, K3,
          [](PlanRequest& r) {
            r.rollback = RollbackChoice::kReplay;
            r.layers[0].layout.ring.clear();
          },
          [](PlanRequest& r) {
            r.rollback = RollbackChoice::kSnapshots;
            r.layers[0].layout.ring.clear();
          }),
      {RuleId::kPoolKeysDiffer,
       [] { return FromCompatibility(MayShareBlocks(K3Request().layers[0], K3Request().layers[3])); },
       [] { return FromCompatibility(MayShareBlocks(K3Request().layers[3], K3Request().layers[93])); }},
      {RuleId::kGroupKeysDiffer,
       [] { return FromCompatibility(MayShareMetadata(K3Request().layers[3], K3Request().layers[93])); },
       [] { return FromCompatibility(MayShareMetadata(K3Request().layers[3], K3Request().layers[7])); }},
  };
}

std::vector<RuleCase> AllCases() {
  std::vector<RuleCase> all;
  for (const auto& cases : {FormCases(), TopologyCases(), ModelCases(), BackendCases()}) {
    all.insert(all.end(), cases.begin(), cases.end());
  }
  return all;
}

TEST(RefusalRules, EachHasACaseThatBreaksExactlyItAndANeighbour) {
  std::set<RuleId> covered;
  for (const RuleCase& c : AllCases()) {
    SCOPED_TRACE(RuleName(c.rule));
    EXPECT_TRUE(covered.insert(c.rule).second) << "two cases";
    const Found found = c.broken();
    ASSERT_FALSE(found.empty());
    for (const Refusal& refusal : found) {
      EXPECT_EQ(refusal.rule, c.rule)
          << "also breaks " << RuleName(refusal.rule) << ": " << RefusalText(refusal);
    }
    for (const Refusal& refusal : c.neighbour()) {
      EXPECT_NE(refusal.rule, c.rule) << RefusalText(refusal);
      ADD_FAILURE() << "the neighbour is refused: " << RefusalText(refusal);
    }
  }
  for (const RuleRow& row : RuleTable()) EXPECT_EQ(covered.count(row.id), 1U) << row.name << " has no case";
}

TEST(RefusalRules, EachTextNamesItsValuesAndEachRemedyIsFilled) {
  for (const RuleCase& c : AllCases()) {
    SCOPED_TRACE(RuleName(c.rule));
    for (const Refusal& refusal : c.broken()) {
      const std::string text = RefusalText(refusal);
      EXPECT_EQ(text.find('{'), std::string::npos) << "unfilled placeholder: " << text;
      EXPECT_FALSE(refusal.field.empty());
      for (const std::string& remedy : refusal.remedies)
        EXPECT_EQ(remedy.find('{'), std::string::npos) << remedy;
      for (const Operand& operand : refusal.operands) {
        EXPECT_FALSE(operand.name.empty());
      }
    }
  }
}

TEST(RefusalTable, StandsInTheOrderOfTheEnumWithUniqueNames) {
  std::set<std::string_view> names;
  for (std::size_t i = 0; i < RuleTable().size(); ++i) {
    const RuleRow& row = RuleTable()[i];
    EXPECT_EQ(static_cast<std::size_t>(row.id), i);
    EXPECT_TRUE(names.insert(row.name).second) << row.name;
    EXPECT_EQ(row.name.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZ_"), std::string_view::npos) << row.name;
    EXPECT_FALSE(row.message.empty());
    EXPECT_TRUE(row.why.ends_with('.')) << row.why;
  }
  EXPECT_EQ(RuleTable().size(), static_cast<std::size_t>(RuleId::kGroupKeysDiffer) + 1);
}

TEST(RefusalRules, OffersTheBackendsThatFit) {
  PlanRequest request = K3Request();
  Backend(request, "mla").non_causal_multi_token_dcp = false;
  Backend(request, "mla_block").non_causal_multi_token_dcp = false;
  const Found none = RefusalsOf(request);
  ASSERT_EQ(none.size(), 1U);
  EXPECT_EQ(none[0].remedies,
            (std::vector<std::string>{"set draft_context to replicated", "set topology.dcp to 1"}));
  BackendFacts able = Backend(request, "mla_block");
  able.name = "able";
  able.non_causal_multi_token_dcp = true;
  request.backends.push_back(able);
  const Found one = RefusalsOf(request);
  ASSERT_EQ(one.size(), 1U);
  EXPECT_EQ(one[0].remedies, (std::vector<std::string>{"use one of able", "set draft_context to replicated",
                                                       "set topology.dcp to 1"}));
}

TEST(RefusalPage, IsTheGeneratedOne) {
  testing::ExpectGolden("../../docs/generated/refusals.md", RefusalPage());
}

TEST(Refusals, AllIndependentOnesAreReportedSorted) {
  PlanRequest request = K3Request();
  request.topology.dcp = 3;
  request.draft->vocab = 1;
  request.draft->target_taps = {93, 95};
  Backend(request, "mla_block").non_causal_multi_token_dcp = false;
  request.early_refusals.push_back(HeadsNotDivisibleByTp("a", "attention heads", 6, 4, "1, 2, 3, 6"));
  const Found found = RefusalsOf(request);
  std::vector<RuleId> rules;
  for (const Refusal& refusal : found) rules.push_back(refusal.rule);
  EXPECT_EQ(rules,
            (std::vector<RuleId>{RuleId::kHeadsNotDivisibleByTp, RuleId::kDcpNotDividingTp,
                                 RuleId::kDraftTapBeyondTarget, RuleId::kDraftTapBeyondTarget,
                                 RuleId::kDraftVocabularyMismatch, RuleId::kDraftBackendNonCausalDcp}));
  // The draft layers that share the fault are named together, with the numbers that make it one.
  const Refusal& last = found.back();
  EXPECT_EQ(last.subjects.size(), 5U);
  EXPECT_EQ(
      last.operands,
      (std::vector<Operand>{{"backend", "mla_block"}, {"rows", "7"}, {"dcp", "3"}, {"alternatives", "mla"}}));
}

TEST(Refusals, DoNotDependOnTheOrderOfTheLists) {
  PlanRequest request = K3Request();
  request.draft->vocab = 1;
  request.layers[5].name = request.layers[9].name;
  request.ranks.pop_back();
  const Found found = RefusalsOf(request);
  std::reverse(request.layers.begin(), request.layers.end());
  std::reverse(request.ranks.begin(), request.ranks.end());
  std::reverse(request.backends.begin(), request.backends.end());
  EXPECT_EQ(RefusalsOf(request), found);
}

TEST(Refusals, ExtremeNumbersAreRefusedAndNothingOverflows) {
  constexpr std::int64_t kMax = std::numeric_limits<std::int64_t>::max();
  constexpr std::int64_t kMin = std::numeric_limits<std::int64_t>::min();
  const std::vector<std::int64_t PlanRequest::*> fields = {
      &PlanRequest::draft_tokens, &PlanRequest::context_tokens, &PlanRequest::max_requests,
      &PlanRequest::min_requests, &PlanRequest::prefill_chunk};
  for (const auto field : fields) {
    for (const std::int64_t value : {kMin, std::int64_t{-1}, kMax}) {
      PlanRequest request = K3Request();
      request.*field = value;
      EXPECT_FALSE(RefusalsOf(request).empty()) << value;
    }
  }
  for (const std::int64_t value : {kMin, std::int64_t{-1}, std::int64_t{0}, kMax}) {
    std::vector<PlanRequest> requests(12, K3Request());
    requests[0].topology.tp = value;
    requests[1].topology.dcp = value;
    requests[2].topology.interleave = value;
    requests[3].ranks[0].kv_memory = Bytes(value);
    requests[4].layers[3].layout.key_dim = value;
    requests[5].layers[3].layout.heads = value;
    requests[6].layers[3].layout.alignment_bytes = value;
    requests[7].layers[0].layout.states[0].elements = value;
    requests[8].layers[0].layout.ring[0].elements = value;
    requests[9].backends[0].page_tokens = {value};
    requests[10].target.layers = value;
    requests[11].layers[0].behaviour.block_rows = value;
    for (std::size_t i = 0; i < requests.size(); ++i) {
      EXPECT_FALSE(RefusalsOf(requests[i]).empty()) << "request " << i << " with " << value;
    }
  }
}

TEST(Refusals, TooLongListsAreRefusedBeforeTheyAreLookedAt) {
  PlanRequest request = TinyRequest();
  request.layers.resize(1025, request.layers[0]);
  const Found found = RefusalsOf(request);
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].field, "layers.size");
  EXPECT_EQ(RefusalText(found[0]), "layers.size is 1025, must be from 0 to 1024");
}

}  // namespace
}  // namespace kvasir
