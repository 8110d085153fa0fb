#include "worker/service/peer_client.h"

#include <grpcpp/grpcpp.h>

#include <mutex>
#include <utility>

#include "common/rpc/channel.h"
#include "kvasir/worker/v1/worker_service.grpc.pb.h"
#include "worker/service/convert_step.h"

namespace kvasir {
namespace {

// One call; kept alive by its own callback.
struct StepCall {
  grpc::ClientContext context;
  worker::v1::ExecuteStepRequest request;
  worker::v1::ExecuteStepResponse response;
};

class PeerClient final : public StepPeer {
 public:
  PeerClient(const Address& address, std::string deployment)
      : name_(AddressText(address)),
        deployment_(std::move(deployment)),
        stub_(worker::v1::WorkerService::NewStub(MakeChannel(address))) {}

  [[nodiscard]] std::string name() const override { return name_; }

  void Start(const StepPlan& step, std::chrono::milliseconds timeout, Done done) override {
    const auto call = std::make_shared<StepCall>();
    SetTimeout(call->context, timeout);
    call->request.set_deployment(deployment_);
    *call->request.mutable_step() = FromStepPlan(step);
    {
      const std::lock_guard lock(mutex_);
      current_ = call;
    }
    stub_->async()->ExecuteStep(&call->context, &call->request, &call->response,
                                [call, done = std::move(done), name = name_](const grpc::Status& status) {
                                  const absl::Status answered = FromPeer(status, name);
                                  done(answered.ok() ? ToStepOutcome(call->response.outcome())
                                                     : absl::StatusOr<StepOutcome>(answered));
                                });
  }

  void Cancel() override {
    const std::lock_guard lock(mutex_);
    if (const std::shared_ptr<StepCall> call = current_.lock()) call->context.TryCancel();
  }

 private:
  const std::string name_;
  const std::string deployment_;
  const std::unique_ptr<worker::v1::WorkerService::Stub> stub_;
  std::mutex mutex_;
  std::weak_ptr<StepCall> current_;
};

}  // namespace

std::unique_ptr<StepPeer> MakePeerClient(const std::string& address, const std::string& deployment) {
  // Addresses are checked where a request brings them in; one that cannot be parsed is a peer that never
  // answers.
  const absl::StatusOr<Address> parsed = ParseAddress(address);
  return std::make_unique<PeerClient>(parsed.ok() ? *parsed : Address{address, 0}, deployment);
}

}  // namespace kvasir
