#include "planner/cli/command_line.h"

#include <array>
#include <string>
#include <vector>

#include "planner/cli/flag_words.h"
#include "planner/cli/subject_words.h"
#include "planner/cli/text_table.h"
#include "tests/testing/matchers.h"

namespace kvasir::cli {
namespace {

using testing::StatusIs;

constexpr std::array kFlags = {Flag{"target", "MODEL", "a model"}, Flag{"tp", "N", "ranks"},
                               Flag{"trace", "", "a switch"}};

absl::StatusOr<CommandLine> Parse(const std::vector<std::string>& args, Words words = {}) {
  return CommandLine::Parse(kFlags, words, args);
}

TEST(CommandLine, BothFormsSwitchesAndWords) {
  const auto line = Parse({"a", "--target=x=y", "--tp", "-3", "--trace", "-", "--", "--b"}, {0, 3});
  KVASIR_ASSERT_OK(line);
  EXPECT_EQ(line->Value("target"), "x=y");
  const auto tp = line->IntOr("tp", 1);
  KVASIR_ASSERT_OK(tp);
  EXPECT_EQ(*tp, -3);
  EXPECT_TRUE(line->Has("trace"));
  EXPECT_EQ(line->words(), (std::vector<std::string>{"a", "-", "--b"}));
}

TEST(CommandLine, RefusesByName) {
  struct Case {
    std::vector<std::string> args;
    std::string part;
  };
  for (const Case& c :
       {Case{{"--targt", "x"}, "did you mean --target?"}, Case{{"--zzzzzzzz"}, "unknown flag --zzzzzzzz"},
        Case{{"--tp", "1", "--tp", "2"}, "--tp is given twice"}, Case{{"--tp"}, "--tp needs a value: N"},
        Case{{"--trace=1"}, "--trace takes no value"}, Case{{"-t"}, "two dashes"},
        Case{{"word"}, "unexpected word"}}) {
    EXPECT_THAT(Parse(c.args), StatusIs(absl::StatusCode::kInvalidArgument, c.part));
  }
  EXPECT_THAT(Parse({}, {1, 1}), StatusIs(absl::StatusCode::kInvalidArgument, "missing"));
  for (const char* number : {"", "x", "1x", " 1", "1.0", "99999999999999999999"}) {
    const auto line = Parse({"--tp", number});
    KVASIR_ASSERT_OK(line);
    EXPECT_THAT(line->IntOr("tp", 1), StatusIs(absl::StatusCode::kInvalidArgument, "--tp"));
  }
}

TEST(Nearest, OnlyNearWords) {
  const std::vector<std::string> words = {"plan", "apply", "status"};
  EXPECT_EQ(Nearest("plna", words), "plan");
  EXPECT_EQ(Nearest("sttus", words), "status");
  EXPECT_EQ(Nearest("xyz", words), "");
  EXPECT_EQ(Nearest(std::string(100000, 'a'), words), "");
}

TEST(FlagWords, FieldsBecomeFlags) {
  EXPECT_EQ(InFlagWords("set topology.dcp to 1."), "set --dcp to 1.");
  EXPECT_EQ(InFlagWords("ranks[].kv_memory is 0, must be from 1"), "--kv-memory is 0, must be from 1");
  EXPECT_EQ(InFlagWords("my_rollback stays"), "my_rollback stays");
  EXPECT_EQ(InFlagWords("..."), "...");
  EXPECT_EQ(InFlagWords(""), "");
  EXPECT_EQ(FlagOf("nothing"), "nothing");
}

TEST(SubjectWords, LayersBecomeRanges) {
  EXPECT_EQ(
      ShortSubjects({"target.layers.3", "target.layers.4", "target.layers.5", "target.layers.9", "rank 1"}),
      (std::vector<std::string>{"rank 1", "target layers 3-5, 9"}));
  EXPECT_EQ(ShortSubjects({"draft.layers.7"}), (std::vector<std::string>{"draft layer 7"}));
  std::vector<std::string> many;
  for (int i = 0; i < 100; i += 2) many.push_back("target.layers." + std::to_string(i));
  EXPECT_EQ(
      ShortSubjects(many),
      (std::vector<std::string>{"target layers 0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, ... (50 in all)"}));
}

TEST(TextTable, CountsCharactersNotBytes) {
  TextTable table("lr", 1);
  table.Row({"█", "1"});
  table.Row({"ab", "10"});
  EXPECT_EQ(table.Text(1), " █   1\n ab 10\n");
}

}  // namespace
}  // namespace kvasir::cli
