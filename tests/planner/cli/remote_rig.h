// The commands of kvasir-remote against services of a test, over real gRPC on loopback.
#ifndef KVASIR_TESTS_PLANNER_CLI_REMOTE_RIG_H_
#define KVASIR_TESTS_PLANNER_CLI_REMOTE_RIG_H_

#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/sha256.h"
#include "common/rpc/status_codec.h"
#include "kvasir/planner/v1/planner_service.grpc.pb.h"
#include "kvasir/worker/v1/worker_service.grpc.pb.h"
#include "planner/cli/remote/remote_commands.h"
#include "planner/cli/run_cli.h"
#include "tests/planner/cli/run_kvasir.h"
#include "tests/testing/matchers.h"

namespace kvasir::cli {

// Answers as the test says and keeps what it was asked.
class FakePlanner final : public planner::v1::PlannerService::Service {
 public:
  grpc::Status CreatePlan(grpc::ServerContext*, const planner::v1::CreatePlanRequest* request,
                          planner::v1::CreatePlanResponse* response) override {
    create_request = *request;
    *response = create_response;
    return grpc::Status::OK;
  }
  grpc::Status ApplyPlan(grpc::ServerContext*, const planner::v1::ApplyPlanRequest* request,
                         grpc::ServerWriter<planner::v1::ApplyPlanResponse>* writer) override {
    apply_request = *request;
    for (const auto& response : apply_responses) writer->Write(response);
    return ToGrpcStatus(status);
  }
  grpc::Status GetDeployment(grpc::ServerContext*, const planner::v1::GetDeploymentRequest* request,
                             planner::v1::GetDeploymentResponse* response) override {
    asked_deployment = request->deployment();
    *response->mutable_deployment() = deployment;
    return ToGrpcStatus(status);
  }
  grpc::Status DeleteDeployment(grpc::ServerContext*, const planner::v1::DeleteDeploymentRequest* request,
                                planner::v1::DeleteDeploymentResponse* response) override {
    asked_deployment = request->deployment();
    response->set_epoch(13);
    response->add_unreachable_workers("node-b:7451");
    return ToGrpcStatus(status);
  }

  absl::Status status;
  std::string asked_deployment;
  planner::v1::CreatePlanRequest create_request;
  planner::v1::CreatePlanResponse create_response;
  planner::v1::ApplyPlanRequest apply_request;
  std::vector<planner::v1::ApplyPlanResponse> apply_responses;
  planner::v1::Deployment deployment;
};

// Echoes each prompt's ids after the first, two at a time, and finishes; a prompt of one token is refused.
class FakeWorker final : public worker::v1::WorkerService::Service {
 public:
  grpc::Status Decode(
      grpc::ServerContext*,
      grpc::ServerReaderWriter<worker::v1::DecodeResponse, worker::v1::DecodeRequest>* stream) override {
    worker::v1::DecodeRequest request;
    while (stream->Read(&request)) joins.push_back(request.join());
    // Last joined, first answered: the client must go by the tag.
    for (auto it = joins.rbegin(); it != joins.rend(); ++it) Answer(*it, *stream);
    return ToGrpcStatus(status);
  }

  absl::Status status;
  std::vector<worker::v1::JoinRequest> joins;

 private:
  static void Answer(
      const worker::v1::JoinRequest& join,
      grpc::ServerReaderWriter<worker::v1::DecodeResponse, worker::v1::DecodeRequest>& stream) {
    worker::v1::DecodeResponse response;
    response.set_tag(join.tag());
    if (join.prompt_token_ids_size() == 1) {
      response.mutable_error()->set_code(3);
      response.mutable_error()->set_reason("VALUE_OUT_OF_RANGE");
      response.mutable_error()->set_message("too short");
      stream.Write(response);
      return;
    }
    response.mutable_joined()->set_epoch(7);
    response.mutable_joined()->set_seed(77);
    stream.Write(response);
    for (int i = 1; i < join.prompt_token_ids_size(); i += 2) {
      auto& tokens = *response.mutable_tokens();
      tokens.Clear();
      tokens.add_token_ids(join.prompt_token_ids(i));
      if (i + 1 < join.prompt_token_ids_size()) tokens.add_token_ids(join.prompt_token_ids(i + 1));
      for (int t = 0; t < tokens.token_ids_size() && join.sampling().logprobs(); ++t) {
        tokens.add_logprobs(-0.5F);
      }
      stream.Write(response);
    }
    auto& finished = *response.mutable_finished();
    finished.set_reason(worker::v1::FINISH_REASON_STOP_TOKEN);
    finished.set_drafted_tokens(join.speculate() ? 14 : 0);
    finished.set_accepted_tokens(join.speculate() ? 3 : 0);
    finished.set_target_step_count(2);
    finished.mutable_queue_time()->set_nanos(1'500'000);
    stream.Write(response);
  }
};

class RemoteTest : public ::testing::Test {
 protected:
  RemoteTest() : root_(std::filesystem::path(::testing::TempDir()) / ("kvasir_remote_" + TestName())) {
    std::filesystem::remove_all(root_);
    grpc::ServerBuilder builder;
    int port = 0;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
    builder.RegisterService(&planner_);
    builder.RegisterService(&worker_);
    server_ = builder.BuildAndStart();
    address_ = "127.0.0.1:" + std::to_string(port);
    variables_ = {{"XDG_STATE_HOME", root_.string()}, {"KVASIR_SERVER", address_}};
  }
  ~RemoteTest() override {
    server_->Shutdown();
    std::filesystem::remove_all(root_);
  }

  static std::string TestName() { return ::testing::UnitTest::GetInstance()->current_test_info()->name(); }

  // As the two programs together: what `kvasir` passes on is run by `kvasir-remote`.
  Answer Run(const std::vector<std::string>& args) {
    std::ostringstream out;
    std::ostringstream err;
    const auto variable = [this](std::string_view name) -> std::optional<std::string> {
      const auto it = variables_.find(std::string(name));
      if (it == variables_.end()) return std::nullopt;
      return it->second;
    };
    const Console remote_console{out, err, false, variable, nullptr};
    const auto remote = [&remote_console](const std::vector<std::string>& words) {
      return RunRemoteCli(words, remote_console);
    };
    const int code = RunCli(args, Console{out, err, false, variable, remote});
    return {code, out.str(), err.str()};
  }

  // A stored plan of the demo pair on 4 ranks.
  std::string StorePlan() {
    const Answer text = Run({"plan", "--target", "demo-target", "--draft", "demo-dspark", "--tp", "4",
                             "--dcp", "2", "--kv-memory", "8MiB", "--output", "text"});
    EXPECT_EQ(text.code, kExitOk) << text.err;
    return Sha256Hex(text.out);
  }

  std::filesystem::path root_;
  FakePlanner planner_;
  FakeWorker worker_;
  std::unique_ptr<grpc::Server> server_;
  std::string address_;
  std::map<std::string, std::string> variables_;
};

}  // namespace kvasir::cli

#endif  // KVASIR_TESTS_PLANNER_CLI_REMOTE_RIG_H_
