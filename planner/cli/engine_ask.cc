#include "planner/cli/engine_ask.h"

#include <algorithm>
#include <array>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_format.h"
#include "common/base/status_macros.h"
#include "common/base/typed_error.h"
#include "planner/cli/device_verdicts.h"
#include "planner/cli/launch_models.h"
#include "planner/cli/quantity.h"
#include "planner/request/engine_answer.h"
#include "planner/request/engine_case_json.h"
#include "planner/request/engine_drafting.h"

namespace kvasir::cli {
namespace {

constexpr std::string_view kDefaultEngine = "vllm-2026-11";
constexpr std::array kFlags = {
    Flag{"gpu", "NAME", "the device, like h200 or mi355x: a vllm ruleset then finds the memory, as a range"},
    Flag{"specs", "FILE", "layer specs as the engine would dump them, for a vllm ruleset"},
    Flag{"engine-release", "TEXT",
         "the engine's release or day, like 0.24.0: its defaults and its log lines"},
};
constexpr std::size_t kLaunchFileBytesMax = std::size_t{1} << 20;

absl::StatusOr<EngineRelease> ReleaseFrom(const CommandLine& line) {
  if (const std::optional<std::string> text = line.Value("engine-release")) {
    const std::optional<EngineRelease> release = ParseEngineRelease(*text);
    if (!release.has_value()) {
      return absl::InvalidArgumentError(absl::StrFormat(
          "--engine-release %s: expected a release like 0.24.0 or a day like 2026-07-06", *text));
    }
    return *release;
  }
  const std::string ruleset = line.ValueOr("ruleset", kDefaultEngine);
  KVASIR_ASSIGN_OR_RETURN(const vllm::EngineVersion version, EngineVersionOf(ruleset));
  return ReleaseOf(version);
}

absl::Status FindModels(const CommandLine& line, EngineAsk& ask, std::optional<std::int64_t>& checkpoint,
                        std::optional<std::int64_t>& draft_checkpoint) {
  EngineLaunch& launch = *ask.launch;
  const LaunchOptions& options = launch.options;
  std::string word = options.hf_config_path.value_or(options.model.value_or(""));
  if (const std::optional<std::string> target = line.Value("target")) word = *target;
  absl::StatusOr<LaunchModel> target = FindLaunchModel(word, options.hf_overrides, ask.notes);
  if (!target.ok()) {
    return absl::Status(target.status().code(),
                        absl::StrFormat("%s; give its configuration with --target CONFIG",
                                        std::string(target.status().message())));
  }
  launch.target = std::move(target->model);
  launch.is_copy = target->is_copy;
  checkpoint = target->checkpoint_bytes;
  std::optional<std::string> draft = line.Value("draft");
  // MTP layers lie in the target's checkpoint, which some commands name again.
  const bool own = options.spec_model == options.model || IsNgram(options);
  if (!draft.has_value() && !own) draft = options.spec_model;
  if (draft == kOwnLayersDraft) {
    if (!options.spec_method.has_value()) launch.options.spec_method = "mtp";
    return absl::OkStatus();
  }
  if (!draft.has_value()) return absl::OkStatus();
  absl::StatusOr<LaunchModel> found = FindLaunchModel(*draft, std::nullopt, ask.notes);
  const std::string method = options.spec_method.value_or("");
  if (!found.ok() && DraftsWithoutCache(method)) {
    ask.notes.push_back(absl::StrFormat(
        "%s is not known here; a %s draft keeps no cache, and its weights are not counted", *draft, method));
    return absl::OkStatus();
  }
  if (!found.ok()) {
    return absl::Status(found.status().code(),
                        absl::StrFormat("%s; give its configuration with --draft CONFIG",
                                        std::string(found.status().message())));
  }
  launch.draft = std::move(found->model);
  draft_checkpoint = found->checkpoint_bytes;
  return absl::OkStatus();
}

// A budget that cannot know how the weights are stored says so.
void NoteUnstatedFormat(const ModelDescription& model, std::string_view name, EngineAsk& ask) {
  const std::string_view word = UnstatedFormat(model, name);
  if (word.empty()) return;
  ask.notes.push_back(absl::StrFormat(
      "%s is named %s and its config.json has no quantization_config: the range of its weights ends at "
      "unquantised ones, an upper bound; a folder with model.safetensors.index.json gives their size, and if "
      "the checkpoint brings scales for the cache, --kv-cache-dtype fp8 is what auto becomes",
      name.empty() ? model.name : std::string(name), std::string(word)));
}

absl::Status SetMemory(const CommandLine& line, EngineAsk& ask, std::optional<std::int64_t> checkpoint,
                       std::optional<std::int64_t> draft_checkpoint, const EngineSettings& settings) {
  EngineMemory& memory = ask.memory;
  const LaunchOptions& options = ask.launch->options;
  if (ask.rules_only) {
    memory.bytes = {kAmpleBytes};
    return absl::OkStatus();
  }
  if (const std::optional<std::string> said = line.Value("kv-memory")) {
    KVASIR_ASSIGN_OR_RETURN(memory.bytes, ParseBytesList(*said));
    memory.said = "--kv-memory";
    return absl::OkStatus();
  }
  if (options.kv_cache_memory_bytes.has_value()) {
    memory.bytes = {*options.kv_cache_memory_bytes};
    memory.said = "--kv-cache-memory-bytes";
    return absl::OkStatus();
  }
  if (ask.launch->device.has_value()) {
    memory.budget = BudgetOf(*ask.launch, settings, checkpoint, draft_checkpoint);
    memory.bytes = {memory.budget->cache.least};
    memory.most = memory.budget->cache.most;
    memory.said = "--gpu";
    if (!checkpoint.has_value()) NoteUnstatedFormat(ask.launch->target, options.model.value_or(""), ask);
    if (ask.launch->draft.has_value() && !draft_checkpoint.has_value())
      NoteUnstatedFormat(*ask.launch->draft, options.spec_model.value_or(""), ask);
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      "--kv-memory or --gpu is missing: the memory that each rank has for its cache, like 46.8GiB, or the "
      "device, "
      "like h200");
}

}  // namespace

std::span<const Flag> EngineFlags() { return kFlags; }

absl::Status CheckLaunchWords(const CommandLine& line, std::span<const std::string> args) {
  if (line.words().empty() || std::find(args.begin(), args.end(), "--") != args.end())
    return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrFormat("unexpected word \"%s\"; a launch command stands after \"--\"", line.words().front()));
}

