// Remedies are promises: each, applied, gives exactly what it says.
#include "planner/questions/explain_question.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "planner/core/capacity.h"
#include "planner/core/outcome.h"
#include "planner/questions/changes.h"
#include "planner/rulesets/make_plan.h"
#include "tests/testing/kimi_question.h"

namespace kvasir {
namespace {

PlanQuestion Kimi(std::int64_t dcp, std::int64_t context) {
  PlanQuestion question = testing::KimiQuestion();
  question.options.dcp = dcp;
  question.options.kv_memory_bytes = {468 * testing::kGiB / 10};
  question.options.contexts = {context};
  return question;
}

Planned PlannedOf(const PlanQuestion& question) { return std::get<Planned>(MakePlan(RequestOf(question))); }

// The question with the change that has these flags.
PlanQuestion Changed(PlanQuestion question, const std::string& flags) {
  for (const Change& change : ChangesOf(question)) {
    if (change.flags != flags) continue;
    change.apply(question);
    return question;
  }
  ADD_FAILURE() << "no change has the flags " << flags;
  return question;
}

TEST(RankRemediesTest, EachAppliedGivesWhatItSays) {
  for (const std::int64_t dcp : {1, 2, 8}) {
    const PlanQuestion question = Kimi(dcp, 131072);
    const Plan plan = PlannedOf(question).plan;
    const std::vector<Remedy> remedies = RankRemedies(question, plan);
    ASSERT_FALSE(remedies.empty());
    for (const Remedy& remedy : remedies) {
      const Planned applied = PlannedOf(Changed(question, remedy.flags));
      EXPECT_EQ(applied.plan_id, remedy.plan_id);
      ASSERT_EQ(remedy.capacity.size(), 3U);
      for (const CapacityRow& row : remedy.capacity)
        EXPECT_EQ(row, CapacityAt(applied.plan, row.context_tokens)) << remedy.flags;
    }
  }
}

TEST(RankRemediesTest, MostAtTheLongestLengthFirst) {
  const PlanQuestion question = Kimi(1, 131072);
  const Plan plan = PlannedOf(question).plan;
  const std::vector<Remedy> remedies = RankRemedies(question, plan);
  ASSERT_GE(remedies.size(), 3U);
  EXPECT_EQ(remedies[0].flags, "--dcp 8");
  for (std::size_t i = 1; i < remedies.size(); ++i)
    EXPECT_GE(remedies[i - 1].capacity.back().requests, remedies[i].capacity.back().requests);
}

TEST(RankRemediesTest, OnlyWhatAdmitsMoreSomewhere) {
  const PlanQuestion question = Kimi(8, 131072);
  const Plan plan = PlannedOf(question).plan;
  for (const Remedy& remedy : RankRemedies(question, plan)) {
    bool more = false;
    for (const CapacityRow& row : remedy.capacity)
      more = more || row.requests > CapacityAt(plan, row.context_tokens).requests;
    EXPECT_TRUE(more) << remedy.flags;
    EXPECT_NE(remedy.flags, "--dcp 1");
  }
}

TEST(RankRemediesTest, SnapshotsThatWereAskedForCanBeGivenUp) {
  PlanQuestion question = Kimi(8, 131072);
  question.options.state_rollback = "snapshots";
  const Plan plan = PlannedOf(question).plan;
  const std::vector<ExplainLine> lines = ExplainRemedies(plan, RankRemedies(question, plan));
  std::string text;
  for (const ExplainLine& line : lines) {
    EXPECT_EQ(line.topic, ExplainTopic::kRemedy);
    if (line.subject == "--state-rollback auto") text = line.text;
  }
  EXPECT_EQ(text,
            "1.70x, 82 instead of 48 requests of 131072 tokens; 3.11x, 249 instead of 80 requests of 32768 "
            "tokens; 5.31x, 510 instead of 96 requests of 8192 tokens");
}

TEST(RankRemediesTest, AReplicatedDraftCanBeSharded) {
  PlanQuestion question = Kimi(8, 131072);
  question.options.draft_context = kDraftReplicated;
  const Plan plan = PlannedOf(question).plan;
  question.options.draft_context = kDraftSharded;
  const Planned sharded = PlannedOf(question);
  question.options.draft_context = kDraftReplicated;
  bool found = false;
  for (const Remedy& remedy : RankRemedies(question, plan)) {
    if (remedy.flags != "--draft-context sharded") continue;
    found = true;
    EXPECT_EQ(remedy.plan_id, sharded.plan_id);
  }
  EXPECT_TRUE(found);
}

TEST(ExplainWeightsTest, BothModelsBesideTheArena) {
  const std::vector<ExplainLine> lines = ExplainWeights(Kimi(8, 131072));
  ASSERT_EQ(lines.size(), 2U);
  EXPECT_EQ(lines[0].subject, "weights.target");
  EXPECT_EQ(lines[1].subject, "weights.draft");
  for (const ExplainLine& line : lines) EXPECT_EQ(line.text.find("estimated: "), 0U) << line.text;
}

}  // namespace
}  // namespace kvasir
