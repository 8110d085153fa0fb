// Judges one request of the soak, event by event: every token is the right one, none is lost or said twice,
// the statistics add up, and the end is one that the client's own acts explain.
#ifndef KVASIR_TESTS_TOOLS_SOAK_REQUEST_H_
#define KVASIR_TESTS_TOOLS_SOAK_REQUEST_H_

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>

#include "kvasir/worker/v1/decode.pb.h"
#include "tests/tools/soak_questions.h"

namespace kvasir::soak {

enum class End : std::int8_t {
  kOpen,
  kLength,
  kStopToken,
  kCancelled,
  kTimeout,
  kNoSlot,    // TOO_MANY_REQUESTS
  kNoBlocks,  // OUT_OF_BLOCKS
  kCut,       // with its stream
  kFault,     // in no way that is known
};
inline constexpr std::size_t kEnds = 9;

class RequestCheck {
 public:
  using Time = std::chrono::steady_clock::time_point;

  // `answer`: what its tokens must be a prefix of; nullptr: not known yet. It outlives this.
  RequestCheck(worker::v1::JoinRequest join, const Answer* answer, Time sent);

  // What is wrong with the next event; empty: nothing.
  [[nodiscard]] std::string Take(const worker::v1::DecodeResponse& event, Time now);
  void CancelSent() { cancel_sent_ = true; }
  // Its stream is over. `explained`: requests may have been cut off. What is wrong; empty: nothing.
  [[nodiscard]] std::string StreamEnded(bool explained);

  [[nodiscard]] End end() const { return end_; }
  [[nodiscard]] bool running() const { return joined_ && end_ == End::kOpen; }
  [[nodiscard]] std::int64_t events() const { return events_; }
  [[nodiscard]] const Answer& said() const { return said_; }
  // Once it has finished.
  [[nodiscard]] const worker::v1::FinishedEvent& totals() const { return totals_; }

 private:
  std::string TakeJoined(const worker::v1::JoinedEvent& joined);
  std::string TakeTokens(const worker::v1::TokensEvent& tokens);
  std::string TakeFinished(const worker::v1::FinishedEvent& finished);
  std::string TakeError(const worker::v1::ErrorEvent& error, Time now);
  [[nodiscard]] std::string CompareFrom(std::size_t first) const;
  [[nodiscard]] std::string CheckTotals(const worker::v1::FinishedEvent& finished) const;
  [[nodiscard]] bool SaidAll() const;
  [[nodiscard]] bool IsStop(std::int32_t token) const;

  const worker::v1::JoinRequest join_;
  const Answer* const answer_;
  const Time sent_;
  bool cancel_sent_ = false;
  bool joined_ = false;
  End end_ = End::kOpen;
  std::int64_t events_ = 0;
  Answer said_;
  std::int64_t drafted_ = 0;
  std::int64_t accepted_ = 0;
  std::int64_t target_steps_ = 0;  // token events after the first
  bool ended_drafted_ = false;     // the last token was a drafted one
  worker::v1::FinishedEvent totals_;
};

}  // namespace kvasir::soak

#endif  // KVASIR_TESTS_TOOLS_SOAK_REQUEST_H_
