#include "tests/tools/compare_engine_plan.h"

#include <array>
#include <string_view>
#include <utility>

#include "absl/strings/str_format.h"
#include "planner/request/engine_case_json.h"
#include "planner/rulesets/vllm/plan_engine.h"
#include "tests/tools/engine_plan_json.h"

namespace kvasir::testing {
namespace {

using nlohmann::json;

std::string Shown(const json& value) {
  std::string text = value.dump();
  return text.size() > 160 ? text.substr(0, 157) + "..." : text;
}

class Comparison {
 public:
  [[nodiscard]] std::vector<std::string> Take() && { return std::move(differences_); }

  void Equal(const std::string& path, const json& expected, const json& actual) {
    if (expected != actual)
      differences_.push_back(path + ": expected " + Shown(expected) + ", got " + Shown(actual));
  }

  // An object with "error" stands for something that raises: here null, or an object with "error" of that
  // type.
  void EqualOrRaises(const std::string& path, const json& expected, const json& actual) {
    if (!expected.is_object() || !expected.contains("error")) return Equal(path, expected, actual);
    const bool raises = actual.is_null() || (actual.is_object() && actual.contains("error"));
    if (!raises) differences_.push_back(path + ": expected an error, got " + Shown(actual));
    if (!actual.is_object()) return;
    const auto type = [](const json& error) { return error.is_object() ? error["type"] : error; };
    Equal(path + ".error", type(expected["error"]), type(actual["error"]));
  }

  void Lists(const std::string& path, const json& expected, const json& actual,
             void (Comparison::*item)(const std::string&, const json&, const json&)) {
    if (!actual.is_array() || expected.size() != actual.size()) {
      differences_.push_back(path + ": expected " + std::to_string(expected.size()) + " items, got " +
                             (actual.is_array() ? std::to_string(actual.size()) : "none"));
      return;
    }
    for (std::size_t i = 0; i < expected.size(); ++i) {
      (this->*item)(path + "[" + std::to_string(i) + "]", expected[i], actual[i]);
    }
  }

  static std::string Member(const std::string& path, const std::string& name) {
    return absl::StrFormat("%s.%s", path, name);
  }

  // Each key of `expected`.
  void Fields(const std::string& path, const json& expected, const json& actual) {
    for (const auto& [key, value] : expected.items()) {
      EqualOrRaises(Member(path, key), value, actual.contains(key) ? actual[key] : json(nullptr));
    }
  }

  void Spec(const std::string& path, const json& expected, const json& actual) {
    if (expected.contains("error")) return EqualOrRaises(path, expected, actual);
    if (expected["type"] != "UniformTypeKVCacheSpecs") return Fields(path, expected, actual);
    json plain = expected;
    plain.erase("specs");
    plain.erase("layer_spec_index");
    Fields(path, plain, actual);
    const json none = json::object();
    const json& own = actual.contains("layer_specs") ? actual["layer_specs"] : none;
    Equal(path + ".specs", expected["layer_spec_index"].size(), own.size());
    for (const auto& [layer, index] : expected["layer_spec_index"].items()) {
      const json& spec = expected["specs"][index.get<std::size_t>()];
      if (!own.contains(layer)) {
        differences_.push_back(absl::StrFormat("%s: has no spec of %s", path, layer));
      } else {
        Fields(Member(path, layer), spec, own[layer]);
      }
    }
  }

  void Group(const std::string& path, const json& expected, const json& actual) {
    Equal(path + ".layer_names", expected["layer_names"], actual["layer_names"]);
    Equal(path + ".is_eagle_group", expected["is_eagle_group"], actual["is_eagle_group"]);
    Spec(path + ".spec", expected["spec"], actual["spec"]);
  }

  void Worker(const std::string& path, const json& expected, const json& actual) {
    Equal(path + ".num_blocks", expected["num_blocks"], actual["num_blocks"]);
    Lists(path + ".tensors", expected["tensors"], actual["tensors"], &Comparison::Fields);
    Lists(path + ".groups", expected["groups"], actual["groups"], &Comparison::Fields);
  }

