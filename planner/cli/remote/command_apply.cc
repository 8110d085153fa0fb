// kvasir apply and kvasir preflight: one request with or without the preflight's knobs; the stream is shown
// as it comes.
#include <array>
#include <chrono>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "common/rpc/channel.h"
#include "kvasir/planner/v1/planner_service.grpc.pb.h"
#include "planner/cli/remote/apply_request.h"
#include "planner/cli/remote/apply_view.h"
#include "planner/cli/remote/remote_commands.h"
#include "planner/cli/remote/session.h"

namespace kvasir::cli {
namespace {

constexpr std::array kPreflightFlags = {
    Flag{"replays", "N", "timed replays of each graph (3)"},
    Flag{"rows", "N", "rows of each pass compared with the reference (4)"},
};

std::vector<Flag> FlagsOf(bool preflight) {
  std::vector<Flag> flags = WithSessionFlags(ApplyFlags());
  if (preflight) flags.insert(flags.begin(), kPreflightFlags.begin(), kPreflightFlags.end());
  return flags;
}

std::chrono::milliseconds Milliseconds(const google::protobuf::Duration& time) {
  return std::chrono::milliseconds(time.seconds() * 1000 + time.nanos() / 1'000'000);
}

// The longest that a sound apply can take, with the session's own timeout as a margin.
std::chrono::milliseconds StreamTimeout(const Session& session,
                                        const planner::v1::ApplyPlanRequest& request) {
  return Milliseconds(request.prepare_timeout()) + Milliseconds(request.commit_timeout()) +
         Milliseconds(request.drain_timeout()) + session.timeout;
}

void Take(const Console& console, const planner::v1::ApplyPlanResponse& response, bool show,
          ApplyProgress& progress) {
  progress.epoch = response.epoch();
  if (response.has_prepared()) {
    if (show) ShowPrepared(console, response.prepared());
    progress.prepared.push_back(response.prepared());
  } else if (response.has_committed()) {
    progress.committed.push_back(response.committed().worker_address());
  } else if (response.has_done()) {
    progress.done = true;
  }
}

absl::Status Stream(const Console& console, const Session& session,
                    const planner::v1::ApplyPlanRequest& request, ApplyProgress& progress) {
  const auto stub = planner::v1::PlannerService::NewStub(session.channel);
  grpc::ClientContext context;
  SetTimeout(context, StreamTimeout(session, request));
  const auto reader = stub->ApplyPlan(&context, request);
  planner::v1::ApplyPlanResponse response;
  while (reader->Read(&response)) Take(console, response, session.output == "table", progress);
  return FromPeer(reader->Finish(), session.server);
}

int RunStream(const Console& console, std::string_view command, Args args) {
  const bool preflight = command == "preflight";
  const absl::StatusOr<CommandLine> line =
      CommandLine::Parse(FlagsOf(preflight), {1, 1, "the plan, a file or the beginning of an id,"}, args);
  if (!line.ok()) return BadUsage(console, command, line.status());
  const absl::StatusOr<Session> session = OpenSession(console, *line);
  if (!session.ok()) return BadUsage(console, command, session.status());
  absl::StatusOr<planner::v1::ApplyPlanRequest> request = MakeApplyRequest(console, *session, *line);
  if (!request.ok()) return BadUsage(console, command, request.status());
  if (preflight) {
    const absl::StatusOr<std::int64_t> replays = line->IntOr("replays", 3);
    const absl::StatusOr<std::int64_t> rows = line->IntOr("rows", 4);
    if (!replays.ok() || !rows.ok())
      return BadUsage(console, command, replays.ok() ? rows.status() : replays.status());
    request->mutable_preflight()->set_replays_per_graph(static_cast<std::int32_t>(*replays));
    request->mutable_preflight()->set_compared_rows(static_cast<std::int32_t>(*rows));
  }

  const auto begin = std::chrono::steady_clock::now();
  ApplyProgress progress;
  progress.workers = static_cast<std::size_t>(request->workers_size());
  const absl::Status status = Stream(console, *session, *request, progress);
  if (!status.ok()) return ServiceFailure(console, command, status);
  if (!progress.done) {
    console.err << absl::StrFormat("%s: the stream ended early; kvasir status tells how it went on\n",
                                   command);
    return kExitServiceFailure;
  }
  const auto took =
      std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::steady_clock::now() - begin);
  if (session->output == "json") {
    console.out << ApplyJson(absl::StrFormat("kvasir.%s/1", command), request->plan_id(), progress, took);
  } else if (preflight) {
    ShowPreflight(console, progress, took);
  } else {
    ShowCommitted(console, progress, took);
  }
  return preflight && !PreflightPassed(progress) ? kExitServiceFailure : kExitOk;
}

}  // namespace

std::string ApplyHelp() { return FlagsHelp(FlagsOf(false)); }
std::string PreflightHelp() { return FlagsHelp(FlagsOf(true)); }

int RunApply(const Console& console, Args args) { return RunStream(console, "apply", args); }
int RunPreflight(const Console& console, Args args) { return RunStream(console, "preflight", args); }

}  // namespace kvasir::cli
