#include "common/obs/event_log.h"

#include <gtest/gtest.h>

#include <cstdint>

namespace kvasir {
namespace {

TEST(EventLog, PlainValuesStandAsTheyAre) {
  EXPECT_EQ(
      FormatEvent("plan_prepared", {{"epoch", std::int64_t{12}}, {"worker", "node-a:7451"}, {"ok", true}}),
      "event=plan_prepared epoch=12 worker=node-a:7451 ok=true");
}

TEST(EventLog, NoValueForgesAFieldOrALine) {
  EXPECT_EQ(FormatEvent("refused", {{"why", "a b"}}), "event=refused why=\"a b\"");
  EXPECT_EQ(FormatEvent("refused", {{"why", "x\nevent=ok"}}), "event=refused why=\"x\\nevent=ok\"");
  EXPECT_EQ(FormatEvent("refused", {{"why", "say \"hi\" \\"}}), "event=refused why=\"say \\\"hi\\\" \\\\\"");
  EXPECT_EQ(FormatEvent("refused", {{"why", "\x01\xff"}}), "event=refused why=\"\\x01\\xff\"");
  EXPECT_EQ(FormatEvent("refused", {{"why", ""}}), "event=refused why=\"\"");
  EXPECT_EQ(FormatEvent("refused", {{"why", "k=v"}}), "event=refused why=\"k=v\"");
}

}  // namespace
}  // namespace kvasir
