#include "tests/testing/thread_ranks.h"

#include <cstring>
#include <thread>

#include "common/base/check.h"

namespace kvasir::testing {

class ThreadGroup::Member : public Communicator {
 public:
  Member(ThreadGroup& group, std::int64_t rank) : group_(group), rank_(rank) {}
  [[nodiscard]] std::int64_t rank() const override { return rank_; }
  [[nodiscard]] std::int64_t size() const override {
    return static_cast<std::int64_t>(group_.members_.size());
  }
  absl::Status AllGather(std::span<const std::byte> mine, std::span<std::byte> all) override {
    return group_.AllGather(rank_, mine, all);
  }
  void Abort(const std::string& reason) override {
    const std::lock_guard lock(group_.mutex_);
    group_.aborted_ = reason;
    group_.changed_.notify_all();
  }

 private:
  ThreadGroup& group_;
  std::int64_t rank_;
};

ThreadGroup::ThreadGroup(std::int64_t size) : parts_(static_cast<std::size_t>(size)) {
  for (std::int64_t r = 0; r < size; ++r) members_.push_back(std::make_unique<Member>(*this, r));
}

ThreadGroup::~ThreadGroup() = default;

Communicator* ThreadGroup::rank(std::int64_t rank) { return members_[static_cast<std::size_t>(rank)].get(); }

// Two meetings per call: all parts are given, then all are copied, before anybody's next part is taken.
absl::Status ThreadGroup::AllGather(std::int64_t rank, std::span<const std::byte> mine,
                                    std::span<std::byte> all) {
  const std::int64_t size = static_cast<std::int64_t>(members_.size());
  std::unique_lock lock(mutex_);
  const std::int64_t round = round_;
  parts_[static_cast<std::size_t>(rank)] = mine;
  ++arrived_;
  changed_.notify_all();
  changed_.wait(lock, [&] { return arrived_ == size || !aborted_.empty(); });
  if (!aborted_.empty()) return absl::CancelledError(aborted_);
  for (std::size_t r = 0; r < parts_.size(); ++r) {
    KVASIR_CHECK(parts_[r].size() == mine.size());
    if (!mine.empty()) std::memcpy(all.data() + r * mine.size(), parts_[r].data(), mine.size());
  }
  if (++copied_ == size) {
    arrived_ = 0;
    copied_ = 0;
    ++round_;
    changed_.notify_all();
  }
  changed_.wait(lock, [&] { return round_ != round || !aborted_.empty(); });
  return absl::OkStatus();
}

absl::Status RunRanks(std::int64_t ranks, const std::function<absl::Status(std::int64_t)>& body) {
  std::vector<absl::Status> results(static_cast<std::size_t>(ranks));
  if (ranks == 1) return body(0);
  std::vector<std::thread> threads;
  threads.reserve(results.size());
  for (std::int64_t r = 0; r < ranks; ++r) {
    threads.emplace_back([&, r] { results[static_cast<std::size_t>(r)] = body(r); });
  }
  for (std::thread& thread : threads) thread.join();
  for (const absl::Status& result : results) {
    if (!result.ok()) return result;
  }
  return absl::OkStatus();
}

}  // namespace kvasir::testing
