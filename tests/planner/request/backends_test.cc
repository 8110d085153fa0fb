#include "planner/request/backends.h"

#include <string>
#include <vector>

#include "tests/testing/golden.h"
#include "tests/testing/matchers.h"

namespace kvasir {
namespace {

using ::testing::Contains;
using ::testing::Not;

TEST(BackendsTest, ThePageIsTheGeneratedOne) {
  testing::ExpectGolden("../../docs/generated/backends.md", BackendPage());
}

TEST(BackendsTest, RowsAreSortedAndAgreeWithThemselves) {
  std::string before;
  for (const BackendRow& row : BackendRows()) {
    SCOPED_TRACE(row.facts.name);
    EXPECT_LT(before, row.facts.name);
    before = row.facts.name;
    EXPECT_EQ(row.facts.lse, row.lse != LseBase::kNone);
    EXPECT_EQ(row.facts.graphs, row.graphs != GraphClass::kNever);
    // What is possible over a sharded context is possible without.
    EXPECT_TRUE(row.facts.causal_multi_token || !row.facts.causal_multi_token_dcp);
    EXPECT_TRUE(row.facts.non_causal_multi_token || !row.facts.non_causal_multi_token_dcp);
    EXPECT_TRUE(row.facts.lse || !row.facts.causal_multi_token_dcp);
    EXPECT_FALSE(row.source.empty());
  }
}

TEST(BackendsTest, EngineNamesStandForRows) {
  EXPECT_EQ(RowsOfEngine("flashmla").size(), 1U);
  EXPECT_EQ(RowsOfEngine("FLASHINFER_MLA").size(), 2U);
  EXPECT_TRUE(RowsOfEngine("NO_SUCH").empty());
  EXPECT_TRUE(RowsOfEngine("").empty());
  EXPECT_THAT(EngineBackends(LayoutKind::kLatent), Contains("TRITON_MLA"));
  EXPECT_THAT(EngineBackends(LayoutKind::kLatent), Not(Contains("TRITON_ATTN")));
  EXPECT_THAT(EngineBackends(LayoutKind::kKeyValue), Contains("TRITON_ATTN"));
}

struct BlockCase {
  std::string engine;
  std::int64_t smallest;
  std::int64_t preferred;
};

// Blocks of public start-up logs: 64 for FlashMLA, 16 for FlashAttention, 128 for CUTLASS.
TEST(BackendsTest, TheEnginesBlockFollowsTheKernels) {
  for (const BlockCase& c : {BlockCase{"FLASHMLA", 64, 64}, BlockCase{"FLASH_ATTN", 16, 16},
                             BlockCase{"CUTLASS_MLA", 128, 128}, BlockCase{"ROCM_AITER_MLA", 1, 16},
                             BlockCase{"TRITON_MLA", 16, 16}, BlockCase{"TOKENSPEED_MLA", 32, 32}}) {
    SCOPED_TRACE(c.engine);
    const auto rows = RowsOfEngine(c.engine);
    ASSERT_EQ(rows.size(), 1U);
    EXPECT_EQ(SmallestPage(*rows[0]), c.smallest);
    EXPECT_EQ(PreferredBlock(*rows[0]), c.preferred);
  }
}

}  // namespace
}  // namespace kvasir
