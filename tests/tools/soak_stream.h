// Plays one script on a Decode stream and judges every answer.
#ifndef KVASIR_TESTS_TOOLS_SOAK_STREAM_H_
#define KVASIR_TESTS_TOOLS_SOAK_STREAM_H_

#include <grpcpp/grpcpp.h>

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "kvasir/worker/v1/worker_service.grpc.pb.h"
#include "tests/tools/soak_questions.h"
#include "tests/tools/soak_request.h"
#include "tests/tools/soak_script.h"
#include "tests/tools/soak_tally.h"

namespace kvasir::soak {

class SoakStream {
 public:
  using Clock = std::chrono::steady_clock;

  // Everything outlives the stream. `answers` nullptr: they are not known yet.
  SoakStream(worker::v1::WorkerService::Stub& leader, const StreamScript& script, const Answers* answers,
             Tally& tally);
  // Returns when the stream is over; once.
  void Play();
  // By tag: 1 is the script's first request. After Play.
  [[nodiscard]] const RequestCheck& request(std::int64_t tag) const { return requests_.at(tag).check; }

 private:
  struct Request {
    RequestScript script;
    RequestCheck check;
    Clock::time_point last_event;
  };
  struct Act {
    std::chrono::milliseconds at{0};
    enum class Kind : std::int8_t { kJoin, kCancel, kDrop } kind = Kind::kJoin;
    std::int64_t tag = 0;
  };

  [[nodiscard]] std::vector<Act> Plan() const;
  void Write();
  bool Do(const Act& act);
  bool Join(std::int64_t tag);
  bool Cancel(std::int64_t tag);
  [[nodiscard]] bool ReaderMayCancel() const;  // mutex_ is held
  void FillQueue();
  void ForgetWaits();  // mutex_ is held: the client did not read
  void Read();
  void Take(const worker::v1::DecodeResponse& event);
  void PauseOrDrop();
  void Judge(const absl::Status& status);
  void Fault(std::int64_t tag, const std::string& what);

  worker::v1::WorkerService::Stub& leader_;
  const StreamScript script_;
  const Answers* const answers_;
  Tally& tally_;
  grpc::ClientContext context_;
  std::unique_ptr<grpc::ClientReaderWriter<worker::v1::DecodeRequest, worker::v1::DecodeResponse>> call_;
  std::mutex write_mutex_;  // one write at a time

  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::int64_t, Request> requests_;  // those that were sent
  std::int64_t events_ = 0;
  bool deaf_ = false;
  bool over_ = false;  // nothing more is to be read
};

}  // namespace kvasir::soak

#endif  // KVASIR_TESTS_TOOLS_SOAK_STREAM_H_
