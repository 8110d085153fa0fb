#include "planner/request/engine_drafting.h"

#include <algorithm>
#include <array>
#include <string>
#include <string_view>

#include "absl/strings/str_format.h"
#include "common/base/error_reasons.h"
#include "common/base/status_macros.h"
#include "common/base/typed_error.h"
#include "common/models/draft_of.h"

namespace kvasir {
namespace {

constexpr std::array<std::string_view, 5> kWithoutCache = {"ngram", "ngram_gpu", "suffix", "medusa",
                                                           "mlp_speculator"};

// The engine's other methods, in their plain names.
constexpr std::array<std::string_view, 8> kWithCache = {
    "draft_model", "eagle", "eagle3", "mtp", "dflash", "dspark", "extract_hidden_states", "custom_class"};

constexpr std::int64_t kSuffixTokens = 24;

// "deepseek_mtp", "qwen3_next_mtp" and the like are one method.
std::string PlainMethod(const std::string& word) {
  constexpr std::string_view kMtp = "mtp";
  const bool mtp = word.size() >= kMtp.size() && word.substr(word.size() - kMtp.size()) == kMtp;
  return mtp ? std::string(kMtp) : word;
}

std::string MethodOf(const EngineLaunch& launch) {
  if (launch.options.spec_method.has_value()) return PlainMethod(*launch.options.spec_method);
  if (IsNgram(launch.options)) return "ngram";
  if (launch.draft.has_value()) {
    if (launch.draft->draft.has_value()) return std::string(EngineMethodOf(launch.draft->draft->method));
    // The engine makes its MTP layers of every configuration that has some.
    return launch.draft->mtp_layers.empty() ? "draft_model" : "mtp";
  }
  const bool own = launch.options.spec_model.has_value() && launch.options.spec_model == launch.options.model;
  return own && !launch.target.mtp_layers.empty() ? "mtp" : "";
}

// The model whose layers predict, by method mtp.
const ModelDescription& PredictingModel(const EngineLaunch& launch) {
  return launch.draft.has_value() ? *launch.draft : launch.target;
}

absl::Status NoTokens(const std::string& method) {
  return FieldError(
      reason::kMissingField, "--speculative-config.num_speculative_tokens",
      absl::StrFormat("--speculative-config names method %s and no num_speculative_tokens, and the draft "
                      "does not say it; the engine raises ValueError; add num_speculative_tokens",
                      method));
}

// What the engine takes where the command is silent; 0: it refuses.
std::int64_t DefaultTokens(const EngineLaunch& launch, const std::string& method) {
  if (method == "suffix") return kSuffixTokens;
  // Asked for by name only, the engine looks into no configuration.
  if (method == "mtp") return launch.options.spec_model.has_value() ? PredictingModel(launch).mtp_depth : 0;
  if (!launch.draft.has_value() || !launch.draft->draft.has_value()) return 0;
  // Whatever these drafts say, it wants to be told.
  if (method == "eagle" || method == "eagle3" || method == "dflash") return 0;
  return TrainedTokens(*launch.draft->draft);
}

}  // namespace

std::string_view EngineMethodOf(DraftMethod method) {
  switch (method) {
    case DraftMethod::kDspark:
      return "dspark";
    case DraftMethod::kEagle:
      return "eagle";
    case DraftMethod::kEagle3:
    case DraftMethod::kPeagle:
      return "eagle3";
    case DraftMethod::kMtp:
      return "mtp";
    case DraftMethod::kDflash:
    case DraftMethod::kDflare:
    case DraftMethod::kDomino:
      return "dflash";
  }
  return "";
}

bool IsNgram(const LaunchOptions& options) {
  const std::string method = options.spec_method.value_or("");
  const std::string model = options.spec_model.value_or("");
  return method == "ngram" || method == "[ngram]" ||
         (method.empty() && (model == "ngram" || model == "[ngram]"));
}

bool DraftsWithoutModel(const LaunchOptions& options) {
  return IsNgram(options) || DraftsWithoutCache(options.spec_method.value_or(""));
}

bool DraftsWithoutCache(std::string_view method) {
  return std::find(kWithoutCache.begin(), kWithoutCache.end(), method) != kWithoutCache.end();
}

namespace {

// What the engine itself refuses of a --speculative-config.
absl::Status CheckSaid(const EngineLaunch& launch, const std::string& method) {
  const bool known = DraftsWithoutCache(method) ||
                     std::find(kWithCache.begin(), kWithCache.end(), method) != kWithCache.end();
  if (!known && launch.options.spec_method.has_value()) {
    std::string words;
    for (const std::string_view word : kWithCache) words += std::string(word) + ", ";
    for (const std::string_view word : kWithoutCache) words += std::string(word) + ", ";
    return FieldError(
        reason::kUnknownValue, "--speculative-config.method",
        absl::StrFormat("--speculative-config.method is %s; the engine raises ValueError; it has "
                        "%sand words that end in mtp",
                        method.substr(0, 64), words));
  }
  const std::int64_t draft_tp = launch.options.spec_tensor_parallel.value_or(1);
  const std::int64_t tp = launch.options.tensor_parallel.value_or(1);
  if (draft_tp != 1 && draft_tp != tp) {
    return FieldError(
        reason::kValueOutOfRange, "--speculative-config.draft_tensor_parallel_size",
        absl::StrFormat("--speculative-config.draft_tensor_parallel_size is %d; the engine raises "
                        "ValueError for other than 1 or --tensor-parallel-size, %d",
                        draft_tp, tp));
  }
  return absl::OkStatus();
}

// A draft of another target: what the engine's own check finds, and what it cannot multiply.
absl::Status CheckDraftFits(const EngineLaunch& launch, const std::string& method) {
  constexpr std::string_view kField = "--speculative-config.model";
  if (!launch.draft.has_value()) return absl::OkStatus();
  const ModelDescription& target = launch.target;
  const ModelDescription& draft = *launch.draft;
  const auto refuse = [&](const std::string& why, std::string_view raises) {
    return FieldError(reason::kConflictingFields, kField,
                      absl::StrFormat("%s %s; the engine %s; use a draft that was made for %s", draft.name,
                                      why, raises, target.name));
  };
  if (method == "draft_model" && draft.vocab != target.vocab) {
    return refuse(
        absl::StrFormat("has a vocabulary of %d, and %s has %d", draft.vocab, target.name, target.vocab),
        "raises ValueError");
  }
  if (!draft.draft.has_value()) return absl::OkStatus();
  if (draft.draft->target_hidden != target.hidden) {
    return refuse(absl::StrFormat("reads hidden states of %d lanes, and those of %s have %d",
                                  draft.draft->target_hidden, target.name, target.hidden),
                  "fails when it first runs it");
  }
  const auto layers = static_cast<std::int64_t>(target.layers.size());
  for (const std::int64_t tap : draft.draft->target_taps) {
    if (tap < layers) continue;
    return refuse(absl::StrFormat("reads layer %d, and the last of %s is %d", tap, target.name, layers - 1),
                  "fails when it first runs it");
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Drafting> DraftingOf(const EngineLaunch& launch) {
  Drafting drafting;
  drafting.method = MethodOf(launch);
  if (drafting.method.empty()) {
    if (launch.options.spec_tokens.has_value() || launch.options.spec_model.has_value()) {
      return FieldError(
          reason::kMissingField, "--speculative-config.method",
          "--speculative-config names no model, and no method that needs none; the engine raises ValueError; "
          "add \"model\" or \"method\"");
    }
    return drafting;
  }
  KVASIR_RETURN_IF_ERROR(CheckSaid(launch, drafting.method));
  KVASIR_RETURN_IF_ERROR(CheckDraftFits(launch, drafting.method));
  drafting.tokens = launch.options.spec_tokens.value_or(DefaultTokens(launch, drafting.method));
  if (drafting.tokens == 0) return NoTokens(drafting.method);
  if (drafting.method == "mtp" && !PredictingModel(launch).draft.has_value()) {
    const ModelDescription& model = PredictingModel(launch);
    if (model.mtp_layers.empty()) {
      return FieldError(
          reason::kConflictingFields, "--speculative-config.method",
          absl::StrFormat("--speculative-config.method is mtp and %s has no MTP layers; use another "
                          "method, or a checkpoint that has them",
                          model.name));
    }
    const std::int64_t depth = std::max<std::int64_t>(model.mtp_depth, 1);
    if (drafting.tokens > depth && drafting.tokens % depth != 0) {
      return FieldError(
          reason::kValueOutOfRange, "--speculative-config.num_speculative_tokens",
          absl::StrFormat("num_speculative_tokens is %d, must be a multiple of the %d tokens that the "
                          "MTP layers predict; the engine raises ValueError",
                          drafting.tokens, depth));
    }
    drafting.layers = model.mtp_layers;
    return drafting;
  }
  if (DraftsWithoutCache(drafting.method)) return drafting;
  // DeepSeek-V4 has its block draft in the checkpoint, in the place of MTP layers.
  if (!launch.draft.has_value() && drafting.method == "dspark" && !launch.target.mtp_layers.empty()) {
    drafting.layers = launch.target.mtp_layers;
    drafting.causal = false;
    drafting.windowed_causal = false;
    return drafting;
  }
  if (!launch.draft.has_value()) {
    return FieldError(reason::kMissingField, "--speculative-config.model",
                      absl::StrFormat("method %s needs a draft model, and none is known; add \"model\" to "
                                      "--speculative-config, or give --draft",
                                      drafting.method));
  }
  drafting.layers = launch.draft->layers;
  drafting.own_numbers = drafting.method == "draft_model";
  if (launch.draft->draft.has_value()) {
    const bool chain = drafting.method == "eagle" || drafting.method == "eagle3" || drafting.method == "mtp";
    drafting.causal = chain || launch.draft->draft->causal;
    drafting.windowed_causal = chain || launch.draft->draft->windowed_causal;
  }
  return drafting;
}

}  // namespace kvasir
