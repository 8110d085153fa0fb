// The ids and quantities of the system. One word per concept; ARCHITECTURE.md has the glossary.
#ifndef KVASIR_COMMON_BASE_UNITS_H_
#define KVASIR_COMMON_BASE_UNITS_H_

#include <cstdint>

#include "common/base/strong_int.h"

namespace kvasir {

using PoolId = StrongId<struct PoolIdTag, std::int32_t>;
using GroupId = StrongId<struct GroupIdTag, std::int32_t>;
using BlockId = StrongId<struct BlockIdTag, std::int64_t>;    // of one pool; 0..k-1 lie in the null parent
using ParentId = StrongId<struct ParentIdTag, std::int64_t>;  // 0 is the null parent
using SequenceId = StrongId<struct SequenceIdTag, std::int64_t>;
using Rank = StrongId<struct RankTag, std::int32_t>;
using Epoch = StrongId<struct EpochTag, std::int64_t>;

using Bytes = Quantity<struct BytesTag>;
using Tokens = Quantity<struct TokensTag>;
using Blocks = Quantity<struct BlocksTag>;

}  // namespace kvasir

#endif  // KVASIR_COMMON_BASE_UNITS_H_
