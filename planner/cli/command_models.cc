// kvasir models: the catalogue, and one model's layers.
#include <array>
#include <map>
#include <nlohmann/json.hpp>
#include <ostream>
#include <variant>
#include <vector>

#include "absl/strings/str_format.h"
#include "common/models/catalogue.h"
#include "common/models/model_text.h"
#include "planner/cli/command_line.h"
#include "planner/cli/commands.h"
#include "planner/cli/plan_question.h"
#include "planner/cli/quantity.h"
#include "planner/cli/text_table.h"

namespace kvasir::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::array kFlags = {
    Flag{"output", "FORM", "table, json or, for inspect, text: the canonical description (table)"},
};

struct MixerWords {
  std::string operator()(const AttentionShape& s) const {
    const std::string window = s.window > 0 ? absl::StrFormat(", window %d", s.window) : "";
    return absl::StrFormat("attention: %d heads of %d, %d key-value heads%s", s.heads, s.head_dim, s.kv_heads,
                           window);
  }
  std::string operator()(const MlaShape& s) const {
    return absl::StrFormat("mla: %d heads, latent %d + %d rotary%s", s.heads, s.kv_lora_rank, s.rope_dim,
                           s.rotate ? "" : " (not rotated)");
  }
  std::string operator()(const KdaShape& s) const {
    return absl::StrFormat("kda: %d heads of %d x %d, convolution %d", s.heads, s.head_dim, s.head_dim,
                           s.conv_kernel);
  }
  std::string operator()(const Mamba2Shape& s) const {
    return absl::StrFormat("mamba2: %d heads of %d x %d, %d groups, convolution %d", s.heads, s.head_dim,
                           s.state_dim, s.groups, s.conv_kernel);
  }
  template <typename Shape>
  std::string operator()(const Shape&) const {
    return "";
  }
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

// How many layers have each shape, in the order of their first layer.
std::vector<std::pair<std::string, int>> CountShapes(const ModelDescription& model) {
  std::vector<std::pair<std::string, int>> out;
  std::map<std::string, std::size_t> place;
  for (const ModelLayer& layer : model.layers) {
    const std::string words = std::visit(MixerWords{}, layer.mixer);
    const auto [it, fresh] = place.try_emplace(words, out.size());
    if (fresh) out.emplace_back(words, 0);
    ++out[it->second].second;
  }
  return out;
}

void ShowModel(const Console& console, const ModelDescription& model) {
  console.out << Inked(console, Ink::kBold, model.name) << "   " << model.architecture << "\n\n";
  TextTable table("ll");
  table.Row({"context", Thousands(model.context) + " tokens"});
  table.Row({"hidden", std::to_string(model.hidden)});
  table.Row({"vocabulary", Thousands(model.vocab)});
  table.Row({"dtype", std::string(DTypeName(model.dtype))});
  table.Row({"layers", std::to_string(model.layers.size())});
  for (const auto& [words, count] : CountShapes(model))
    table.Row({"", absl::StrFormat("%d x %s", count, words)});
  if (model.draft.has_value()) {
    std::string taps;
    for (const std::int64_t tap : model.draft->target_taps)
      taps += (taps.empty() ? "" : ", ") + std::to_string(tap);
    table.Row({"draft",
               absl::StrFormat("dspark, %s inside its block, for targets of %d layers",
                               model.draft->causal ? "causal" : "non-causal", model.draft->target_layers)});
    table.Row({"", "reads the outputs of target layers " + taps});
  }
  table.Row({"digest", ModelDigest(model)});
  console.out << table.Text(2);
}

std::string ModelJson(const ModelDescription& model) {
  Json json;
  json["schema"] = "kvasir.model/1";
  json["name"] = model.name;
  json["architecture"] = model.architecture;
  json["digest"] = ModelDigest(model);
  json["context_tokens"] = model.context;
  json["hidden"] = model.hidden;
  json["vocab"] = model.vocab;
  json["dtype"] = DTypeName(model.dtype);
  json["draft"] = model.draft.has_value();
  json["layers"] = Json::array();
  for (const ModelLayer& layer : model.layers) {
    json["layers"].push_back({{"index", layer.index}, {"mixer", std::visit(MixerWords{}, layer.mixer)}});
  }
  return json.dump(2) + "\n";
}

int Inspect(const Console& console, const std::string& word, const std::string& form) {
  const absl::StatusOr<ModelDescription> model = ReadModel(word);
  if (!model.ok()) return BadUsage(console, "models", model.status());
  if (form == "json") {
    console.out << ModelJson(*model);
  } else if (form == "text") {
    console.out << ModelToText(*model);
  } else {
    ShowModel(console, *model);
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
  return inspect ? Inspect(console, words[1], form) : List(console, form);
}

}  // namespace kvasir::cli
