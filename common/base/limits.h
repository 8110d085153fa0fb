// The limits of every count and size that enters a plan. One constant each, used by the planner, the wire
// converters, the text parser and the verifier; with them no product of theirs overflows 64 bits unnoticed.
#ifndef KVASIR_COMMON_BASE_LIMITS_H_
#define KVASIR_COMMON_BASE_LIMITS_H_

#include <cstdint>

namespace kvasir {

inline constexpr std::int64_t kLayersMax = 1024;    // target and draft together
inline constexpr std::int64_t kExtraCachesMax = 8;  // of one layer, beside its first
inline constexpr std::int64_t kRanksMax = 1024;
inline constexpr std::int64_t kHeadsMax = 4096;
inline constexpr std::int64_t kDimMax = 1 << 20;
inline constexpr std::int64_t kStateElementsMax = std::int64_t{1} << 32;
inline constexpr std::int64_t kContextTokensMax = std::int64_t{1} << 30;
inline constexpr std::int64_t kRequestsMax = 4096;  // in one batch
inline constexpr std::int64_t kDraftTokensMax = 32;
inline constexpr std::int64_t kBlockTokensMax = 8192;
inline constexpr std::int64_t kArenaBytesMax = std::int64_t{1} << 50;
inline constexpr std::int64_t kPoolsMax = 16;
inline constexpr std::int64_t kStateTensorsMax = 16;  // of one layer; as many in a ring
inline constexpr std::int64_t kAlignmentBytesMax = 1 << 16;
inline constexpr std::int64_t kPageSizesMax = 64;  // that one backend declares
inline constexpr std::int64_t kBackendsMax = 64;
inline constexpr std::int64_t kNameBytesMax = 256;
inline constexpr std::int64_t kPlanTextBytesMax = std::int64_t{4} << 20;

}  // namespace kvasir

#endif  // KVASIR_COMMON_BASE_LIMITS_H_
