// Models by the names that public logs give them: hub names of quantised or retrained copies, short names,
// names with remarks. A copy keeps the caches of what it was made from, so the nearest known name tells its
// layers.
#ifndef KVASIR_TESTS_TOOLS_LOG_MODELS_H_
#define KVASIR_TESTS_TOOLS_LOG_MODELS_H_

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "common/models/model_description.h"

namespace kvasir {

class LogModels {
 public:
  // `configs` holds <org>__<name>/config.json folders; may be empty or missing.
  explicit LogModels(const std::string& configs);

  // The description, whose name says what it was taken from. NotFound where no name is near.
  [[nodiscard]] absl::StatusOr<ModelDescription> Find(std::string_view name) const;

 private:
  struct Known {
    std::string key;        // plain form of the name
    std::string path;       // of a config; else
    std::string catalogue;  // a catalogue name; else a shape of log_models.cc
  };
  void Add(std::string_view name, Known known);
  std::vector<Known> known_;
};

}  // namespace kvasir

#endif  // KVASIR_TESTS_TOOLS_LOG_MODELS_H_
