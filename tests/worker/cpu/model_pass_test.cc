// The passes against an independent forward, against themselves in other shapes, and against planted faults.
#include "worker/engine/model_pass.h"

#include <gtest/gtest.h>

#include <cstring>

#include "common/base/status_macros.h"
#include "tests/testing/cacheless_model.h"
#include "tests/testing/matchers.h"
#include "tests/testing/model_ranks.h"
#include "tests/worker/cpu/small_models.h"

namespace kvasir::testing {
namespace {

constexpr std::int64_t kContext = 37;  // tokens; not a multiple of a page
constexpr std::int64_t kDraft = 5;

PassRequest Request(std::vector<std::int32_t> tokens, std::int64_t position,
                    std::vector<std::int64_t> blocks) {
  const std::int64_t valid = static_cast<std::int64_t>(tokens.size());
  return {std::move(tokens), position, valid, std::move(blocks)};
}

std::vector<std::int32_t> BlockTokens(std::int32_t anchor, std::int64_t rows, std::int64_t mask) {
  std::vector<std::int32_t> block(static_cast<std::size_t>(rows), static_cast<std::int32_t>(mask));
  block[0] = anchor;
  return block;
}

// Prefills `tokens`, writes their draft context, and drafts a block after them.
struct PairResult {
  PassResult target;
  PassResult draft;
};
absl::StatusOr<PairResult> RunPair(ModelRanks& ranks, const ModelVariant& variant,
                                   const std::vector<std::int32_t>& tokens) {
  const std::vector<std::int64_t> blocks = ShuffledBlocks(7, 3);
  PairResult result;
  KVASIR_ASSIGN_OR_RETURN(
      result.target, ranks.Run({.pass = Pass::kTargetPrefill, .requests = {Request(tokens, 0, blocks)}}));
  KVASIR_RETURN_IF_ERROR(
      ranks.Run({.pass = Pass::kDraftContext, .requests = {Request(tokens, 0, blocks)}}).status());
  const DraftShape& shape = *variant.draft.draft;
  KVASIR_ASSIGN_OR_RETURN(result.draft,
                          ranks.Run({.pass = Pass::kDraftBlock,
                                     .requests = {Request(BlockTokens(11, kDraft, shape.mask_token),
                                                          static_cast<std::int64_t>(tokens.size()), blocks)},
                                     .causal = shape.causal}));
  return result;
}

class VariantTest : public ::testing::TestWithParam<ModelVariant> {};
INSTANTIATE_TEST_SUITE_P(Models, VariantTest, ::testing::ValuesIn(AllModelVariants()));

bool PerHead(const ModelVariant& variant) {
  return std::holds_alternative<AttentionShape>(variant.draft.layers[0].mixer);
}

TEST_P(VariantTest, MatchesTheExpandedForward) {
  for (const DType dtype : {DType::kF32, DType::kBf16}) {
    // A bf16 row may round to the other side of a boundary: one part in 256 of one element.
    const double tolerance = dtype == DType::kF32 ? 2e-5 : 5e-3;
    SCOPED_TRACE(std::string(DTypeName(dtype)));
    const ModelRanksOptions options = OptionsOf(GetParam(), 1, 1, dtype);
    const auto ranks = ModelRanks::Create(options);
    KVASIR_ASSERT_OK(ranks);
    const auto model = CachelessModel::Create({options.target, options.draft, options.seed, dtype});
    KVASIR_ASSERT_OK(model);
    const std::vector<std::int32_t> tokens = RandomTokens(kContext, options.target.vocab, 1);
    const auto got = RunPair(**ranks, GetParam(), tokens);
    KVASIR_ASSERT_OK(got);
    EXPECT_FALSE(got->target.fault || got->draft.fault);
    const CachelessTarget target = (*model)->Target(tokens);
    EXPECT_LE(RelativeDifference<double>(got->target.logits, target.logits), tolerance);
    const CachelessDraft draft = (*model)->Draft(target.taps, 11, kDraft);
    EXPECT_LE(RelativeDifference<double>(got->draft.logits, draft.logits), tolerance);
    EXPECT_EQ(got->draft.drafted, draft.drafted);
    if (!GetParam().draft.draft->confidence_head) continue;
    EXPECT_LE(RelativeDifference<double>(got->draft.confidences, draft.confidences), tolerance);
  }
}

TEST_P(VariantTest, TensorAndContextRanksGiveTheSameLogits) {
  const std::vector<std::int32_t> tokens = RandomTokens(kContext, GetParam().target.vocab, 2);
  const auto one = ModelRanks::Create(OptionsOf(GetParam(), 1, 1, DType::kF32));
  KVASIR_ASSERT_OK(one);
  const auto want = RunPair(**one, GetParam(), tokens);
  KVASIR_ASSERT_OK(want);
  for (const Topology& topology : {Topology{2, 1, 1}, Topology{4, 1, 1}, Topology{2, 2, 1}, Topology{4, 2, 2},
                                   Topology{4, 4, 1}, Topology{8, 4, 8}}) {
    SCOPED_TRACE(::testing::Message() << "tp " << topology.tp << " dcp " << topology.dcp);
    if (PerHead(GetParam()) && topology.dcp > 1) continue;  // refused: refusals_test.cc
    ModelRanksOptions options = OptionsOf(GetParam(), topology.tp, topology.dcp, DType::kF32);
    options.topology = topology;
    const auto ranks = ModelRanks::Create(options);
    KVASIR_ASSERT_OK(ranks);
    const auto got = RunPair(**ranks, GetParam(), tokens);
    KVASIR_ASSERT_OK(got);
    EXPECT_FALSE(got->target.fault || got->draft.fault);
    EXPECT_LE(RelativeDifference<float>(got->target.logits, want->target.logits), 1e-5);
    EXPECT_LE(RelativeDifference<float>(got->draft.logits, want->draft.logits), 1e-5);
    EXPECT_EQ(got->target.next_ids, want->target.next_ids);
    EXPECT_EQ(got->draft.drafted, want->draft.drafted);
    EXPECT_LE(RelativeDifference<float>(got->draft.confidences, want->draft.confidences), 1e-5);
  }
}

TEST_P(VariantTest, TheReferenceKernelsAgree) {
  const std::vector<std::int32_t> tokens = RandomTokens(kContext, GetParam().target.vocab, 2);
  ModelRanksOptions options = OptionsOf(GetParam(), 2, PerHead(GetParam()) ? 1 : 2, DType::kF32);
  const auto fast = ModelRanks::Create(options);
  options.kernels = CpuKernels::kReference;
  const auto reference = ModelRanks::Create(options);
  KVASIR_ASSERT_OK(fast);
  KVASIR_ASSERT_OK(reference);
  const auto got = RunPair(**fast, GetParam(), tokens);
  const auto want = RunPair(**reference, GetParam(), tokens);
  KVASIR_ASSERT_OK(got);
  KVASIR_ASSERT_OK(want);
  EXPECT_LE(RelativeDifference<float>(got->target.logits, want->target.logits), 1e-5);
  EXPECT_LE(RelativeDifference<float>(got->draft.logits, want->draft.logits), 1e-5);
}

// Models and ranks, for what must hold bit for bit on each of them.
struct BitsCase {
  Topology topology;
  bool experts = false;
  [[nodiscard]] ModelVariant models() const { return experts ? SigmoidExperts() : PlainModels(); }
};
std::string NameOf(const BitsCase& c) {
  return "tp" + std::to_string(c.topology.tp) + "dcp" + std::to_string(c.topology.dcp) +
         (c.experts ? "experts" : "");
}
void PrintTo(const BitsCase& c, std::ostream* out) { *out << NameOf(c); }
class BitsTest : public ::testing::TestWithParam<BitsCase> {};
INSTANTIATE_TEST_SUITE_P(Topologies, BitsTest,
                         ::testing::Values(BitsCase{{1, 1, 1}}, BitsCase{{2, 2, 1}}, BitsCase{{4, 2, 4}},
                                           BitsCase{{1, 1, 1}, true}, BitsCase{{4, 2, 1}, true}),
                         [](const auto& test) { return NameOf(test.param); });

std::span<const float> LogitsOf(const PassResult& result, std::size_t row, std::size_t vocab) {
  return std::span(result.logits).subspan(row * vocab, vocab);
}

bool SameBits(std::span<const float> a, std::span<const float> b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size_bytes()) == 0;
}

// Prefill in one pass; in chunks; token by token; by verify passes whose later rows are wrong drafts or
// padding: the same bits for every token.
TEST_P(BitsTest, ARowHasTheSameBitsFromEveryPass) {
  const ModelVariant variant = GetParam().models();
  ModelRanksOptions options = OptionsOf(variant, 1, 1, DType::kBf16);
  options.topology = GetParam().topology;
  const auto ranks = ModelRanks::Create(options);
  KVASIR_ASSERT_OK(ranks);
  const std::size_t vocab = static_cast<std::size_t>(variant.target.vocab);
  const std::vector<std::int32_t> tokens = RandomTokens(kContext, variant.target.vocab, 3);
  const auto whole =
      (*ranks)->Run({.pass = Pass::kTargetPrefill, .requests = {Request(tokens, 0, ShuffledBlocks(6, 1))}});
  KVASIR_ASSERT_OK(whole);
  for (const std::int64_t rows : {1, 3, 8}) {
    const std::vector<std::int64_t> blocks = ShuffledBlocks(6, 10 + rows);
    for (std::int64_t at = 0; at < kContext; at += 2) {
      // Two good tokens (as far as there are), then drafts that will be rejected, then padding.
      std::vector<std::int32_t> chunk(static_cast<std::size_t>(rows), 5);
      const std::int64_t good = std::min({rows, std::int64_t{2}, kContext - at});
      std::copy_n(tokens.begin() + at, good, chunk.begin());
      PassRequest request = Request(chunk, at, blocks);
      request.valid = std::max(good, rows - 1);
      const auto got = (*ranks)->Run(
          {.pass = rows == 1 ? Pass::kTargetDecode : Pass::kTargetVerify, .requests = {request}});
      KVASIR_ASSERT_OK(got);
      for (std::int64_t i = 0; i < good; ++i) {
        ASSERT_TRUE(SameBits(LogitsOf(*got, static_cast<std::size_t>(i), vocab),
                             LogitsOf(*whole, static_cast<std::size_t>(at + i), vocab)))
            << "rows " << rows << ", token " << at + i;
      }
      if (rows == 1 && at + 1 < kContext) {
        const auto next = (*ranks)->Run(
            {.pass = Pass::kTargetDecode,
             .requests = {Request({tokens[static_cast<std::size_t>(at + 1)]}, at + 1, blocks)}});
        KVASIR_ASSERT_OK(next);
      }
    }
  }
}

// Batches of 8, 1 and 8 requests of different lengths, padded, captured once and replayed over rewritten
// metadata and other pages: eager bits, and the bits of each request alone.
TEST_P(BitsTest, ReplayOfAnyBatchHasEagerBits) {
  const ModelVariant variant = GetParam().models();
  ModelRanksOptions options = OptionsOf(variant, 1, 1, DType::kBf16);
  options.topology = GetParam().topology;
  options.blocks = 64;
  const auto eager = ModelRanks::Create(options);
  options.replay = true;
  const auto replayed = ModelRanks::Create(options);
  KVASIR_ASSERT_OK(eager);
  KVASIR_ASSERT_OK(replayed);
  const std::size_t vocab = static_cast<std::size_t>(variant.target.vocab);
  std::vector<PassRequest> requests;
  for (std::int64_t b = 0; b < 8; ++b) {
    const std::vector<std::int32_t> prompt =
        RandomTokens(static_cast<std::size_t>(5 * b + 1), variant.target.vocab, static_cast<unsigned>(b));
    const PassRequest prefill = Request(prompt, 0, ShuffledBlocks(7, 1 + 7 * b));
    for (ModelRanks* ranks : {eager->get(), replayed->get()}) {
      KVASIR_ASSERT_OK(ranks->Run({.pass = Pass::kTargetPrefill, .requests = {prefill}}));
      KVASIR_ASSERT_OK(ranks->Run({.pass = Pass::kDraftContext, .requests = {prefill}}));
    }
    requests.push_back(Request(BlockTokens(7, 4, 95), 5 * b + 1, prefill.blocks));
  }
  for (const Pass pass : {Pass::kTargetVerify, Pass::kDraftBlock}) {
    std::vector<PassResult> alone;
    for (const PassRequest& request : requests) {
      const auto result =
          (*eager)->Run({.pass = pass, .requests = {request}, .causal = pass == Pass::kTargetVerify});
      KVASIR_ASSERT_OK(result);
      alone.push_back(*result);
    }
    for (const std::size_t live : {8U, 1U, 3U, 8U}) {
      PassCall call{.pass = pass, .requests = requests, .causal = pass == Pass::kTargetVerify};
      for (std::size_t b = live; b < 8; ++b) call.requests[b].valid = 0;
      const auto want = (*eager)->Run(call);
      const auto got = (*replayed)->Run(call);
      KVASIR_ASSERT_OK(want);
      KVASIR_ASSERT_OK(got);
      EXPECT_FALSE(got->fault);
      EXPECT_TRUE(SameBits(got->logits, want->logits)) << "live " << live;
      for (std::size_t b = 0; b < live; ++b) {
        EXPECT_TRUE(SameBits(std::span(got->logits).subspan(b * 4 * vocab, 4 * vocab), alone[b].logits))
            << "request " << b << " of " << live;
      }
    }
  }
}

TEST_P(BitsTest, NanInAnyLiveTokenFaults) {
  const ModelVariant variant = GetParam().models();
  ModelRanksOptions options = OptionsOf(variant, 1, 1, DType::kBf16);
  options.topology = GetParam().topology;
  const auto ranks = ModelRanks::Create(options);
  KVASIR_ASSERT_OK(ranks);
  const std::vector<std::int32_t> tokens = RandomTokens(9, variant.target.vocab, 4);
  for (std::int64_t token = 0; token < 9; ++token) {
    const PassRequest prefill = Request(tokens, 0, ShuffledBlocks(2, 1 + 2 * token));
    KVASIR_ASSERT_OK((*ranks)->Run({.pass = Pass::kTargetPrefill, .requests = {prefill}}));
    const PassRequest next = Request({1}, 9, prefill.blocks);
    const auto clean = (*ranks)->Run({.pass = Pass::kTargetDecode, .requests = {next}});
    KVASIR_ASSERT_OK(clean);
    EXPECT_FALSE(clean->fault);
    (*ranks)->PoisonToken(prefill.blocks, token);
    const auto got = (*ranks)->Run({.pass = Pass::kTargetDecode, .requests = {next}});
    KVASIR_ASSERT_OK(got);
    EXPECT_TRUE(got->fault) << "token " << token;
  }
}

TEST_P(BitsTest, ASwappedCausalFlagOrAWrongBoundChangesTheLogits) {
  const ModelVariant variant = GetParam().models();
  ModelRanksOptions options = OptionsOf(variant, 1, 1, DType::kBf16);
  options.topology = GetParam().topology;
  const auto ranks = ModelRanks::Create(options);
  KVASIR_ASSERT_OK(ranks);
  const std::vector<std::int32_t> tokens = RandomTokens(21, variant.target.vocab, 5);
  const std::vector<std::int64_t> blocks = ShuffledBlocks(4, 1);
  KVASIR_ASSERT_OK((*ranks)->Run({.pass = Pass::kTargetPrefill, .requests = {Request(tokens, 0, blocks)}}));
  KVASIR_ASSERT_OK((*ranks)->Run({.pass = Pass::kDraftContext, .requests = {Request(tokens, 0, blocks)}}));
  const PassRequest block = Request(BlockTokens(7, 4, 95), 21, blocks);
  for (const Pass pass : {Pass::kTargetVerify, Pass::kDraftBlock}) {
    const bool right = pass == Pass::kTargetVerify;
    const auto want = (*ranks)->Run({.pass = pass, .requests = {block}, .causal = right});
    const auto swapped = (*ranks)->Run({.pass = pass, .requests = {block}, .causal = !right});
    const auto shorter =
        (*ranks)->Run({.pass = pass, .requests = {block}, .causal = right, .bound_shift = -1});
    KVASIR_ASSERT_OK(want);
    KVASIR_ASSERT_OK(swapped);
    KVASIR_ASSERT_OK(shorter);
    EXPECT_GT(RelativeDifference<float>(swapped->logits, want->logits), 1e-3);
    EXPECT_GT(RelativeDifference<float>(shorter->logits, want->logits), 1e-3);
    // One token more is a slot that nobody has written: NaN, and so a fault.
    const auto longer = (*ranks)->Run({.pass = pass, .requests = {block}, .causal = right, .bound_shift = 1});
    KVASIR_ASSERT_OK(longer);
    EXPECT_TRUE(longer->fault);
  }
}

TEST(FromScratchTest, PagedDraftLogitsHaveTheBitsOfAFreshDraft) {
  const ModelVariant variant = PlainModels();
  const ModelRanksOptions options = OptionsOf(variant, 1, 1, DType::kBf16);
  const auto ranks = ModelRanks::Create(options);
  KVASIR_ASSERT_OK(ranks);
  std::vector<std::int32_t> tokens = RandomTokens(13, variant.target.vocab, 6);
  const std::vector<std::int64_t> blocks = ShuffledBlocks(9, 4);
  KVASIR_ASSERT_OK((*ranks)->Run({.pass = Pass::kTargetPrefill, .requests = {Request(tokens, 0, blocks)}}));
  KVASIR_ASSERT_OK((*ranks)->Run({.pass = Pass::kDraftContext, .requests = {Request(tokens, 0, blocks)}}));
  std::int32_t anchor = 9;
  for (std::int64_t accepted = 0; accepted <= 4; ++accepted) {
    const std::int64_t at = static_cast<std::int64_t>(tokens.size());
    const auto paged = (*ranks)->Run({.pass = Pass::kDraftBlock,
                                      .requests = {Request(BlockTokens(anchor, 4, 95), at, blocks)},
                                      .causal = false});
    const auto fresh = FromScratchDraft(options, tokens, anchor, 4);
    KVASIR_ASSERT_OK(paged);
    KVASIR_ASSERT_OK(fresh);
    EXPECT_TRUE(SameBits(paged->logits, fresh->logits)) << "after " << at << " tokens";
    EXPECT_EQ(paged->drafted, fresh->drafted);
    // Verify five rows, of which `accepted` drafts hold; the others' context is not written.
    std::vector<std::int32_t> verify = RandomTokens(5, variant.target.vocab, static_cast<unsigned>(accepted));
    verify[0] = anchor;
    KVASIR_ASSERT_OK((*ranks)->Run({.pass = Pass::kTargetVerify, .requests = {Request(verify, at, blocks)}}));
    PassRequest context = Request(verify, at, blocks);
    context.valid = accepted + 1;
    KVASIR_ASSERT_OK((*ranks)->Run({.pass = Pass::kDraftContext, .requests = {context}}));
    tokens.insert(tokens.end(), verify.begin(), verify.begin() + accepted + 1);
    anchor = static_cast<std::int32_t>(20 + accepted);
  }
}

}  // namespace
}  // namespace kvasir::testing
