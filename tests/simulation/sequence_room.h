// Where the sequences of a simulation reserve: each allocator behind one interface.
#ifndef KVASIR_TESTS_SIMULATION_SEQUENCE_ROOM_H_
#define KVASIR_TESTS_SIMULATION_SEQUENCE_ROOM_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "common/plan/plan.h"
#include "planner/core/capacity.h"
#include "tests/simulation/churn.h"

namespace kvasir::testing {

class SequenceRoom {
 public:
  virtual ~SequenceRoom() = default;
  // False if there is no room now.
  virtual bool Reserve(std::size_t sequence, std::int64_t tokens) = 0;
  virtual void Release(std::size_t sequence) = 0;
  // For a sequence of `tokens` that was refused: empties a parent if that helps. Returns the bytes moved.
  virtual std::int64_t MoveOneParent(std::int64_t tokens) = 0;
  // ChurnResult::stranded_parents for a sequence of `tokens` that was refused.
  [[nodiscard]] virtual std::int64_t StrandedParents(std::int64_t tokens) const = 0;
};

[[nodiscard]] std::unique_ptr<SequenceRoom> MakeRoom(const Plan& plan, Allocator allocator);

// Of one rank, for a sequence of `tokens`: its blocks at their stride.
[[nodiscard]] std::int64_t ReservedBytes(std::span<const PoolLoad> loads, std::int64_t tokens);

}  // namespace kvasir::testing

#endif  // KVASIR_TESTS_SIMULATION_SEQUENCE_ROOM_H_
