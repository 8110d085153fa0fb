#include "worker/comm/thread_comm.h"

#include <condition_variable>
#include <cstring>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_format.h"
#include "common/base/check.h"
#include "worker/comm/comm_errors.h"

namespace kvasir {
namespace {

// Shared by all ranks and groups of a deployment: the lock, and the first failure, which all later calls
// return.
struct Fate {
  std::mutex mutex;
  std::condition_variable changed;
  absl::Status failure;
};

// One group. The rank that arrives last gathers all parts under the lock; the others copy the result out
// afterwards. The result is not written again before every rank has come back for the next round, so one
// meeting per collective is enough.
class MeetingPoint {
 public:
  MeetingPoint(std::shared_ptr<Fate> fate, std::int64_t size, std::chrono::milliseconds timeout)
      : fate_(std::move(fate)), timeout_(timeout), parts_(static_cast<std::size_t>(size)) {}

  absl::Status AllGather(std::int64_t rank, std::span<const std::byte> mine, std::span<std::byte> all) {
    if (all.size() != mine.size() * parts_.size())
      return WrongResultSize(mine.size(), all.size(), parts_.size());
    {
      std::unique_lock lock(fate_->mutex);
      if (!fate_->failure.ok()) return fate_->failure;
      parts_[static_cast<std::size_t>(rank)] = mine;
      ++arrived_;
      if (arrived_ == parts_.size()) {
        Gather();
      } else {
        WaitForOthers(lock);
      }
      if (!fate_->failure.ok()) return fate_->failure;
    }
    if (!all.empty()) std::memcpy(all.data(), gathered_.data(), all.size());
    return absl::OkStatus();
  }

  void Fail(const absl::Status& failure) {
    const std::lock_guard lock(fate_->mutex);
    FailLocked(failure);
  }

  [[nodiscard]] std::int64_t size() const { return static_cast<std::int64_t>(parts_.size()); }

 private:
  void Gather() {
    gathered_.clear();
    for (const std::span<const std::byte> part : parts_) {
      if (part.size() != parts_.front().size()) {
        FailLocked(UnequalParts(parts_.front().size(), part.size()));
        return;
      }
      gathered_.insert(gathered_.end(), part.begin(), part.end());
    }
    arrived_ = 0;
    ++round_;
    fate_->changed.notify_all();
  }

  void WaitForOthers(std::unique_lock<std::mutex>& lock) {
    const std::int64_t round = round_;
    const auto done = [&] { return round_ != round || !fate_->failure.ok(); };
    if (!fate_->changed.wait_for(lock, timeout_, done)) {
      FailLocked(
          CollectiveTimeout(timeout_, absl::StrFormat("%d of %d ranks arrived", arrived_, parts_.size())));
    }
  }

  void FailLocked(const absl::Status& failure) {
    if (fate_->failure.ok()) fate_->failure = failure;
    fate_->changed.notify_all();
  }

  const std::shared_ptr<Fate> fate_;
  const std::chrono::milliseconds timeout_;
  std::vector<std::span<const std::byte>> parts_;  // of the round in progress, by rank
  std::size_t arrived_ = 0;
  std::int64_t round_ = 0;
  std::vector<std::byte> gathered_;
};

class ThreadComm final : public Communicator {
 public:
  ThreadComm(std::shared_ptr<MeetingPoint> meeting, std::int64_t rank)
      : meeting_(std::move(meeting)), rank_(rank) {}
  [[nodiscard]] std::int64_t rank() const override { return rank_; }
  [[nodiscard]] std::int64_t size() const override { return meeting_->size(); }
  absl::Status AllGather(std::span<const std::byte> mine, std::span<std::byte> all) override {
    return meeting_->AllGather(rank_, mine, all);
  }
  void Abort(const std::string& reason) override { meeting_->Fail(CollectiveAborted(reason)); }

 private:
  const std::shared_ptr<MeetingPoint> meeting_;
  const std::int64_t rank_;
};

}  // namespace

std::vector<RankComms> MakeThreadComms(std::int64_t ranks, std::int64_t dcp,
                                       std::chrono::milliseconds timeout) {
  KVASIR_CHECK(ranks > 0 && dcp > 0 && ranks % dcp == 0);
  const auto fate = std::make_shared<Fate>();
  const auto tensor = std::make_shared<MeetingPoint>(fate, ranks, timeout);
  std::vector<RankComms> comms;
  std::shared_ptr<MeetingPoint> context;
  for (std::int64_t rank = 0; rank < ranks; ++rank) {
    if (rank % dcp == 0) context = std::make_shared<MeetingPoint>(fate, dcp, timeout);
    comms.push_back({std::make_unique<ThreadComm>(tensor, rank),
                     std::make_unique<ThreadComm>(context, rank % dcp), nullptr});
  }
  return comms;
}

}  // namespace kvasir
