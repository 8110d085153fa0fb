// Every flag and environment variable of the engine's launch command that we know, in one table: how its
// value is written, and which member of LaunchOptions it fills. A row without a member does not touch the
// cache. Facts: vllm/engine/arg_utils.py, vllm/config and vllm/envs.py of 2026-08-17 (455edc022), and names
// that older releases had.
#ifndef KVASIR_PLANNER_REQUEST_LAUNCH_FLAGS_H_
#define KVASIR_PLANNER_REQUEST_LAUNCH_FLAGS_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "planner/request/launch_options.h"

namespace kvasir {

enum class ValueForm : std::int8_t {
  kSwitch,      // --flag and --no-flag, no value
  kInt,         // 8
  kSize,        // 128k = 128,000; 128K = 131,072; 25.6k
  kSizeOrAuto,  // the same, or auto = -1
  kReal,        // 0.92
  kText,
  kMaybeText,  // a value, or none
  kTexts,      // one or more words
  kInts,       // one or more integers
  kJson,       // one JSON value
  kSection,    // a JSON object whose keys are rows of their own: "speculative-config.method"
};

using LaunchField = std::variant<std::monostate, OptionalInt LaunchOptions::*, OptionalBool LaunchOptions::*,
                                 OptionalReal LaunchOptions::*, OptionalText LaunchOptions::*,
                                 OptionalTexts LaunchOptions::*, OptionalInts LaunchOptions::*>;

struct FlagRow {
  std::string_view name;   // without dashes; "section.key" for a key of a JSON value; upper case: a variable
  std::string_view alias;  // short form without its dash, or an older name; may be empty
  ValueForm form = ValueForm::kText;
  LaunchField field = {};
  std::int64_t min = 0;           // of kInt and kSize
  std::int64_t max = 0;           // 0: no limits
  std::string_view choices = {};  // words with spaces between; empty: any
  std::string_view emitted = {};  // the row that writes this field, if it is not this one

  [[nodiscard]] bool about_cache() const { return field.index() != 0 || form == ValueForm::kSection; }
};

// The rows that decide the cache, in the order in which they are written (launch_text.h).
[[nodiscard]] std::span<const FlagRow> CacheFlags();
// The rest: what a launch command may say beside. A row's full name is `prefix` and its name.
void ForEachOtherFlag(const std::function<void(const FlagRow& row, std::string_view prefix)>& take);

// The row of a full name: words of a flag with dashes between, "section.key", a variable. nullopt: not known.
[[nodiscard]] std::optional<FlagRow> FindFlag(std::string_view name);
// The row of a short form, "tp".
[[nodiscard]] std::optional<FlagRow> FindShortFlag(std::string_view alias);
// Flags whose names begin with `prefix`; the engine completes a name where there is one.
[[nodiscard]] std::vector<FlagRow> FlagsThatBegin(std::string_view prefix);
// The nearest known name to one that is not known; empty where none is near.
[[nodiscard]] std::string NearestFlag(std::string_view name);

}  // namespace kvasir

#endif  // KVASIR_PLANNER_REQUEST_LAUNCH_FLAGS_H_
