#include "tests/tools/soak_request.h"

#include <algorithm>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_format.h"
#include "common/base/error_reasons.h"

namespace kvasir::soak {
namespace wire = worker::v1;

RequestCheck::RequestCheck(wire::JoinRequest join, const Answer* answer, Time sent)
    : join_(std::move(join)), answer_(answer), sent_(sent) {}

std::string RequestCheck::Take(const wire::DecodeResponse& event, Time now) {
  ++events_;
  if (end_ != End::kOpen) return "an event after its end: " + event.ShortDebugString();
  switch (event.event_case()) {
    case wire::DecodeResponse::kJoined:
      return TakeJoined(event.joined());
    case wire::DecodeResponse::kTokens:
      return TakeTokens(event.tokens());
    case wire::DecodeResponse::kFinished:
      return TakeFinished(event.finished());
    case wire::DecodeResponse::kError:
      return TakeError(event.error(), now);
    case wire::DecodeResponse::EVENT_NOT_SET:
      break;
  }
  return "an event without content";
}

std::string RequestCheck::TakeJoined(const wire::JoinedEvent& joined) {
  if (std::exchange(joined_, true)) return "joined twice";
  if (joined.seed() == join_.sampling().seed()) return "";
  return absl::StrFormat("joined with seed %d; %d was sent", joined.seed(), join_.sampling().seed());
}

bool RequestCheck::IsStop(std::int32_t token) const {
  const auto& stops = join_.stop_token_ids();
  return std::find(stops.begin(), stops.end(), token) != stops.end();
}

// Nothing may follow the limit or a stop token.
bool RequestCheck::SaidAll() const {
  return !said_.tokens.empty() && (static_cast<std::int64_t>(said_.tokens.size()) >= join_.max_tokens() ||
                                   IsStop(said_.tokens.back()));
}

std::string RequestCheck::TakeTokens(const wire::TokensEvent& tokens) {
  if (!joined_) return "tokens before it joined";
  if (tokens.token_ids().empty()) return "a tokens event without tokens";
  const std::size_t first = said_.tokens.size();
  for (const std::int32_t token : tokens.token_ids()) {
    if (SaidAll()) return "tokens after the limit or a stop token: " + tokens.ShortDebugString();
    said_.tokens.push_back(token);
  }
  said_.logprobs.insert(said_.logprobs.end(), tokens.logprobs().begin(), tokens.logprobs().end());
  const int logprobs = join_.sampling().logprobs() ? tokens.token_ids_size() : 0;
  if (tokens.logprobs_size() != logprobs) {
    return absl::StrFormat("%d log-probabilities, want %d", tokens.logprobs_size(), logprobs);
  }
  // The first token comes from the prompt's last chunk, and alone.
  if (first == 0 && (tokens.token_ids_size() != 1 || tokens.drafted_tokens() != 0)) {
    return "the prompt's step said " + tokens.ShortDebugString();
  }
  if (!join_.speculate() && tokens.drafted_tokens() != 0) return "drafted tokens without a draft";
  if (first > 0) ++target_steps_;
  drafted_ += tokens.drafted_tokens();
  accepted_ += tokens.accepted_tokens();
  // The accepted ones and the target's own, which is missing where the output ends before it.
  ended_drafted_ = first > 0 && SaidAll() && tokens.token_ids_size() == tokens.accepted_tokens();
  if (first > 0 && !ended_drafted_ && tokens.token_ids_size() != tokens.accepted_tokens() + 1) {
    return "a step's tokens do not add up: " + tokens.ShortDebugString();
  }
  return CompareFrom(first);
}

std::string RequestCheck::CompareFrom(std::size_t first) const {
  if (answer_ == nullptr) return "";
  for (std::size_t i = first; i < said_.tokens.size(); ++i) {
    if (i >= answer_->tokens.size()) return "more tokens than the answer has";
    if (said_.tokens[i] != answer_->tokens[i]) {
      return absl::StrFormat("token %d is %d, want %d", i, said_.tokens[i], answer_->tokens[i]);
    }
    if (!said_.logprobs.empty() && said_.logprobs[i] != answer_->logprobs[i]) {
      return absl::StrFormat("the log-probability of token %d is %.9g, want %.9g", i, said_.logprobs[i],
                             answer_->logprobs[i]);
    }
  }
  return "";
}

std::string RequestCheck::CheckTotals(const wire::FinishedEvent& finished) const {
  const auto said = static_cast<std::int64_t>(said_.tokens.size());
  const auto prompt = static_cast<std::int64_t>(join_.prompt_token_ids_size());
  const std::int64_t chunks = (prompt + kPrefillChunk - 1) / kPrefillChunk;
  const bool counted = finished.emitted_tokens() == said && finished.drafted_tokens() == drafted_ &&
                       finished.accepted_tokens() == accepted_ &&
                       finished.target_step_count() == target_steps_;
  const std::int64_t sum = said == 0 ? 0 : 1 + accepted_ + target_steps_ - (ended_drafted_ ? 1 : 0);
  const bool prefilled =
      said > 0 ? finished.prefill_step_count() == chunks : finished.prefill_step_count() < chunks;
  if (counted && sum == said && accepted_ <= drafted_ && prefilled) return "";
  return absl::StrFormat(
      "totals do not add up: seen %d tokens, %d drafted, %d accepted, %d steps, %d chunks; %s", said,
      drafted_, accepted_, target_steps_, chunks, finished.ShortDebugString());
}

std::string RequestCheck::TakeFinished(const wire::FinishedEvent& finished) {
  totals_ = finished;
  const bool stopped = !said_.tokens.empty() && IsStop(said_.tokens.back());
  end_ = End::kFault;
  switch (finished.reason()) {
    case wire::FINISH_REASON_LENGTH:
      if (!SaidAll() || stopped) return "finished by length with " + finished.ShortDebugString();
      end_ = End::kLength;
      break;
    case wire::FINISH_REASON_STOP_TOKEN:
      if (!stopped) return "finished by a stop token that did not come";
      end_ = End::kStopToken;
      break;
    case wire::FINISH_REASON_CANCELLED:
      if (!cancel_sent_) return "cancelled, and nobody asked for it";
      if (SaidAll()) return "cancelled after its last token";
      end_ = End::kCancelled;
      break;
    default:
      return "finished without a reason";
  }
  return CheckTotals(finished);
}

std::string RequestCheck::TakeError(const wire::ErrorEvent& error, Time now) {
  const bool late = join_.has_timeout() && error.reason() == reason::kDeadlineExpired &&
                    error.code() == static_cast<int>(absl::StatusCode::kDeadlineExceeded);
  const bool refused =
      !join_.wait() && !joined_ && error.code() == static_cast<int>(absl::StatusCode::kResourceExhausted);
  end_ = End::kFault;
  if (late) {
    const auto timeout =
        std::chrono::seconds(join_.timeout().seconds()) + std::chrono::nanoseconds(join_.timeout().nanos());
    if (now - sent_ < timeout) return "its timeout ended too early";
    if (SaidAll()) return "its timeout ended after its last token";
    end_ = End::kTimeout;
  } else if (refused && error.reason() == reason::kTooManyRequests) {
    end_ = End::kNoSlot;
  } else if (refused && error.reason() == reason::kOutOfBlocks) {
    end_ = End::kNoBlocks;
  } else {
    return "an error that nothing explains: " + error.ShortDebugString();
  }
  return "";
}

std::string RequestCheck::StreamEnded(bool explained) {
  if (end_ != End::kOpen) return "";
  end_ = explained ? End::kCut : End::kFault;
  return explained ? "" : "its stream ended without its end";
}

}  // namespace kvasir::soak
