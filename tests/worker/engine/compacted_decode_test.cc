// Blocks that move under running sequences leave no trace in what they decode: in an arena that is too small
// for its queue, parents are emptied again and again, and every output equals that of an arena with room.
#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <map>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "tests/testing/engine_plan.h"
#include "tests/testing/engine_rig.h"
#include "tests/testing/matchers.h"
#include "tests/testing/seeded_random.h"

namespace kvasir::testing {
namespace {

constexpr std::size_t kRequests = 60;

struct Case {
  std::string name;
  EnginePlanOptions options;
  std::int64_t tight_parents = 0;  // as few as leave room for two or three of the requests
  std::int64_t shuffle_seed = 0;
};
void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

std::vector<SequenceRequest> Requests() {
  SeededRandom random(5);
  std::vector<SequenceRequest> requests;
  for (std::size_t i = 0; i < kRequests; ++i) {
    const std::int64_t length = random.Below(3) == 0 ? 20 + random.Below(20) : 1 + random.Below(6);
    requests.push_back(
        {.prompt = MakePrompt(length, static_cast<std::int64_t>(i)), .max_tokens = 4 + random.Below(12)});
  }
  return requests;
}

// What each request decodes to when first come is first served, and how many parents were emptied.
struct Served {
  std::vector<Tokens32> tokens;
  std::int64_t moves = 0;
};

absl::StatusOr<Served> Serve(EngineRig& rig, const std::vector<SequenceRequest>& requests) {
  std::vector<SequenceId> ids;
  Served served;
  while (ids.size() < requests.size() || rig.scheduler().running() > 0) {
    while (ids.size() < requests.size()) {
      const SequenceRequest& next = requests[ids.size()];
      const absl::StatusOr<SequenceId> id = rig.scheduler().Join(next);
      if (!id.ok()) {
        if (!absl::IsResourceExhausted(id.status())) return id.status();
        rig.scheduler().MakeRoomFor(next);
        break;
      }
      ids.push_back(*id);
    }
    const auto progress = rig.Step();
    if (!progress.ok()) return progress.status();
    if (rig.last_step().move.has_value()) ++served.moves;
  }
  for (const SequenceId id : ids) served.tokens.push_back(rig.tokens().at(id));
  return served;
}

class CompactedDecodeTest : public ::testing::TestWithParam<Case> {};

TEST_P(CompactedDecodeTest, EqualsADecodeWithRoom) {
  const std::vector<SequenceRequest> requests = Requests();
  EnginePlanOptions options = GetParam().options;
  options.max_requests = 12;
  options.parents = 200;
  const auto wide = EngineRig::Create({.plan = MakeEnginePlan(options)});
  KVASIR_ASSERT_OK(wide);
  const auto expected = Serve(**wide, requests);
  KVASIR_ASSERT_OK(expected);
  EXPECT_EQ(expected->moves, 0);

  options.parents = GetParam().tight_parents;
  const auto tight =
      EngineRig::Create({.plan = MakeEnginePlan(options), .shuffle_seed = GetParam().shuffle_seed});
  KVASIR_ASSERT_OK(tight);
  const auto got = Serve(**tight, requests);
  KVASIR_ASSERT_OK(got);
  EXPECT_EQ(got->tokens, expected->tokens);
  EXPECT_GE(got->moves, 3);
  EXPECT_EQ((*tight)->scheduler().free_parents(), options.parents - 1);
}

INSTANTIATE_TEST_SUITE_P(
    , CompactedDecodeTest,
    ::testing::Values(
        Case{"two_pools", {.one_pool = false}, 18}, Case{"two_pools_renamed", {.one_pool = false}, 18, 3},
        Case{"sharded", {.topology = {.tp = 2, .dcp = 2}, .block_tokens = 2, .one_pool = false}, 20},
        Case{"replicated_draft",
             {.topology = {.tp = 2, .dcp = 2}, .block_tokens = 2, .draft_replicated = true},
             26},
        Case{"snapshots", {.one_pool = false, .hybrid = true, .rollback = StateRollback::kSnapshots}, 24},
        Case{"replay_in_parts", {.hybrid = true, .rollback = StateRollback::kReplay, .parts = 3}, 14, 7},
        Case{"chain_draft", {.one_pool = false, .mtp = true}, 18}),
    [](const auto& its) { return its.param.name; });

}  // namespace
}  // namespace kvasir::testing
