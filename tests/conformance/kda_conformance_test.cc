// The recurrent operations of every backend against the plain recurrence in double, over one case table:
// prefill in chunks, decode, verify with rejections, snapshots and replay.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "tests/conformance/decode_rig.h"
#include "tests/conformance/kda_rig.h"
#include "tests/testing/matchers.h"
#include "worker/cpu/cpu_backend.h"
#ifndef KVASIR_NO_FIBERS
#include "worker/cuda/cuda_backend.h"
#endif

namespace kvasir::testing {
namespace {

class KdaConformanceTest : public ::testing::TestWithParam<BackendUnderTest> {
 protected:
  // Every head runs the same code, and a fiber per thread takes its time.
  static bool IsSlow(const KdaCase& c) { return GetParam().name == "cuda" && c.heads * c.dim >= 256; }

  std::unique_ptr<Backend> backend_ = GetParam().make(nullptr);
};

INSTANTIATE_TEST_SUITE_P(Backends, KdaConformanceTest, ::testing::ValuesIn(BackendsUnderTest()),
                         [](const auto& test) { return test.param.name; });

// Largest distance over largest magnitude; infinite where something is no number.
double Difference(const KdaRun& got, const std::vector<std::vector<double>>& want) {
  double distance = 0;
  double magnitude = 0;
  for (std::size_t s = 0; s < want.size(); ++s) {
    for (std::size_t i = 0; i < want[s].size(); ++i) {
      const double x = static_cast<double>(got.out[s][i]);
      if (!std::isfinite(x)) return std::numeric_limits<double>::infinity();
      distance = std::max(distance, std::abs(x - want[s][i]));
      magnitude = std::max(magnitude, std::abs(want[s][i]));
    }
  }
  return distance / magnitude;
}

TEST_P(KdaConformanceTest, EveryCaseMatchesThePlainRecurrence) {
  for (const KdaCase& c : AllKdaCases()) {
    if (IsSlow(c)) continue;
    SCOPED_TRACE(::testing::PrintToString(c));
    const KdaData data = MakeKdaData(c, 3);
    const std::vector<std::vector<double>> want = ExactKda(data);
    // bf16 rounds keys and updates: a value near a boundary may fall to either side.
    const double tolerance = c.dtype == DType::kF32 ? 1e-5 : 2e-2;
    for (const unsigned pattern : {0U, 1U, 2U}) {
      const auto got = RunKda(*backend_, data, {.pattern = pattern, .replay_graph = pattern == 2});
      KVASIR_ASSERT_OK(got);
      EXPECT_LE(Difference(*got, want), tolerance) << "pattern " << pattern;
      EXPECT_FALSE(got->fault);
    }
  }
}

// A planted fault of one token in the gate's bias is seen at these tolerances.
TEST_P(KdaConformanceTest, AnotherGateIsSeen) {
  KdaCase c;
  const KdaData data = MakeKdaData(c, 3);
  KdaData other = data;
  other.c.lower_bound = -5;
  const auto got = RunKda(*backend_, data);
  KVASIR_ASSERT_OK(got);
  EXPECT_GT(Difference(*got, ExactKda(other)), 1e-2);
}

TEST_P(KdaConformanceTest, ANanInTheLiveStateIsAFault) {
  for (const StateRollback rollback : {StateRollback::kSnapshots, StateRollback::kReplay}) {
    const KdaData data = MakeKdaData({.rollback = rollback}, 3);
    const auto got = RunKda(*backend_, data, {.pattern = 1, .poison_token = 12});
    KVASIR_ASSERT_OK(got);
    EXPECT_TRUE(got->fault);
  }
}

class KdaBitsTest : public ::testing::TestWithParam<KdaCase> {
 protected:
  static void Check(Backend& backend);
};

INSTANTIATE_TEST_SUITE_P(Cases, KdaBitsTest, ::testing::ValuesIn(AllKdaCases()), [](const auto& test) {
  std::string name = ::testing::PrintToString(test.param);
  std::replace(name.begin(), name.end(), '-', 'm');
  return name;
});

// Whatever passes a row's predecessors ran in, and whoever ran beside it, its bits are the same; under either
// rollback they are those of a plan without a draft.
void KdaBitsTest::Check(Backend& backend) {
  const KdaData data = MakeKdaData(GetParam(), 5);
  const auto decoded = RunKda(backend, data);
  KVASIR_ASSERT_OK(decoded);
  KdaOptions options;
  for (options.pattern = 1; options.pattern < 8; ++options.pattern) {
    options.together = options.pattern % 2 == 0;
    options.replay_graph = options.pattern % 3 == 0;
    const auto verified = RunKda(backend, data, options);
    KVASIR_ASSERT_OK(verified);
    EXPECT_EQ(verified->out, decoded->out) << "pattern " << options.pattern;
  }
  KdaData plain = data;
  plain.c.draft_tokens = 0;
  plain.c.chunk = 7;
  const auto in_place = RunKda(backend, plain);
  KVASIR_ASSERT_OK(in_place);
  EXPECT_EQ(in_place->out, decoded->out);
}

TEST_P(KdaBitsTest, DoNotDependOnPassesBatchOrRollback) { Check(*MakeCpuBackend({})); }
#ifndef KVASIR_NO_FIBERS
TEST_P(KdaBitsTest, NorDoThoseOfTheCudaKernels) {
  if (GetParam().heads * GetParam().dim >= 256) return;  // as above
  Check(**MakeCudaBackend({}));
}
#endif

}  // namespace
}  // namespace kvasir::testing
