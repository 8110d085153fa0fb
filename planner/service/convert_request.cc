#include "planner/service/convert_request.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_format.h"
#include "common/base/error_reasons.h"
#include "common/base/limits.h"
#include "common/base/status_macros.h"
#include "common/base/typed_error.h"
#include "common/models/catalogue.h"
#include "common/models/model_text.h"
#include "common/models/read_config.h"
#include "planner/request/build_request.h"
#include "planner/service/check_field.h"
#include "planner/service/convert_layers.h"

namespace kvasir {
namespace {

constexpr std::int64_t kContextsMax = 16;

// Words and counts that the core would only clip: checked here, so that nothing of a request is as long as
// its sender likes.
absl::Status CheckWords(const plan::v1::PlanOptions& wire) {
  KVASIR_RETURN_IF_ERROR(CheckTextBytes("cache_dtype", wire.cache_dtype(), kNameBytesMax));
  KVASIR_RETURN_IF_ERROR(CheckTextBytes("state_rollback", wire.state_rollback(), kNameBytesMax));
  KVASIR_RETURN_IF_ERROR(CheckTextBytes("draft_context", wire.draft_context(), kNameBytesMax));
  KVASIR_RETURN_IF_ERROR(CheckTextBytes("target_backend", wire.target_backend(), kNameBytesMax));
  KVASIR_RETURN_IF_ERROR(CheckTextBytes("draft_backend", wire.draft_backend(), kNameBytesMax));
  return CheckTextBytes("ruleset", wire.ruleset(), kNameBytesMax);
}

absl::Status TakeTopology(const plan::v1::Topology& wire, PlanOptions& options) {
  KVASIR_RETURN_IF_ERROR(CheckRange("topology.tp", wire.tp(), 0, kRanksMax));
  KVASIR_RETURN_IF_ERROR(CheckRange("topology.dcp", wire.dcp(), 0, kRanksMax));
  KVASIR_RETURN_IF_ERROR(
      CheckRange("topology.interleave_tokens", wire.interleave_tokens(), 0, kBlockTokensMax));
  options.tp = std::max(wire.tp(), 1);
  options.dcp = std::max(wire.dcp(), 1);
  options.interleave = std::max(wire.interleave_tokens(), 1);
  return absl::OkStatus();
}

absl::Status TakeSizes(const plan::v1::PlanOptions& wire, bool needs_memory, PlanOptions& options) {
  KVASIR_RETURN_IF_ERROR(CheckCount("kv_memory_bytes", wire.kv_memory_bytes_size(), kRanksMax));
  for (int i = 0; i < wire.kv_memory_bytes_size(); ++i) {
    KVASIR_RETURN_IF_ERROR(
        CheckRange(absl::StrFormat("kv_memory_bytes[%d]", i), wire.kv_memory_bytes(i), 1, kArenaBytesMax));
  }
  options.kv_memory_bytes.assign(wire.kv_memory_bytes().begin(), wire.kv_memory_bytes().end());
  if (options.kv_memory_bytes.empty()) {
    if (needs_memory) {
      return MissingField("kv_memory_bytes", "the bytes that each rank gives to caches");
    }
    options.kv_memory_bytes = {std::int64_t{1} << 30};  // rules do not depend on the amount
  }
  KVASIR_RETURN_IF_ERROR(CheckCount("context_tokens", wire.context_tokens_size(), kContextsMax));
  for (int i = 0; i < wire.context_tokens_size(); ++i) {
    KVASIR_RETURN_IF_ERROR(
        CheckRange(absl::StrFormat("context_tokens[%d]", i), wire.context_tokens(i), 0, kContextTokensMax));
  }
  options.contexts.assign(wire.context_tokens().begin(), wire.context_tokens().end());
  return absl::OkStatus();
}

absl::Status TakeNumbers(const plan::v1::PlanOptions& wire, PlanOptions& options) {
  KVASIR_RETURN_IF_ERROR(CheckRange("request_count_min", wire.request_count_min(), 0, kRequestsMax));
  KVASIR_RETURN_IF_ERROR(CheckRange("request_count_max", wire.request_count_max(), 0, kRequestsMax));
  KVASIR_RETURN_IF_ERROR(
      CheckRange("prefill_chunk_tokens", wire.prefill_chunk_tokens(), 0, kContextTokensMax));
  KVASIR_RETURN_IF_ERROR(CheckRange("draft_tokens", wire.draft_tokens(), 0, kDraftTokensMax));
  KVASIR_RETURN_IF_ERROR(CheckRange("block_tokens", wire.block_tokens(), 0, kBlockTokensMax));
  if (wire.request_count_min() != 0) {
    options.min_requests = wire.request_count_min();
  }
  options.max_requests =
      wire.request_count_max() != 0 ? wire.request_count_max() : DefaultMaxRequests(options.min_requests);
  options.prefill_chunk = wire.prefill_chunk_tokens();
  options.draft_tokens = wire.draft_tokens();
  options.block_tokens = wire.block_tokens();
  return absl::OkStatus();
}

absl::StatusOr<PlanOptions> OptionsFromProto(const plan::v1::PlanOptions& wire, bool needs_memory) {
  PlanOptions options;
  KVASIR_RETURN_IF_ERROR(CheckWords(wire));
  KVASIR_RETURN_IF_ERROR(TakeTopology(wire.topology(), options));
  KVASIR_RETURN_IF_ERROR(TakeSizes(wire, needs_memory, options));
  KVASIR_RETURN_IF_ERROR(TakeNumbers(wire, options));
  options.target_backend = wire.target_backend();
  options.draft_backend = wire.draft_backend();
  if (!wire.cache_dtype().empty()) {
    options.cache_dtype = wire.cache_dtype();
  }
  if (!wire.state_rollback().empty()) {
    options.state_rollback = wire.state_rollback();
  }
  if (!wire.draft_context().empty()) {
    options.draft_context = wire.draft_context();
  }
  if (!wire.ruleset().empty()) {
    options.ruleset = wire.ruleset();
  }
  return options;
}

absl::StatusOr<ModelDescription> DescriptionFromProto(const plan::v1::ModelSource& source) {
  switch (source.source_case()) {
    case plan::v1::ModelSource::kCatalogueName:
      KVASIR_RETURN_IF_ERROR(CheckTextBytes("catalogue_name", source.catalogue_name(), kNameBytesMax));
      if (absl::StatusOr<ModelDescription> model = FindInCatalogue(source.catalogue_name()); model.ok()) {
        return model;
      } else {
        return WithReason(reason::kModelUnknown, "catalogue_name", model.status());
      }
    case plan::v1::ModelSource::kConfigJson: {
      const plan::v1::ConfigJson& config = source.config_json();
      KVASIR_RETURN_IF_ERROR(CheckTextBytes("config_json.json", config.json(), kPlanTextBytesMax));
      KVASIR_RETURN_IF_ERROR(CheckTextBytes("config_json.name", config.name(), kNameBytesMax));
      absl::StatusOr<ModelDescription> model =
          ReadConfigJson(config.json(), config.name().empty() ? "unnamed" : config.name());
      return model.ok() ? model
                        : WithinField("config_json.json",
                                      WithReason(reason::kModelConfigInvalid, "", model.status()));
    }
    case plan::v1::ModelSource::kModelText: {
      KVASIR_RETURN_IF_ERROR(CheckTextBytes("model_text", source.model_text(), kPlanTextBytesMax));
      absl::StatusOr<ModelDescription> model = ModelFromText(source.model_text());
      return model.ok()
                 ? model
                 : WithinField("model_text", WithReason(reason::kModelTextInvalid, "", model.status()));
    }
    case plan::v1::ModelSource::kLayers:
    case plan::v1::ModelSource::SOURCE_NOT_SET:
      break;
  }
  return MissingField("source", "a catalogue name, a config.json, a model text or layers");
}

struct Model {
  ModelInput input;
  std::string text;
};

absl::StatusOr<Model> ModelFromProto(const plan::v1::ModelSource& source, Role role,
                                     const StateScale& scale) {
  if (source.source_case() == plan::v1::ModelSource::kLayers) {
    absl::StatusOr<ModelInput> input = LayersFromProto(source.layers(), role);
    return input.ok() ? absl::StatusOr<Model>(Model{*std::move(input), ""})
                      : WithinField("layers", input.status());
  }
  KVASIR_ASSIGN_OR_RETURN(const ModelDescription model, DescriptionFromProto(source));
  return Model{InputOf(model, role, scale), ModelToText(model)};
}

template <class Question>
absl::StatusOr<PlanOptions> OptionsOf(const Question& wire, bool needs_memory) {
  if (!wire.has_target()) {
    return MissingField("target", "the model whose output counts");
  }
  if (!wire.has_options()) {
    return MissingField("options", "at least options.kv_memory_bytes");
  }
  absl::StatusOr<PlanOptions> options = OptionsFromProto(wire.options(), needs_memory);
  if (!options.ok()) return WithinField("options", options.status());
  return options;
}

// A model for a ruleset that reads models.
absl::StatusOr<ModelDescription> WholeModel(const plan::v1::ModelSource& source) {
  if (source.source_case() != plan::v1::ModelSource::kLayers) return DescriptionFromProto(source);
  return FieldError(
      reason::kUnknownValue, "layers",
      "this question reads whole models; an engine's own specs go into engine.specs_json of CreatePlan");
}

// Target, draft and options of either question.
template <class Question>
absl::StatusOr<PlanTask> TaskOf(const Question& wire, bool needs_memory) {
  const absl::StatusOr<PlanOptions> options = OptionsOf(wire, needs_memory);
  if (!options.ok()) {
    return options.status();
  }
  PlanOptions said = *options;
  if (wire.has_draft() && wire.draft().source_case() != plan::v1::ModelSource::kLayers) {
    // One that is not known is told after the target, below.
    const absl::StatusOr<ModelDescription> known = DescriptionFromProto(wire.draft());
    if (known.ok()) said.draft_tokens = DraftTokensOf(said, std::optional<ModelDescription>(*known));
  }
  const StateScale scale{.draft_tokens = DraftTokensOf(said, wire.has_draft()), .tp = said.tp};
  absl::StatusOr<Model> target = ModelFromProto(wire.target(), Role::kTarget, scale);
  if (!target.ok()) {
    return WithinField("target", target.status());
  }
  PlanTask task;
  task.target_model_text = std::move(target->text);
  std::optional<ModelInput> draft;
  if (wire.has_draft()) {
    absl::StatusOr<Model> model = ModelFromProto(wire.draft(), Role::kDraft, scale);
    if (!model.ok()) {
      return WithinField("draft", model.status());
    }
    task.draft_model_text = std::move(model->text);
    draft = std::move(model->input);
  }
  task.request = BuildRequest(target->input, draft, said);
  return task;
}

template <class Question>
absl::StatusOr<PlanQuestion> QuestionOf(const Question& wire, bool needs_memory) {
  PlanQuestion question;
  KVASIR_ASSIGN_OR_RETURN(question.options, OptionsOf(wire, needs_memory));
  absl::StatusOr<ModelDescription> target = WholeModel(wire.target());
  if (!target.ok()) {
    return WithinField("target", target.status());
  }
  question.target = *std::move(target);
  if (wire.has_draft()) {
    absl::StatusOr<ModelDescription> draft = WholeModel(wire.draft());
    if (!draft.ok()) {
      return WithinField("draft", draft.status());
    }
    question.draft = *std::move(draft);
  }
  return question;
}

}  // namespace

absl::StatusOr<PlanTask> TaskFromProto(const planner::v1::CreatePlanRequest& wire) {
  return TaskOf(wire, /*needs_memory=*/true);
}

absl::StatusOr<PlanTask> TaskFromProto(const planner::v1::ValidateSpecsRequest& wire) {
  return TaskOf(wire, /*needs_memory=*/false);
}

absl::StatusOr<PlanQuestion> QuestionFromProto(const planner::v1::CreatePlanRequest& wire) {
  return QuestionOf(wire, /*needs_memory=*/true);
}

absl::StatusOr<PlanQuestion> QuestionFromProto(const planner::v1::SolvePlanRequest& wire, bool needs_memory) {
  return QuestionOf(wire, needs_memory);
}

absl::StatusOr<PlanQuestion> QuestionFromProto(const planner::v1::SweepPlansRequest& wire,
                                               bool needs_memory) {
  return QuestionOf(wire, needs_memory);
}

}  // namespace kvasir
