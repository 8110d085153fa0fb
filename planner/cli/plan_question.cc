#include "planner/cli/plan_question.h"

#include <array>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_format.h"
#include "common/base/limits.h"
#include "common/base/status_macros.h"
#include "common/models/catalogue.h"
#include "common/models/draft_of.h"
#include "common/models/model_text.h"
#include "common/models/read_config.h"
#include "planner/cli/quantity.h"

namespace kvasir::cli {
namespace {

constexpr std::array kFlags = {
    Flag{"target", "MODEL", "catalogue name, config.json, or a directory that holds one"},
    Flag{"draft", "MODEL",
         "the model that drafts tokens for the target; mtp: the target's own layers for that"},
    Flag{"tp", "N", "tensor-parallel ranks (1)"},
    Flag{"dcp", "N", "ranks that share a sequence's tokens; divides --tp (1)"},
    Flag{"interleave", "TOKENS", "consecutive tokens of one rank before the next rank's (1)"},
    Flag{"kv-memory", "SIZE", "memory for caches per rank: 46.8GiB, or a list with a size for each rank"},
    Flag{"context", "LIST", "sequence lengths; the longest must fit (8k,32k,128k,max)"},
    Flag{"max-requests", "N", "requests in one batch (16, or --min-requests)"},
    Flag{"min-requests", "N", "requests of the longest context that must fit (1)"},
    Flag{"draft-tokens", "N",
         "tokens drafted per step (what the draft was trained for; 7 if it does not say)"},
    Flag{"kv-cache-dtype", "TYPE", "auto, bf16, f16, f32, fp8 (auto: the model's)"},
    Flag{"target-backend", "NAME", "kernels of the target's attention (reference)"},
    Flag{"draft-backend", "NAME", "kernels of the draft's attention (reference)"},
    Flag{"block-tokens", "N", "tokens of a block (the planner's choice)"},
    Flag{"draft-context", "HOW",
         "sharded, replicated: the draft's rows over the ranks of a context (sharded)"},
    Flag{"state-rollback", "HOW", "auto, snapshots, replay: how rejected tokens leave a state (auto)"},
    Flag{"prefill-chunk", "TOKENS", "tokens of one prefill chunk (2048)"},
    Flag{"ruleset", "NAME",
         "native, vllm-2026-08 or vllm-2026-11 (native; vllm-2026-11 for a launch command)"},
    Flag{"output", "FORM", "table, json or text (table)"},
};

// Whether the file begins like a canonical model text; such files are written by `kvasir models inspect
// --output text`.
std::optional<std::string> ReadModelTextFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  constexpr std::string_view kHead = "kvasir.model/";
  std::string text(static_cast<std::size_t>(kPlanTextBytesMax) + 1, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(file.gcount()));
  if (text.substr(0, kHead.size()) != kHead) return std::nullopt;
  return text;
}

absl::StatusOr<ModelDescription> ReadModelFlag(const CommandLine& line, std::string_view flag) {
  absl::StatusOr<ModelDescription> model = ReadModel(line.ValueOr(flag, ""));
  if (model.ok()) return model;
  return absl::Status(model.status().code(),
                      absl::StrFormat("--%s: %s", flag, std::string(model.status().message())));
}

absl::StatusOr<ModelDescription> ReadDraft(const CommandLine& line, const ModelDescription& target) {
  if (line.Value("draft") != kOwnLayersDraft) return ReadModelFlag(line, "draft");
  absl::StatusOr<ModelDescription> draft = MtpDraft(target);
  if (draft.ok()) return draft;
  return absl::InvalidArgumentError("--draft mtp: " + std::string(draft.status().message()) +
                                    "; name a draft model instead");
}

absl::Status ReadNumbers(const CommandLine& line, PlanOptions& options) {
  KVASIR_ASSIGN_OR_RETURN(options.tp, line.IntOr("tp", options.tp));
  KVASIR_ASSIGN_OR_RETURN(options.dcp, line.IntOr("dcp", options.dcp));
  KVASIR_ASSIGN_OR_RETURN(options.interleave, line.IntOr("interleave", options.interleave));
  // `solve` calls it --requests.
  KVASIR_ASSIGN_OR_RETURN(options.min_requests, line.IntOr("requests", options.min_requests));
  KVASIR_ASSIGN_OR_RETURN(options.min_requests, line.IntOr("min-requests", options.min_requests));
  KVASIR_ASSIGN_OR_RETURN(options.max_requests,
                          line.IntOr("max-requests", DefaultMaxRequests(options.min_requests)));
  KVASIR_ASSIGN_OR_RETURN(options.draft_tokens, line.IntOr("draft-tokens", options.draft_tokens));
  if (line.Has("draft-tokens")) KVASIR_RETURN_IF_ERROR(CheckDraftTokens(options.draft_tokens));
  KVASIR_ASSIGN_OR_RETURN(options.block_tokens, line.IntOr("block-tokens", options.block_tokens));
  KVASIR_ASSIGN_OR_RETURN(options.prefill_chunk, line.IntOr("prefill-chunk", options.prefill_chunk));
  return absl::OkStatus();
}

// "30" is 30 bytes, which nobody means.
absl::Status CheckUnitWasMeant(std::string_view said, const std::vector<std::int64_t>& bytes) {
  constexpr std::int64_t kLeastMeant = 4096;
  for (const std::int64_t one : bytes) {
    if (one >= kLeastMeant || one <= 0) continue;
    return absl::InvalidArgumentError(
        absl::StrFormat("--kv-memory %s: that is %d bytes; write a unit, like %dGiB", said, one, one));
  }
  return absl::OkStatus();
}

absl::Status ReadSizes(const CommandLine& line, bool needs_memory, PlanOptions& options) {
  if (const std::optional<std::string> memory = line.Value("kv-memory")) {
    KVASIR_ASSIGN_OR_RETURN(options.kv_memory_bytes, ParseBytesList(*memory));
    KVASIR_RETURN_IF_ERROR(CheckUnitWasMeant(*memory, options.kv_memory_bytes));
  } else if (needs_memory) {
    return absl::InvalidArgumentError(
        line.Has("gpu") ? "--kv-memory is missing; --gpu gives it to kvasir solve and sweep, and to launch "
                          "commands and rulesets vllm-* here"
                        : "--kv-memory is missing: the memory that each rank gives to caches, like 46.8GiB");
  } else {
    // Rules do not depend on the amount; any amount that is within the limits will do.
    options.kv_memory_bytes = {std::int64_t{1} << 30};
  }
  if (const std::optional<std::string> contexts = line.Value("context")) {
    KVASIR_ASSIGN_OR_RETURN(options.contexts, ParseContexts(*contexts));
  }
  return absl::OkStatus();
}

}  // namespace

