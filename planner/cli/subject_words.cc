#include "planner/cli/subject_words.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string_view>

#include "absl/strings/str_format.h"
#include "planner/cli/flag_words.h"
#include "planner/cli/quantity.h"

namespace kvasir::cli {
namespace {

constexpr std::size_t kRangesMax = 12;
constexpr std::string_view kMiddle = ".layers.";

// "3-4, 7"; `numbers` ascending.
std::string Ranges(const std::vector<std::int64_t>& numbers) {
  std::string out;
  std::size_t ranges = 0;
  for (std::size_t i = 0; i < numbers.size();) {
    std::size_t end = i;
    while (end + 1 < numbers.size() && numbers[end + 1] == numbers[end] + 1) ++end;
    if (ranges++ == kRangesMax) return out + absl::StrFormat(", ... (%d in all)", numbers.size());
    if (!out.empty()) out += ", ";
    out += std::to_string(numbers[i]);
    if (end > i) out += "-" + std::to_string(numbers[end]);
    i = end + 1;
  }
  return out;
}

}  // namespace

std::vector<std::string> ShortSubjects(const std::vector<std::string>& subjects) {
  std::map<std::string, std::vector<std::int64_t>> layers;  // by model, "draft" before "target"
  std::vector<std::string> out;
  for (const std::string& subject : subjects) {
    const std::size_t at = subject.find(kMiddle);
    const std::optional<std::int64_t> number =
        at == std::string::npos ? std::nullopt
                                : ParseInt(std::string_view(subject).substr(at + kMiddle.size()));
    if (number.has_value()) {
      layers[subject.substr(0, at)].push_back(*number);
    } else {
      out.push_back(subject);
    }
  }
  for (auto& [model, numbers] : layers) {
    std::sort(numbers.begin(), numbers.end());
    out.push_back(absl::StrFormat("%s layer%s %s", model, numbers.size() == 1 ? "" : "s", Ranges(numbers)));
  }
  return out;
}

std::string RefusalSentence(const Refusal& refusal) {
  Refusal copy = refusal;
  copy.subjects = ShortSubjects(refusal.subjects);
  return InFlagWords(RefusalText(copy));
}

}  // namespace kvasir::cli
