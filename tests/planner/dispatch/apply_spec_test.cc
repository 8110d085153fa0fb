#include "planner/dispatch/apply_spec.h"

#include <gtest/gtest.h>

#include <ostream>
#include <string>
#include <vector>

#include "common/base/typed_error.h"
#include "tests/testing/matchers.h"

namespace kvasir {
namespace {

struct Case {
  std::string name = {};
  std::vector<WorkerTarget> workers = {};
  std::string reason = {};  // empty: accepted
  std::string field = {};
};
void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

class ArrangeWorkersTest : public ::testing::TestWithParam<Case> {};

TEST_P(ArrangeWorkersTest, TakesEveryRankOnce) {
  std::vector<WorkerTarget> workers = GetParam().workers;
  const absl::Status status = ArrangeWorkers(workers, 4);
  EXPECT_EQ(ReasonOf(status), GetParam().reason);
  if (!status.ok()) {
    EXPECT_EQ(ErrorOf(status).field, GetParam().field);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  }
}

INSTANTIATE_TEST_SUITE_P(
    All, ArrangeWorkersTest,
    ::testing::Values(
        Case{"two", {{"a:1", {0, 1}}, {"b:1", {2, 3}}}}, Case{"one", {{"a:1", {3, 2, 1, 0}}}},
        Case{"mixed", {{"b:1", {3, 1}}, {"a:1", {2, 0}}}}, Case{"none", {}, "RANKS_INCOMPLETE", "workers"},
        Case{"missing", {{"a:1", {0, 1, 3}}}, "RANKS_INCOMPLETE", "workers"},
        Case{"twice", {{"a:1", {0, 1}}, {"b:1", {1, 2, 3}}}, "DUPLICATE_ITEM", "workers[1].ranks"},
        Case{"twice_in_one", {{"a:1", {0, 0, 1, 2, 3}}}, "DUPLICATE_ITEM", "workers[0].ranks"},
        Case{"beyond", {{"a:1", {0, 1, 2, 3, 4}}}, "VALUE_OUT_OF_RANGE", "workers[0].ranks"},
        Case{"negative", {{"a:1", {-1, 0, 1, 2, 3}}}, "VALUE_OUT_OF_RANGE", "workers[0].ranks"},
        Case{"empty", {{"a:1", {0, 1, 2, 3}}, {"b:1", {}}}, "MISSING_FIELD", "workers[1].ranks"},
        Case{"same_address", {{"a:1", {0, 1}}, {"a:1", {2, 3}}}, "DUPLICATE_ITEM", "workers[1].address"}),
    [](const auto& param) { return param.param.name; });

TEST(ArrangeWorkers, TheFirstWorkerHasRankZero) {
  std::vector<WorkerTarget> workers = {{"b:1", {3, 1}}, {"a:1", {2, 0}}};
  KVASIR_ASSERT_OK(ArrangeWorkers(workers, 4));
  EXPECT_EQ(workers, (std::vector<WorkerTarget>{{"a:1", {0, 2}}, {"b:1", {1, 3}}}));
}

}  // namespace
}  // namespace kvasir
