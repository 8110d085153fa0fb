// Strangers, late comers and peers with another plan at a worker's port for collectives.
#include <gtest/gtest.h>

#include <chrono>
#include <ostream>
#include <random>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "common/base/error_reasons.h"
#include "common/base/typed_error.h"
#include "tests/testing/matchers.h"
#include "tests/worker/comm/comm_ranks.h"

namespace kvasir {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;
using testing::OnRanks;
using testing::StatusIs;
using testing::TcpWorld;

constexpr milliseconds kLong{20'000};

Hello Greeting() { return {"test", Epoch(7), std::string(64, 'a'), /*ranks=*/2, /*from=*/1, /*to=*/0}; }

WaitLimit Within(milliseconds time) { return {steady_clock::now() + time, {}}; }

Socket Dial(const TcpWorld& world) {
  absl::StatusOr<Socket> socket = DialTcp(world.endpoints[0], Within(kLong));
  EXPECT_TRUE(socket.ok()) << socket.status();
  return *std::move(socket);
}

// Whether the other side closes within the time.
bool Closes(const Socket& socket, milliseconds within) {
  std::vector<std::byte> bytes(64);
  while (true) {
    const absl::Status status = ReceiveAll(socket.fd(), std::span(bytes).first(1), Within(within));
    if (absl::IsUnavailable(status)) return true;
    if (!status.ok()) return false;
  }
}

// Both ranks of the world meet.
void ExpectAGoodPairMeets(TcpWorld& world) {
  OnRanks(2, [&](std::int64_t rank) {
    const auto mesh =
        TcpMesh::Connect(*world.listeners[static_cast<std::size_t>(rank)], world.Options(rank, kLong));
    EXPECT_TRUE(mesh.ok()) << mesh.status();
  });
}

TEST(HelloTest, RoundTrips) {
  const std::string text = EncodeHello(Greeting());
  const auto bytes = std::as_bytes(std::span(text));
  const auto size = ParseHelloHead(bytes.first(kHelloHeadBytes), 1);
  KVASIR_ASSERT_OK(size);
  ASSERT_EQ(*size + kHelloHeadBytes, text.size());
  const auto hello = ParseHelloBody(bytes.subspan(kHelloHeadBytes));
  KVASIR_ASSERT_OK(hello);
  EXPECT_EQ(*hello, Greeting());
}

TEST(HelloTest, EveryTruncationAndEveryChangedByteIsHandled) {
  const std::string text = EncodeHello(Greeting());
  for (std::size_t cut = kHelloHeadBytes; cut < text.size(); ++cut) {
    EXPECT_FALSE(
        ParseHelloBody(std::as_bytes(std::span(text)).subspan(kHelloHeadBytes, cut - kHelloHeadBytes)).ok());
  }
  for (std::size_t at = 0; at < text.size(); ++at) {
    for (const int flip : {0x01, 0x80, 0xFF}) {
      std::string changed = text;
      changed[at] = static_cast<char>(changed[at] ^ flip);
      const auto bytes = std::as_bytes(std::span(changed));
      const bool head = ParseHelloHead(bytes.first(kHelloHeadBytes), 1).ok();
      const auto body = ParseHelloBody(bytes.subspan(kHelloHeadBytes));
      EXPECT_TRUE(!head || at >= 6) << at;  // magic and version are checked
      EXPECT_TRUE(!body.ok() || at < kHelloHeadBytes || *body != Greeting())
          << at;  // never read as the original
    }
  }
}

struct Garbage {
  std::string name;
  std::string bytes;
};
void PrintTo(const Garbage& g, std::ostream* out) { *out << g.name; }

std::string Body(const Hello& hello) { return EncodeHello(hello); }

std::vector<Garbage> AllGarbage() {
  std::string other_size = EncodeHello(Greeting());
  other_size[6] = static_cast<char>(other_size[6] - 1);
  std::string oversized = "KVCM" + std::string("\x01\x00\xFF\xFF", 4) + std::string(2000, 'x');
  std::string version = EncodeHello(Greeting());
  version[4] = 9;
  Hello self_greeting = Greeting();
  self_greeting.to = 1;
  Hello far = Greeting();
  far.to = 5;
  Hello epoch = Greeting();
  epoch.epoch = Epoch(-1);
  std::mt19937 random(17);
  std::string noise(4096, '\0');
  for (char& c : noise) c = static_cast<char>(random());
  return {{"Http", "GET / HTTP/1.1\r\nHost: x\r\n\r\n"},
          {"Noise", noise},
          {"Zeros", std::string(4096, '\0')},
          {"BodyTooLarge", oversized},
          {"BodyShorterThanItsFields", other_size},
          {"OtherVersion", version},
          {"GreetsItself", Body(self_greeting)},
          {"RankOutOfRange", Body(far)},
          {"NegativeEpoch", Body(epoch)}};
}

class GarbageTest : public ::testing::TestWithParam<Garbage> {};

TEST_P(GarbageTest, IsClosedAndAGoodPairStillMeets) {
  TcpWorld world(2);
  const Socket stranger = Dial(world);
  (void)SendAll(stranger.fd(), std::as_bytes(std::span(GetParam().bytes)), Within(kLong));
  EXPECT_TRUE(Closes(stranger, kLong));
  ExpectAGoodPairMeets(world);
}

INSTANTIATE_TEST_SUITE_P(Strangers, GarbageTest, ::testing::ValuesIn(AllGarbage()),
                         [](const auto& tested) { return tested.param.name; });

TEST(CommListenerTest, ASilentStrangerIsClosedInTimeAndHoldsNobodyUp) {
  CommListenerOptions options;
  options.greeting_timeout = milliseconds(100);
  TcpWorld world(2, options);
  const Socket silent = Dial(world);
  const Socket slow = Dial(world);
  KVASIR_ASSERT_OK(SendAll(slow.fd(), std::as_bytes(std::span("KVC", 3)), Within(kLong)));
  ExpectAGoodPairMeets(world);
  EXPECT_TRUE(Closes(silent, kLong));
  EXPECT_TRUE(Closes(slow, kLong));
}

TEST(CommListenerTest, StrangersBeyondTheLimitWaitOutsideAndGoodPeersStillMeet) {
  CommListenerOptions options;
  options.greeting_timeout = milliseconds(100);
  options.connections_max = 4;
  TcpWorld world(2, options);
  std::vector<Socket> strangers;
  strangers.reserve(20);
  for (int i = 0; i < 20; ++i) strangers.push_back(Dial(world));
  ExpectAGoodPairMeets(world);
}

TEST(CommListenerTest, APeerThatComesFirstIsKeptUntilItsRankIsPrepared) {
  TcpWorld world(2);
  absl::Status early;
  std::thread above([&] { early = TcpMesh::Connect(*world.listeners[1], world.Options(1, kLong)).status(); });
  std::this_thread::sleep_for(
      milliseconds(50));  // most likely parked by now; the outcome does not depend on it
  const auto mesh = TcpMesh::Connect(*world.listeners[0], world.Options(0, kLong));
  above.join();
  KVASIR_EXPECT_OK(mesh);
  KVASIR_EXPECT_OK(early);
}

TEST(CommListenerTest, ParkedPeersAreClosedAfterAWhile) {
  CommListenerOptions options;
  options.parked_timeout = milliseconds(100);
  TcpWorld world(2, options);
  const Socket parked = Dial(world);
  const std::string hello = EncodeHello(Greeting());
  KVASIR_ASSERT_OK(SendAll(parked.fd(), std::as_bytes(std::span(hello)), Within(kLong)));
  EXPECT_TRUE(Closes(parked, kLong));
}

TEST(CommListenerTest, TheSameRankTwiceIsRefused) {
  TcpWorld world(2);
  Hello self = Greeting();
  self.from = 0;
  const auto first = world.listeners[0]->Expect(self);
  KVASIR_ASSERT_OK(first);
  EXPECT_THAT(world.listeners[0]->Expect(self), StatusIs(absl::StatusCode::kAlreadyExists, "rank 0"));
}

TEST(TcpMeshTest, AnotherPlanUnderTheSameEpochIsNamedOnBothSidesAtOnce) {
  TcpWorld world(2);
  std::vector<absl::Status> statuses(2);
  const auto start = steady_clock::now();
  OnRanks(2, [&](std::int64_t rank) {
    MeshOptions options = world.Options(rank, kLong);
    if (rank == 1) options.plan_id = std::string(64, 'b');
    statuses[static_cast<std::size_t>(rank)] =
        TcpMesh::Connect(*world.listeners[static_cast<std::size_t>(rank)], options).status();
  });
  EXPECT_LT(steady_clock::now() - start, milliseconds(5'000));
  for (const absl::Status& status : statuses) {
    const TypedError error = ErrorOf(status);
    EXPECT_EQ(error.reason, reason::kRanksDisagree) << status;
    EXPECT_EQ(error.metadata.at("rank"), "1");
    EXPECT_EQ(error.metadata.at("fact"), "plan_id");
    EXPECT_EQ(error.metadata.at("value"), std::string(64, 'b'));
    EXPECT_EQ(error.metadata.at("others"), std::string(64, 'a'));
  }
}

TEST(TcpMeshTest, AnotherEpochNeverMeets) {
  TcpWorld world(2);
  OnRanks(2, [&](std::int64_t rank) {
    MeshOptions options = world.Options(rank, milliseconds(200));
    options.epoch = Epoch(7 + rank);
    EXPECT_THAT(TcpMesh::Connect(*world.listeners[static_cast<std::size_t>(rank)], options),
                StatusIs(absl::StatusCode::kDeadlineExceeded, "rank"));
  });
}

TEST(TcpMeshTest, AMissingRankIsNamed) {
  TcpWorld world(3);
  EXPECT_THAT(TcpMesh::Connect(*world.listeners[0], world.Options(0, milliseconds(100))),
              StatusIs(absl::StatusCode::kDeadlineExceeded, "ranks 1, 2"));
}

TEST(TcpMeshTest, AWorkerThatIsNotThereIsUnavailableAtOnce) {
  TcpWorld world(2);
  world.listeners[0].reset();
  const auto start = steady_clock::now();
  EXPECT_THAT(TcpMesh::Connect(*world.listeners[1], world.Options(1, kLong)),
              StatusIs(absl::StatusCode::kUnavailable, "rank 0"));
  EXPECT_LT(steady_clock::now() - start, milliseconds(5'000));
}

TEST(TcpMeshTest, ConnectingCanBeGivenUp) {
  TcpWorld world(2);
  std::stop_source stop;
  std::thread stopper([&] {
    std::this_thread::sleep_for(milliseconds(30));
    stop.request_stop();
  });
  for (const std::int64_t rank : {0, 1}) {
    MeshOptions options = world.Options(rank, kLong);
    options.stop = stop.get_token();
    EXPECT_EQ(TcpMesh::Connect(*world.listeners[static_cast<std::size_t>(rank)], options).status().code(),
              absl::StatusCode::kCancelled);
  }
  stopper.join();
}

TEST(TcpMeshTest, GarbageInsideAConnectionFailsTheCollective) {
  TcpWorld world(2);
  std::shared_ptr<TcpMesh> mesh;
  std::thread good([&] {
    auto made = TcpMesh::Connect(*world.listeners[0], world.Options(0, kLong));
    if (made.ok()) mesh = *made;
  });
  const Socket liar = Dial(world);  // greets well, then sends noise
  const std::string bytes = EncodeHello(Greeting()) + std::string(100, 'z');
  KVASIR_ASSERT_OK(SendAll(liar.fd(), std::as_bytes(std::span(bytes)), Within(kLong)));
  good.join();
  ASSERT_NE(mesh, nullptr);
  TcpMesh::Group group{1, {0, 1}, 0};
  const std::vector<std::byte> mine(4);
  std::vector<std::byte> all(8);
  EXPECT_THAT(mesh->AllGather(group, mine, all), StatusIs(absl::StatusCode::kInvalidArgument, "out of step"));
}

}  // namespace
}  // namespace kvasir
