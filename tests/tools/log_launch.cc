#include "tests/tools/log_launch.h"

#include <functional>
#include <optional>
#include <utility>
#include <variant>

#include "absl/status/status.h"
#include "common/base/status_macros.h"

namespace kvasir {
namespace {

// One way to fill a gap: a change of the launch and how to call it. The first of a list is the default.
struct Choice {
  std::string name;
  std::function<void(EngineLaunch&)> apply;
};
using Choices = std::vector<Choice>;

Choice Default() {
  return {"", [](EngineLaunch&) {}};
}

bool HasWindows(const ModelDescription& model) {
  for (const ModelLayer& layer : model.layers) {
    const auto* attention = std::get_if<AttentionShape>(&layer.mixer);
    if (attention != nullptr && (attention->window > 0 || attention->chunk > 0)) return true;
    const auto* latent = std::get_if<MlaShape>(&layer.mixer);
    if (latent != nullptr && latent->window > 0) return true;
  }
  return false;
}

// "auto (bf16)", "fp8 (fp8_ds_mla 656 B + indexer 132 B)", "fp8 (inferred)" -> the engine's word.
std::string CacheWord(const std::string& text) {
  if (text.find("fp8_ds_mla") != std::string::npos) return "fp8_ds_mla";
  if (text.find("bf16") != std::string::npos) return "bfloat16";
  return text.substr(0, text.find(' '));
}

Choices Caching(const LogRow& row, const EngineLaunch& launch) {
  const auto set = [](bool on) { return [on](EngineLaunch& l) { l.options.prefix_caching = on; }; };
  if (row.Mentions("prefix caching on") || row.Mentions("prefix caching flag on") ||
      row.Mentions("enable_prefix_caching")) {
    return {{"", set(true)}};
  }
  if (row.Mentions("prefix caching off") || row.Mentions("prefix caching disabled"))
    return {{"", set(false)}};
  if (!HasStates(launch.target)) return {Default()};
  return {Default(), {"prefix caching on", set(true)}, {"prefix caching off", set(false)}};
}

Choices Batch(const LogRow& row, const EngineLaunch& launch) {
  const auto set = [](std::int64_t tokens) {
    return [tokens](EngineLaunch& l) { l.options.max_num_batched_tokens = tokens; };
  };
  if (const auto said = row.NumberAfter("max_num_batched_tokens")) return {{"", set(*said)}};
  if (!HasWindows(launch.target)) return {Default()};
  Choices choices = {Default()};
  for (const std::int64_t tokens : {2048, 4096, 8192, 16384}) {
    choices.push_back({"max_num_batched_tokens " + std::to_string(tokens), set(tokens)});
  }
  return choices;
}

Choices Blocks(const LogRow& row, const EngineLaunch& launch) {
  const auto set = [](std::int64_t tokens) {
    return [tokens](EngineLaunch& l) { l.options.block_size = tokens; };
  };
  // A hybrid's printed block is the engine's answer, never what was asked for.
  if (HasStates(launch.target)) return {Default()};
  if (row.block_size.has_value() && *row.block_size > 0) return {{"", set(*row.block_size)}};
  Choices choices = {Default()};
  for (const std::int64_t tokens : {16, 32, 64, 128, 256}) {
    choices.push_back({"blocks of " + std::to_string(tokens), set(tokens)});
  }
  return choices;
}

Choices Rows(const LogRow& row) {
  const std::string word = CacheWord(row.kv_cache_dtype);
  const auto set = [](const std::string& dtype) {
    return [dtype](EngineLaunch& l) { l.options.kv_cache_dtype = dtype; };
  };
  if (word != "auto" && !word.empty()) return {{"", set(word)}};
  return {Default(), {"bf16 rows", set("bfloat16")}, {"fp8 rows", set("fp8")}};
}

Choices Schedule(const EngineLaunch& launch) {
  if (!HasWindows(launch.target) || !launch.release.counts_batches_in_flight()) return {Default()};
  const auto set = [](bool ahead) {
    return [ahead](EngineLaunch& l) { l.options.async_scheduling = ahead; };
  };
  return {Default(), {"one batch in flight", set(false)}, {"two batches in flight", set(true)}};
}

// A fork or a build without a number: by the day of the log, then the other formula of the token figure.
Choices Releases(const LogRow& row) {
  const auto set = [](EngineRelease release) { return [release](EngineLaunch& l) { l.release = release; }; };
  if (const auto release = ParseEngineRelease(row.engine_version)) return {{"", set(*release)}};
  const EngineRelease day = ParseEngineDay(row.date).value_or(EngineRelease{});
  return {{"", set(day)},
          {"the older token figure", set({20260401})},
          {"the newer token figure", set({20260601})}};
}

void Multiply(const Choices& choices, std::vector<LogLaunch>& launches) {
  constexpr std::size_t kMost = 2000;
  std::vector<LogLaunch> out;
  for (const Choice& choice : choices) {
    for (const LogLaunch& launch : launches) {
      if (out.size() >= kMost) break;
      LogLaunch next = launch;
      choice.apply(next.launch);
      if (!choice.name.empty()) next.assumed += (next.assumed.empty() ? "" : ", ") + choice.name;
      out.push_back(std::move(next));
    }
  }
  launches = std::move(out);
}

absl::Status SetDraft(const LogRow& row, const LogModels& models, EngineLaunch& launch) {
  if (row.spec_method.empty()) return absl::OkStatus();
  launch.options.spec_method = row.spec_method;
  launch.options.spec_tokens = row.spec_tokens;
  const bool in_checkpoint = row.spec_model == "in-checkpoint" || row.spec_model == "same";
  const bool own = in_checkpoint || row.spec_method.find("mtp") != std::string::npos;
  if (own || row.spec_method.find("ngram") != std::string::npos) return absl::OkStatus();
  KVASIR_ASSIGN_OR_RETURN(launch.draft, models.Find(row.spec_model));
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::vector<LogLaunch>> LaunchesOf(const LogRow& row, const LogModels& models) {
  if (row.max_model_len.has_value() && *row.max_model_len < 1) {
    return absl::InvalidArgumentError("max_model_len is below 1");
  }
  LogLaunch first;
  EngineLaunch& launch = first.launch;
  KVASIR_ASSIGN_OR_RETURN(launch.target, models.Find(row.model));
  launch.options.tensor_parallel = row.tp;
  launch.options.pipeline_parallel = row.pp;
  launch.options.decode_context_parallel = row.dcp;
  launch.options.max_model_len = row.max_model_len;
  launch.options.allow_long_model_len = true;
  launch.device = GpuIn(row.gpu);
  launch.did_start = true;
  if (row.Mentions("hybrid KV cache manager disabled")) launch.options.disable_hybrid_kv_cache_manager = true;
  if (row.Mentions("mamba_ssm_cache_dtype float32")) launch.options.mamba_ssm_cache_dtype = "float32";
  KVASIR_RETURN_IF_ERROR(SetDraft(row, models, launch));
  std::vector<LogLaunch> launches = {std::move(first)};
  Multiply(Releases(row), launches);
  const EngineLaunch sample = launches.front().launch;
  Multiply(Rows(row), launches);
  Multiply(Caching(row, sample), launches);
  Multiply(Blocks(row, sample), launches);
  Multiply(Batch(row, sample), launches);
  Multiply(Schedule(sample), launches);
  return launches;
}

}  // namespace kvasir
