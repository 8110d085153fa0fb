// The move that empties one parent of the arena.
#ifndef KVASIR_WORKER_ENGINE_PARENT_MOVE_H_
#define KVASIR_WORKER_ENGINE_PARENT_MOVE_H_

#include <vector>

#include "common/base/units.h"

namespace kvasir {

// The live blocks of one parent and where they go: blocks of other parents of the same pool. Ascending ids.
struct ParentMove {
  struct Block {
    BlockId from;
    BlockId to;
    friend bool operator==(const Block&, const Block&) = default;
  };
  PoolId pool;
  ParentId parent;
  std::vector<Block> blocks = {};
  friend bool operator==(const ParentMove&, const ParentMove&) = default;
};

}  // namespace kvasir

#endif  // KVASIR_WORKER_ENGINE_PARENT_MOVE_H_