std::span<const Flag> PlanFlags() { return kFlags; }

absl::Status CheckDraftTokens(std::int64_t tokens) {
  if (tokens != 0) return absl::OkStatus();
  return absl::InvalidArgumentError(
      "--draft-tokens 0: expected 1 to 32; leave the flag away for what the draft was trained for, and "
      "--draft for none");
}

absl::StatusOr<ModelDescription> ReadModel(std::string_view word) {
  absl::StatusOr<ModelDescription> known = FindInCatalogue(word);
  if (known.ok()) return known;
  const std::string path(word);
  std::error_code ec;
  if (!std::filesystem::exists(path, ec)) {
    const std::string message(known.status().message());
    return absl::NotFoundError(message + "; and no file or directory has that name");
  }
  if (std::filesystem::is_regular_file(path, ec)) {
    if (const std::optional<std::string> text = ReadModelTextFile(path)) return ModelFromText(*text);
  }
  return ReadConfigPath(path);
}

absl::StatusOr<PlanQuestion> ReadQuestion(const CommandLine& line, bool needs_memory) {
  if (!line.Has("target")) {
    return absl::InvalidArgumentError(
        "--target is missing: a catalogue name (kvasir models list), or a config.json");
  }
  PlanQuestion question;
  KVASIR_ASSIGN_OR_RETURN(question.target, ReadModelFlag(line, "target"));
  if (line.Has("draft")) {
    KVASIR_ASSIGN_OR_RETURN(question.draft, ReadDraft(line, question.target));
  }
  PlanOptions& options = question.options;
  KVASIR_RETURN_IF_ERROR(ReadNumbers(line, options));
  KVASIR_RETURN_IF_ERROR(ReadSizes(line, needs_memory, options));
  options.ruleset = line.ValueOr("ruleset", options.ruleset);
  options.cache_dtype = line.ValueOr("kv-cache-dtype", options.cache_dtype);
  if (options.cache_dtype == "fp8") options.cache_dtype = "fp8_e4m3";
  options.target_backend = line.ValueOr("target-backend", "");
  options.draft_backend = line.ValueOr("draft-backend", "");
  options.draft_context = line.ValueOr("draft-context", options.draft_context);
  options.state_rollback = line.ValueOr("state-rollback", options.state_rollback);
  return question;
}

}  // namespace kvasir::cli
