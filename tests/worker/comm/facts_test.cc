#include "worker/comm/facts.h"

#include <gtest/gtest.h>

#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "common/base/error_reasons.h"
#include "common/base/limits.h"
#include "common/base/typed_error.h"
#include "tests/testing/matchers.h"
#include "tests/worker/comm/comm_ranks.h"

namespace kvasir {
namespace {

using testing::OnRanks;
using testing::StatusIs;

struct Case {
  std::string name;
  std::vector<RankFacts> by_rank;
  std::optional<Disagreement> want;
};
void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

class FindDisagreementTest : public ::testing::TestWithParam<Case> {};

TEST_P(FindDisagreementTest, NamesRankFactAndBothValues) {
  EXPECT_EQ(FindDisagreement(GetParam().by_rank), GetParam().want);
}

INSTANTIATE_TEST_SUITE_P(
    Facts, FindDisagreementTest,
    ::testing::Values(
        Case{"AllEqual", {{{"a", "1"}, {"b", "2"}}, {{"b", "2"}, {"a", "1"}}}, std::nullopt},
        Case{"NoFacts", {{}, {}}, std::nullopt},
        Case{"OddOneOut",
             {{{"a", "1"}}, {{"a", "1"}}, {{"a", "2"}}, {{"a", "1"}}},
             Disagreement{2, "a", "2", "1"}},
        Case{"RankZeroIsTheOddOne",
             {{{"a", "9"}}, {{"a", "1"}}, {{"a", "1"}}},
             Disagreement{0, "a", "9", "1"}},
        Case{"OfTwoTheHigherRankIsNamed", {{{"a", "1"}}, {{"a", "2"}}}, Disagreement{1, "a", "2", "1"}},
        Case{"MissingIsUnset", {{{"a", "1"}, {"b", "2"}}, {{"a", "1"}}}, Disagreement{1, "b", "unset", "2"}},
        Case{"FirstByName",
             {{{"b", "1"}, {"a", "1"}}, {{"a", "2"}, {"b", "2"}}},
             Disagreement{1, "a", "2", "1"}}),
    [](const auto& tested) { return tested.param.name; });

TEST(AgreeOnFactsTest, EqualFactsOfAnyBytesAgree) {
  auto comms = MakeThreadComms(4, 1, std::chrono::seconds(20));
  const RankFacts facts = {{"weird", std::string("3:x\n\0\xFF", 6)}, {"empty", ""}, {"plan_id", "a"}};
  OnRanks(4, [&](std::int64_t rank) {
    KVASIR_EXPECT_OK(AgreeOnFacts(*comms[static_cast<std::size_t>(rank)].tensor, facts));
  });
}

TEST(AgreeOnFactsTest, EveryRankGetsTheSameRefusal) {
  auto comms = MakeThreadComms(3, 1, std::chrono::seconds(20));
  OnRanks(3, [&](std::int64_t rank) {
    const RankFacts facts = {{"library.nccl", rank == 1 ? "2.27.3" : "2.28.9"}};
    const TypedError error = ErrorOf(AgreeOnFacts(*comms[static_cast<std::size_t>(rank)].tensor, facts));
    EXPECT_EQ(error.code, absl::StatusCode::kFailedPrecondition);
    EXPECT_EQ(error.reason, reason::kRanksDisagree);
    EXPECT_EQ(error.metadata.at("rank"), "1");
    EXPECT_EQ(error.metadata.at("fact"), "library.nccl");
    EXPECT_EQ(error.metadata.at("value"), "2.27.3");
    EXPECT_EQ(error.metadata.at("others"), "2.28.9");
  });
}

TEST(AgreeOnFactsTest, TooManyOrTooLongFactsAreRefusedBeforeAnythingIsSent) {
  auto comms = MakeThreadComms(1, 1, std::chrono::seconds(20));
  EXPECT_THAT(AgreeOnFacts(*comms[0].tensor, RankFacts(kFactsMax + 1)),
              StatusIs(absl::StatusCode::kInvalidArgument, "65 facts"));
  EXPECT_THAT(AgreeOnFacts(*comms[0].tensor, {{"a", std::string(kNameBytesMax + 1, 'x')}}),
              StatusIs(absl::StatusCode::kInvalidArgument, "longer than 256"));
}

// A peer whose bytes are whatever a test wants.
class FakePeer final : public Communicator {
 public:
  explicit FakePeer(std::vector<std::string> answers) : answers_(std::move(answers)) {}
  [[nodiscard]] std::int64_t rank() const override { return 0; }
  [[nodiscard]] std::int64_t size() const override { return 2; }
  absl::Status AllGather(std::span<const std::byte> mine, std::span<std::byte> all) override {
    std::copy(mine.begin(), mine.end(), all.begin());
    std::string answer = answers_[next_++];
    answer.resize(mine.size(), '\0');
    const auto bytes = std::as_bytes(std::span(answer));
    std::copy(bytes.begin(), bytes.end(), all.begin() + static_cast<std::ptrdiff_t>(mine.size()));
    return absl::OkStatus();
  }
  void Abort(const std::string&) override {}

 private:
  std::vector<std::string> answers_;
  std::size_t next_ = 0;
};

std::string Size(std::int64_t size) {
  return std::string(reinterpret_cast<const char*>(&size), sizeof(size));
}

TEST(AgreeOnFactsTest, GarbledFactsOfAPeerAreAnError) {
  const RankFacts mine = {{"name", "value"}};
  for (const std::int64_t size : {std::int64_t{-1}, std::int64_t{1} << 40}) {
    FakePeer peer({Size(size)});
    EXPECT_THAT(AgreeOnFacts(peer, mine), StatusIs(absl::StatusCode::kInvalidArgument, "rank 1"));
  }
  for (const std::string text : {"4:name", "4:name99:x", "x", ":", "4name", "9999999:", "4:name5value"}) {
    FakePeer peer({Size(static_cast<std::int64_t>(text.size())), text});
    EXPECT_THAT(AgreeOnFacts(peer, mine), StatusIs(absl::StatusCode::kInvalidArgument, "rank 1")) << text;
  }
}

}  // namespace
}  // namespace kvasir
