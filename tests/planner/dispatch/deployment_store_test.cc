#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include "common/base/error_reasons.h"
#include "common/base/typed_error.h"
#include "planner/dispatch/deployment_record.h"
#include "planner/dispatch/file_store.h"
#include "tests/testing/matchers.h"

namespace kvasir {
namespace {

namespace fs = std::filesystem;

DeploymentRecord FullRecord() {
  ApplySpec spec;
  spec.plan_id = "abc";
  spec.plan_text = "kvasir-plan 1\nlayers 3\n";
  spec.target_model_text = "model \x01 bytes \n\n";
  spec.weight_seed = 7;
  spec.workers = {{"node-a:1", {0, 1}}, {"node-b:1", {2, 3}}};
  spec.times.commit_ms = 123;
  DeploymentRecord record{.name = "k3", .version = 4, .max_epoch = Epoch(12)};
  record.serving = ServingPlan{Epoch(11), spec};
  record.pending = PendingApply{.epoch = Epoch(12), .phase = PendingPhase::kCommitting, .spec = spec};
  record.pending->fallback = spec;
  record.pending->fallback->weight_seed = 0;
  record.pending->fallback->target_checkpoint = "pair/target";
  record.pending->fallback->draft_checkpoint = "pair/draft";
  record.pending->restoring = true;
  record.pending->request_id = "r 1";
  record.last_error = {14, "RANK_LOST", "rank 5 is gone"};
  record.update_wall_ms = 1'700'000'000'000;
  return record;
}

TEST(DeploymentRecord, SurvivesItsText) {
  for (const DeploymentRecord& record : {FullRecord(), DeploymentRecord{.name = "empty"}}) {
    const absl::StatusOr<DeploymentRecord> back = RecordFromText(RecordToText(record));
    KVASIR_ASSERT_OK(back);
    EXPECT_TRUE(*back == record);
  }
}

TEST(DeploymentRecord, EveryFlippedByteAndEveryCutIsNoticed) {
  const std::string text = RecordToText(FullRecord());
  for (std::size_t i = 0; i < text.size(); ++i) {
    std::string damaged = text;
    damaged[i] = static_cast<char>(damaged[i] ^ 1);
    EXPECT_EQ(ReasonOf(RecordFromText(damaged).status()), reason::kStoreCorrupt) << "byte " << i;
    EXPECT_FALSE(RecordFromText(text.substr(0, i)).ok()) << "cut at " << i;
  }
}

// What was written before a spec could have checkpoints has no line about them.
TEST(DeploymentRecord, SaysNothingOfCheckpointsWhereThereAreNone) {
  DeploymentRecord record = FullRecord();
  record.pending.reset();
  EXPECT_EQ(RecordToText(record).find("checkpoint"), std::string::npos);
  record.serving->spec.target_checkpoint = "t";
  EXPECT_NE(RecordToText(record).find("checkpoint present\ntarget_checkpoint 1 t\ndraft_checkpoint 0 \n"),
            std::string::npos);
}

class FileStoreTest : public ::testing::Test {
 protected:
  FileStoreTest() : directory_(fs::path(::testing::TempDir()) / Name()) { fs::remove_all(directory_); }
  ~FileStoreTest() override { fs::remove_all(directory_); }
  static std::string Name() {
    return std::string("kvasir_store_") + ::testing::UnitTest::GetInstance()->current_test_info()->name();
  }
  const fs::path directory_;
};

TEST_F(FileStoreTest, KeepsRecordsAcrossItsOwnLife) {
  {
    const auto store = FileStore::Open(directory_);
    KVASIR_ASSERT_OK(store);
    const auto none = (*store)->Get("k3");
    KVASIR_ASSERT_OK(none);
    EXPECT_FALSE(none->has_value());
    DeploymentRecord record = FullRecord();
    record.version = 0;
    KVASIR_ASSERT_OK((*store)->Put(record));
    KVASIR_ASSERT_OK((*store)->Put({.name = "a"}));
  }
  const auto store = FileStore::Open(directory_);
  KVASIR_ASSERT_OK(store);
  const auto records = (*store)->List();
  KVASIR_ASSERT_OK(records);
  ASSERT_EQ(records->size(), 2U);
  EXPECT_EQ((*records)[0].name, "a");
  DeploymentRecord want = FullRecord();
  want.version = 1;
  EXPECT_TRUE((*records)[1] == want);
}

TEST_F(FileStoreTest, WritesOnlyOverTheVersionThatWasRead) {
  const auto store = FileStore::Open(directory_);
  KVASIR_ASSERT_OK(store);
  KVASIR_ASSERT_OK((*store)->Put({.name = "d", .version = 0}));
  EXPECT_EQ(ReasonOf((*store)->Put({.name = "d", .version = 0})), reason::kApplySuperseded);
  EXPECT_EQ(ReasonOf((*store)->Put({.name = "d", .version = 2})), reason::kApplySuperseded);
  KVASIR_EXPECT_OK((*store)->Put({.name = "d", .version = 1}));
}

TEST_F(FileStoreTest, ADamagedFileIsATypedErrorThatNamesIt) {
  const auto store = FileStore::Open(directory_);
  KVASIR_ASSERT_OK(store);
  KVASIR_ASSERT_OK((*store)->Put({.name = "d"}));
  const fs::path path = directory_ / "d.deployment";
  std::ofstream(path, std::ios::app) << "x";
  for (const absl::Status& status :
       {(*store)->Get("d").status(), (*store)->List().status(), (*store)->Put({.name = "d", .version = 1})}) {
    EXPECT_EQ(ReasonOf(status), reason::kStoreCorrupt);
    EXPECT_THAT(std::string(status.message()), ::testing::HasSubstr(path.string()));
  }
}

TEST_F(FileStoreTest, AHalfWrittenNewFileChangesNothing) {
  const auto store = FileStore::Open(directory_);
  KVASIR_ASSERT_OK(store);
  KVASIR_ASSERT_OK((*store)->Put({.name = "d"}));
  std::ofstream(directory_ / "d.deployment.new") << "half a rec";
  KVASIR_EXPECT_OK((*store)->Get("d"));
  EXPECT_EQ((*store)->List()->size(), 1U);
  KVASIR_EXPECT_OK((*store)->Put({.name = "d", .version = 1}));
}

TEST_F(FileStoreTest, OnePlannerAtATime) {
  const auto store = FileStore::Open(directory_);
  KVASIR_ASSERT_OK(store);
  EXPECT_EQ(ReasonOf(FileStore::Open(directory_).status()), reason::kStoreLocked);
}

TEST_F(FileStoreTest, ADirectoryThatCannotBeMadeIsNamed) {
  std::ofstream(directory_) << "a file in the way";
  EXPECT_EQ(ReasonOf(FileStore::Open(directory_ / "state").status()), reason::kStoreUnwritable);
}

}  // namespace
}  // namespace kvasir
