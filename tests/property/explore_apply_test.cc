// Every order of events in a world of one planner, two workers and a few faults (lost, late and duplicated
// messages, crashes of the planner or a worker, failed preparations, passing leases): what DESIGN section 4
// promises holds in each. Beyond the exhaustive bound, seeded walks with more faults.
#include <gtest/gtest.h>

#include <cstdlib>
#include <ostream>
#include <random>
#include <string>
#include <unordered_set>
#include <vector>

#include "absl/strings/numbers.h"
#include "tests/property/apply_world.h"

namespace kvasir {
namespace {

using ::kvasir::testing::Apply;
using ::kvasir::testing::MakeWorld;
using ::kvasir::testing::RunCalmly;
using ::kvasir::testing::SpecFor;
using ::kvasir::testing::Start;
using ::kvasir::testing::Transition;
using ::kvasir::testing::TransitionsOf;
using ::kvasir::testing::TransitionText;
using ::kvasir::testing::World;
using ::kvasir::testing::WorldText;

constexpr std::size_t kWorkers = 2;

struct Case {
  std::string name = {};
  bool old_plan = false;
  ApplyMode mode = ApplyMode::kSideBySide;
  bool remove = false;  // a delete instead of an apply
  bool preflight = false;
  int faults = 1;
  int advances = 1;
};
void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

World WorldFor(const Case& c) {
  World world = MakeWorld(kWorkers, 0, 0);
  if (c.old_plan) {
    Start(world, StartApplyEvent{.spec = SpecFor("old", kWorkers)});
    RunCalmly(world);
  }
  world.faults_left = c.faults;
  world.advances_left = c.advances;
  if (c.remove) {
    Start(world, StartDeleteEvent{});
  } else {
    Start(world, StartApplyEvent{.spec = SpecFor("new", kWorkers), .mode = c.mode, .preflight = c.preflight});
  }
  return world;
}

bool Runs(const World& world, std::size_t w, const ServingPlan& serving) {
  return world.workers[w].state.running == std::optional(PlanKey{serving.epoch, serving.spec.plan_id});
}

bool AllRun(const World& world, const ServingPlan& serving) {
  return Runs(world, 0, serving) && Runs(world, 1, serving);
}

// What must be true once faults have stopped and nothing moves any more. Empty: it is.
std::string WhatIsWrongAtRest(World world, const Case& c) {
  if (!world.finished.has_value()) {
    return "the planner came to rest with an apply in progress";
  }
  if (world.store.pending.has_value()) {
    // The last record could not be written. The next one to touch the deployment takes up where it stands.
    Start(world, RecoverEvent{});
    RunCalmly(world);
    if (!world.broken.empty()) {
      return world.broken;
    }
    if (world.store.pending.has_value()) {
      return "an apply in progress was not taken up";
    }
  }
  const auto serving = world.store.serving;
  const bool crashed = world.workers[0].life + world.workers[1].life > 0;
  if (!crashed && serving.has_value() && !AllRun(world, *serving)) {
    return "a plan serves by the record, and a worker does not run it";
  }
  if (!crashed && world.now_ms == 0 && c.faults == 1 && c.old_plan && !c.remove && !serving.has_value()) {
    return "one fault that killed no worker and cost no lease has ended the deployment";
  }
  if (c.preflight && !crashed && serving->spec.plan_id != "old") {
    return "a preflight has changed what serves";
  }
  world.advances_left = 1;
  Apply(world, {Transition::Kind::kAdvance, 0});
  for (const auto& worker : world.workers) {
    if (worker.state.pending.has_value()) {
      return "a worker holds a preparation after its lease";
    }
  }
  RunCalmly(world);
  Start(world, StartApplyEvent{.spec = SpecFor("next", kWorkers)});
  RunCalmly(world);
  if (!world.broken.empty()) {
    return world.broken;
  }
  if (!world.finished.has_value() || !world.finished->ok()) {
    return "the next apply did not succeed";
  }
  for (const auto& worker : world.workers) {
    if (worker.state.pending.has_value() || worker.state.draining.has_value()) {
      return "the next apply succeeded and a worker holds more than its plan";
    }
  }
  return AllRun(world, *world.store.serving) ? ""
                                             : "the next apply succeeded and a worker does not run its plan";
}

struct Explorer {
  Case the_case;
  std::unordered_set<std::string> seen = {};
  std::vector<std::string> path = {};
  std::string broken = {};
  std::size_t rests = 0;

