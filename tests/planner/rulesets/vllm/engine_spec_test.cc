// Page sizes and bytes of one request, each worked out by hand.
#include "planner/rulesets/vllm/engine_spec.h"

#include <gtest/gtest.h>

#include <functional>
#include <ostream>
#include <string>
#include <vector>

#include "planner/rulesets/vllm/need_bytes.h"
#include "tests/testing/engine_cases.h"

namespace kvasir::vllm {
namespace {

using testing::ChunkedSpec;
using testing::FullSpec;
using testing::MambaSpec;
using testing::MlaSpec;
using testing::SlidingMlaSpec;
using testing::SlidingSpec;

constexpr auto kA = EngineVersion::k2026_08;
constexpr auto kB = EngineVersion::k2026_11;

EngineSpec With(EngineSpec spec, const std::function<void(EngineSpec&)>& change) {
  change(spec);
  return spec;
}

struct PageCase {
  std::string name;
  EngineSpec spec;
  std::int64_t page;
};

void PrintTo(const PageCase& c, std::ostream* out) { *out << c.name; }

class PageOf : public ::testing::TestWithParam<PageCase> {};

TEST_P(PageOf, IsHeadsTimesStatesTimesContent) {
  for (const EngineVersion version : testing::kBothVersions) {
    const auto spec = Constructed(version, GetParam().spec);
    ASSERT_TRUE(spec.ok());
    const auto page = PageBytes(*spec);
    ASSERT_TRUE(page.ok());
    EXPECT_EQ(*page, GetParam().page);
  }
}

INSTANTIATE_TEST_SUITE_P(
    , PageOf,
    ::testing::Values(
        PageCase{"full", FullSpec(), 16 * 8 * (128 + 128) * 2},
        PageCase{"float32", With(FullSpec(), [](EngineSpec& s) { s.dtype = ElementType::kFloat32; }), 131072},
        PageCase{"value_head", With(FullSpec(), [](EngineSpec& s) { s.head_size_v = 64; }), 16 * 8 * 192 * 2},
        PageCase{"packed_content", With(FullSpec(), [](EngineSpec& s) { s.state_content_bytes = 264; }),
                 16 * 8 * 264},
        PageCase{"head_slots",
                 With(FullSpec(),
                      [](EngineSpec& s) {
                        s.num_head_slots = 16;
                        s.state_content_bytes = 72;
                      }),
                 16 * 16 * 72},
        PageCase{"latent", MlaSpec(), 64 * 576 * 2},
        PageCase{"fp8_ds_mla", With(MlaSpec(), [](EngineSpec& s) { s.state_content_bytes = 656; }), 64 * 656},
        PageCase{"compressed", With(MlaSpec(), [](EngineSpec& s) { s.tokens_per_state = {4, 1}; }),
                 16 * 576 * 2},
        PageCase{"aligned",  // 584 * 64 = 37,376 is no multiple of 576; the next one is 37,440
                 With(MlaSpec(584),
                      [](EngineSpec& s) {
                        s.dtype = ElementType::kUint8;
                        s.alignment = 576;
                      }),
                 37440},
        PageCase{"aligned_overrides_padding",
                 With(MlaSpec(584),
                      [](EngineSpec& s) {
                        s.dtype = ElementType::kUint8;
                        s.alignment = 576;
                        s.page_size_padded = 1 << 20;
                      }),
                 37440},
        PageCase{"padded", With(FullSpec(), [](EngineSpec& s) { s.page_size_padded = 70000; }), 70000},
        PageCase{"sliding", SlidingSpec(), 65536}, PageCase{"chunked", ChunkedSpec(), 65536},
        PageCase{"mamba", MambaSpec(), 65536},
        PageCase{"mamba_states",  // 3 * 4096 bf16 and 16 * 128 * 128 f32
                 With(MambaSpec(),
                      [](EngineSpec& s) {
                        s.shapes = {{3, 4096}, {16, 128, 128}};
                        s.dtypes = {ElementType::kBfloat16, ElementType::kFloat32};
                      }),
                 24576 + 1048576},
        PageCase{"mamba_padded", With(MambaSpec(), [](EngineSpec& s) { s.page_size_padded = 1 << 20; }),
                 1 << 20}),
    [](const auto& param) { return param.param.name; });

TEST(EngineSpec, FractionsOfATokenStoreSeveralStates) {
  EngineSpec spec = FullSpec();
  spec.tokens_per_state = {1, 2};
  EXPECT_EQ(*PageBytes(*Constructed(kB, spec)), 2 * 65536);
  EXPECT_EQ(*PageBytes(*Constructed(kA, spec)), 65536) << "2026-08 has the field for latent kinds only";
}

TEST(EngineSpec, PaddingBelowThePageIsAnAssertion) {
  EngineSpec spec = FullSpec();
  spec.page_size_padded = 1024;
  const auto page = PageBytes(*Constructed(kB, spec));
  ASSERT_FALSE(page.ok());
  EXPECT_EQ(page.failure().kind, EngineErrorKind::kAssertionError);
  EXPECT_EQ(page.failure().message,
            "page_size_padded is 1024, below the page of 65536 bytes; raise or drop it");
}

TEST(EngineSpec, ALongerBlockPadsAlignedPagesAgainAndNoOthers) {
  EngineSpec aligned = MlaSpec(584);
  aligned.dtype = ElementType::kUint8;
  aligned.alignment = 576;
  const auto longer = WithBlockSize(kA, *Constructed(kA, aligned), 128);
  ASSERT_TRUE(longer.ok());
  EXPECT_EQ(*PageBytes(*longer), 74880);  // 74,752 rounded up to 130 * 576

  EngineSpec padded = FullSpec();
  padded.page_size_padded = 70000;
  const auto kept = WithBlockSize(kA, padded, 32);
  ASSERT_TRUE(kept.ok());
  EXPECT_EQ(kept->page_size_padded, 70000);
  EXPECT_FALSE(PageBytes(*kept).ok());
}

TEST(EngineSpec, ConstructionForgetsWhatTheVersionLacks) {
  EngineSpec spec = MlaSpec();
  spec.dcp_sharded = false;
  spec.block_stride_alignment = 4096;
  spec.cache_role = CacheRole::kIndexer;
  spec.indexes_kv_by_block_stride = true;
  const EngineSpec a = *Constructed(kA, spec);
  EXPECT_TRUE(a.dcp_sharded);
  EXPECT_FALSE(a.block_stride_alignment.has_value());
  EXPECT_EQ(a.cache_role, CacheRole::kSparse);
  EXPECT_TRUE(a.indexes_kv_by_block_stride);
  const EngineSpec b = *Constructed(kB, spec);
  EXPECT_FALSE(b.dcp_sharded);
  EXPECT_EQ(b.block_stride_alignment, 4096);
  EXPECT_FALSE(b.indexes_kv_by_block_stride);
}

TEST(EngineSpec, ConstructionFailsAtTheInput) {
  const auto failure_of = [](EngineVersion version, const EngineSpec& spec) {
    const auto built = Constructed(version, spec);
    return built.ok() ? std::string("built")
                      : std::string(EngineStageName(built.failure().stage)) + " " +
                            std::string(EngineErrorKindName(built.failure().kind));
  };
  EXPECT_EQ(failure_of(kB, With(FullSpec(), [](EngineSpec& s) { s.block_stride_alignment = 0; })),
            "input ValueError");
  EXPECT_EQ(failure_of(kA, With(FullSpec(), [](EngineSpec& s) { s.block_stride_alignment = 0; })), "built");
  const EngineSpec other_version =
      With(SlidingMlaSpec(), [](EngineSpec& s) { s.model_version = "deepseek_v5"; });
  EXPECT_EQ(failure_of(kA, other_version), "input AssertionError");
  EXPECT_EQ(failure_of(kB, other_version), "input AssertionError");
  EXPECT_EQ(failure_of(kB, With(SlidingMlaSpec(), [](EngineSpec& s) { s.model_version = "deepseek_v4"; })),
            "built");
  EXPECT_EQ(failure_of(kA, MakeSpec(SpecKind::kKpoolTail)), "input NotInVersion");
  EXPECT_EQ(failure_of(kB, MakeSpec(SpecKind::kKpoolTail)), "built");
}

TEST(EngineSpec, SizesBeyondTheLimitAreAFailureAndNotAnOverflow) {
  EngineSpec spec = FullSpec(std::int64_t{1} << 40, std::int64_t{1} << 40);
  const auto page = PageBytes(spec);
  ASSERT_FALSE(page.ok());
  EXPECT_EQ(page.failure().kind, EngineErrorKind::kTooLarge);
}

struct RequestCase {
  std::string name;
  EngineSpec spec;
  std::function<void(EngineConfig&)> configure;
  std::int64_t a;  // pages of one request of 8192 tokens; -1: AssertionError
  std::int64_t b;
};

void PrintTo(const RequestCase& c, std::ostream* out) { *out << c.name; }

class RequestOf : public ::testing::TestWithParam<RequestCase> {};

TEST_P(RequestOf, TakesPages) {
  for (const EngineVersion version : testing::kBothVersions) {
    EngineConfig config;
    config.max_num_batched_tokens = 512;
    GetParam().configure(config);
    SpecTable table(version);
    const std::int32_t id = table.Intern(*Constructed(version, GetParam().spec));
    const auto bytes = RequestBytes(table, id, config, 8192);
    const std::int64_t expected = version == kA ? GetParam().a : GetParam().b;
    if (expected < 0) {
      ASSERT_FALSE(bytes.ok());
      EXPECT_EQ(bytes.failure().kind, EngineErrorKind::kAssertionError);
    } else {
      ASSERT_TRUE(bytes.ok());
      EXPECT_EQ(*bytes, expected * *table.Page(id));
    }
  }
}

const auto kNothing = [](EngineConfig&) {};
const auto kDcp2 = [](EngineConfig& config) { config.dcp = 2; };
const auto kDcp3 = [](EngineConfig& config) { config.dcp = 3; };
const auto kReplicated = [](EngineSpec& spec) { spec.dcp_sharded = false; };

INSTANTIATE_TEST_SUITE_P(
    , RequestOf,
    ::testing::Values(
        RequestCase{"full", FullSpec(), kNothing, 512, 512},
        RequestCase{"full_dcp", FullSpec(), kDcp2, 256, 256},
        RequestCase{"full_dcp_rounds_twice", FullSpec(), kDcp3, 171, 171},  // 2731 tokens
        RequestCase{"full_replicated", With(FullSpec(), kReplicated), kDcp2, 256, 512},
        RequestCase{"sliding", SlidingSpec(1024), kNothing, 97, 97},  // 1023 + 512 tokens, and one more block
        RequestCase{"sliding_long_window", SlidingSpec(32768), kNothing, 513, 513},
        RequestCase{"sliding_two_batches", SlidingSpec(1024),
                    [](EngineConfig& c) { c.max_concurrent_batches = 2; }, 129, 129},
        RequestCase{"sliding_extra",
                    With(SlidingSpec(1024), [](EngineSpec& s) { s.extra_retained_tokens = 2; }), kNothing, 98,
                    98},  // 1537 tokens
        RequestCase{"sliding_dcp", SlidingSpec(1024), kDcp2, -1, -1},
        RequestCase{"sliding_replicated", With(SlidingSpec(1024), kReplicated), kDcp2, -1, 97},
        RequestCase{"chunked", ChunkedSpec(1024), kNothing, 96, 96},
        RequestCase{"mamba", MambaSpec(), kNothing, 1, 1},
        RequestCase{"mamba_speculative",
                    With(MambaSpec(), [](EngineSpec& s) { s.num_speculative_blocks = 7; }), kNothing, 8, 8},
        RequestCase{"mamba_align", MambaSpec(),
                    [](EngineConfig& c) { c.mamba_cache_mode = MambaCacheMode::kAlign; }, 2, 2},
        RequestCase{"mamba_align_checkpoints",
                    With(MambaSpec(), [](EngineSpec& s) { s.num_prefill_checkpoint_blocks = 3; }),
                    [](EngineConfig& c) { c.mamba_cache_mode = MambaCacheMode::kAlign; }, 2, 5},
        RequestCase{"mamba_all", With(MambaSpec(), [](EngineSpec& s) { s.block_size = 1024; }),
                    [](EngineConfig& c) { c.mamba_cache_mode = MambaCacheMode::kAll; }, 8, 8},
        RequestCase{"mamba_the_specs_own_mode_does_not_count",
                    With(MambaSpec(), [](EngineSpec& s) { s.mamba_cache_mode = MambaCacheMode::kAlign; }),
                    kNothing, 1, 1},
        RequestCase{"cross", With(FullSpec(), [](EngineSpec& s) { s.kind = SpecKind::kCross; }),
                    [](EngineConfig& c) { c.max_num_encoder_input_tokens = 1500; }, 94, 94}),
    [](const auto& param) { return param.param.name; });

TEST(RequestOfLaterKinds, IsOnePage) {
  for (const SpecKind kind : {SpecKind::kKpoolTail, SpecKind::kCircularBuffer}) {
    EngineSpec spec = SlidingSpec(8);
    spec.kind = kind;
    SpecTable table(kB);
    const std::int32_t id = table.Intern(spec);
    EXPECT_EQ(*RequestBytes(table, id, EngineConfig{}, 8192), *table.Page(id));
  }
}

TEST(SpecTable, HoldsEachSpecOnce) {
  SpecTable table(kB);
  EXPECT_EQ(table.Intern(FullSpec()), 0);
  EXPECT_EQ(table.Intern(SlidingSpec()), 1);
  EXPECT_EQ(table.Intern(FullSpec()), 0);
  EngineSpec causal = FullSpec();
  causal.non_causal = true;  // not part of the search key
  EXPECT_EQ(table.Intern(causal), 2);
  EXPECT_EQ(std::move(table).TakeSpecs().size(), 3U);
}

}  // namespace
}  // namespace kvasir::vllm
