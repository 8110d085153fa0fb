// Agreement before the first collective that matters: every rank tells what it is and what it was given, and
// all compare. Different builds or plans then end in seconds with a name and two values, not in a hang.
#ifndef KVASIR_WORKER_COMM_FACTS_H_
#define KVASIR_WORKER_COMM_FACTS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "worker/engine/communicator.h"

namespace kvasir {

// "build.compiler" = "GNU 12.2.0". Name and value are at most kNameBytesMax bytes.
struct RankFact {
  std::string name;
  std::string value;
  friend auto operator<=>(const RankFact&, const RankFact&) = default;
};
using RankFacts = std::vector<RankFact>;

inline constexpr std::int64_t kFactsMax = 64;  // per rank

struct Disagreement {
  std::int64_t rank = 0;  // the lowest rank that differs from most others
  std::string fact;
  std::string value;  // "unset" where the rank lacks the fact
  std::string others;
  friend bool operator==(const Disagreement&, const Disagreement&) = default;
};

// The first fact, by name, on which the ranks differ. "Others" is the value that most ranks have; of equally
// frequent ones the lowest rank's.
[[nodiscard]] std::optional<Disagreement> FindDisagreement(const std::vector<RankFacts>& by_rank);

// Exchanges and compares. FailedPrecondition RANKS_DISAGREE, the same on all ranks; otherwise the
// communicator's error.
[[nodiscard]] absl::Status AgreeOnFacts(Communicator& comm, const RankFacts& mine);

}  // namespace kvasir

#endif  // KVASIR_WORKER_COMM_FACTS_H_
