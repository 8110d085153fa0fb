// The captured graphs of a plan, by (pass, query rows, bucket of requests). Each remembers the ordered list
// of (group, BehaviourKey) it was captured for, and is replayed only for a step with the same list.
#ifndef KVASIR_WORKER_ENGINE_GRAPH_REGISTRY_H_
#define KVASIR_WORKER_ENGINE_GRAPH_REGISTRY_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <tuple>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/plan/plan.h"
#include "worker/engine/backend.h"
#include "worker/engine/step_metadata.h"

namespace kvasir {

struct GroupBehaviour {
  GroupId group;
  BehaviourKey behaviour;
  friend bool operator==(const GroupBehaviour&, const GroupBehaviour&) = default;
};

// The groups that a pass crosses, in GroupId order: from the plan, and as a step's metadata was built.
[[nodiscard]] std::vector<GroupBehaviour> BehavioursOf(const Plan& plan, Pass pass);
[[nodiscard]] std::vector<GroupBehaviour> BehavioursOf(const PassMetadata& metadata);

// The smallest bucket of the plan's graphs of this pass and these query rows that holds `requests`; nullopt
// if there is none.
[[nodiscard]] std::optional<std::int64_t> BucketFor(const Plan& plan, Pass pass, std::int64_t query_rows,
                                                    std::int64_t requests);

class GraphRegistry {
 public:
  using BuildList = std::function<LaunchList(const PassShape&)>;

  // Captures every graph of the plan, largest first. InvalidArgument where a graph's groups are not those
  // that its pass crosses; the backend's error naming the graph where a capture fails.
  static absl::StatusOr<GraphRegistry> Capture(Backend& backend, const Plan& plan, const BuildList& build);

  [[nodiscard]] bool Has(const PassShape& shape) const;
  // FailedPrecondition, naming group and field, if `groups` differ from what the graph was captured for, and
  // nothing runs. NotFound for a shape without a graph.
  absl::Status Replay(const PassShape& shape, const std::vector<GroupBehaviour>& groups);
  [[nodiscard]] std::int64_t size() const { return static_cast<std::int64_t>(graphs_.size()); }

 private:
  using Key = std::tuple<Pass, std::int64_t, std::int64_t>;  // pass, query rows, bucket
  struct Entry {
    std::vector<GroupBehaviour> groups;
    std::unique_ptr<Graph> graph;
  };
  std::map<Key, Entry> graphs_;
};

}  // namespace kvasir

#endif  // KVASIR_WORKER_ENGINE_GRAPH_REGISTRY_H_
