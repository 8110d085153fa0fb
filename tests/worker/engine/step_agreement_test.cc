#include "worker/engine/step_agreement.h"

#include <gtest/gtest.h>

#include "common/base/error_reasons.h"
#include "common/base/typed_error.h"
#include "tests/testing/matchers.h"
#include "tests/testing/thread_ranks.h"

namespace kvasir {
namespace {

using testing::RunRanks;
using testing::StatusIs;
using testing::ThreadGroup;

constexpr std::int64_t kRanks = 3;

// One agreement among kRanks ranks; `fault(rank)` and `token(rank)` are what each brings.
std::vector<absl::Status> Agree(ThreadGroup& group,
                                const std::function<std::optional<Pass>(std::int64_t)>& fault,
                                const std::function<std::int32_t(std::int64_t)>& token) {
  std::vector<absl::Status> said(kRanks);
  EXPECT_THAT(RunRanks(kRanks,
                       [&](std::int64_t rank) {
                         const StepOutcome outcome{
                             .step = 12, .sequences = {{.id = SequenceId(1), .emitted = {token(rank)}}}};
                         said[static_cast<std::size_t>(rank)] =
                             AgreeOnStep(group.rank(rank), outcome, fault(rank));
                         return absl::OkStatus();
                       }),
              testing::IsOk());
  return said;
}

const auto kNoFault = [](std::int64_t) { return std::optional<Pass>(); };
const auto kSameToken = [](std::int64_t) { return 5; };

TEST(StepAgreementTest, OneRanksFaultFailsAllAlikeAndTheNextStepRuns) {
  ThreadGroup group(kRanks);
  const auto fault = [](std::int64_t rank) {
    return rank == 0 ? std::optional<Pass>()
                     : std::optional(rank == 1 ? Pass::kDraftBlock : Pass::kTargetVerify);
  };
  for (const absl::Status& status : Agree(group, fault, kSameToken)) {
    EXPECT_THAT(status, StatusIs(absl::StatusCode::kDataLoss,
                                 "rank 1: NON_FINITE: draft_block of step 12 met NaN or +inf"));
    EXPECT_EQ(ReasonOf(status), reason::kNotANumber);
    EXPECT_EQ(ErrorOf(status).metadata.at("rank"), "1");
  }
  for (const absl::Status& status : Agree(group, kNoFault, kSameToken)) KVASIR_EXPECT_OK(status);
}

TEST(StepAgreementTest, OtherTokensOnOneRankFailAll) {
  ThreadGroup group(kRanks);
  const auto token = [](std::int64_t rank) { return rank == 2 ? 6 : 5; };
  for (const absl::Status& status : Agree(group, kNoFault, token)) {
    EXPECT_THAT(status,
                StatusIs(absl::StatusCode::kInternal, "rank 2 computed other tokens than rank 0 in step 12"));
  }
}

TEST(StepAgreementTest, OneRankAgreesWithItself) {
  KVASIR_EXPECT_OK(AgreeOnStep(nullptr, StepOutcome{}, std::nullopt));
  EXPECT_THAT(AgreeOnStep(nullptr, StepOutcome{}, Pass::kTargetDecode),
              StatusIs(absl::StatusCode::kDataLoss, "rank 0: NON_FINITE: target_decode"));
}

TEST(StepAgreementTest, AnAbortedGroupIsAnError) {
  ThreadGroup group(kRanks);
  group.rank(2)->Abort("gone");
  EXPECT_THAT(AgreeOnStep(group.rank(0), StepOutcome{}, std::nullopt),
              StatusIs(absl::StatusCode::kCancelled, "gone"));
}

}  // namespace
}  // namespace kvasir