  void Visit(const World& world) {
    broken = world.broken;
    if (!broken.empty() || !seen.insert(WorldText(world)).second) {
      return;
    }
    const std::vector<Transition> next = TransitionsOf(world);
    if (next.empty() ||
        (world.finished.has_value() && !world.persisting.has_value() && world.calls.empty())) {
      ++rests;
      World rest = world;
      RunCalmly(rest);
      broken = rest.broken.empty() ? WhatIsWrongAtRest(rest, the_case) : rest.broken;
    }
    for (std::size_t i = 0; i < next.size() && broken.empty(); ++i) {
      World after = world;
      path.push_back(TransitionText(next[i]));
      Apply(after, next[i]);
      Visit(after);
      if (broken.empty()) {
        path.pop_back();
      }
    }
  }

  [[nodiscard]] std::string Story() const {
    std::string story;
    for (const std::string& step : path) {
      story += "\n  " + step;
    }
    return story;
  }
};

class ExploreApplyTest : public ::testing::TestWithParam<Case> {};

TEST_P(ExploreApplyTest, HoldsInEveryOrderOfEvents) {
  Explorer explorer{GetParam()};
  explorer.Visit(WorldFor(GetParam()));
  EXPECT_EQ(explorer.broken, "") << explorer.Story();
  // A world that could not move would prove nothing.
  EXPECT_GT(explorer.seen.size(), 500U);
  EXPECT_GT(explorer.rests, 5U);
}

// A fault about every seventh step, so that walks get far before the budget is spent.
Transition Choose(const std::vector<Transition>& next, std::mt19937& random) {
  std::vector<Transition> calm;
  for (const Transition& one : next) {
    if (one.kind < Transition::Kind::kLoseCall) {
      calm.push_back(one);
    }
  }
  const bool fault = calm.empty() || random() % 7 == 0;
  const std::vector<Transition>& from = fault ? next : calm;
  return from[random() % from.size()];
}

// KVASIR_WALKS asks for more than every test run takes (tools/ci --full).
unsigned Walks() {
  const char* asked =
      std::getenv("KVASIR_WALKS");  // NOLINT(concurrency-mt-unsafe): nothing sets variables here
  int walks = 0;
  return asked != nullptr && absl::SimpleAtoi(asked, &walks) && walks > 0 ? static_cast<unsigned>(walks)
                                                                          : 1500;
}

TEST_P(ExploreApplyTest, HoldsInLongWalksWithManyFaults) {
  Case c = GetParam();
  c.faults = 6;
  c.advances = 3;
  const unsigned walks = Walks();
  for (unsigned seed = 0; seed < walks; ++seed) {
    std::mt19937 random(seed);
    World world = WorldFor(c);
    std::string story;
    for (std::vector<Transition> next = TransitionsOf(world); !next.empty() && world.broken.empty();
         next = TransitionsOf(world)) {
      const Transition chosen = Choose(next, random);
      story += "\n  " + TransitionText(chosen);
      Apply(world, chosen);
    }
    RunCalmly(world);
    const std::string broken = world.broken.empty() ? WhatIsWrongAtRest(world, c) : world.broken;
    ASSERT_EQ(broken, "") << "seed " << seed << story;
  }
}

INSTANTIATE_TEST_SUITE_P(
    All, ExploreApplyTest,
    ::testing::Values(Case{.name = "first"}, Case{.name = "side_by_side", .old_plan = true},
                      Case{.name = "replace", .old_plan = true, .mode = ApplyMode::kReplace},
                      Case{.name = "delete", .old_plan = true, .remove = true},
                      Case{.name = "preflight", .old_plan = true, .preflight = true},
                      Case{.name = "first_two_faults", .faults = 2, .advances = 0}),
    [](const auto& param) { return param.param.name; });

}  // namespace
}  // namespace kvasir
