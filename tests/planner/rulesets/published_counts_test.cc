// How many requests of 8,192, 32,768 and 131,072 tokens the native layout must admit, at least, for pairs and
// ranks that people run.
#include <gtest/gtest.h>

#include <cstdint>
#include <ostream>
#include <string>
#include <vector>

#include "planner/core/capacity.h"
#include "tests/testing/catalogue_plans.h"

namespace kvasir {
namespace {

constexpr std::int64_t kGiB = std::int64_t{1} << 30;

struct CountCase {
  std::string name;
  std::string draft;
  std::int64_t tp = 8;
  std::int64_t dcp = 8;
  std::int64_t memory_bytes = 468 * kGiB / 10;
  std::string cache_dtype = "auto";
  std::string rollback = "auto";
  std::vector<std::int64_t> at_least;
};
void PrintTo(const CountCase& c, std::ostream* out) { *out << c.name; }

class KimiK3Counts : public ::testing::TestWithParam<CountCase> {};

TEST_P(KimiK3Counts, AreReached) {
  const CountCase& c = GetParam();
  PlanOptions options;
  options.tp = c.tp;
  options.dcp = c.dcp;
  options.kv_memory_bytes = {c.memory_bytes};
  options.contexts = {131072};
  options.cache_dtype = c.cache_dtype;
  options.state_rollback = c.rollback;
  options.target_backend = "triton";  // reads bf16 and fp8
  if (!c.draft.empty()) {
    options.draft_tokens = 7;
    options.draft_backend = "triton";
  }
  const Plan plan = testing::CataloguePlan("kimi-k3", c.draft, options).plan;
  std::vector<std::int64_t> requests;
  for (const std::int64_t context : {8192, 32768, 131072})
    requests.push_back(CapacityAt(plan, context).requests);
  for (std::size_t i = 0; i < requests.size(); ++i)
    EXPECT_GE(requests[i], c.at_least[i]) << ::testing::PrintToString(requests);
}

const std::string kDspark = "kimi-k3-dspark";
INSTANTIATE_TEST_SUITE_P(
    , KimiK3Counts,
    ::testing::Values(
        CountCase{.name = "snapshots", .draft = kDspark, .rollback = "snapshots", .at_least = {95, 79, 47}},
        CountCase{.name = "replay", .draft = kDspark, .at_least = {505, 247, 81}},
        CountCase{.name = "fp8", .draft = kDspark, .cache_dtype = "fp8_e4m3", .at_least = {588, 366, 145}},
        CountCase{.name = "dcp1_snapshots",
                  .draft = kDspark,
                  .dcp = 1,
                  .rollback = "snapshots",
                  .at_least = {65, 31, 10}},
        CountCase{.name = "dcp1_replay", .draft = kDspark, .dcp = 1, .at_least = {145, 43, 11}},
        CountCase{.name = "tp16_snapshots",
                  .draft = kDspark,
                  .tp = 16,
                  .rollback = "snapshots",
                  .at_least = {179, 131, 62}},
        CountCase{.name = "tp16_replay", .draft = kDspark, .tp = 16, .at_least = {732, 291, 85}},
        CountCase{.name = "no_draft", .draft = "", .at_least = {588, 293, 97}},
        CountCase{.name = "small_snapshots",
                  .draft = kDspark,
                  .memory_bytes = 20 * kGiB,
                  .rollback = "snapshots",
                  .at_least = {40, 33, 20}},
        CountCase{
            .name = "small_replay", .draft = kDspark, .memory_bytes = 20 * kGiB, .at_least = {208, 103, 34}}),
    [](const auto& its) { return its.param.name; });

}  // namespace
}  // namespace kvasir
