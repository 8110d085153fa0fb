// Preflight of one rank: what it shrinks, what it refuses, and that it finds a device that computes
// otherwise.
#include "worker/service/preflight.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <utility>
#include <vector>

#include "common/base/error_reasons.h"
#include "common/base/typed_error.h"
#include "tests/testing/engine_plan.h"
#include "tests/testing/matchers.h"
#include "worker/comm/thread_comm.h"
#include "worker/cpu/cpu_backend.h"
#include "worker/service/rank_group.h"

namespace kvasir {
namespace {

// A device with a mistake: rotations are left out of what it captures, of what it runs at once, or of
// neither. Nor does it hold more than `limit` bytes at a time where that is given.
class FlawedBackend final : public Backend {
 public:
  struct Flaws {
    bool captured = false;
    bool eager = false;
    Bytes allocation_max{0};  // of one allocation after the first; 0: any
  };
  FlawedBackend(std::unique_ptr<Backend> inner, Flaws flaws) : inner_(std::move(inner)), flaws_(flaws) {}

  [[nodiscard]] DeviceFacts Describe() const override { return inner_->Describe(); }
  absl::StatusOr<std::unique_ptr<DeviceMemory>> Allocate(Bytes bytes) override {
    if (allocations_++ > 0 && flaws_.allocation_max.value() > 0 && bytes > flaws_.allocation_max) {
      return absl::ResourceExhaustedError("too large for this device");
    }
    return inner_->Allocate(bytes);
  }
  absl::Status Write(std::byte* to, std::span<const std::byte> from) override {
    return inner_->Write(to, from);
  }
  absl::Status Read(std::span<std::byte> to, const std::byte* from) override {
    return inner_->Read(to, from);
  }
  absl::Status Zero(std::byte* at, Bytes bytes) override { return inner_->Zero(at, bytes); }
  absl::Status Copy(std::byte* to, const std::byte* from, Bytes bytes) override {
    return inner_->Copy(to, from, bytes);
  }
  absl::Status Run(const LaunchList& list) override {
    return inner_->Run(flaws_.eager ? Unrotated(list) : list);
  }
  absl::StatusOr<std::unique_ptr<Graph>> Capture(const LaunchList& list) override {
    return inner_->Capture(flaws_.captured ? Unrotated(list) : list);
  }

 private:
  static LaunchList Unrotated(LaunchList list) {
    std::erase_if(list, [](const Launch& launch) { return std::holds_alternative<RopeOp>(launch); });
    return list;
  }

