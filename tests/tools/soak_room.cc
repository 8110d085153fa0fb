#include "tests/tools/soak_room.h"

#include <grpcpp/grpcpp.h>

#include <chrono>
#include <cstdint>
#include <map>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "common/base/status_macros.h"
#include "common/rpc/channel.h"
#include "common/rpc/status_codec.h"
#include "tests/tools/soak_questions.h"

namespace kvasir::soak {
namespace {

namespace wire = worker::v1;

// Tokens that a request reserves. The last ones take one block of each pool.
constexpr std::int64_t kSizes[] = {512, 512, 256, 256, 128, 128, 64, 64, 32, 32, 16, 16, 8, 8};
static_assert(kSizes[0] == kContextTokens);

wire::DecodeRequest JoinOf(std::int64_t tag, std::int64_t size) {
  wire::DecodeRequest message;
  wire::JoinRequest& join = *message.mutable_join();
  join.set_tag(tag);
  join.set_deployment(kDeployment);
  join.add_prompt_token_ids('Q');
  join.set_max_tokens(size - 1);
  return message;
}

}  // namespace

absl::StatusOr<std::string> MeasureRoom(wire::WorkerService::Stub& leader) {
  grpc::ClientContext context;
  SetTimeout(context, std::chrono::minutes(1));
  const auto call = leader.Decode(&context);
  std::int64_t tag = 0;
  for (const std::int64_t size : kSizes) call->Write(JoinOf(++tag, size));
  std::map<std::int64_t, std::string> answers;
  wire::DecodeResponse event;
  while (call->Read(&event)) {
    if (event.has_joined()) answers[event.tag()] = std::to_string(kSizes[event.tag() - 1]);
    if (event.has_error()) answers.emplace(event.tag(), "-");
    if (tag == 0 || static_cast<std::int64_t>(answers.size()) < tag) continue;
    wire::DecodeRequest cancel;
    for (; tag > 0; --tag) {
      cancel.mutable_cancel()->set_tag(tag);
      call->Write(cancel);
    }
    call->WritesDone();
  }
  KVASIR_RETURN_IF_ERROR(FromGrpcStatus(call->Finish()));
  std::vector<std::string> admitted;
  admitted.reserve(answers.size());
  for (const auto& [its, answer] : answers) admitted.push_back(answer);
  return absl::StrJoin(admitted, " ");
}

}  // namespace kvasir::soak
