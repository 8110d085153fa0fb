// Laws of the vllm rulesets on random cases: what the engine plans obeys them whatever its defects.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "planner/rulesets/vllm/engine_plan_text.h"
#include "planner/rulesets/vllm/plan_engine.h"
#include "tests/property/random_engine_case.h"
#include "tests/testing/engine_cases.h"

namespace kvasir {
namespace {

using testing::RandomEngineCase;
using vllm::EngineCase;
using vllm::EngineErrorKind;
using vllm::EnginePlan;
using vllm::EngineVersion;

constexpr std::uint32_t kCases = 3000;

template <class Law>
void ForEachPlan(std::uint32_t cases, Law law) {
  for (std::uint32_t seed = 0; seed < cases; ++seed) {
    for (const EngineVersion version : testing::kBothVersions) {
      SCOPED_TRACE(std::string(EngineVersionName(version)) + " seed " + std::to_string(seed));
      const EngineCase engine_case = RandomEngineCase(seed);
      law(engine_case, version, PlanEngine(engine_case, version));
      if (::testing::Test::HasFatalFailure()) return;
    }
  }
}

std::int64_t Blocks(const EnginePlan& plan) { return plan.workers.empty() ? 0 : plan.workers[0].num_blocks; }

TEST(EnginePlanLaws, TheGeneratorReachesPlansAndEveryCommonFailure) {
  std::map<EngineErrorKind, int> failures;
  int planned = 0;
  std::map<std::size_t, int> groups;
  ForEachPlan(kCases, [&](const EngineCase&, EngineVersion, const EnginePlan& plan) {
    if (plan.failure.has_value()) {
      ++failures[plan.failure->kind];
    } else {
      ++planned;
      ++groups[std::min<std::size_t>(plan.groups.size(), 3)];
    }
  });
  EXPECT_GT(planned, 1500);
  EXPECT_GT(groups[1], 100);
  EXPECT_GT(groups[2], 100);
  EXPECT_GT(groups[3], 100);
  for (const EngineErrorKind kind : {EngineErrorKind::kValueError, EngineErrorKind::kAssertionError,
                                     EngineErrorKind::kNotImplementedError, EngineErrorKind::kTypeError}) {
    EXPECT_GT(failures[kind], 10) << EngineErrorKindName(kind);
  }
}

TEST(EnginePlanLaws, MoreMemoryNeverLowersBlocksOrCapacity) {
  ForEachPlan(kCases, [](EngineCase engine_case, EngineVersion version, const EnginePlan& before) {
    for (const std::int64_t more : {std::int64_t{1}, std::int64_t{65536}, std::int64_t{1} << 24}) {
      for (vllm::EngineWorker& worker : engine_case.workers) worker.available_bytes += more;
      const EnginePlan after = PlanEngine(engine_case, version);
      if (before.failure.has_value()) continue;
      ASSERT_FALSE(after.failure.has_value()) << after.failure->message;
      ASSERT_GE(Blocks(after), Blocks(before));
      ASSERT_GE(after.kv_cache_size_tokens, before.kv_cache_size_tokens);
      ASSERT_GE(after.max_concurrency, before.max_concurrency);
    }
  });
}

TEST(EnginePlanLaws, MoreMemoryNeverShortensTheFittedLength) {
  ForEachPlan(800, [](EngineCase engine_case, EngineVersion version, const EnginePlan&) {
    engine_case.config.auto_fit = true;
    std::int64_t fitted = 0;
    for (int i = 0; i < 6; ++i) {
      const EnginePlan plan = PlanEngine(engine_case, version);
      const std::int64_t length = plan.failure.has_value() ? 0 : plan.max_model_len;
      ASSERT_GE(length, fitted);
      ASSERT_LE(length, engine_case.config.max_model_len) << "auto fit never raises the length";
      fitted = length;
      for (vllm::EngineWorker& worker : engine_case.workers) worker.available_bytes *= 2;
    }
  });
}

TEST(EnginePlanLaws, ALongerContextNeverRaisesConcurrency) {
  ForEachPlan(kCases, [](EngineCase engine_case, EngineVersion version, EnginePlan before) {
    for (int i = 0; i < 4; ++i) {
      engine_case.config.max_model_len += 1 + engine_case.config.max_model_len / 2;
      EnginePlan after = PlanEngine(engine_case, version);
      if (after.failure.has_value()) return;
      ASSERT_FALSE(before.failure.has_value()) << "a longer request fits, a shorter did not";
      ASSERT_LE(after.max_concurrency, before.max_concurrency);
      ASSERT_EQ(Blocks(after), Blocks(before));
      before = std::move(after);
    }
  });
}

// Whatever is no registration order: the numbering of specs, the order of a worker's overrides.
TEST(EnginePlanLaws, PermutingSpecsChangesNothing) {
  ForEachPlan(kCases, [](EngineCase engine_case, EngineVersion version, const EnginePlan& plan) {
    const std::string text = ToText(engine_case, plan);
    const auto count = static_cast<std::int32_t>(engine_case.specs.size());
    std::rotate(engine_case.specs.begin(), engine_case.specs.begin() + 1, engine_case.specs.end());
    for (vllm::EngineLayer& layer : engine_case.layers) layer.spec = (layer.spec + count - 1) % count;
    ASSERT_EQ(ToText(engine_case, PlanEngine(engine_case, version)), text);
  });
}

// Equal workers may come in any number.
TEST(EnginePlanLaws, AnEqualWorkerMoreChangesNothing) {
  ForEachPlan(800, [](EngineCase engine_case, EngineVersion version, const EnginePlan& plan) {
    if (engine_case.workers.size() > 1) return;
    engine_case.workers.push_back(engine_case.workers[0]);
    const EnginePlan two = PlanEngine(engine_case, version);
    ASSERT_EQ(two.failure, plan.failure);
    ASSERT_EQ(two.groups, plan.groups);
    if (plan.failure.has_value()) return;
    ASSERT_EQ(two.workers[0], plan.workers[0]);
    ASSERT_EQ(two.workers[1], plan.workers[0]);
  });
}

// What was meant differs only where a defect is met, and then is no worse.
TEST(EnginePlanLaws, RepairedPlansDifferOnlyByDefects) {
  int repaired = 0;
  ForEachPlan(kCases, [&](const EngineCase& engine_case, EngineVersion version, const EnginePlan& plan) {
    const EnginePlan meant = PlanEngineAsMeant(engine_case, version);
    if (ToText(engine_case, meant) == ToText(engine_case, plan)) return;
    ++repaired;
    ASSERT_EQ(version, EngineVersion::k2026_11);
    if (plan.failure.has_value()) return;
    ASSERT_FALSE(meant.failure.has_value());
    ASSERT_EQ(meant.kv_cache_size_tokens, plan.kv_cache_size_tokens);
  });
  EXPECT_GT(repaired, 10);
}

TEST(EnginePlanLaws, GroupsAndStagesCoverEachLayerOnce) {
  ForEachPlan(kCases, [](const EngineCase& engine_case, EngineVersion, const EnginePlan& plan) {
    if (plan.failure.has_value()) return;
    std::vector<int> in_groups(engine_case.layers.size());
    for (const vllm::EngineGroup& group : plan.groups) {
      ASSERT_FALSE(group.layers.empty());
      for (const std::int32_t layer : group.layers) ++in_groups[static_cast<std::size_t>(layer)];
    }
    ASSERT_TRUE(std::all_of(in_groups.begin(), in_groups.end(), [](int n) { return n == 1; }));
    for (std::size_t w = 0; w < plan.workers.size(); ++w) {
      std::vector<std::int32_t> held;
      for (const vllm::EngineGroup& group : plan.workers[w].groups) {
        held.insert(held.end(), group.layers.begin(), group.layers.end());
      }
      std::sort(held.begin(), held.end());
      std::vector<std::int32_t> own(engine_case.layers.size());
      for (std::size_t i = 0; i < own.size(); ++i) own[i] = static_cast<std::int32_t>(i);
      if (engine_case.workers[w].layers.has_value()) own = *engine_case.workers[w].layers;
      ASSERT_EQ(held, own);
    }
  });
}

// 2026-11 says where each page lies: inside the allocation, and apart from the others of its group.
TEST(EnginePlanLaws, PagesLieInTheAllocationAndApart) {
  ForEachPlan(kCases, [](const EngineCase&, EngineVersion version, const EnginePlan& plan) {
    if (version != EngineVersion::k2026_11 || plan.failure.has_value()) return;
    const vllm::EngineWorkerPlan& worker = plan.workers[0];
    for (const vllm::EngineGroup& group : worker.groups) {
      if (group.layers.empty()) continue;
      // The first and the last block of each layer, as [begin, end).
      std::vector<std::pair<std::int64_t, std::int64_t>> pages;
      for (const vllm::EngineTensor& tensor : worker.tensors) {
        for (std::size_t l = 0; l < tensor.layers.size(); ++l) {
          const auto at = std::find(group.layers.begin(), group.layers.end(), tensor.layers[l]);
          if (at == group.layers.end()) continue;
          const auto i = static_cast<std::size_t>(at - group.layers.begin());
          const auto* const wrapper = std::get_if<vllm::UniformTypeSpecs>(&group.spec);
          const std::int32_t spec =
              wrapper != nullptr ? wrapper->members[i].spec : std::get<std::int32_t>(group.spec);
          const std::int64_t page = *PageBytes(plan.specs[static_cast<std::size_t>(spec)]);
          if (tensor.block_stride < page || tensor.layer_stride < page)
            return;  // heads lie outside: no one piece
          for (const std::int64_t block : {std::int64_t{0}, worker.num_blocks - 1}) {
            const std::int64_t begin = tensor.offset + static_cast<std::int64_t>(l) * tensor.layer_stride +
                                       block * tensor.block_stride;
            ASSERT_LE(begin + page, tensor.size);
            if (block == 0 || worker.num_blocks > 1) pages.emplace_back(begin, begin + page);
          }
        }
      }
      std::sort(pages.begin(), pages.end());
      for (std::size_t p = 1; p < pages.size(); ++p) {
        ASSERT_TRUE(pages[p] == pages[p - 1] || pages[p - 1].second <= pages[p].first);
      }
    }
  });
}

}  // namespace
}  // namespace kvasir
