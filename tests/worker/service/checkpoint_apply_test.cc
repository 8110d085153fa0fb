// Preparations that name checkpoints: read below the worker's root, and refused with the reason elsewhere.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "common/base/error_reasons.h"
#include "common/base/typed_error.h"
#include "tests/testing/checkpoint_writer.h"
#include "tests/testing/engine_plan.h"
#include "tests/testing/matchers.h"
#include "tests/worker/service/worker_rig.h"

namespace kvasir::testing {
namespace {

class CheckpointApply : public ::testing::Test {
 protected:
  void SetUp() override {
    WriteCheckpoint(root_ + "/target", RandomModel(SmallTarget(), StoredType::kBf16, 1), 2);
    WriteCheckpoint(root_ + "/draft", RandomModel(SmallDraft(), StoredType::kBf16, 2));
  }
  // Both workers are asked to prepare; the first error.
  TypedError PrepareWith(const std::string& target, const std::string& draft, const std::string& root) {
    RigOptions options;
    options.checkpoint_root = root;
    WorkerRig rig(options);
    for (const absl::Status& status : rig.PrepareAll(RigPlan(2), 1, [&](wire::PreparePlanRequest& request) {
           request.mutable_weights()->mutable_checkpoint()->set_target_directory(target);
           request.mutable_weights()->mutable_checkpoint()->set_draft_directory(draft);
         })) {
      if (!status.ok()) return ErrorOf(status);
    }
    return {.code = absl::StatusCode::kOk};
  }
  const std::string root_ = FreshDirectory("");
};

TEST_F(CheckpointApply, RanksOfTwoWorkersReadTheirShards) {
  const TypedError error = PrepareWith("target", root_ + "/draft", root_);
  EXPECT_EQ(error.code, absl::StatusCode::kOk) << error.message;
}

TEST_F(CheckpointApply, RanksThatReadOtherWeightsOfTheSameShapesDisagree) {
  WriteCheckpoint(root_ + "/other", RandomModel(SmallTarget(), StoredType::kBf16, 3), 2);
  RigOptions options;
  options.checkpoint_root = root_;
  WorkerRig rig(options);
  int asked = 0;
  for (const absl::Status& status : rig.PrepareAll(RigPlan(2), 1, [&](wire::PreparePlanRequest& request) {
         request.mutable_weights()->mutable_checkpoint()->set_target_directory(asked++ == 0 ? "target"
                                                                                            : "other");
         request.mutable_weights()->mutable_checkpoint()->set_draft_directory("draft");
       })) {
    EXPECT_EQ(ErrorOf(status).reason, reason::kRanksDisagree) << status;
    EXPECT_EQ(ErrorOf(status).metadata.at("fact"), "weights.checkpoint");
  }
  EXPECT_EQ(asked, 2);
}

TEST_F(CheckpointApply, PathsOutsideTheRootAreRefusedWithTheirField) {
  const TypedError above = PrepareWith("target", "../draft", root_);
  EXPECT_EQ(above.reason, reason::kCheckpointPath);
  EXPECT_EQ(above.field, "weights.checkpoint.draft_directory");
  const TypedError none = PrepareWith("target", "draft", "");
  EXPECT_EQ(none.reason, reason::kCheckpointPath);
  EXPECT_EQ(none.field, "weights.checkpoint.target_directory");
  EXPECT_EQ(PrepareWith("none", "draft", root_).reason, reason::kCheckpointNotFound);
}

TEST_F(CheckpointApply, AnotherModelsTensorsAreRefused) {
  const TypedError error = PrepareWith("draft", "draft", root_);
  EXPECT_EQ(error.reason, reason::kCheckpointMismatch);
  EXPECT_FALSE(error.metadata.at("tensor").empty());
}

}  // namespace
}  // namespace kvasir::testing
