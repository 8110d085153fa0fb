// One contract, two implementations: every test runs over threads and over TCP.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <ostream>
#include <span>
#include <string>
#include <vector>

#include "common/base/error_reasons.h"
#include "common/base/typed_error.h"
#include "tests/testing/matchers.h"
#include "tests/worker/comm/comm_ranks.h"

namespace kvasir {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;
using testing::MakeComms;
using testing::OnRanks;
using testing::StatusIs;
using testing::TcpWorld;
using testing::Wire;

constexpr milliseconds kLong{20'000};

struct Case {
  Wire wire;
  std::int64_t ranks;
  std::int64_t dcp;
};

std::string Name(const Case& c) {
  return std::string(c.wire == Wire::kThread ? "Thread" : "Tcp") + std::to_string(c.ranks) + "Dcp" +
         std::to_string(c.dcp);
}
void PrintTo(const Case& c, std::ostream* out) { *out << Name(c); }

absl::Status Gather(Communicator& comm, const std::vector<std::int32_t>& mine,
                    std::vector<std::int32_t>& all) {
  all.assign(mine.size() * static_cast<std::size_t>(comm.size()), -1);
  return comm.AllGather(std::as_bytes(std::span(mine)), std::as_writable_bytes(std::span(all)));
}

class CollectiveTest : public ::testing::TestWithParam<Case> {
 protected:
  CollectiveTest() : world_(GetParam().ranks) {}
  std::vector<RankComms> Make(milliseconds timeout) {
    return MakeComms(GetParam().wire, world_, GetParam().dcp, timeout);
  }
  TcpWorld world_;
};

TEST_P(CollectiveTest, GathersInRankOrderAlternatingGroupsAndSizes) {
  std::vector<RankComms> comms = Make(kLong);
  OnRanks(GetParam().ranks, [&](std::int64_t rank) {
    RankComms& mine = comms[static_cast<std::size_t>(rank)];
    EXPECT_EQ(mine.tensor->rank(), rank);
    EXPECT_EQ(mine.tensor->size(), GetParam().ranks);
    EXPECT_EQ(mine.context->rank(), rank % GetParam().dcp);
    EXPECT_EQ(mine.context->size(), GetParam().dcp);
    const auto base = static_cast<std::int32_t>(rank - rank % GetParam().dcp);
    for (std::int32_t round = 0; round < 200; ++round) {
      // The DCP groups take different numbers of rounds, so ranks are apart in time.
      const bool context = round % 3 == 1;
      Communicator& comm = context ? *mine.context : *mine.tensor;
      const std::size_t count = static_cast<std::size_t>(round % 7);  // 0 bytes too
      std::vector<std::int32_t> all;
      const std::vector<std::int32_t> part(count, static_cast<std::int32_t>(rank) * 1000 + round);
      ASSERT_THAT(Gather(comm, part, all), testing::IsOk());
      for (std::size_t i = 0; i < all.size(); ++i) {
        const auto from = static_cast<std::int32_t>(i / count) + (context ? base : 0);
        ASSERT_EQ(all[i], from * 1000 + round);
      }
    }
  });
}

TEST_P(CollectiveTest, MegabytesDoNotDeadlock) {
  std::vector<RankComms> comms = Make(kLong);
  OnRanks(GetParam().ranks, [&](std::int64_t rank) {
    std::vector<std::int32_t> all;
    const std::vector<std::int32_t> part(3'000'000 / 4 + 1, static_cast<std::int32_t>(rank));
    ASSERT_THAT(Gather(*comms[static_cast<std::size_t>(rank)].tensor, part, all), testing::IsOk());
    for (std::size_t i = 0; i < all.size(); i += 997) {
      ASSERT_EQ(all[i], static_cast<std::int32_t>(i / part.size()));
    }
  });
}

TEST_P(CollectiveTest, ARankThatStaysAwayIsADeadlineForTheOthers) {
  std::vector<RankComms> comms = Make(milliseconds(150));
  const auto start = steady_clock::now();
  OnRanks(GetParam().ranks - 1, [&](std::int64_t rank) {
    std::vector<std::int32_t> all;
    const absl::Status status = Gather(*comms[static_cast<std::size_t>(rank)].tensor, {1}, all);
    // The first to give up says so; the others may see its connection closed before their own time is over.
    EXPECT_TRUE(absl::IsDeadlineExceeded(status) || absl::IsUnavailable(status)) << status;
  });
  EXPECT_LT(steady_clock::now() - start, milliseconds(5'000));
}

TEST_P(CollectiveTest, AbortWakesEveryRankAndStays) {
  std::vector<RankComms> comms = Make(kLong);
  const std::int64_t last = GetParam().ranks - 1;
  const auto start = steady_clock::now();
  OnRanks(GetParam().ranks, [&](std::int64_t rank) {
    RankComms& mine = comms[static_cast<std::size_t>(rank)];
    std::vector<std::int32_t> all;
    if (rank == last) {
      mine.context->Abort("the plan was released");
      EXPECT_THAT(Gather(*mine.tensor, {1}, all),
                  StatusIs(absl::StatusCode::kCancelled, "the plan was released"));
      return;
    }
    const absl::Status status = Gather(*mine.tensor, {1}, all);
    EXPECT_FALSE(status.ok());
    EXPECT_EQ(Gather(*mine.tensor, {1}, all).code(), status.code()) << "the first failure stays";
  });
  EXPECT_LT(steady_clock::now() - start, milliseconds(5'000));
}

TEST_P(CollectiveTest, AbortFromAnotherThreadWakesAWaitingRank) {
  std::vector<RankComms> comms = Make(kLong);
  std::thread aborter([&] {
    std::this_thread::sleep_for(
        milliseconds(50));  // so that rank 0 waits already; the outcome does not depend on it
    comms[0].tensor->Abort("stop");
  });
  std::vector<std::int32_t> all;
  const auto start = steady_clock::now();
  EXPECT_THAT(Gather(*comms[0].tensor, {1}, all), StatusIs(absl::StatusCode::kCancelled, "stop"));
  EXPECT_LT(steady_clock::now() - start, milliseconds(5'000));
  aborter.join();
}

TEST_P(CollectiveTest, UnequalSizesAreAnErrorNotAHang) {
  std::vector<RankComms> comms = Make(kLong);
  std::atomic<int> refused{0};
  OnRanks(GetParam().ranks, [&](std::int64_t rank) {
    std::vector<std::int32_t> all;
    const absl::Status status = Gather(*comms[static_cast<std::size_t>(rank)].tensor,
                                       std::vector<std::int32_t>(rank == 0 ? 2 : 1), all);
    EXPECT_FALSE(status.ok());
    if (absl::IsInvalidArgument(status)) ++refused;
  });
  EXPECT_GE(refused.load(), 1);
}

TEST_P(CollectiveTest, AWrongResultSizeIsRefused) {
  std::vector<RankComms> comms = Make(kLong);
  const std::vector<std::byte> mine(4);
  std::vector<std::byte> all(5);
  EXPECT_THAT(comms[0].tensor->AllGather(mine, all), StatusIs(absl::StatusCode::kInvalidArgument, "5 bytes"));
}

INSTANTIATE_TEST_SUITE_P(Wires, CollectiveTest,
                         ::testing::Values(Case{Wire::kThread, 2, 1}, Case{Wire::kThread, 4, 2},
                                           Case{Wire::kThread, 4, 4}, Case{Wire::kTcp, 2, 2},
                                           Case{Wire::kTcp, 4, 1}, Case{Wire::kTcp, 4, 2}),
                         [](const auto& tested) { return Name(tested.param); });

TEST(CollectiveTest, OneRankAloneNeedsNobody) {
  TcpWorld world(1);
  for (const Wire wire : {Wire::kThread, Wire::kTcp}) {
    std::vector<RankComms> comms = MakeComms(wire, world, 1, kLong);
    std::vector<std::int32_t> all;
    KVASIR_ASSERT_OK(Gather(*comms[0].tensor, {5, 6}, all));
    EXPECT_EQ(all, (std::vector<std::int32_t>{5, 6}));
  }
}

TEST(TcpCommTest, AClosedPeerIsUnavailableAndNamed) {
  TcpWorld world(2);
  std::vector<RankComms> comms = MakeComms(Wire::kTcp, world, 1, kLong);
  KVASIR_EXPECT_OK(comms[0].mesh->CheckPeers());
  comms[1] = RankComms();
  std::vector<std::int32_t> all;
  const absl::Status status = Gather(*comms[0].tensor, {1}, all);
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kUnavailable, "rank 1"));
  EXPECT_EQ(ErrorOf(status).reason, reason::kRankLost);
  EXPECT_EQ(ErrorOf(status).metadata.at("rank"), "1");
}

TEST(TcpCommTest, CheckPeersSeesAClosedPeerBetweenCollectives) {
  TcpWorld world(2);
  std::vector<RankComms> comms = MakeComms(Wire::kTcp, world, 1, kLong);
  comms[1] = RankComms();
  const auto deadline = steady_clock::now() + milliseconds(5'000);
  while (comms[0].mesh->CheckPeers().ok() && steady_clock::now() < deadline) std::this_thread::yield();
  EXPECT_THAT(comms[0].mesh->CheckPeers(), StatusIs(absl::StatusCode::kUnavailable, "rank 1"));
}

}  // namespace
}  // namespace kvasir
