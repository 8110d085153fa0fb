// What the planner remembers of one deployment across its own restarts.
#ifndef KVASIR_PLANNER_DISPATCH_DEPLOYMENT_RECORD_H_
#define KVASIR_PLANNER_DISPATCH_DEPLOYMENT_RECORD_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "common/base/units.h"
#include "planner/dispatch/apply_spec.h"

namespace kvasir {

struct ServingPlan {
  Epoch epoch = {};
  ApplySpec spec = {};
  friend bool operator==(const ServingPlan&, const ServingPlan&) = default;
};

// How far an apply had come. Only kCommitting is rolled forward after a restart.
enum class PendingPhase : std::int8_t { kReleasing, kPreparing, kCommitting, kAborting, kRetiring };
// releasing | preparing | committing | aborting | retiring
[[nodiscard]] std::string_view PendingPhaseName(PendingPhase phase);

struct PendingApply {
  Epoch epoch = {};
  PendingPhase phase = PendingPhase::kPreparing;
  ApplySpec spec = {};
  std::optional<ApplySpec> fallback = {};  // the old plan, to be prepared again if this one fails (replace)
  bool restoring = false;                  // `spec` is such a fallback
  bool deleting = false;                   // kRetiring: forget the deployment afterwards
  std::string request_id = {};
  friend bool operator==(const PendingApply&, const PendingApply&) = default;
};

struct RecordedError {
  std::int32_t code = 0;  // of absl::StatusCode; 0: no error
  std::string reason = {};
  std::string message = {};
  friend bool operator==(const RecordedError&, const RecordedError&) = default;
};

struct DeploymentRecord {
  std::string name = {};
  std::int64_t version = 0;  // counts writes; 0: never written. The store compares it before it writes
  Epoch max_epoch = {};      // the highest one ever given out
  bool deleted = false;      // kept for its max_epoch
  std::optional<ServingPlan> serving = {};
  std::optional<PendingApply> pending = {};
  RecordedError last_error = {};
  std::int64_t update_wall_ms = 0;  // since 1970-01-01 UTC
  friend bool operator==(const DeploymentRecord&, const DeploymentRecord&) = default;
};

// A text with a checksum; see docs/formats/deployment_record.md.
[[nodiscard]] std::string RecordToText(const DeploymentRecord& record);
// DataLoss (STORE_CORRUPT) naming the line and what was expected there.
[[nodiscard]] absl::StatusOr<DeploymentRecord> RecordFromText(std::string_view text);

}  // namespace kvasir

#endif  // KVASIR_PLANNER_DISPATCH_DEPLOYMENT_RECORD_H_