  const std::unique_ptr<Backend> inner_;
  const Flaws flaws_;
  int allocations_ = 0;
};

PrepareSpec SmallSpec(const testing::EnginePlanOptions& options = {}) {
  PrepareSpec spec;
  spec.plan = testing::MakeEnginePlan(options);
  spec.key = {Epoch(1), "p"};
  spec.target = testing::TargetOf(spec.plan);
  if (options.draft_tokens > 0) spec.draft = testing::DraftOf(spec.plan);
  spec.weight_seed = 7;
  spec.preflight = PreflightSettings{};
  return spec;
}

absl::StatusOr<RankPreflight> RunOn(const PrepareSpec& spec, FlawedBackend::Flaws device_flaws = {},
                                    FlawedBackend::Flaws reference_flaws = {}) {
  const std::vector<RankComms> comms = MakeThreadComms(1, 1, std::chrono::seconds(20));
  const auto backend = [&](CpuKernels kernels, FlawedBackend::Flaws flaws) {
    CpuOptions cpu;
    cpu.tensor = comms[0].tensor.get();
    cpu.context = comms[0].context.get();
    cpu.kernels = kernels;
    return std::make_unique<FlawedBackend>(MakeCpuBackend(cpu), flaws);
  };
  return RunPreflight(
      spec, 0, *comms[0].tensor,
      {backend(CpuKernels::kFast, device_flaws), backend(CpuKernels::kReference, reference_flaws)});
}

TEST(PreflightTest, RunsEveryGraphOverTheExactArena) {
  const PrepareSpec spec = SmallSpec();
  const auto ran = RunOn(spec);
  KVASIR_ASSERT_OK(ran);
  EXPECT_EQ(ran->measured.measurement.arena_bytes, spec.plan.arena_bytes);
  EXPECT_EQ(ran->graphs.size(), spec.plan.graphs.size());
  EXPECT_EQ(ran->comparisons.size(), 4U);
}

// A pass moves a recurrent state on; runs that are compared start from the same one.
TEST(PreflightTest, RecurrentStatesUnderEveryRollback) {
  for (const testing::EnginePlanOptions& options :
       {testing::EnginePlanOptions{.hybrid = true, .rollback = StateRollback::kSnapshots, .parts = 3},
        testing::EnginePlanOptions{.hybrid = true, .rollback = StateRollback::kReplay},
        testing::EnginePlanOptions{.draft_tokens = 0, .hybrid = true}}) {
    SCOPED_TRACE(testing::NameOf(options));
    const PrepareSpec spec = SmallSpec(options);
    KVASIR_ASSERT_OK(CheckGroupsSupported(spec.plan));
    const auto ran = RunOn(spec);
    KVASIR_ASSERT_OK(ran);
    EXPECT_EQ(ran->graphs.size(), spec.plan.graphs.size());
  }
}

TEST(PreflightTest, MixturesOfExpertsShrinkAndTheCachePathStays) {
  PrepareSpec spec = SmallSpec();
  spec.target = testing::SmallExpertsTarget();
  spec.target.layers[1].mlp.intermediate = 1 << 16;
  const auto ran = RunOn(spec);
  KVASIR_ASSERT_OK(ran);
  EXPECT_LT(ran->measured.measurement.weight_bytes.value(), 1 << 20);
  EXPECT_EQ(ran->measured.measurement.arena_bytes, spec.plan.arena_bytes);
  EXPECT_EQ(ran->graphs.size(), spec.plan.graphs.size());
}

TEST(PreflightTest, AModelTooLargeForTheDeviceShrinks) {
  PrepareSpec spec = SmallSpec();
  const auto whole = RunOn(spec);
  KVASIR_ASSERT_OK(whole);
  for (ModelLayer& layer : spec.target.layers) layer.mlp.intermediate = 1 << 20;
  const auto ran = RunOn(spec, {.allocation_max = Bytes(1 << 20)});
  KVASIR_ASSERT_OK(ran);
  EXPECT_EQ(ran->measured.measurement.arena_bytes, spec.plan.arena_bytes);
  EXPECT_LT(ran->measured.measurement.weight_bytes.value(), 1 << 20);
}

TEST(PreflightTest, TheShrunkModelKeepsItsCacheShapes) {
  ModelDescription model = testing::SmallTarget();
  for (ModelLayer& layer : model.layers) layer.mlp = {.intermediate = 1 << 20, .experts = 384};
  model.vocab = 163'840;
  const ModelDescription shrunk = CachePathOf(model, 8);
  ASSERT_EQ(shrunk.layers.size(), model.layers.size());
  for (std::size_t i = 0; i < model.layers.size(); ++i) {
    EXPECT_EQ(shrunk.layers[i].mixer, model.layers[i].mixer);
    EXPECT_EQ(shrunk.layers[i].mlp.experts, 0);
    EXPECT_EQ(shrunk.layers[i].mlp.intermediate % 8, 0);
  }
  EXPECT_EQ(shrunk.vocab, 4096);
  EXPECT_EQ(CachePathOf(testing::SmallTarget(), 1).vocab, testing::kSmallVocab);
}

TEST(PreflightTest, AGraphThatReplaysOtherBitsFails) {
  const auto ran = RunOn(SmallSpec(), {.captured = true});
  ASSERT_EQ(ReasonOf(ran.status()), reason::kPreflightFailed) << ran.status();
  EXPECT_THAT(ErrorOf(ran.status()).message,
              ::testing::HasSubstr("gives other bits than running it eagerly"));
}

TEST(PreflightTest, ADeviceThatDiffersFromTheReferenceFails) {
  const auto ran = RunOn(SmallSpec(), {}, {.eager = true});
  ASSERT_EQ(ReasonOf(ran.status()), reason::kPreflightFailed) << ran.status();
  EXPECT_THAT(ErrorOf(ran.status()).message, ::testing::HasSubstr("ppb from the reference"));
}

struct GroupCase {
  const char* name;
  void (*change)(PlanGroup& group);
  const char* message;
};
void PrintTo(const GroupCase& c, std::ostream* out) { *out << c.name; }

class UnsupportedGroupTest : public ::testing::TestWithParam<GroupCase> {};

TEST_P(UnsupportedGroupTest, IsRefusedByName) {
  Plan plan = SmallSpec().plan;
  KVASIR_ASSERT_OK(CheckGroupsSupported(plan));
  PlanGroup& group = plan.pools[0].groups[1];
  GetParam().change(group);
  const TypedError error = ErrorOf(CheckGroupsSupported(plan));
  EXPECT_EQ(error.code, absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(error.reason, reason::kBackendUnsupportedGroup);
  EXPECT_EQ(error.metadata.at("group"), group.name);
  EXPECT_THAT(error.message, ::testing::HasSubstr(group.name));
  EXPECT_THAT(error.message, ::testing::HasSubstr(GetParam().message));
}

INSTANTIATE_TEST_SUITE_P(
    Kinds, UnsupportedGroupTest,
    ::testing::Values(GroupCase{"recurrent", [](PlanGroup& g) { g.behaviour.mixer = Mixer::kRecurrent; },
                                "recurrent state of a draft"},
                      GroupCase{"window", [](PlanGroup& g) { g.behaviour.window = 128; },
                                "windowed attention"},
                      GroupCase{"key_value_sharded",
                                [](PlanGroup& g) {
                                  g.layers[0].layout.kind = LayoutKind::kKeyValue;
                                  g.layers[0].layout.sharded = true;
                                },
                                "keys and values per head, sharded over context"},
                      GroupCase{"key_value_of_a_target",
                                [](PlanGroup& g) {
                                  g.behaviour.role = Role::kTarget;
                                  g.layers[0].layout.kind = LayoutKind::kKeyValue;
                                },
                                "has keys and values per head;"}),
    [](const auto& tested) { return std::string(tested.param.name); });

}  // namespace
}  // namespace kvasir
