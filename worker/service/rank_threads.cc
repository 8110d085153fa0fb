#include "worker/service/rank_threads.h"

namespace kvasir {
namespace {

// Lower explains more.
int Rank(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kOk:
      return 4;
    case absl::StatusCode::kCancelled:
      return 3;
    case absl::StatusCode::kUnavailable:
      return 2;
    case absl::StatusCode::kDeadlineExceeded:
      return 1;
    default:
      return 0;
  }
}

}  // namespace

RankThreads::RankThreads(std::size_t count) : statuses_(count) {
  for (std::size_t i = 0; i < count; ++i) threads_.emplace_back([this, i] { Loop(i); });
}

RankThreads::~RankThreads() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

std::vector<absl::Status> RankThreads::Run(const std::function<absl::Status(std::size_t)>& work) {
  std::unique_lock lock(mutex_);
  work_ = &work;
  busy_ = threads_.size();
  ++round_;
  changed_.notify_all();
  changed_.wait(lock, [this] { return busy_ == 0; });
  work_ = nullptr;
  return statuses_;
}

void RankThreads::Loop(std::size_t index) {
  std::int64_t done = 0;
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [&] { return stopping_ || round_ != done; });
    if (stopping_) return;
    done = round_;
    const std::function<absl::Status(std::size_t)>& work = *work_;
    lock.unlock();
    absl::Status status = work(index);
    lock.lock();
    statuses_[index] = std::move(status);
    if (--busy_ == 0) changed_.notify_all();
  }
}

absl::Status FirstCause(const std::vector<absl::Status>& statuses) {
  absl::Status cause;
  for (const absl::Status& status : statuses) {
    if (Rank(status) < Rank(cause)) cause = status;
  }
  return cause;
}

}  // namespace kvasir
