#include "planner/service/planner_flags.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/testing/matchers.h"

namespace kvasir {
namespace {

using testing::StatusIs;

absl::StatusOr<PlannerFlags> Parse(const std::vector<std::string>& args) { return ParsePlannerFlags(args); }

TEST(PlannerFlags, AreRead) {
  const auto flags = Parse({"--listen", "0.0.0.0:1", "--insecure", "--state-dir=/x y", "--drain-seconds", "3",
                            "--threads=64", "--grace-seconds=5", "--reflection"});
  KVASIR_ASSERT_OK(flags);
  EXPECT_EQ(flags->listen, "0.0.0.0:1");
  EXPECT_EQ(flags->state_dir, "/x y");
  EXPECT_TRUE(flags->insecure);
  EXPECT_TRUE(flags->reflection);
  EXPECT_EQ(flags->drain_seconds, 3);
  EXPECT_EQ(flags->grace_seconds, 5);
  EXPECT_EQ(flags->threads, 64);
  EXPECT_EQ(Parse({})->listen, "127.0.0.1:7450");
}

TEST(PlannerFlags, WrongOnesAreNamed) {
  const auto invalid = absl::StatusCode::kInvalidArgument;
  EXPECT_THAT(Parse({"--port", "1"}), StatusIs(invalid, "unknown flag --port"));
  EXPECT_THAT(Parse({"listen"}), StatusIs(invalid, "unknown flag listen"));
  EXPECT_THAT(Parse({"--listen"}), StatusIs(invalid, "--listen needs a value"));
  EXPECT_THAT(Parse({"--insecure=yes"}), StatusIs(invalid, "--insecure takes no value"));
  EXPECT_THAT(Parse({"--threads", "0"}), StatusIs(invalid, "--threads"));
  EXPECT_THAT(Parse({"--threads", "65"}), StatusIs(invalid, "give 0 to 64"));
  EXPECT_THAT(Parse({"--drain-seconds", "-1"}), StatusIs(invalid, "--drain-seconds"));
  EXPECT_THAT(Parse({"--drain-seconds", "3s"}), StatusIs(invalid, "\"3s\""));
}

TEST(PlannerFlags, StateLivesWhereTheEnvironmentSays) {
  EXPECT_EQ(*DefaultStateDir("/x", "/home/a"), "/x/kvasir/planner");
  EXPECT_EQ(*DefaultStateDir("", "/home/a"), "/home/a/.local/state/kvasir/planner");
  EXPECT_THAT(DefaultStateDir(nullptr, nullptr),
              StatusIs(absl::StatusCode::kFailedPrecondition, "--state-dir"));
}

TEST(PlannerFlags, TheHelpNamesEveryFlagAndExitCode) {
  for (const char* word : {"--listen", "--state-dir", "--insecure", "--reflection", "--threads",
                           "--grace-seconds", "--drain-seconds", "Exit codes: 0"}) {
    EXPECT_THAT(PlannerHelp(), ::testing::HasSubstr(word));
  }
}

}  // namespace
}  // namespace kvasir
