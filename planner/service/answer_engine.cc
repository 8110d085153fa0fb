#include "planner/service/answer_engine.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "common/base/error_reasons.h"
#include "common/base/limits.h"
#include "common/base/status_macros.h"
#include "common/base/typed_error.h"
#include "planner/request/catalogued_model.h"
#include "planner/request/engine_answer.h"
#include "planner/request/engine_case_json.h"
#include "planner/request/engine_drafting.h"
#include "planner/request/engine_specs.h"
#include "planner/request/launch_command.h"
#include "planner/request/launch_of_options.h"
#include "planner/service/check_field.h"
#include "planner/service/convert_engine.h"
#include "planner/service/convert_request.h"

namespace kvasir {
namespace {

constexpr std::int64_t kWireWordsMax = 1024;
constexpr std::int64_t kWireBytesMax = std::int64_t{64} << 10;
constexpr auto kNewest = vllm::EngineVersion::k2026_11;

// Empty: the newest.
absl::StatusOr<vllm::EngineVersion> VersionOf(const std::string& ruleset) {
  if (ruleset.empty()) return kNewest;
  if (const std::optional<vllm::EngineVersion> version = vllm::ParseEngineVersion(ruleset)) return *version;
  return FieldError(
      reason::kUnknownValue, "ruleset",
      absl::StrFormat("ruleset is \"%s\"; give vllm-2026-08 or vllm-2026-11", ruleset.substr(0, 64)));
}

// `before`: what the engine logs before it plans.
plan::v1::EnginePrediction Predict(vllm::EngineCase engine_case, EngineRelease release,
                                   std::vector<std::string> before) {
  const EngineAnswer answer =
      AnswerOf(std::move(engine_case), release, std::move(before), /*most_bytes=*/std::nullopt);
  plan::v1::EnginePrediction prediction = EnginePlanToProto(answer.engine_case, answer.plan);
  prediction.mutable_log_lines()->Assign(answer.log_lines.begin(), answer.log_lines.end());
  return prediction;
}

absl::StatusOr<plan::v1::EnginePrediction> PredictLaunch(const EngineLaunch& launch,
                                                         const std::vector<std::int64_t>& memory) {
  KVASIR_ASSIGN_OR_RETURN(EngineQuestion question, EngineCaseOf(launch, memory));
  plan::v1::EnginePrediction prediction =
      Predict(std::move(question.engine_case), launch.release, std::move(question.log));
  prediction.mutable_assumptions()->Assign(question.settings.assumed.begin(),
                                           question.settings.assumed.end());
  for (std::string& warning : question.settings.warnings) {
    plan::v1::EngineWarning& wire = *prediction.add_warnings();
    wire.set_about("launch");
    wire.set_message(std::move(warning));
  }
  return prediction;
}

absl::StatusOr<std::vector<std::string>> WordsOf(const plan::v1::LaunchCommand& wire) {
  KVASIR_RETURN_IF_ERROR(CheckCount("words", wire.words_size(), kWireWordsMax));
  std::int64_t bytes = 0;
  for (const std::string& word : wire.words()) bytes += static_cast<std::int64_t>(word.size());
  if (bytes == 0) return MissingField("words", "a launch command, \"vllm\", \"serve\", a model, flags");
  KVASIR_RETURN_IF_ERROR(CheckRange("words", bytes, 1, kWireBytesMax));
  return std::vector<std::string>(wire.words().begin(), wire.words().end());
}

absl::StatusOr<CataloguedModel> Catalogued(const std::string& name,
                                           const std::optional<std::string>& overrides,
                                           std::vector<std::string>& notes) {
  absl::StatusOr<CataloguedModel> model = FindCataloguedModel(name, overrides, notes);
  if (absl::IsNotFound(model.status())) return WithReason(reason::kModelUnknown, "words", model.status());
  if (!model.ok()) return WithReason(ReasonOf(model.status()), "words", model.status());
  return model;
}

// The draft that the command names, unless it lies in the target's checkpoint or keeps no cache.
absl::StatusOr<std::optional<ModelDescription>> DraftOf(const LaunchOptions& said,
                                                        std::vector<std::string>& notes) {
  const bool own = said.spec_model == said.model || DraftsWithoutModel(said);
  if (own || !said.spec_model.has_value()) return std::optional<ModelDescription>();
  KVASIR_ASSIGN_OR_RETURN(CataloguedModel draft, Catalogued(*said.spec_model, std::nullopt, notes));
  return std::optional<ModelDescription>(std::move(draft.model));
}

absl::StatusOr<std::vector<std::int64_t>> MemoryOf(const plan::v1::LaunchCommand& wire,
                                                   const LaunchOptions& said) {
  KVASIR_RETURN_IF_ERROR(CheckCount("kv_memory_bytes", wire.kv_memory_bytes_size(), kRanksMax));
  for (int i = 0; i < wire.kv_memory_bytes_size(); ++i) {
    KVASIR_RETURN_IF_ERROR(
        CheckRange(absl::StrFormat("kv_memory_bytes[%d]", i), wire.kv_memory_bytes(i), 1, kArenaBytesMax));
  }
  if (wire.kv_memory_bytes_size() > 0) {
    return std::vector<std::int64_t>(wire.kv_memory_bytes().begin(), wire.kv_memory_bytes().end());
  }
  if (said.kv_cache_memory_bytes.has_value()) return std::vector<std::int64_t>{*said.kv_cache_memory_bytes};
  return MissingField("kv_memory_bytes",
                      "the bytes that each rank gives to caches, or --kv-cache-memory-bytes among the words");
}

absl::StatusOr<plan::v1::EnginePrediction> AnswerLaunch(const plan::v1::LaunchCommand& wire,
                                                        vllm::EngineVersion version) {
  KVASIR_ASSIGN_OR_RETURN(const std::vector<std::string> words, WordsOf(wire));
  absl::StatusOr<LaunchCommand> command = ParseLaunchCommand(words, /*read_file=*/nullptr);
  if (!command.ok()) return WithReason(ReasonOf(command.status()), "words", command.status());
  KVASIR_ASSIGN_OR_RETURN(const std::vector<std::int64_t> memory, MemoryOf(wire, command->options));
  EngineLaunch launch;
  launch.release = ReleaseOf(version);
  std::vector<std::string> notes = std::move(command->notes);
  launch.options = std::move(command->options);
  const LaunchOptions& said = launch.options;
  KVASIR_ASSIGN_OR_RETURN(CataloguedModel target,
                          Catalogued(said.model.value_or(""), said.hf_overrides, notes));
  launch.target = std::move(target.model);
  launch.is_copy = target.is_copy;
  KVASIR_ASSIGN_OR_RETURN(launch.draft, DraftOf(said, notes));
  KVASIR_ASSIGN_OR_RETURN(plan::v1::EnginePrediction prediction, PredictLaunch(launch, memory));
  for (const UnknownFlag& flag : command->unknown) prediction.add_unknown_flags(flag.word);
  prediction.mutable_notes()->Assign(notes.begin(), notes.end());
  return prediction;
}

absl::StatusOr<plan::v1::EnginePrediction> AnswerSpecs(const std::string& json, vllm::EngineVersion version) {
  KVASIR_RETURN_IF_ERROR(CheckTextBytes("specs_json", json, kPlanTextBytesMax));
  absl::StatusOr<vllm::EngineCase> engine_case = ReadEngineCaseJson(json);
  if (!engine_case.ok()) return WithinField("specs_json", engine_case.status());
  return Predict(*std::move(engine_case), ReleaseOf(version), {});
}

absl::StatusOr<plan::v1::EnginePrediction> AnswerInput(const plan::v1::EngineInput& input) {
  KVASIR_ASSIGN_OR_RETURN(const vllm::EngineVersion version, VersionOf(input.ruleset()));
  switch (input.input_case()) {
    case plan::v1::EngineInput::kLaunch: {
      absl::StatusOr<plan::v1::EnginePrediction> prediction = AnswerLaunch(input.launch(), version);
      if (!prediction.ok()) return WithinField("launch", prediction.status());
      return prediction;
    }
    case plan::v1::EngineInput::kSpecsJson:
      return AnswerSpecs(input.specs_json(), version);
    case plan::v1::EngineInput::INPUT_NOT_SET:
      break;
  }
  return MissingField("input", "a launch command or specs_json");
}

absl::StatusOr<plan::v1::EnginePrediction> AnswerModels(const planner::v1::CreatePlanRequest& request) {
  KVASIR_ASSIGN_OR_RETURN(const PlanQuestion question, QuestionFromProto(request));
  const vllm::EngineVersion version = vllm::ParseEngineVersion(question.options.ruleset).value_or(kNewest);
  const absl::StatusOr<EngineLaunch> launch =
      LaunchOf(question.target, question.draft, question.options, ReleaseOf(version));
  if (!launch.ok()) return WithinField("options", launch.status());
  absl::StatusOr<plan::v1::EnginePrediction> prediction =
      PredictLaunch(*launch, question.options.kv_memory_bytes);
  if (!prediction.ok()) return WithinField("options", prediction.status());
  return prediction;
}

}  // namespace

bool AsksEngine(const planner::v1::CreatePlanRequest& request) {
  return request.has_engine() || vllm::ParseEngineVersion(request.options().ruleset()).has_value();
}

absl::StatusOr<planner::v1::CreatePlanResponse> AnswerEngine(const planner::v1::CreatePlanRequest& request) {
  absl::StatusOr<plan::v1::EnginePrediction> prediction = plan::v1::EnginePrediction();
  if (!request.has_engine()) {
    prediction = AnswerModels(request);
  } else if (request.has_target() || request.has_draft() || request.has_options()) {
    return FieldError(reason::kConflictingFields, "engine",
                      "engine stands alone; leave target, draft and options out");
  } else {
    prediction = AnswerInput(request.engine());
    if (!prediction.ok()) return WithinField("engine", prediction.status());
  }
  if (!prediction.ok()) return prediction.status();
  planner::v1::CreatePlanResponse response;
  *response.mutable_engine() = *std::move(prediction);
  return response;
}

}  // namespace kvasir
