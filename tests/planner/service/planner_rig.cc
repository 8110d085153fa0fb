#include "tests/planner/service/planner_rig.h"

#include <grpcpp/generic/generic_stub.h>
#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <utility>

#include "absl/strings/str_format.h"
#include "common/rpc/channel.h"
#include "common/rpc/status_codec.h"
#include "planner/service/answers.h"
#include "tests/testing/matchers.h"

namespace kvasir::testing {
namespace {

std::filesystem::path FreshDirectory() {
  static std::atomic<int> count = 0;
  const std::filesystem::path path = std::filesystem::path(::testing::TempDir()) /
                                     absl::StrFormat("kvasir_planner_rig_%d_%d", ::getpid(), ++count);
  std::filesystem::remove_all(path);
  return path;
}

plan::v1::LayerSpec LatentLayer(int index) {
  plan::v1::LayerSpec layer;
  layer.set_role(plan::v1::MODEL_ROLE_TARGET);
  layer.set_index(index);
  layer.mutable_latent()->set_head_count(8);
  layer.mutable_latent()->set_latent_dim(512);
  layer.mutable_latent()->set_rope_dim(64);
  layer.set_dtype("bf16");
  return layer;
}

void SetOptions(plan::v1::PlanOptions& options) {
  options.mutable_topology()->set_tp(2);
  options.mutable_topology()->set_dcp(2);
  options.add_kv_memory_bytes(16 << 20);
  options.add_context_tokens(256);
  options.set_request_count_max(2);
}

}  // namespace

PlannerRig::PlannerRig() : directory_(FreshDirectory()) {
  auto store = FileStore::Open(directory_);
  KVASIR_EXPECT_OK(store);
  store_ = *std::move(store);
  dispatcher_ = std::make_unique<Dispatcher>(*store_, workers_, clock_);
  service_ = std::make_unique<PlannerServiceImpl>(*dispatcher_, workers_, 2);
  auto server = RpcServer::Start({}, {service_.get()}, {PlannerServiceImpl::Name()});
  KVASIR_EXPECT_OK(server);
  server_ = *std::move(server);
  channel_ = MakeChannel(server_->address());
  stub_ = planner::v1::PlannerService::NewStub(channel_);
}

PlannerRig::~PlannerRig() {
  dispatcher_->Stop();
  server_.reset();
  std::filesystem::remove_all(directory_);
}

absl::Status PlannerRig::Send(const std::string& method, const std::string& bytes,
                              std::chrono::milliseconds timeout) {
  grpc::GenericStub stub(channel_);
  grpc::ClientContext context;
  SetTimeout(context, timeout);
  const grpc::Slice slice(bytes);
  const grpc::ByteBuffer request(&slice, 1);
  grpc::ByteBuffer response;
  std::promise<grpc::Status> done;
  stub.UnaryCall(&context, "/kvasir.planner.v1.PlannerService/" + method, grpc::StubOptions(), &request,
                 &response, [&done](grpc::Status status) { done.set_value(std::move(status)); });
  return FromGrpcStatus(done.get_future().get());
}

planner::v1::CreatePlanRequest GoodPlanRequest() {
  planner::v1::CreatePlanRequest request;
  request.mutable_target()->set_catalogue_name("demo-target");
  request.mutable_draft()->set_catalogue_name("demo-dspark");
  SetOptions(*request.mutable_options());
  return request;
}

planner::v1::CreatePlanRequest GoodLayersRequest() {
  planner::v1::CreatePlanRequest request;
  for (int i = 0; i < 2; ++i) {
    *request.mutable_target()->mutable_layers()->add_layers() = LatentLayer(i);
  }
  SetOptions(*request.mutable_options());
  return request;
}

planner::v1::ApplyPlanRequest GoodApplyRequest() {
  const auto planned = AnswerCreatePlan(GoodPlanRequest());
  KVASIR_EXPECT_OK(planned);
  EXPECT_TRUE(planned->has_plan()) << planned->DebugString();
  planner::v1::ApplyPlanRequest request;
  request.set_deployment("demo");
  request.set_plan_text(planned->plan().canonical_text());
  request.set_plan_id(planned->plan().plan_id());
  request.set_target_model_text(planned->target_model_text());
  request.set_draft_model_text(planned->draft_model_text());
  request.set_weight_seed(1);
  int rank = 0;
  for (const char* address : {"node-a:1", "node-b:1"}) {
    planner::v1::WorkerAssignment* worker = request.add_workers();
    worker->set_address(address);
    worker->add_ranks(rank++);
  }
  return request;
}

}  // namespace kvasir::testing
