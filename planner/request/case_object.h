// A typed view of one object of an engine case (docs/formats/engine_specs.md). Every read names its field and
// its limits; the first fault is kept and later reads return harmless stand-ins, so that a reader reads
// straight down and asks once at the end. A key that nobody reads is a fault, too: it would change what the
// engine does.
#ifndef KVASIR_PLANNER_REQUEST_CASE_OBJECT_H_
#define KVASIR_PLANNER_REQUEST_CASE_OBJECT_H_

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "absl/status/status.h"

namespace kvasir {

// Inclusive.
struct CaseRange {
  std::int64_t min = 0;
  std::int64_t max = 0;
};

class CaseObject {
 public:
  // `node` outlives the view, as does `error`; a node that is no object is a fault. `path` is "config".
  CaseObject(const nlohmann::json& node, std::string path, absl::Status& error);

  // Present and not null. Marks the key as read.
  [[nodiscard]] bool Has(std::string_view key);
  // The value, or nullptr where it is absent or null. Marks the key as read.
  [[nodiscard]] const nlohmann::json* Find(std::string_view key);
  // Find, and a fault where it is absent.
  [[nodiscard]] const nlohmann::json* Require(std::string_view key);

  [[nodiscard]] std::int64_t Int(std::string_view key, CaseRange range);
  [[nodiscard]] std::int64_t IntOr(std::string_view key, CaseRange range, std::int64_t fallback);
  [[nodiscard]] std::optional<std::int64_t> MaybeInt(std::string_view key, CaseRange range);
  [[nodiscard]] bool BoolOr(std::string_view key, bool fallback);
  [[nodiscard]] std::optional<std::string> MaybeText(std::string_view key);

  // Keeps the first fault: `value` is shown as it was written, `fix` says what is allowed.
  void Fail(std::string_view reason, std::string_view key, const nlohmann::json& value, std::string_view fix);
  void FailText(std::string_view reason, std::string_view key, std::string message);

  // A fault for the first key that was not read.
  void RefuseUnread();

  [[nodiscard]] bool ok() const { return error_->ok(); }
  [[nodiscard]] std::string PathOf(std::string_view key) const;

 private:
  const nlohmann::json* node_;
  std::string path_;
  absl::Status* error_;
  std::set<std::string, std::less<>> read_;
};

// An integer in the range: floats, other types and values beyond 64 bits are none.
[[nodiscard]] std::optional<std::int64_t> IntIn(const nlohmann::json& value, CaseRange range);

// At most 64 bytes of the value as JSON, for messages.
[[nodiscard]] std::string ShownValue(const nlohmann::json& value);

}  // namespace kvasir

#endif  // KVASIR_PLANNER_REQUEST_CASE_OBJECT_H_