absl::Status CheckNativeFlags(const CommandLine& line) {
  if (!line.Has("gpu")) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrFormat(
      "--gpu %s: of ruleset native the memory is given, like --kv-memory 46.8GiB, and kernels by "
      "--target-backend; what a device leaves, kvasir solve and sweep count, and here launch "
      "commands and --ruleset vllm-*",
      line.ValueOr("gpu", "")));
}

bool IsEngineRuleset(std::string_view name) { return name.substr(0, 5) == "vllm-"; }

absl::StatusOr<vllm::EngineVersion> EngineVersionOf(std::string_view name) {
  if (const std::optional<vllm::EngineVersion> version = vllm::ParseEngineVersion(name)) return *version;
  return absl::InvalidArgumentError(absl::StrFormat(
      "--ruleset %s: a launch is planned by vllm-2026-08 or vllm-2026-11", std::string(name)));
}

bool AsksEngine(const CommandLine& line) {
  return !line.words().empty() || line.Has("specs") || IsEngineRuleset(line.ValueOr("ruleset", "native"));
}

absl::StatusOr<EngineAsk> ReadEngineLaunch(const CommandLine& line) {
  EngineAsk ask;
  KVASIR_ASSIGN_OR_RETURN(ask.release, ReleaseFrom(line));
  if (line.words().empty()) {
    KVASIR_ASSIGN_OR_RETURN(const PlanQuestion question, ReadQuestion(line, /*needs_memory=*/false));
    KVASIR_ASSIGN_OR_RETURN(ask.launch, LaunchOf(question, ask.release));
    if (!line.Has("kv-memory")) ask.launch->options.kv_cache_memory_bytes.reset();
  } else {
    const auto read = [](std::string_view path) {
      return ReadWholeFile(std::string(path), kLaunchFileBytesMax);
    };
    KVASIR_ASSIGN_OR_RETURN(ask.command, ParseLaunchCommand(line.words(), read));
    EngineLaunch launch;
    launch.options = ask.command.options;
    launch.release = ask.release;
    ask.launch = std::move(launch);
  }
  if (const std::optional<std::string> gpu = line.Value("gpu")) {
    const absl::StatusOr<GpuRow> row = FindGpu(*gpu);
    if (!row.ok()) return absl::InvalidArgumentError("--gpu: " + std::string(row.status().message()));
    ask.launch->device = *row;
  }
  return ask;
}

absl::Status CompleteEngineAsk(const CommandLine& line, EngineAsk& ask, bool& refused) {
  refused = false;
  std::optional<std::int64_t> checkpoint;
  std::optional<std::int64_t> draft_checkpoint;
  if (!line.words().empty()) KVASIR_RETURN_IF_ERROR(FindModels(line, ask, checkpoint, draft_checkpoint));
  const absl::StatusOr<EngineSettings> settings = SettingsOf(*ask.launch);
  if (!settings.ok()) {
    refused = true;
    return settings.status();
  }
  KVASIR_RETURN_IF_ERROR(SetMemory(line, ask, checkpoint, draft_checkpoint, *settings));
  absl::StatusOr<EngineQuestion> question = EngineCaseOf(*ask.launch, ask.memory.bytes);
  if (!question.ok()) {
    refused = true;
    return question.status();
  }
  ask.engine_case = question->engine_case;
  ask.question = *std::move(question);
  if (std::string warning = DevicesThatRefuse(*ask.launch); !warning.empty())
    ask.question->settings.warnings.push_back(std::move(warning));
  return absl::OkStatus();
}

absl::StatusOr<EngineAsk> ReadEngineSpecs(const CommandLine& line) {
  EngineAsk ask;
  KVASIR_ASSIGN_OR_RETURN(ask.release, ReleaseFrom(line));
  const std::string path = line.ValueOr("specs", "");
  KVASIR_ASSIGN_OR_RETURN(const std::string text, ReadWholeFile(path, kEngineCaseBytesMax));
  absl::StatusOr<vllm::EngineCase> engine_case = ReadEngineCaseJson(text);
  if (!engine_case.ok()) {
    return absl::InvalidArgumentError(absl::StrFormat("--specs %s: %s %s", path,
                                                      ErrorOf(engine_case.status()).field,
                                                      std::string(engine_case.status().message())));
  }
  ask.engine_case = *std::move(engine_case);
  for (const vllm::EngineWorker& worker : ask.engine_case.workers)
    ask.memory.bytes.push_back(worker.available_bytes);
  ask.memory.said = "available_memory_bytes";
  return ask;
}

}  // namespace kvasir::cli
