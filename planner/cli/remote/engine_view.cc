#include "planner/cli/remote/engine_view.h"

#include <algorithm>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <ostream>

#include "absl/strings/str_format.h"
#include "planner/cli/quantity.h"
#include "planner/cli/text_table.h"

namespace kvasir::cli {
namespace {

using Json = nlohmann::ordered_json;

// The worker that is shortest of memory decides; one that has none counts.
bool NeedsMoreMemory(const plan::v1::EnginePrediction& prediction) {
  if (!prediction.has_failure() || prediction.failure().kind() != "ValueError") return false;
  return std::any_of(prediction.workers().begin(), prediction.workers().end(),
                     [](const plan::v1::EngineWorker& worker) {
                       return worker.has_usable_bytes() &&
                              (worker.usable_bytes() <= 0 || worker.needed_bytes() > worker.usable_bytes());
                     });
}

std::int64_t Blocks(const plan::v1::EnginePrediction& prediction) {
  std::int64_t blocks = prediction.workers_size() > 0 ? prediction.workers(0).block_count() : 0;
  for (const plan::v1::EngineWorker& worker : prediction.workers()) {
    blocks = std::min(blocks, worker.block_count());
  }
  return blocks;
}

const char* VerdictWord(int exit_code) {
  if (exit_code == kExitOk) return "fits";
  return exit_code == kExitDoesNotFit ? "does_not_fit" : "refused";
}

void ShowGroups(const Console& console, const plan::v1::EnginePrediction& prediction) {
  if (prediction.groups_size() == 0) return;
  TextTable table("rrlrrl");
  table.Row({"Group", "Layers", "Spec", "Block", "Page", "First layer"});
  int number = 0;
  for (const plan::v1::EngineGroup& group : prediction.groups()) {
    table.Row({std::to_string(number++), std::to_string(group.layers_size()), group.spec(),
               Thousands(group.block_tokens()) + " tokens", Thousands(group.page_bytes()) + " B",
               group.layers_size() > 0 ? group.layers(0) : ""});
  }
  console.out << table.Text(0) << Thousands(Blocks(prediction)) << " blocks\n\n";
}

Json GroupsJson(const plan::v1::EnginePrediction& prediction) {
  Json groups = Json::array();
  for (const plan::v1::EngineGroup& group : prediction.groups()) {
    groups.push_back({{"kind", group.spec()},
                      {"block_size_tokens", group.block_tokens()},
                      {"page_bytes", group.page_bytes()},
                      {"eagle", group.draft()},
                      {"layers", std::vector<std::string>(group.layers().begin(), group.layers().end())}});
  }
  return groups;
}

Json EngineJson(const plan::v1::EnginePrediction& prediction) {
  Json out;
  out["num_blocks"] = Blocks(prediction);
  out["groups"] = GroupsJson(prediction);
  out["kv_cache_tokens"] = prediction.kv_cache_token_count();
  out["max_concurrency"] = absl::StrFormat("%.2f", prediction.max_concurrency());
  out["max_model_len"] = prediction.max_model_len_tokens();
  out["log_lines"] = std::vector<std::string>(prediction.log_lines().begin(), prediction.log_lines().end());
  if (prediction.has_failure()) {
    out["failure"] = {{"stage", prediction.failure().stage()},
                      {"kind", prediction.failure().kind()},
                      {"message", prediction.failure().message()}};
  }
  return out;
}

}  // namespace

int PredictionExitCode(const plan::v1::EnginePrediction& prediction) {
  if (!prediction.has_failure()) return kExitOk;
  return NeedsMoreMemory(prediction) ? kExitDoesNotFit : kExitRefused;
}

void ShowPrediction(const Console& console, const plan::v1::EnginePrediction& prediction) {
  const int exit_code = PredictionExitCode(prediction);
  const bool fits = exit_code == kExitOk;
  const std::string word = fits ? "fits" : exit_code == kExitDoesNotFit ? "does not fit" : "fails";
  console.out << Inked(console, fits ? Ink::kGood : Ink::kBad, word)
              << absl::StrFormat("   %s · plan %s\n\n", prediction.ruleset(),
                                 prediction.plan_id().substr(0, 12));
  if (prediction.has_failure()) {
    console.out << absl::StrFormat("The engine raises %s\n  %s\n\n", prediction.failure().kind(),
                                   prediction.failure().message());
  }
  if (prediction.log_lines_size() > 0) {
    console.out << "The engine will log\n";
    for (const std::string& line : prediction.log_lines()) console.out << "  " << line << "\n";
    console.out << "\n";
  }
  ShowGroups(console, prediction);
  for (const plan::v1::EngineWarning& warning : prediction.warnings()) {
    console.out << "warning: " << warning.about() << ": " << warning.message()
                << (warning.address().empty() ? "" : "; " + warning.address()) << "\n";
  }
  for (const std::string& text : prediction.assumptions()) console.out << "assumed: " << text << "\n";
  for (const std::string& note : prediction.notes()) console.out << "note: " << note << "\n";
  for (const std::string& flag : prediction.unknown_flags()) console.out << "unknown flag: " << flag << "\n";
}

std::string PredictionJson(const plan::v1::EnginePrediction& prediction) {
  const int exit_code = PredictionExitCode(prediction);
  Json json;
  json["schema"] = "kvasir.plan/1";
  json["verdict"] = VerdictWord(exit_code);
  json["plan_id"] = exit_code == kExitOk ? Json(prediction.plan_id()) : Json(nullptr);
  json["ruleset"] = prediction.ruleset();
  json["vllm"] = EngineJson(prediction);
  json["unknown_flags"] = Json::array();
  for (const std::string& flag : prediction.unknown_flags()) {
    json["unknown_flags"].push_back({{"flag", flag}, {"nearest", ""}});
  }
  json["notes"] = std::vector<std::string>(prediction.notes().begin(), prediction.notes().end());
  json["assumed"] =
      std::vector<std::string>(prediction.assumptions().begin(), prediction.assumptions().end());
  json["warnings"] = Json::array();
  for (const plan::v1::EngineWarning& warning : prediction.warnings()) {
    json["warnings"].push_back(warning.about() + ": " + warning.message() +
                               (warning.address().empty() ? "" : "; " + warning.address()));
  }
  json["refusals"] = Json::array();
  return json.dump(2, ' ', true, Json::error_handler_t::replace) + "\n";
}

}  // namespace kvasir::cli
