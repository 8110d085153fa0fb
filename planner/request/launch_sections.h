// The JSON-valued flags of a launch command: --speculative-config '{...}', --speculative-config.method
// eagle3, -sc.model NAME, --compilation-config.cudagraph_capture_sizes+ 1,2. The engine merges the parts of
// one spelling, and of several whole values the last counts; parts stand after every whole value, and replace
// it. The keys are then rows of launch_flags.h.
#ifndef KVASIR_PLANNER_REQUEST_LAUNCH_SECTIONS_H_
#define KVASIR_PLANNER_REQUEST_LAUNCH_SECTIONS_H_

#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
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
  // The whole value of a section.
  [[nodiscard]] absl::Status AddWhole(const std::string& section, std::string_view text);
  // One key: `said` is how the section's flag was spelled; `path` is what follows its dot, "a.b" or "a.b+" (a
  // list with commas).
  [[nodiscard]] absl::Status AddPart(const std::string& section, const std::string& said,
                                     std::string_view path, std::string_view text);

  // By section; each value is an object, or a scalar that was given whole.
  [[nodiscard]] std::map<std::string, nlohmann::json> Values() const;
  // A line for each section of which something was said that does not count.
  [[nodiscard]] std::vector<std::string> Notes() const;

 private:
  struct Section {
    std::vector<nlohmann::json> whole;
    std::vector<std::pair<std::string, nlohmann::json>> parts;  // by spelling, in order of the first of each
  };
  std::map<std::string, Section> sections_;
};

}  // namespace kvasir

#endif  // KVASIR_PLANNER_REQUEST_LAUNCH_SECTIONS_H_
