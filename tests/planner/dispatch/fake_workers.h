// Workers without a network: each has the real worker machine, answers at once on a thread of its own, and
// can be told to be silent, to refuse, or to be gone.
#ifndef KVASIR_TESTS_PLANNER_DISPATCH_FAKE_WORKERS_H_
#define KVASIR_TESTS_PLANNER_DISPATCH_FAKE_WORKERS_H_

#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "planner/dispatch/worker_caller.h"
#include "worker/engine/worker_machine.h"

namespace kvasir::testing {

class FakeWorkers final : public WorkerCaller {
 public:
  FakeWorkers();
  ~FakeWorkers() override;

  void Call(const WorkerCall& call, std::function<void(WorkerReply)> done) override;
  void Stop() override;

  // Replaces the machine's answer where it gives a status that is not OK. Called on the fake's thread.
  void SetFault(std::function<absl::Status(const WorkerCall&)> fault);
  // Holds all answers to `kind` back until Release.
  void Hold(CallKind kind);
  void Release();
  // Waits until a call of `kind` has come in.
  void WaitFor(CallKind kind);

  [[nodiscard]] DeploymentState StateOf(const std::string& deployment, const std::string& address);
  void Forget(const std::string& deployment, const std::string& address);  // as after a restart

 private:
  struct Pending {
    WorkerCall call;
    std::function<void(WorkerReply)> done;
  };
  void Loop();
  WorkerReply Answer(const WorkerCall& call);

  std::mutex mutex_;
  std::condition_variable changed_;
  bool stopping_ = false;
  std::function<absl::Status(const WorkerCall&)> fault_;
  std::map<std::pair<std::string, std::string>, DeploymentState> states_;  // by deployment and address
  std::deque<Pending> pending_;
  std::vector<CallKind> seen_;
  std::vector<CallKind> held_kinds_;
  std::thread thread_;
};

}  // namespace kvasir::testing

#endif  // KVASIR_TESTS_PLANNER_DISPATCH_FAKE_WORKERS_H_
