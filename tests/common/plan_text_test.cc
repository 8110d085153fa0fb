// Canonical text: exact round trips, and exactly the canonical bytes are accepted.
#include "common/plan/plan_text.h"

#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <variant>
#include <vector>

#include "common/base/limits.h"
#include "common/plan/verify.h"
#include "planner/rulesets/make_plan.h"
#include "tests/testing/k3_request.h"
#include "tests/testing/matchers.h"
#include "tests/testing/window_request.h"

namespace kvasir {
namespace {

using testing::IsOk;
using testing::K3Request;
using testing::StatusIs;
using testing::WindowRequest;

std::string TextOf(const PlanRequest& request) { return std::get<Planned>(MakePlan(request)).text; }

std::string Replaced(std::string text, const std::string& from, const std::string& to) {
  const std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return at == std::string::npos ? text : text.replace(at, from.size(), to);
}

TEST(PlanText, RoundTripsExactly) {
  for (const PlanRequest& request :
       {K3Request(), K3Request({.rollback = RollbackChoice::kSnapshots}), K3Request({.draft_tokens = 0}),
        WindowRequest(), WindowRequest({.dcp = 1}), testing::TinyRequest()}) {
    const std::string text = TextOf(request);
    const absl::StatusOr<Plan> plan = PlanFromText(text);
    ASSERT_THAT(plan, IsOk());
    EXPECT_EQ(PlanToText(*plan), text);
    EXPECT_THAT(VerifyPlan(*plan), IsOk());
  }
}

TEST(PlanText, KeepsAnyBytesOfNames) {
  Plan plan = std::get<Planned>(MakePlan(testing::TinyRequest())).plan;
  plan.target.name = std::string("a b\n\0%=\xff,\"", 10);
  plan.ruleset = "";
  const std::string text = PlanToText(plan);
  EXPECT_NE(text.find("name=a%20b%0A%00%25%3D%FF%2C%22"), std::string::npos);
  for (const char c : text) EXPECT_TRUE(c == '\n' || (c >= ' ' && c <= '~'));
  const absl::StatusOr<Plan> back = PlanFromText(text);
  ASSERT_THAT(back, IsOk());
  EXPECT_EQ(back->target.name, plan.target.name);
}

TEST(PlanText, KeepsWhatVerifyWouldRefuse) {
  Plan plan;
  plan.context_tokens = std::numeric_limits<std::int64_t>::min();
  plan.arena_bytes = Bytes(std::numeric_limits<std::int64_t>::max());
  plan.graphs.push_back({});
  const std::string text = PlanToText(plan);
  const absl::StatusOr<Plan> back = PlanFromText(text);
  ASSERT_THAT(back, IsOk());
  EXPECT_EQ(PlanToText(*back), text);
}

struct BadCase {
  std::string name;
  std::string from;
  std::string to;
  std::string message;
};

void PrintTo(const BadCase& c, std::ostream* out) { *out << c.name; }

class PlanTextRefuses : public ::testing::TestWithParam<BadCase> {};

TEST_P(PlanTextRefuses, NamesTheLineAndWhatWasExpected) {
  const BadCase& c = GetParam();
  const std::string text = Replaced(TextOf(K3Request()), c.from, c.to);
  EXPECT_THAT(PlanFromText(text), StatusIs(absl::StatusCode::kInvalidArgument, c.message));
}

INSTANTIATE_TEST_SUITE_P(
    , PlanTextRefuses,
    ::testing::Values(
        BadCase{"version", "kvasir-plan 1", "kvasir-plan 2", "line 1: expected the line 'kvasir-plan 1'"},
        BadCase{"carriage_return", "kvasir-plan 1\n", "kvasir-plan 1\r\n", "line 1: expected the line"},
        BadCase{"missing_line", "topology tp=8 dcp=8 interleave=1\n", "",
                "line 3: expected the line 'topology'"},
        BadCase{"missing_field", " dcp=8", "", "line 3: expected the field 'dcp='"},
        BadCase{"swapped_fields", "tp=8 dcp=8", "dcp=8 tp=8", "line 3: expected the field 'tp='"},
        BadCase{"extra_field", "interleave=1", "interleave=1 pp=1", "line 3: expected the end of the line"},
        BadCase{"double_space", "tp=8 dcp=8", "tp=8  dcp=8", "line 3: expected the field 'dcp='"},
        BadCase{"trailing_space", "interleave=1\n", "interleave=1 \n",
                "line 3: expected the end of the line"},
        BadCase{"leading_zero", "tp=8", "tp=08", "line 3 is not in canonical form"},
        BadCase{"plus", "tp=8", "tp=+8", "line 3: field 'tp' must be an integer"},
        BadCase{"hex", "tp=8", "tp=0x8", "line 3: field 'tp' must be an integer"},
        BadCase{"empty_number", "tp=8", "tp=", "line 3: field 'tp' must be an integer"},
        BadCase{"too_large", "tp=8", "tp=9223372036854775808", "line 3: field 'tp' must be an integer"},
        BadCase{"negative_zero", "window=0", "window=-0", "is not in canonical form"},
        BadCase{"flag", "sharded=1", "sharded=2", "field 'sharded' must be an integer from 0 to 1"},
        BadCase{"unknown_word", "rollback=replay", "rollback=retry",
                "line 6: field 'rollback' is an unknown word"},
        BadCase{"unknown_dtype", "dtype=bf16", "dtype=bf17", "field 'dtype' is an unknown word"},
        BadCase{"needless_escape", "moonshotai", "%6Doonshotai", "line 4 is not in canonical form"},
        BadCase{"lower_hex", "moonshotai", "%ffoonshotai", "line 4: field 'name' has a bad %XX"},
        BadCase{"cut_escape", "Kimi-K3 digest", "Kimi-K3% digest", "line 4: field 'name' has a bad %XX"},
        BadCase{"bad_layer", "id=target.3 ", "id=target.x ", "field 'id' must be like target.3"},
        BadCase{"layout_out_of_range", "name=target.layers.3 layout=0", "name=target.layers.3 layout=7",
                "field 'layout' must name one of 2 layouts"},
        BadCase{"group_ids", "groups=0,2", "groups=0,,2", "field 'groups' must be a list of group ids"},
        BadCase{"unknown_line", "graph pass=target_decode", "grap pass=target_decode",
                "expected the line 'end'"},
        BadCase{"after_the_end", "\nend\n", "\nend\nend\n", "expected the end of the text"},
        BadCase{"no_last_newline", "\nend\n", "\nend", "is not in canonical form"}),
    [](const auto& param) { return param.param.name; });

TEST(PlanTextLimits, LongTextIsRefusedUnread) {
  EXPECT_THAT(PlanFromText(std::string(static_cast<std::size_t>(kPlanTextBytesMax) + 1, 'x')),
              StatusIs(absl::StatusCode::kInvalidArgument, "at most 4194304 are accepted"));
}

// Layers copy their layout: without a limit on them a short text would take gigabytes.
TEST(PlanTextLimits, LayersTensorsAndNamesAreBounded) {
  const std::string text = TextOf(K3Request());
  const std::size_t begin = text.find("layer id=target.3 ");
  const std::string line = text.substr(begin, text.find('\n', begin) + 1 - begin);
  std::string many;
  for (int i = 0; i < 1100; ++i) many += line;
  EXPECT_THAT(PlanFromText(Replaced(text, line, many)),
              StatusIs(absl::StatusCode::kInvalidArgument, "expected at most 1024 layers"));
  std::string tensors;
  for (int i = 0; i < 17; ++i) tensors += "state name=s elements=1 dtype=f32\n";
  EXPECT_THAT(PlanFromText(Replaced(text, "state name=recurrent elements=196608 dtype=f32\n", tensors)),
              StatusIs(absl::StatusCode::kInvalidArgument, "expected at most 16 tensors"));
  EXPECT_THAT(PlanFromText(Replaced(text, "moonshotai", std::string(300, 'm'))),
              StatusIs(absl::StatusCode::kInvalidArgument, "must have at most 256 bytes"));
}

TEST(PlanTextRobust, NoPrefixIsAccepted) {
  const std::string text = TextOf(testing::TinyRequest());
  for (std::size_t size = 0; size < text.size(); ++size) {
    ASSERT_FALSE(PlanFromText(std::string_view(text).substr(0, size)).ok()) << size;
  }
}

// Whatever byte is changed: the text is refused, or it is another plan's canonical text.
TEST(PlanTextRobust, EveryChangedByteIsNoticed) {
  const std::string text = TextOf(testing::TinyRequest());
  int accepted = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    for (const char c : {' ', '\n', '=', '0', '9', '%', '\0', '\xff', 'z'}) {
      if (text[i] == c) continue;
      std::string changed = text;
      changed[i] = c;
      const absl::StatusOr<Plan> plan = PlanFromText(changed);
      if (!plan.ok()) continue;
      ++accepted;
      ASSERT_EQ(PlanToText(*plan), changed);
    }
  }
  EXPECT_GT(accepted, 0) << "changed digits and names are other plans";
}

TEST(PlanIdTest, IsTheHashOfTheText) {
  const Planned planned = std::get<Planned>(MakePlan(K3Request()));
  EXPECT_EQ(planned.plan_id, PlanId(planned.text));
  EXPECT_EQ(planned.plan_id.size(), 64U);
  EXPECT_NE(planned.plan_id, PlanId(planned.text + "\n"));
}

}  // namespace
}  // namespace kvasir
