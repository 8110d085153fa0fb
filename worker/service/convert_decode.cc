#include "worker/service/convert_decode.h"

#include <algorithm>
#include <chrono>
#include <string>
#include <string_view>
#include <utility>

#include "common/base/error_reasons.h"
#include "common/base/limits.h"
#include "common/base/status_macros.h"
#include "common/base/typed_error.h"
#include "worker/service/convert_fields.h"
#include "worker/service/convert_sampling.h"

namespace kvasir {
namespace {

constexpr std::int64_t kTagMax = (std::int64_t{1} << 62) - 1;
constexpr std::int64_t kStopTokensMax = 64;

worker::v1::FinishReason FromEndReason(EndReason reason) {
  switch (reason) {
    case EndReason::kLength:
      return worker::v1::FINISH_REASON_LENGTH;
    case EndReason::kStopToken:
      return worker::v1::FINISH_REASON_STOP_TOKEN;
    case EndReason::kCancelled:
      break;
  }
  return worker::v1::FINISH_REASON_CANCELLED;
}

// "prompt[3]" of the scheduler is "prompt_token_ids[3]" of the wire.
std::string WireField(const std::string& field) {
  constexpr std::pair<std::string_view, std::string_view> kNames[] = {{"prompt", "prompt_token_ids"},
                                                                      {"stop_tokens", "stop_token_ids"}};
  for (const auto& [ours, wire] : kNames) {
    if (field == ours || field.starts_with(std::string(ours) + "[")) {
      return std::string(wire) + field.substr(ours.size());
    }
  }
  return field;
}

// Writes one alternative of DecodeEvent::what.
struct Writer {
  worker::v1::DecodeResponse& out;

  void operator()(const RequestJoined& joined) const {
    out.mutable_joined()->set_epoch(joined.key.epoch.value());
    out.mutable_joined()->set_plan_id(joined.key.plan_id);
    out.mutable_joined()->set_seed(joined.seed);
  }
  void operator()(const RequestTokens& tokens) const {
    out.mutable_tokens()->mutable_token_ids()->Assign(tokens.tokens.begin(), tokens.tokens.end());
    out.mutable_tokens()->set_drafted_tokens(static_cast<std::int32_t>(tokens.drafted));
    out.mutable_tokens()->set_accepted_tokens(static_cast<std::int32_t>(tokens.accepted));
    out.mutable_tokens()->mutable_logprobs()->Assign(tokens.logprobs.begin(), tokens.logprobs.end());
  }
  void operator()(const RequestFinished& finished) const {
    worker::v1::FinishedEvent& event = *out.mutable_finished();
    event.set_reason(FromEndReason(finished.reason));
    event.set_emitted_tokens(finished.emitted);
    event.set_drafted_tokens(finished.drafted);
    event.set_accepted_tokens(finished.accepted);
    event.set_target_step_count(finished.target_steps);
    event.set_prefill_step_count(finished.prefill_steps);
    *event.mutable_queue_time() = FromNanoseconds(finished.queue_time);
    *event.mutable_prefill_time() = FromNanoseconds(finished.prefill_time);
    *event.mutable_target_step_time() = FromNanoseconds(finished.target_time);
    *event.mutable_target_step_time_max() = FromNanoseconds(finished.target_time_max);
  }
  void operator()(const absl::Status& status) const {
    const TypedError error = ErrorOf(status);
    out.mutable_error()->set_code(static_cast<std::int32_t>(error.code));
    out.mutable_error()->set_reason(error.reason);
    out.mutable_error()->set_field(WireField(error.field));
    out.mutable_error()->set_message(error.message);
  }
};

google::protobuf::Duration Remaining(std::int64_t until_ms, std::int64_t now_ms) {
  return FromNanoseconds(std::chrono::milliseconds(std::max<std::int64_t>(0, until_ms - now_ms)));
}

}  // namespace

absl::Status CheckTag(const char* field, std::int64_t tag) { return CheckRange(field, tag, {1, kTagMax}); }

absl::StatusOr<SequenceRequest> ToSequenceRequest(const worker::v1::JoinRequest& join,
                                                  std::uint64_t fresh_seed) {
  KVASIR_RETURN_IF_ERROR(CheckDeployment(join.deployment()));
  if (join.prompt_token_ids().empty()) {
    return FieldError(reason::kMissingField, "prompt_token_ids",
                      "prompt_token_ids is empty; a prompt has at least one token");
  }
  KVASIR_RETURN_IF_ERROR(CheckCount("prompt_token_ids", join.prompt_token_ids_size(), kContextTokensMax));
  KVASIR_RETURN_IF_ERROR(CheckCount("stop_token_ids", join.stop_token_ids_size(), kStopTokensMax));
  KVASIR_RETURN_IF_ERROR(CheckRange("max_tokens", join.max_tokens(), {1, kContextTokensMax}));
  SequenceRequest request;
  request.prompt.assign(join.prompt_token_ids().begin(), join.prompt_token_ids().end());
  request.stop_tokens.assign(join.stop_token_ids().begin(), join.stop_token_ids().end());
  request.max_tokens = join.max_tokens();
  request.speculate = join.speculate();
  KVASIR_ASSIGN_OR_RETURN(request.sampling, ToSampling(join.sampling(), fresh_seed));
  return request;
}

absl::StatusOr<JoinTerms> ToJoinTerms(const worker::v1::JoinRequest& join) {
  JoinTerms terms{.wait = join.wait()};
  if (!join.has_timeout()) return terms;
  KVASIR_ASSIGN_OR_RETURN(terms.timeout,
                          ToMilliseconds("timeout", /*present=*/true, join.timeout(),
                                         {std::chrono::milliseconds(1), std::chrono::hours(24)}));
  return terms;
}

worker::v1::DecodeResponse FromDecodeEvent(const DecodeEvent& event) {
  worker::v1::DecodeResponse response;
  response.set_tag(event.tag);
  std::visit(Writer{response}, event.what);
  return response;
}

worker::v1::DeploymentState FromView(const DeploymentView& view) {
  worker::v1::DeploymentState message;
  const DeploymentState& state = view.state;
  message.set_deployment(view.deployment);
  message.set_max_epoch(state.max_epoch.value());
  if (state.running.has_value()) {
    message.mutable_running()->set_epoch(state.running->epoch.value());
    message.mutable_running()->set_plan_id(state.running->plan_id);
  }
  if (state.draining.has_value()) {
    worker::v1::DrainingPlan& draining = *message.mutable_draining();
    draining.set_epoch(state.draining->key.epoch.value());
    draining.set_plan_id(state.draining->key.plan_id);
    *draining.mutable_remaining() = Remaining(state.draining->until_ms, view.now_ms);
  }
  if (state.pending.has_value()) {
    worker::v1::PendingPlan& pending = *message.mutable_pending();
    pending.set_epoch(state.pending->key.epoch.value());
    pending.set_plan_id(state.pending->key.plan_id);
    pending.set_ready(state.pending->ready);
    *pending.mutable_lease_remaining() = Remaining(state.pending->lease_until_ms, view.now_ms);
  }
  message.set_sequence_count(static_cast<std::int32_t>(view.sequences));
  message.set_failure(state.failure);
  return message;
}

}  // namespace kvasir
