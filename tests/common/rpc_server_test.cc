// The server's habits and the codec, over real sockets with a small service.
#include <grpcpp/generic/generic_stub.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <future>
#include <map>
#include <string>
#include <thread>

#include "common/base/error_reasons.h"
#include "common/base/typed_error.h"
#include "common/rpc/call.h"
#include "common/rpc/channel.h"
#include "common/rpc/server.h"
#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"
#include "kvasir/worker/v1/worker_service.grpc.pb.h"
#include "tests/testing/matchers.h"

namespace kvasir {
namespace {

using ::kvasir::testing::StatusIs;
using worker::v1::GetWorkerStateRequest;
using worker::v1::GetWorkerStateResponse;
using worker::v1::WorkerService;

constexpr char kServiceName[] = "kvasir.worker.v1.WorkerService";

// Answers GetWorkerState with whatever the test wants.
class FakeService final : public WorkerService::WithRawCallbackMethod_GetWorkerState<WorkerService::Service> {
 public:
  UnaryHandler<GetWorkerStateRequest, GetWorkerStateResponse> handler =
      [](const GetWorkerStateRequest&, const CallContext&) { return GetWorkerStateResponse(); };

  grpc::ServerUnaryReactor* GetWorkerState(grpc::CallbackServerContext* context,
                                           const grpc::ByteBuffer* request,
                                           grpc::ByteBuffer* response) override {
    return ServeUnary<GetWorkerStateRequest, GetWorkerStateResponse>(context, request, response, pool_,
                                                                     handler);
  }

 private:
  CallPool pool_{2, 4};
};

class RpcServerTest : public ::testing::Test {
 protected:
  void Serve(const RpcServerOptions& options = {}) {
    absl::StatusOr<std::unique_ptr<RpcServer>> server =
        RpcServer::Start(options, {&service_}, {kServiceName});
    KVASIR_ASSERT_OK(server);
    server_ = *std::move(server);
    channel_ = MakeChannel(server_->address());
  }

  absl::Status Call(std::chrono::milliseconds timeout = std::chrono::seconds(20),
                    const std::string& name = "") {
    grpc::ClientContext context;
    SetTimeout(context, timeout);
    GetWorkerStateRequest request;
    request.set_deployment(name);
    GetWorkerStateResponse response;
    const grpc::Status status =
        WorkerService::NewStub(channel_)->GetWorkerState(&context, request, &response);
    details_ = status.error_details();
    return FromPeer(status, AddressText(server_->address()));
  }