  void Whole(const json& expected, const json& actual) {
    static constexpr std::array<std::string_view, 12> kValues = {"ok",
                                                                 "attention_free",
                                                                 "is_spec_uniform",
                                                                 "is_type_uniform",
                                                                 "max_model_len",
                                                                 "needs_kv_cache_zeroing",
                                                                 "has_mixed_precision_kv_cache",
                                                                 "max_concurrency",
                                                                 "kv_cache_size_tokens",
                                                                 "scheduler_block_size",
                                                                 "hash_block_size",
                                                                 "stage"};
    if (expected.contains("error")) Failure(expected, actual);
    for (const std::string_view key : kValues) {
      // Only three stages are named in known files; whatever else is said is our fourth.
      if (key == "stage" || !expected.contains(key) || expected[std::string(key)].is_null()) continue;
      const std::string name(key);
      EqualOrRaises(name, expected[name], actual.contains(name) ? actual[name] : json(nullptr));
    }
    List("groups", expected, actual, &Comparison::Group);
    List("workers", expected, actual, &Comparison::Worker);
    List("scheduler_groups", expected, actual, &Comparison::Fields);
    List("per_worker", expected, actual, &Comparison::Fields);
  }

 private:
  void Failure(const json& expected, const json& actual) {
    if (!actual.contains("error")) {
      differences_.push_back("expected " + Shown(expected["error"]) + ", got a plan");
      return;
    }
    Equal("error.type", expected["error"]["type"], actual["error"]["type"]);
    const std::string stage = expected.value("stage", "");
    const bool named = stage == "input" || stage == "plan" || stage == "concurrency";
    Equal("stage", named ? json(stage) : json("block_sizes"), actual["stage"]);
  }

  void List(const std::string& key, const json& expected, const json& actual,
            void (Comparison::*item)(const std::string&, const json&, const json&)) {
    if (!expected.contains(key) || expected[key].is_null()) return;
    Lists(key, expected[key], actual.contains(key) ? actual[key] : json(nullptr), item);
  }

  std::vector<std::string> differences_;
};

// A case that the reader refuses never reaches a planner: to the engine that is an error of its input.
json PlanOrRefusal(const json& engine_case, vllm::EngineVersion version) {
  const auto read = ReadEngineCase(engine_case);
  if (read.ok()) return EnginePlanJson(*read, PlanEngine(*read, version));
  return {{"ok", false},
          {"stage", "input"},
          {"error", {{"type", "ValueError"}, {"message", std::string(read.status().message())}}}};
}

}  // namespace

std::vector<CaseVerdict> CheckRecord(const json& record) {
  std::vector<CaseVerdict> verdicts;
  for (const auto& [name, version] :
       {std::pair{"A", vllm::EngineVersion::k2026_08}, std::pair{"B", vllm::EngineVersion::k2026_11}}) {
    CaseVerdict verdict;
    verdict.id = record.value("id", "?");
    verdict.version = name;
    const json& all = record["expected"];
    if (!all.contains(name) || all[name].is_null()) {
      verdict.skipped = true;
    } else {
      const json actual = PlanOrRefusal(record["case"], version);
      Comparison comparison;
      comparison.Whole(all[name], actual);
      verdict.differences = std::move(comparison).Take();
      if (!verdict.differences.empty() && actual.contains("error")) {
        verdict.differences.push_back("our message: " + actual["error"]["message"].get<std::string>());
      }
    }
    verdicts.push_back(std::move(verdict));
  }
  return verdicts;
}

std::optional<std::vector<CaseVerdict>> CheckCaseFile(const std::string& text) {
  const json records = json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!records.is_array()) return std::nullopt;
  std::vector<CaseVerdict> verdicts;
  for (const json& record : records) {
    if (!record.is_object() || !record.contains("case") || !record.contains("expected") ||
        !record["expected"].is_object()) {
      return std::nullopt;
    }
    for (CaseVerdict& verdict : CheckRecord(record)) verdicts.push_back(std::move(verdict));
  }
  return verdicts;
}

}  // namespace kvasir::testing
