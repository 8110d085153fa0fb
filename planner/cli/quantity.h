// Sizes and lengths as people write and read them. Integer arithmetic only: 46.8GiB is exactly floor(46.8 *
// 2^30) bytes on every machine.
#ifndef KVASIR_PLANNER_CLI_QUANTITY_H_
#define KVASIR_PLANNER_CLI_QUANTITY_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace kvasir::cli {

// Decimal digits with an optional minus; nullopt for anything else or beyond 64 bits.
[[nodiscard]] std::optional<std::int64_t> ParseInt(std::string_view text);

// "46.8GiB", "512MiB", "1.5TB", "1000000": a decimal number of at most 18 digits and a unit of B, KiB, MiB,
// GiB, TiB (powers of 1024) or kB, MB, GB, TB (powers of 1000), in any case; without a unit, bytes. A
// fraction of a byte is dropped. InvalidArgument: another form, or beyond 64 bits.
[[nodiscard]] absl::StatusOr<std::int64_t> ParseBytes(std::string_view text);

// "46.8GiB" for all ranks, or one size for each rank with commas between.
[[nodiscard]] absl::StatusOr<std::vector<std::int64_t>> ParseBytesList(std::string_view text);

// "131072", "8k", "1m" (k = 1024, m = 1024 * 1024) or "max", with commas between. "max" is 0: the model's
// limit.
[[nodiscard]] absl::StatusOr<std::vector<std::int64_t>> ParseContexts(std::string_view text);

// "2%", "2.5 %", "0.25": hundredths of a percent, from 0 to 100 %. InvalidArgument: another form, a third
// decimal, or more.
[[nodiscard]] absl::StatusOr<std::int64_t> ParsePercent(std::string_view text);

// "46.80 GiB", "43.1 KiB", "512 B": two decimals, rounded to nearest, in the largest unit of 1024 that leaves
// 1 or more.
[[nodiscard]] std::string BytesText(std::int64_t bytes);
// "1,048,576".
[[nodiscard]] std::string Thousands(std::int64_t value);
// "8k", "1m" where it is exact, else the plain number.
[[nodiscard]] std::string TokensText(std::int64_t tokens);
// part / whole as "62.1 %"; requires 0 <= part <= whole, whole > 0, and both below 2^50.
[[nodiscard]] std::string PercentText(std::int64_t part, std::int64_t whole);

// From one amount to another: "-11.3 %", "+409.3 %", "±0.0 %"; "new" where there was nothing. Requires both
// at least 0 and below 2^50.
[[nodiscard]] std::string ChangeText(std::int64_t before, std::int64_t after);

}  // namespace kvasir::cli

#endif  // KVASIR_PLANNER_CLI_QUANTITY_H_
