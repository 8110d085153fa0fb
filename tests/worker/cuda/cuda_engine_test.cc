// The engine on the CUDA backend, its kernels run on the CPU: whole deployments, ranks as threads, graphs
// captured and replayed. What speculation emits is what plain decoding emits; what the backend computes is
// what the CPU's does.
#include <cuda_runtime.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <optional>
#include <string>

#include "absl/strings/str_format.h"
#include "tests/testing/engine_plan.h"
#include "tests/testing/engine_rig.h"
#include "tests/testing/matchers.h"
#include "worker/cuda/cuda_backend.h"

namespace kvasir::testing {
namespace {

struct Case {
  Topology topology;
  std::optional<StateRollback> rollback = std::nullopt;  // of a hybrid target; nullopt: MLA alone
  bool experts = false;
  bool mtp = false;
  bool dflash = false;
  MarkovHead head = MarkovHead::kVanilla;
};

std::string NameOfCase(const Case& c) {
  return absl::StrFormat("tp%d_dcp%d%s%s%s%s_head%d", c.topology.tp, c.topology.dcp,
                         c.rollback.has_value() ? absl::StrFormat("_%s", StateRollbackName(*c.rollback)) : "",
                         c.experts ? "_experts" : "", c.mtp ? "_mtp" : "", c.dflash ? "_dflash" : "",
                         static_cast<int>(c.head));
}
void PrintTo(const Case& c, std::ostream* out) { *out << NameOfCase(c); }

Plan PlanOf(const Case& c, std::int64_t draft_tokens) {
  return MakeEnginePlan({.topology = c.topology,
                         .draft_tokens = draft_tokens,
                         .parents = 120,
                         .max_requests = 4,
                         .context_tokens = 160,
                         .hybrid = c.rollback.has_value(),
                         .rollback = c.rollback.value_or(StateRollback::kSnapshots),
                         .experts = c.experts,
                         .dflash = c.dflash,
                         .markov_head = c.head,
                         .mtp = c.mtp});
}

using RowLogits = std::map<std::int64_t, std::vector<float>>;

EngineRigOptions OnCuda(Plan plan) {
  EngineRigOptions options;
  options.plan = std::move(plan);
  options.make_backend = [](Communicator* tensor, Communicator* context) -> std::unique_ptr<Backend> {
    return MakeCudaBackend({.tensor = tensor, .context = context}).value();
  };
  return options;
}

class CudaEngineTest : public ::testing::TestWithParam<Case> {
 protected:
  // One longer than a split, one shorter than a block, and one between.
  static std::vector<Tokens32> Prompts() { return {MakePrompt(70, 1), MakePrompt(3, 2), MakePrompt(17, 3)}; }
};

INSTANTIATE_TEST_SUITE_P(
    Cases, CudaEngineTest,
    ::testing::Values(Case{{1, 1, 1}}, Case{{2, 2, 1}}, Case{{4, 2, 1}, StateRollback::kReplay},
                      Case{{1, 1, 1}, StateRollback::kSnapshots, true},
                      Case{.topology = {2, 1, 1}, .rollback = StateRollback::kReplay, .experts = true},
                      Case{.topology = {1, 1, 1}, .mtp = true}, Case{.topology = {1, 1, 1}, .dflash = true},
                      Case{.topology = {1, 1, 1}, .head = MarkovHead::kGated},
                      Case{.topology = {1, 1, 1}, .head = MarkovHead::kRnn}),
    [](const auto& test) { return NameOfCase(test.param); });

TEST_P(CudaEngineTest, SpeculationEmitsWhatPlainDecodingEmits) {
  constexpr std::int64_t kOutput = 12;
  auto plain = EngineRig::Create(OnCuda(PlanOf(GetParam(), 0)));
  KVASIR_ASSERT_OK(plain);
  const auto want = DecodeAll(**plain, Prompts(), kOutput, false);
  KVASIR_ASSERT_OK(want);
  auto drafting = EngineRig::Create(OnCuda(PlanOf(GetParam(), 3)));
  KVASIR_ASSERT_OK(drafting);
  const auto got = DecodeAll(**drafting, Prompts(), kOutput, true);
  KVASIR_ASSERT_OK(got);
  EXPECT_EQ(*got, *want);
  EXPECT_GT((*drafting)->drafted(), 0);
}

TEST_P(CudaEngineTest, LogitsAreThoseOfTheCpu) {
  RowLogits cpu;
  RowLogits cuda;
  for (RowLogits* rows : {&cpu, &cuda}) {
    EngineRigOptions options =
        rows == &cuda ? OnCuda(PlanOf(GetParam(), 0)) : EngineRigOptions{PlanOf(GetParam(), 0)};
    options.observe_pass = [rows](std::int64_t rank, const PassMetadata& metadata,
                                  std::span<const float> logits) {
      if (rank != 0 || metadata.shape.pass == Pass::kTargetPrefill) return;
      rows->try_emplace(metadata.positions[0], logits.begin(), logits.begin() + kSmallVocab);
    };
    auto rig = EngineRig::Create(options);
    KVASIR_ASSERT_OK(rig);
    // One token after the prompt, so that both backends saw the same.
    for (const Tokens32& prompt : Prompts()) KVASIR_ASSERT_OK(DecodeAll(**rig, {prompt}, 2, false));
  }
  ASSERT_EQ(cpu.size(), Prompts().size());
  ASSERT_EQ(cuda.size(), cpu.size());
  for (const auto& [position, want] : cpu) {
    const std::vector<float>& got = cuda.at(position);
    for (std::size_t i = 0; i < want.size(); ++i) EXPECT_NEAR(got[i], want[i], 2e-2) << position << " " << i;
  }
}

// Of a device's memory the host may read nothing by itself: the engine asks the backend for all that it looks
// at.
TEST(CudaMemoryTest, TheEngineTouchesNothingOfItItself) {
  for (const Case& c :
       {Case{.topology = {1, 1, 1}, .rollback = StateRollback::kReplay, .experts = true},
        Case{.topology = {1, 1, 1}, .mtp = true}, Case{.topology = {1, 1, 1}, .dflash = true}}) {
    SCOPED_TRACE(NameOfCase(c));
    cuda_on_cpu::AllocateLockable(true);
    auto rig = EngineRig::Create(OnCuda(PlanOf(c, 3)));
    cuda_on_cpu::LockMemory(true);
    const auto tokens =
        rig.ok() ? DecodeAll(**rig, {MakePrompt(17, 3), MakePrompt(5, 1)}, 8, true) : rig.status();
    cuda_on_cpu::LockMemory(false);
    cuda_on_cpu::AllocateLockable(false);
    KVASIR_EXPECT_OK(tokens);
  }
}

}  // namespace
}  // namespace kvasir::testing
