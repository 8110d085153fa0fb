// The JSON-valued flags of a launch command: --speculative-config '{...}', --speculative-config.method
// eagle3, -sc.model NAME, --compilation-config.cudagraph_capture_sizes+ 1,2. Parts of one flag are merged in
// the order in which they come; the keys are then rows of launch_flags.h.
#ifndef KVASIR_PLANNER_REQUEST_LAUNCH_SECTIONS_H_
#define KVASIR_PLANNER_REQUEST_LAUNCH_SECTIONS_H_

#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace kvasir {

inline constexpr int kLaunchJsonDepthMax = 32;

// One JSON value; bare sizes outside strings (80g) are numbers, as the engine reads them. InvalidArgument for
// another form, or nested deeper than kLaunchJsonDepthMax.
[[nodiscard]] absl::StatusOr<nlohmann::json> ParseLaunchJson(std::string_view flag, std::string_view text);

// A JSON scalar as the word that a flag would have ("7", "true", "eagle3"); a list or an object as JSON text.
[[nodiscard]] std::string JsonWord(const nlohmann::json& value);
// A list as its words, another value as one.
[[nodiscard]] std::vector<std::string> JsonWords(const nlohmann::json& value);

// Whether the text is an object with true, or the word true, under `key`.
[[nodiscard]] bool LaunchJsonAsks(std::string_view text, std::string_view key);

class LaunchSections {
 public:
  // The whole value of a section, merged into what is there.
  [[nodiscard]] absl::Status AddWhole(const std::string& section, std::string_view text);
  // One key: `path` is what follows the section's name and its dot, "a.b" or "a.b+" (a list with commas).
  [[nodiscard]] absl::Status AddPart(const std::string& section, std::string_view path,
                                     std::string_view text);

  // By section; each value is an object, or a scalar that was given whole.
  [[nodiscard]] const std::map<std::string, nlohmann::json>& values() const { return values_; }

 private:
  std::map<std::string, nlohmann::json> values_;
};

}  // namespace kvasir

#endif  // KVASIR_PLANNER_REQUEST_LAUNCH_SECTIONS_H_