  FakeService service_;
  std::unique_ptr<RpcServer> server_;
  std::shared_ptr<grpc::Channel> channel_;
  std::string details_;
};

TEST_F(RpcServerTest, AnswersAndIsHealthy) {
  Serve();
  EXPECT_GT(server_->address().port, 0);
  KVASIR_EXPECT_OK(Call());
  KVASIR_EXPECT_OK(CheckHealth(channel_, "", std::chrono::seconds(20)));
  KVASIR_EXPECT_OK(CheckHealth(channel_, kServiceName, std::chrono::seconds(20)));
  EXPECT_THAT(CheckHealth(channel_, "other", std::chrono::seconds(20)),
              StatusIs(absl::StatusCode::kNotFound, ""));
}

TEST_F(RpcServerTest, ReadinessIsApartFromLiveness) {
  Serve();
  server_->SetReady(kServiceName, false);
  EXPECT_FALSE(CheckHealth(channel_, kServiceName, std::chrono::seconds(20)).ok());
  KVASIR_EXPECT_OK(CheckHealth(channel_, "", std::chrono::seconds(20)));
}

TEST_F(RpcServerTest, ErrorsArriveWithReasonFieldAndValues) {
  service_.handler = [](const GetWorkerStateRequest&,
                        const CallContext&) -> absl::StatusOr<GetWorkerStateResponse> {
    return MakeError({.code = absl::StatusCode::kInvalidArgument,
                      .reason = "BAD_NAME",
                      .message = "deployment \"X\" has capitals",
                      .field = "deployment",
                      .metadata = {{"deployment", "X"}},
                      .retry_after_ms = 1500});
  };
  Serve();
  const TypedError error = ErrorOf(Call());
  EXPECT_EQ(error.code, absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(error.reason, "BAD_NAME");
  EXPECT_EQ(error.message, "deployment \"X\" has capitals");
  EXPECT_EQ(error.field, "deployment");
  EXPECT_EQ(error.metadata.at("deployment"), "X");
  EXPECT_EQ(error.retry_after_ms, 1500);

  google::rpc::Status wire;
  ASSERT_TRUE(wire.ParseFromString(details_));
  std::map<std::string, int> seen;
  for (const auto& detail : wire.details()) {
    ++seen[detail.type_url()];
  }
  EXPECT_EQ(seen, (std::map<std::string, int>{{"type.googleapis.com/google.rpc.BadRequest", 1},
                                              {"type.googleapis.com/google.rpc.ErrorInfo", 1},
                                              {"type.googleapis.com/google.rpc.RetryInfo", 1}}));
}

TEST_F(RpcServerTest, EveryCodeSurvivesTheWire) {
  for (int code = 1; code <= 16; ++code) {
    const absl::Status sent = MakeError(
        {.code = static_cast<absl::StatusCode>(code), .reason = "SOME_REASON", .message = "m", .field = "f"});
    const TypedError back = ErrorOf(FromGrpcStatus(ToGrpcStatus(sent)));
    EXPECT_EQ(back.code, sent.code());
    EXPECT_EQ(back.reason, "SOME_REASON");
    EXPECT_EQ(back.field, "f");
  }
  KVASIR_EXPECT_OK(FromGrpcStatus(ToGrpcStatus(absl::OkStatus())));
}

TEST_F(RpcServerTest, AnErrorOfHostileTextStaysAnError) {
  service_.handler = [](const GetWorkerStateRequest&,
                        const CallContext&) -> absl::StatusOr<GetWorkerStateResponse> {
    return FieldError("BAD_NAME", std::string(100'000, 'f'),
                      std::string("\xff\x00\x01", 3) + std::string(100'000, 'm'));
  };
  Serve();
  const absl::Status status = Call();
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kInvalidArgument, "???mmm"));
  EXPECT_EQ(ReasonOf(status), "BAD_NAME");
}

TEST_F(RpcServerTest, DetailsOfOthersDoNotBecomeOurReasons) {
  EXPECT_EQ(ReasonOf(FromGrpcStatus(grpc::Status(grpc::StatusCode::ABORTED, "m", "not a message \xff"))),
            "ABORTED");
  google::rpc::ErrorInfo info;
  info.set_reason("THEIRS");
  info.set_domain("example.com");
  google::rpc::Status wire;
  wire.add_details()->PackFrom(info);
  EXPECT_EQ(ReasonOf(FromGrpcStatus(grpc::Status(grpc::StatusCode::ABORTED, "m", wire.SerializeAsString()))),
            "ABORTED");
}

absl::Status SendBytes(const std::shared_ptr<grpc::Channel>& channel, const std::string& bytes) {
  grpc::GenericStub stub(channel);
  grpc::ClientContext context;
  SetTimeout(context, std::chrono::seconds(20));
  const grpc::Slice slice(bytes);
  const grpc::ByteBuffer request(&slice, 1);
  grpc::ByteBuffer response;
  std::promise<grpc::Status> done;
  stub.UnaryCall(&context, "/kvasir.worker.v1.WorkerService/GetWorkerState", grpc::StubOptions(), &request,
                 &response, [&done](grpc::Status status) { done.set_value(std::move(status)); });
  return FromGrpcStatus(done.get_future().get());
}

TEST_F(RpcServerTest, BytesThatAreNoMessageGetATypedAnswer) {
  Serve();
  EXPECT_EQ(ReasonOf(SendBytes(channel_, "\x0a\xff\xff")), reason::kMalformedMessage);
  EXPECT_EQ(ReasonOf(SendBytes(channel_, std::string("\x0a\x02\xff\xfe", 4))),
            reason::kMalformedMessage);  // not UTF-8
  KVASIR_EXPECT_OK(SendBytes(channel_, ""));
  KVASIR_EXPECT_OK(Call());
}

TEST_F(RpcServerTest, AMessageTooLargeIsNamed) {
  Serve();
  const absl::Status status = SendBytes(channel_, std::string(kMessageBytesMax + 1, '\0'));
  EXPECT_EQ(ReasonOf(status), reason::kMessageTooLarge);
  EXPECT_EQ(ErrorOf(status).metadata.at("limit_bytes"), std::to_string(kMessageBytesMax));
  KVASIR_EXPECT_OK(Call());
}

TEST_F(RpcServerTest, ACallWithoutADeadlineGetsOne) {
  std::atomic<std::int64_t> left_ms = -1;
  service_.handler = [&left_ms](const GetWorkerStateRequest&, const CallContext& call) {
    left_ms = call.remaining().count();
    return GetWorkerStateResponse();
  };
  Serve();
  grpc::ClientContext context;
  GetWorkerStateResponse response;
  ASSERT_TRUE(WorkerService::NewStub(channel_)->GetWorkerState(&context, {}, &response).ok());
  EXPECT_GT(left_ms, 20'000);
  EXPECT_LE(left_ms, 30'000);
  KVASIR_ASSERT_OK(Call(std::chrono::seconds(5)));
  EXPECT_LT(left_ms, 6'000);  // gRPC rounds a timeout up on the wire
}

TEST_F(RpcServerTest, TheCallerIsToldWhoDidNotAnswer) {
  std::promise<void> release;
  std::shared_future<void> released = release.get_future().share();
  service_.handler = [released](const GetWorkerStateRequest&, const CallContext&) {
    released.wait();
    return GetWorkerStateResponse();
  };
  Serve();
  const absl::Status status = Call(std::chrono::milliseconds(100));
  EXPECT_EQ(ReasonOf(status), reason::kDeadlineExpired);
  EXPECT_EQ(ErrorOf(status).metadata.at("peer"), AddressText(server_->address()));
  release.set_value();
}

TEST_F(RpcServerTest, AFullServerSaysSoAndRecovers) {
  std::promise<void> release;
  std::shared_future<void> released = release.get_future().share();
  service_.handler = [released](const GetWorkerStateRequest&, const CallContext&) {
    released.wait();
    return GetWorkerStateResponse();
  };
  Serve();
  std::vector<std::thread> callers;
  std::atomic<int> busy = 0;
  std::atomic<int> fine = 0;
  std::atomic<int> ended = 0;
  callers.reserve(12);
  for (int i = 0; i < 12; ++i) {
    callers.emplace_back([&] {
      grpc::ClientContext context;
      SetTimeout(context, std::chrono::seconds(20));
      GetWorkerStateResponse response;
      const absl::Status status =
          FromGrpcStatus(WorkerService::NewStub(channel_)->GetWorkerState(&context, {}, &response));
      ++(status.ok() ? fine : busy);
      if (!status.ok()) {
        EXPECT_EQ(ReasonOf(status), reason::kServerBusy);
      }
      if (++ended == 6) {  // at most 2 run and 4 wait, so at least 6 of 12 are refused
        release.set_value();
      }
    });
  }
  for (std::thread& caller : callers) {
    caller.join();
  }
  EXPECT_GE(busy, 6);
  EXPECT_GE(fine, 4);
  EXPECT_EQ(busy + fine, 12);
}

TEST_F(RpcServerTest, DrainLetsARunningCallFinish) {
  std::promise<void> entered;
  std::promise<void> release;
  std::shared_future<void> released = release.get_future().share();
  service_.handler = [&entered, released](const GetWorkerStateRequest&, const CallContext&) {
    entered.set_value();
    released.wait();
    return GetWorkerStateResponse();
  };
  Serve();
  absl::Status outcome = absl::UnknownError("not called");
  std::thread caller([&] { outcome = Call(); });
  entered.get_future().wait();
  bool live_before_shutdown = true;
  std::thread drain([&] {
    server_->Drain([&] {
      live_before_shutdown = CheckHealth(channel_, "", std::chrono::seconds(20)).ok();
      release.set_value();
    });
  });
  caller.join();
  drain.join();
  KVASIR_EXPECT_OK(outcome);
  EXPECT_FALSE(live_before_shutdown);
  EXPECT_EQ(ReasonOf(Call(std::chrono::seconds(10))), reason::kPeerUnreachable);
}

TEST_F(RpcServerTest, ListensBeyondLoopbackOnlyWhenTold) {
  const absl::StatusOr<std::unique_ptr<RpcServer>> refused =
      RpcServer::Start({.listen = "0.0.0.0:0"}, {&service_}, {});
  EXPECT_THAT(refused, StatusIs(absl::StatusCode::kInvalidArgument, "--insecure"));
  KVASIR_EXPECT_OK(RpcServer::Start({.listen = "0.0.0.0:0", .insecure = true}, {&service_}, {}));
}

TEST_F(RpcServerTest, ATakenPortIsAnError) {
  Serve();
  FakeService other;
  EXPECT_THAT(RpcServer::Start({.listen = AddressText(server_->address())}, {&other}, {}),
              StatusIs(absl::StatusCode::kUnavailable, "taken"));
}

}  // namespace
}  // namespace kvasir
