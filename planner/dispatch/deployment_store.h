// Where deployment records live. An interface from the start: first a directory of files, later a shared
// store.
#ifndef KVASIR_PLANNER_DISPATCH_DEPLOYMENT_STORE_H_
#define KVASIR_PLANNER_DISPATCH_DEPLOYMENT_STORE_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "planner/dispatch/deployment_record.h"

namespace kvasir {

class DeploymentStore {
 public:
  virtual ~DeploymentStore() = default;
  // nullopt: never written. DataLoss (STORE_CORRUPT) names the file.
  virtual absl::StatusOr<std::optional<DeploymentRecord>> Get(const std::string& name) = 0;
  // By name. A record that cannot be read makes the call fail: a planner must not start over it.
  virtual absl::StatusOr<std::vector<DeploymentRecord>> List() = 0;
  // Compare and swap: writes only if the stored version is `record.version` (0: nothing stored), as version +
  // 1, and returns after it is durable. Aborted (APPLY_SUPERSEDED) otherwise; Internal (STORE_UNWRITABLE).
  virtual absl::Status Put(const DeploymentRecord& record) = 0;
};

}  // namespace kvasir

#endif  // KVASIR_PLANNER_DISPATCH_DEPLOYMENT_STORE_H_
