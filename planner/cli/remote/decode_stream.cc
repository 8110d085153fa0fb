#include "planner/cli/remote/decode_stream.h"

#include <cstddef>
#include <string_view>

#include "common/base/status_macros.h"
#include "common/rpc/address.h"
#include "common/rpc/channel.h"
#include "kvasir/worker/v1/worker_service.grpc.pb.h"

namespace kvasir::cli {
namespace {

std::string FinishName(worker::v1::FinishReason reason) {
  switch (reason) {
    case worker::v1::FINISH_REASON_LENGTH:
      return "length";
    case worker::v1::FINISH_REASON_STOP_TOKEN:
      return "stop_token";
    case worker::v1::FINISH_REASON_CANCELLED:
      return "cancelled";
    default:
      return "unknown";
  }
}

std::int64_t Microseconds(const google::protobuf::Duration& time) {
  return time.seconds() * 1'000'000 + time.nanos() / 1000;
}

void SetSampling(const DecodeAsk& ask, worker::v1::SamplingParameters& sampling) {
  sampling.set_temperature(ask.temperature);
  sampling.set_top_k(ask.top_k);
  if (ask.top_p.has_value()) sampling.set_top_p(*ask.top_p);
  if (ask.seed.has_value()) sampling.set_seed(*ask.seed);
  sampling.set_logprobs(ask.logprobs);
}

worker::v1::DecodeRequest JoinOf(std::int64_t tag, const std::string& deployment, const DecodeAsk& ask) {
  worker::v1::DecodeRequest request;
  worker::v1::JoinRequest& join = *request.mutable_join();
  join.set_tag(tag);
  join.set_deployment(deployment);
  for (const std::int32_t token : ask.prompt) join.add_prompt_token_ids(token);
  join.set_max_tokens(ask.max_tokens);
  for (const std::int32_t token : ask.stop_tokens) join.add_stop_token_ids(token);
  join.set_speculate(ask.speculate);
  join.set_wait(ask.wait);
  SetSampling(ask, *join.mutable_sampling());
  return request;
}

void TakeStatistics(const worker::v1::FinishedEvent& finished, DecodeResult& result) {
  result.finish = FinishName(finished.reason());
  result.drafted = finished.drafted_tokens();
  result.accepted = finished.accepted_tokens();
  result.target_steps = finished.target_step_count();
  result.prefill_steps = finished.prefill_step_count();
  result.queue_us = Microseconds(finished.queue_time());
  result.prefill_us = Microseconds(finished.prefill_time());
  result.target_us = Microseconds(finished.target_step_time());
  result.target_max_us = Microseconds(finished.target_step_time_max());
}

void Take(const worker::v1::DecodeResponse& response, std::size_t place, const TokensSink& sink,
          DecodeResult& result) {
  switch (response.event_case()) {
    case worker::v1::DecodeResponse::kJoined:
      result.epoch = response.joined().epoch();
      result.plan_id = response.joined().plan_id();
      result.seed = response.joined().seed();
      break;
    case worker::v1::DecodeResponse::kTokens: {
      const auto& ids = response.tokens().token_ids();
      const std::vector<std::int32_t> fresh(ids.begin(), ids.end());
      result.tokens.insert(result.tokens.end(), fresh.begin(), fresh.end());
      const auto& logprobs = response.tokens().logprobs();
      result.logprobs.insert(result.logprobs.end(), logprobs.begin(), logprobs.end());
      if (sink) sink(place, fresh);
      break;
    }
    case worker::v1::DecodeResponse::kFinished:
      TakeStatistics(response.finished(), result);
      break;
    case worker::v1::DecodeResponse::kError:
      result.error = DecodeError{response.error().code(), response.error().reason(), response.error().field(),
                                 response.error().message()};
      break;
    case worker::v1::DecodeResponse::EVENT_NOT_SET:
      break;
  }
}

}  // namespace

absl::Status DecodeAll(const std::string& leader, const std::string& deployment,
                       const std::vector<DecodeAsk>& asks, std::chrono::milliseconds timeout,
                       const TokensSink& sink, std::vector<DecodeResult>& results) {
  results.assign(asks.size(), DecodeResult{});
  KVASIR_ASSIGN_OR_RETURN(const Address address, ParseAddress(leader));
  const auto stub = worker::v1::WorkerService::NewStub(MakeChannel(address));
  grpc::ClientContext context;
  SetTimeout(context, timeout);
  const auto stream = stub->Decode(&context);
  // A failed write means that the stream is over; Finish says why.
  bool open = true;
  for (std::size_t i = 0; i < asks.size() && open; ++i) {
    open = stream->Write(JoinOf(static_cast<std::int64_t>(i) + 1, deployment, asks[i]));
  }
  // The server ends the stream when the last request has finished.
  stream->WritesDone();
  worker::v1::DecodeResponse response;
  while (stream->Read(&response)) {
    const auto place = static_cast<std::size_t>(response.tag() - 1);
    if (response.tag() >= 1 && place < results.size()) Take(response, place, sink, results[place]);
  }
  return FromPeer(stream->Finish(), leader);
}

}  // namespace kvasir::cli
