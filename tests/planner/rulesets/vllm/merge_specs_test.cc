// The rules of merging, one row each: what two specs become, or what refuses them.
#include "planner/rulesets/vllm/merge_specs.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <ostream>
#include <string>
#include <variant>
#include <vector>

#include "planner/rulesets/vllm/grouping_notes.h"
#include "planner/rulesets/vllm/merge_layers.h"
#include "planner/rulesets/vllm/same_type.h"
#include "tests/testing/engine_cases.h"

namespace kvasir::vllm {
namespace {

using testing::ChunkedSpec;
using testing::FullSpec;
using testing::HiddenSpec;
using testing::MambaSpec;
using testing::MlaSpec;
using testing::SlidingMlaSpec;
using testing::SlidingSpec;

EngineSpec With(EngineSpec spec, const std::function<void(EngineSpec&)>& change) {
  change(spec);
  return spec;
}

EngineSpec Rswa(std::int64_t window) {
  return With(FullSpec(), [&](EngineSpec& s) {
    s.kind = SpecKind::kRswa;
    s.rswa_window = window;
  });
}

EngineSpec Sink(std::int64_t length) {
  return With(FullSpec(), [&](EngineSpec& s) {
    s.kind = SpecKind::kSinkFull;
    s.sink_len = length;
  });
}

const std::vector<EngineLayer> kNames = {{"a", 0}, {"b", 0}, {"c", 0}};

// The specs as layers a, b, c.
LayerSpecs LayersIn(SpecTable& table, const std::vector<EngineSpec>& specs) {
  LayerSpecs layers;
  for (const EngineSpec& spec : specs) {
    const auto built = Constructed(table.version(), spec);
    EXPECT_TRUE(built.ok());
    layers.push_back({static_cast<std::int32_t>(layers.size()), table.Intern(*built)});
  }
  return layers;
}

struct RefusalCase {
  std::string name;
  std::vector<EngineSpec> specs;
  std::string text;
  EngineVersion version = EngineVersion::k2026_11;
};

void PrintTo(const RefusalCase& c, std::ostream* out) { *out << c.name; }

class Refusal : public ::testing::TestWithParam<RefusalCase> {};

TEST_P(Refusal, NamesRuleFieldLayersAndValues) {
  SpecTable table(GetParam().version);
  const MergeResult result = MergeLayers(table, LayersIn(table, GetParam().specs));
  if (const auto* refusal = std::get_if<CannotMerge>(&result)) {
    EXPECT_EQ(MergeRefusalText(table, *refusal, kNames), GetParam().text);
  } else {
    ASSERT_TRUE(std::holds_alternative<MergeRaises>(result)) << "merged";
    EXPECT_EQ(MergeRefusalText(table, std::get<MergeRaises>(result), kNames), GetParam().text);
  }
}

INSTANTIATE_TEST_SUITE_P(
    , Refusal,
    ::testing::Values(
        RefusalCase{"heads", {FullSpec(8), FullSpec(4)}, "full: num_kv_heads is 8 (a) and 4 (b)"},
        RefusalCase{
            "third", {FullSpec(8), FullSpec(8), FullSpec(8, 64)}, "full: head_size is 128 (a) and 64 (c)"},
        RefusalCase{"full_and_mla", {FullSpec(), MlaSpec()}, "full: kind is full (a) and mla (b)"},
        RefusalCase{"mla_and_full", {MlaSpec(), FullSpec()}, "mla: kind is mla (a) and full (b)"},
        RefusalCase{"mla_heads", {MlaSpec(576), MlaSpec(512)}, "mla: head_size is 576 (a) and 512 (b)"},
        RefusalCase{"mla_dtype_word",
                    {MlaSpec(), With(MlaSpec(), [](EngineSpec& s) { s.cache_dtype_str = "fp8"; })},
                    "mla: cache_dtype_str is none (a) and fp8 (b)"},
        RefusalCase{"mla_role",
                    {MlaSpec(), With(MlaSpec(), [](EngineSpec& s) { s.cache_role = CacheRole::kIndexer; })},
                    "mla: cache_role is sparse (a) and indexer (b)"},
        RefusalCase{"mla_compression",
                    {With(MlaSpec(), [](EngineSpec& s) { s.tokens_per_state = {4, 1}; }),
                     With(MlaSpec(), [](EngineSpec& s) { s.tokens_per_state = {128, 1}; })},
                    "mla: tokens_per_state is 4 (a) and 128 (b)"},
        RefusalCase{"sharding",
                    {MlaSpec(), With(MlaSpec(), [](EngineSpec& s) { s.dcp_sharded = false; })},
                    "mla: dcp_sharded is true (a) and false (b)"},
        RefusalCase{"stride_flag",
                    {MlaSpec(), With(MlaSpec(), [](EngineSpec& s) { s.indexes_kv_by_block_stride = true; })},
                    "mla: indexes_kv_by_block_stride is false (a) and true (b)",
                    EngineVersion::k2026_08},
        RefusalCase{"windows",
                    {SlidingSpec(512), SlidingSpec(1024)},
                    "equal: sliding_window is 512 (a) and 1024 (b)"},
        RefusalCase{"kinds", {MambaSpec(), MlaSpec()}, "equal: kind is mamba (a) and mla (b)"},
        RefusalCase{"sliding_takes_no_subclass",
                    {SlidingSpec(), SlidingMlaSpec(1024)},
                    "equal: kind is sliding (a) and sliding_mla (b)"},
        RefusalCase{"rswa_windows", {Rswa(256), Rswa(512)}, "rswa: rswa_window is 256 (a) and 512 (b)"},
        RefusalCase{"rswa_and_full", {Rswa(256), FullSpec()}, "rswa: kind is rswa (a) and full (b)"},
        RefusalCase{
            "sliding_mla_replay",
            {SlidingMlaSpec(), With(SlidingMlaSpec(), [](EngineSpec& s) { s.bounded_replay = true; })},
            "sliding_mla: bounded_replay is false (a) and true (b)"},
        RefusalCase{"window_and_chunk",
                    {With(FullSpec(), [](EngineSpec& s) { s.sliding_window = 512; }),
                     With(FullSpec(), [](EngineSpec& s) { s.attention_chunk_size = 1024; })},
                    "full: attention_chunk_size is none (a) and 1024 (b)"},
        RefusalCase{"two_windows",
                    {With(FullSpec(), [](EngineSpec& s) { s.sliding_window = 512; }),
                     With(FullSpec(), [](EngineSpec& s) { s.sliding_window = 1024; })},
                    "two layers record sliding_window 512 (a) and 1024 (b); a group has one"},
        RefusalCase{"two_windows_before_any_other_field",
                    {With(FullSpec(8), [](EngineSpec& s) { s.sliding_window = 512; }),
                     With(FullSpec(4), [](EngineSpec& s) { s.sliding_window = 1024; })},
                    "two layers record sliding_window 512 (a) and 1024 (b); a group has one"},
        RefusalCase{"sink_forgets_tokens_per_state",
                    {With(Sink(16), [](EngineSpec& s) { s.tokens_per_state = {2, 1}; })},
                    "sink_full: tokens_per_state is 2 (a) and 2 (a)"}),
    [](const auto& param) { return param.param.name; });

EngineSpec MergedOf(EngineVersion version, const std::vector<EngineSpec>& specs) {
  SpecTable table(version);
  MergeResult result = MergeLayers(table, LayersIn(table, specs));
  EXPECT_TRUE(std::holds_alternative<EngineSpec>(result));
  return std::holds_alternative<EngineSpec>(result) ? std::get<EngineSpec>(result) : EngineSpec{};
}

TEST(Merge, ADraftsFlagBecomesTheGroups) {
  const EngineSpec draft = With(MlaSpec(), [](EngineSpec& s) { s.non_causal_multi_token_decode = true; });
  for (const EngineVersion version : testing::kBothVersions) {
    EXPECT_TRUE(MergedOf(version, {MlaSpec(), draft}).non_causal_multi_token_decode);
    EXPECT_TRUE(MergedOf(version, {draft, MlaSpec()}).non_causal_multi_token_decode);
    EXPECT_FALSE(MergedOf(version, {MlaSpec(), MlaSpec()}).non_causal_multi_token_decode);
  }
}

TEST(Merge, AFullSpecRemembersOneWindow) {
  const EngineSpec local = With(FullSpec(), [](EngineSpec& s) { s.sliding_window = 512; });
  const EngineSpec non_causal = With(FullSpec(), [](EngineSpec& s) { s.non_causal = true; });
  const EngineSpec merged = MergedOf(EngineVersion::k2026_08, {FullSpec(), local, non_causal});
  EXPECT_EQ(merged.sliding_window, 512);
  EXPECT_TRUE(merged.non_causal);
}

// The engine's traps: what a merge loses without a word.
TEST(Merge, LosesFields) {
  for (const EngineVersion version : testing::kBothVersions) {
    EXPECT_EQ(MergedOf(version, {FullSpec(), Sink(16)}).kind, SpecKind::kFull);
    EXPECT_FALSE(MergedOf(version, {FullSpec(), Sink(16)}).sink_len.has_value());
    EXPECT_EQ(MergedOf(version, {Sink(16), Sink(4)}).sink_len, 16) << "the first one's, unchecked";
    EXPECT_EQ(MergedOf(version, {FullSpec(), Rswa(256)}).rswa_window, 0);
    const EngineSpec aligned = With(MlaSpec(584), [](EngineSpec& s) {
      s.dtype = ElementType::kUint8;
      s.alignment = 576;
    });
    EXPECT_FALSE(MergedOf(version, {aligned}).alignment.has_value());
    EXPECT_EQ(MergedOf(version, {aligned}).page_size_padded, 37440);
    const EngineSpec windowed = With(MlaSpec(), [](EngineSpec& s) {
      s.sliding_window = 128;
      s.non_causal = true;
    });
    EXPECT_FALSE(MergedOf(version, {windowed}).sliding_window.has_value());
    EXPECT_FALSE(MergedOf(version, {windowed}).non_causal);
    EXPECT_EQ(MergedOf(version, {HiddenSpec(), HiddenSpec()}).kind, SpecKind::kHiddenState);
  }
}

TEST(Merge, ASlidingLatentMergeChecksNeitherHeadsNorBlocks) {
  const EngineSpec first =
      With(SlidingMlaSpec(), [](EngineSpec& s) { s.kv_quant_mode = QuantMode::kFp8PerTensor; });
  const EngineSpec other = With(SlidingMlaSpec(128, 288), [](EngineSpec& s) { s.block_size = 32; });
  const EngineSpec merged = MergedOf(EngineVersion::k2026_11, {first, other});
  EXPECT_EQ(merged.head_size, 576);
  EXPECT_EQ(merged.block_size, 64);
  EXPECT_EQ(merged.kv_quant_mode, QuantMode::kNone);
}

// Only which spec is first may matter, and only through its class and the fields that nobody compares.
TEST(Merge, DoesNotDependOnTheOrderOfTheOthers) {
  std::vector<EngineSpec> specs = {With(FullSpec(), [](EngineSpec& s) { s.non_causal = true; }),
                                   With(FullSpec(), [](EngineSpec& s) { s.sliding_window = 512; }), Sink(4),
                                   Sink(16)};
  const EngineSpec expected =
      MergedOf(EngineVersion::k2026_11, {FullSpec(), specs[0], specs[1], specs[2], specs[3]});
  const auto less = [](const EngineSpec& a, const EngineSpec& b) {
    return std::tuple(a.kind, a.sink_len, a.sliding_window, a.non_causal) <
           std::tuple(b.kind, b.sink_len, b.sliding_window, b.non_causal);
  };
  std::sort(specs.begin(), specs.end(), less);
  int orders = 0;
  do {
    EXPECT_EQ(MergedOf(EngineVersion::k2026_11, {FullSpec(), specs[0], specs[1], specs[2], specs[3]}),
              expected);
    ++orders;
  } while (std::next_permutation(specs.begin(), specs.end(), less));
  EXPECT_EQ(orders, 24);
}

struct AssertCase {
  std::string name;
  std::vector<EngineSpec> specs;
  WithoutAssert a;
  WithoutAssert b;
};

void PrintTo(const AssertCase& c, std::ostream* out) { *out << c.name; }

class Optimised : public ::testing::TestWithParam<AssertCase> {};

TEST_P(Optimised, PythonWould) {
  for (const EngineVersion version : testing::kBothVersions) {
    SpecTable table(version);
    const LayerSpecs layers = LayersIn(table, GetParam().specs);
    const MergeResult result = MergeLayers(table, layers);
    ASSERT_TRUE(std::holds_alternative<CannotMerge>(result));
    EXPECT_EQ(MergeWithoutAssert(table, DistinctSpecs(layers), std::get<CannotMerge>(result)),
              version == EngineVersion::k2026_08 ? GetParam().a : GetParam().b);
  }
}

const EngineSpec kFp8Mla = With(MlaSpec(), [](EngineSpec& s) { s.cache_dtype_str = "fp8"; });

INSTANTIATE_TEST_SUITE_P(
    , Optimised,
    ::testing::Values(
        AssertCase{"mamba_first", {MambaSpec(), MlaSpec()}, WithoutAssert::kMerges, WithoutAssert::kSame},
        AssertCase{"full_first",
                   {FullSpec(), SlidingSpec()},
                   WithoutAssert::kAttributeError,
                   WithoutAssert::kAttributeError},
        AssertCase{"full_and_mla", {FullSpec(), MlaSpec()}, WithoutAssert::kMerges, WithoutAssert::kMerges},
        AssertCase{"mla_first",
                   {MlaSpec(), FullSpec()},
                   WithoutAssert::kAttributeError,
                   WithoutAssert::kAttributeError},
        AssertCase{"mla_rows", {MlaSpec(656), MlaSpec(132)}, WithoutAssert::kMerges, WithoutAssert::kMerges},
        AssertCase{"mla_words", {MlaSpec(), kFp8Mla}, WithoutAssert::kHashSeed, WithoutAssert::kHashSeed},
        AssertCase{
            "rswa", {Rswa(256), FullSpec()}, WithoutAssert::kAttributeError, WithoutAssert::kAttributeError},
        AssertCase{"sliding_mla_first",
                   {SlidingMlaSpec(), MlaSpec()},
                   WithoutAssert::kAttributeError,
                   WithoutAssert::kAttributeError},
        AssertCase{"windows_of_full_and_mla",
                   {With(FullSpec(), [](EngineSpec& s) { s.sliding_window = 512; }),
                    With(MlaSpec(), [](EngineSpec& s) { s.sliding_window = 1024; })},
                   WithoutAssert::kValueError,
                   WithoutAssert::kValueError}),
    [](const auto& param) { return param.param.name; });

struct TypeCase {
  std::string name;
  std::vector<EngineSpec> specs;
  bool a;
  bool b;
};

void PrintTo(const TypeCase& c, std::ostream* out) { *out << c.name; }

class OneType : public ::testing::TestWithParam<TypeCase> {};

TEST_P(OneType, IsAskedOfTheFirst) {
  for (const EngineVersion version : testing::kBothVersions) {
    SpecTable table(version);
    const auto same = IsSameType(table, LayersIn(table, GetParam().specs));
    ASSERT_TRUE(same.ok());
    EXPECT_EQ(*same, version == EngineVersion::k2026_08 ? GetParam().a : GetParam().b);
  }
}

INSTANTIATE_TEST_SUITE_P(
    , OneType,
    ::testing::Values(
        TypeCase{"two_head_counts", {FullSpec(8), FullSpec(4)}, true, true},
        TypeCase{"full_kinds", {FullSpec(), Sink(4), Rswa(256)}, true, true},
        TypeCase{"block_sizes",
                 {FullSpec(), With(FullSpec(), [](EngineSpec& s) { s.block_size = 32; })},
                 false,
                 false},
        TypeCase{"full_and_sliding", {FullSpec(), SlidingSpec()}, false, false},
        TypeCase{"windows", {SlidingSpec(512), SlidingSpec(1024)}, false, false},
        TypeCase{"sliding_accepts_its_subclass",
                 {With(SlidingSpec(128), [](EngineSpec& s) { s.block_size = 64; }), SlidingMlaSpec(128)},
                 true,
                 true},
        TypeCase{"the_subclass_does_not_accept_it",
                 {SlidingMlaSpec(128), With(SlidingSpec(128), [](EngineSpec& s) { s.block_size = 64; })},
                 false,
                 false},
        TypeCase{"chunks", {ChunkedSpec(512), ChunkedSpec(1024)}, false, false},
        TypeCase{"mamba_pages", {MambaSpec(100), MambaSpec(200)}, true, false},
        TypeCase{"mamba_speculation",
                 {MambaSpec(), With(MambaSpec(), [](EngineSpec& s) { s.num_speculative_blocks = 1; })},
                 false,
                 false},
        TypeCase{"sharding",
                 {FullSpec(8), With(FullSpec(4), [](EngineSpec& s) { s.dcp_sharded = false; })},
                 true,
                 false}),
    [](const auto& param) { return param.param.name; });

}  // namespace
}  // namespace kvasir::vllm
