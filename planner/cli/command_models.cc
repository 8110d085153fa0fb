// kvasir models: the catalogue, and one model's layers.
#include <array>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <ostream>
#include <string>
#include <vector>

#include "absl/strings/str_format.h"
#include "common/base/limits.h"
#include "common/models/catalogue.h"
#include "common/models/model_text.h"
#include "planner/cli/command_line.h"
#include "planner/cli/commands.h"
#include "planner/cli/model_kinds.h"
#include "planner/cli/plan_question.h"
#include "planner/cli/show_model.h"
#include "planner/cli/text_table.h"

namespace kvasir::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::array kFlags = {
    Flag{"tp", "N", "for inspect: tensor-parallel ranks; sizes are those of one (1)"},
    Flag{"output", "FORM", "table, json or, for inspect, text: the canonical description (table)"},
};

int List(const Console& console, const std::string& form) {
  const std::vector<CatalogueEntry> entries = ListCatalogue();
  if (form == "json") {
    Json out = Json::array();
    for (const CatalogueEntry& e : entries) {
      out.push_back({{"name", e.name}, {"hub_name", e.hub_name}, {"draft", e.draft}, {"summary", e.summary}});
    }
    Json json;
    json["schema"] = "kvasir.models/1";
    json["models"] = out;
    console.out << json.dump(2) << "\n";
    return kExitOk;
  }
  TextTable table("lll");
  table.Row({"Name", "Model", "Layers"});
  for (const CatalogueEntry& e : entries) table.Row({e.name, e.hub_name, e.summary});
  console.out << table.Text(0);
  return kExitOk;
}

int Inspect(const Console& console, const std::string& word, const std::string& form, std::int64_t tp) {
  const absl::StatusOr<ModelDescription> model = ReadModel(word);
  if (!model.ok()) return BadUsage(console, "models", model.status());
  if (form == "text") {
    console.out << ModelToText(*model);
    return kExitOk;
  }
  const absl::StatusOr<ModelKinds> kinds = KindsOf(*model, tp);
  if (!kinds.ok()) return BadUsage(console, "models", kinds.status());
  if (form == "json") {
    console.out << ModelJson(*model, *kinds, tp);
  } else {
    ShowModel(console, *model, *kinds, tp);
  }
  return kExitOk;
}

}  // namespace

std::string ModelsHelp() { return FlagsHelp(kFlags); }

int RunModels(const Console& console, Args args) {
  const absl::StatusOr<CommandLine> line = CommandLine::Parse(kFlags, {0, 2}, args);
  if (!line.ok()) return BadUsage(console, "models", line.status());
  const std::vector<std::string>& words = line->words();
  const bool inspect = words.size() == 2 && words[0] == "inspect";
  const bool list = words.empty() || (words.size() == 1 && words[0] == "list");
  if (!inspect && !list) {
    return BadUsage(console, "models", absl::InvalidArgumentError("expected `list` or `inspect MODEL`"));
  }
  const std::string form = line->ValueOr("output", "table");
  const absl::Status output = CheckOutput(form, inspect);
  if (!output.ok()) return BadUsage(console, "models", output);
  const absl::StatusOr<std::int64_t> tp = line->IntOr("tp", 1);
  if (!tp.ok()) return BadUsage(console, "models", tp.status());
  if (*tp < 1 || *tp > kRanksMax) {
    return BadUsage(
        console, "models",
        absl::InvalidArgumentError(absl::StrFormat("--tp is %d, expected 1 to %d", *tp, kRanksMax)));
  }
  return inspect ? Inspect(console, words[1], form, *tp) : List(console, form);
}

}  // namespace kvasir::cli
