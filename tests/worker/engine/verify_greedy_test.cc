#include "worker/engine/verify_greedy.h"

#include <gtest/gtest.h>

#include <ostream>

namespace kvasir {
namespace {

using List = std::vector<std::int32_t>;

struct Case {
  const char* name;
  List drafted;
  List target_next;
  std::int64_t accepted;
  List emitted;
};
void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

class VerifyGreedyTest : public ::testing::TestWithParam<Case> {};

TEST_P(VerifyGreedyTest, EmitsTheAcceptedPrefixAndTheTargetsToken) {
  const DraftVerdict verdict = VerifyGreedy(GetParam().drafted, GetParam().target_next);
  EXPECT_EQ(verdict.accepted, GetParam().accepted);
  EXPECT_EQ(verdict.emitted, GetParam().emitted);
}

INSTANTIATE_TEST_SUITE_P(
    , VerifyGreedyTest,
    ::testing::Values(Case{"no_draft", {}, {7}, 0, {7}},                    //
                      Case{"none", {1, 2}, {3, 2, 9}, 0, {3}},              // a later match does not count
                      Case{"some", {1, 2, 3}, {1, 2, 4, 9}, 2, {1, 2, 4}},  //
                      Case{"all", {1, 2}, {1, 2, 9}, 2, {1, 2, 9}}),
    [](const auto& its) { return std::string(its.param.name); });

}  // namespace
}  // namespace kvasir
