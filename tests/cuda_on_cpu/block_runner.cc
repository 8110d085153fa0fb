#include "tests/cuda_on_cpu/block_runner.h"

#include <algorithm>
#include <array>
#include <boost/context/detail/fcontext.hpp>
#include <deque>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "tests/cuda_on_cpu/fiber_stack.h"

namespace kvasir::cuda_on_cpu {
namespace {

namespace context = boost::context::detail;

constexpr std::size_t kThreadsMax = 1024;
constexpr unsigned kWarp = 32;

enum class State : std::int8_t { kReady, kAtBlockBarrier, kAtWarpBarrier, kEnded };

struct Copy {
  void* to;
  const void* from;
  std::size_t bytes;
};

struct Fiber {
  context::fcontext_t context = nullptr;
  FiberStack stack;
  Dim3 index;
  State state = State::kReady;
  unsigned mask = 0;  // at a warp barrier
  std::int64_t barriers = 0;
  std::vector<Copy> copies;  // of no group yet
  std::deque<std::vector<Copy>> groups;
  std::uint64_t word = 0;
};

// Of each thread of the host one, since the ranks of a test run beside each other.
class Runner {
 public:
  std::string Run(const Dim3& block, const Dim3& index, std::size_t shared_bytes,
                  const std::function<void()>& thread);

  [[nodiscard]] const Dim3& index() const { return index_; }
  [[nodiscard]] Fiber& current() { return *fibers_[current_]; }
  [[nodiscard]] unsigned lane() const { return static_cast<unsigned>(current_) % kWarp; }
  [[nodiscard]] std::byte* shared() { return shared_.data(); }
  [[nodiscard]] bool IsLastOfWarp() {
    unsigned& arrived = arrived_[current_ / kWarp];
    arrived = (arrived + 1) % kWarp;
    return arrived == 0;
  }
  [[nodiscard]] std::uint64_t& WordOf(unsigned lane) {
    return fibers_[current_ / kWarp * kWarp + lane]->word;
  }
  // Gives the turn to the runner, until what the fiber waits for has happened.
  void Wait(State state);
  void Fail(const char* why) { failure_ = why; }

  ThreadOrder order = ThreadOrder::kAscending;
  std::int64_t skipped = 0;

 private:
  static void Enter(context::transfer_t from);
  void Prepare(const Dim3& block);
  void Resume(std::size_t i);
  bool ReleaseBlock();
  bool ReleaseWarp();
  [[nodiscard]] std::string Stuck() const;

  std::vector<std::unique_ptr<Fiber>> fibers_;
  std::size_t count_ = 0;
  std::size_t current_ = 0;
  std::array<unsigned, kThreadsMax / kWarp> arrived_ = {};
  std::size_t ended_ = 0;
  context::fcontext_t runner_ = nullptr;
  Dim3 index_;
  std::vector<std::byte> shared_;
  const std::function<void()>* thread_ = nullptr;
  std::string failure_;
};

thread_local Runner runner;

void Runner::Prepare(const Dim3& block) {
  count_ = std::size_t{block.x} * block.y * block.z;
  while (fibers_.size() < (count_ + kWarp - 1) / kWarp * kWarp) fibers_.push_back(std::make_unique<Fiber>());
  for (std::size_t i = 0; i < count_; ++i) {
    Fiber& fiber = *fibers_[i];
    const auto n = static_cast<unsigned>(i);
    fiber.index = Dim3(n % block.x, n / block.x % block.y, n / block.x / block.y);
    fiber.state = State::kReady;
    fiber.barriers = 0;
    fiber.copies.clear();
    fiber.groups.clear();
    fiber.stack.Clear(!failure_.empty());
    fiber.context = context::make_fcontext(fiber.stack.top(), FiberStack::kBytes, &Runner::Enter);
  }
  ended_ = 0;
  arrived_ = {};
  failure_.clear();
}

void Runner::Enter(context::transfer_t from) {
  runner.runner_ = from.fctx;
  runner.current().stack.Arrived();
  (*runner.thread_)();
  runner.Wait(State::kEnded);
}

void Runner::Wait(State state) {
  Fiber& fiber = current();
  fiber.state = state;
  fiber.stack.Leave(state == State::kEnded);
  const context::transfer_t back = context::jump_fcontext(runner_, nullptr);
  runner_ = back.fctx;
  fiber.stack.Arrived();
}

void Runner::Resume(std::size_t i) {
  current_ = i;
  Fiber& fiber = *fibers_[i];
  void* fake = nullptr;
  fiber.stack.Enter(&fake);
  const context::transfer_t back = context::jump_fcontext(fiber.context, nullptr);
  FiberStack::Returned(fake);
  fiber.context = back.fctx;
  if (fiber.state == State::kEnded) ++ended_;
}

// All that have not ended wait at the block's barrier.
bool Runner::ReleaseBlock() {
  for (std::size_t i = 0; i < count_; ++i) {
    const State state = fibers_[i]->state;
    if (state != State::kAtBlockBarrier && state != State::kEnded) return false;
  }
  for (std::size_t i = 0; i < count_; ++i) {
    if (fibers_[i]->state == State::kAtBlockBarrier) fibers_[i]->state = State::kReady;
  }
  return true;
}

// One group of lanes that all wait with the same mask, which names them all: the first in the threads' order,
// so that a warp gets as far ahead of the others as barriers let it.
bool Runner::ReleaseWarp() {
  const std::size_t warps = (count_ + kWarp - 1) / kWarp;
  for (std::size_t n = 0; n < warps; ++n) {
    const std::size_t first = (order == ThreadOrder::kAscending ? n : warps - 1 - n) * kWarp;
    for (std::size_t i = first; i < std::min(first + kWarp, count_); ++i) {
      if (fibers_[i]->state != State::kAtWarpBarrier) continue;
      const unsigned mask = fibers_[i]->mask;
      bool all = true;
      for (unsigned lane = 0; lane < kWarp; ++lane) {
        if ((mask >> lane & 1U) == 0) continue;
        const std::size_t at = first + lane;
        all = all && at < count_ && fibers_[at]->state == State::kAtWarpBarrier && fibers_[at]->mask == mask;
      }
      if (!all) continue;
      for (unsigned lane = 0; lane < kWarp; ++lane) {
        if ((mask >> lane & 1U) != 0) fibers_[first + lane]->state = State::kReady;
      }
      return true;
    }
  }
  return false;
}

std::string Runner::Stuck() const {
  for (std::size_t i = 0; i < count_; ++i) {
    const Fiber& fiber = *fibers_[i];
    if (fiber.state == State::kEnded) continue;
    return absl::StrFormat("block (%d, %d, %d): thread %d waits at a %s barrier that others do not reach",
                           index_.x, index_.y, index_.z, i,
                           fiber.state == State::kAtBlockBarrier ? "block's" : "warp's");
  }
  return "stuck";
}

std::string Runner::Run(const Dim3& block, const Dim3& index, std::size_t shared_bytes,
                        const std::function<void()>& thread) {
  if (std::size_t{block.x} * block.y * block.z > kThreadsMax) return "a block has at most 1,024 threads";
  Prepare(block);
  index_ = index;
  thread_ = &thread;
  // What a block leaves in shared memory is not the next one's.
  shared_.assign(shared_bytes, std::byte{0xff});
  while (ended_ < count_) {
    for (std::size_t n = 0; n < count_ && failure_.empty(); ++n) {
      const std::size_t i = order == ThreadOrder::kAscending ? n : count_ - 1 - n;
      if (fibers_[i]->state == State::kReady) Resume(i);
    }
    if (failure_.empty() && ended_ < count_ && !ReleaseBlock() && !ReleaseWarp()) failure_ = Stuck();
    if (!failure_.empty()) return failure_;
  }
  return "";
}

}  // namespace
}  // namespace kvasir::cuda_on_cpu

#ifdef KVASIR_FIBERS_SANITIZED
// A fake stack for each fiber of each block would be mapped and unmapped all the time.
extern "C" const char* __asan_default_options();  // NOLINT(bugprone-reserved-identifier): the sanitizer's own
extern "C" const char* __asan_default_options() {  // NOLINT(bugprone-reserved-identifier)
  return "detect_stack_use_after_return=0";
}
#endif

namespace kvasir::cuda_on_cpu {

void SetThreadOrder(ThreadOrder order) { runner.order = order; }
void SkipBarrier(std::int64_t n) { runner.skipped = n; }

std::string RunBlock(const Dim3& block, const Dim3& index, std::size_t shared_bytes,
                     const std::function<void()>& thread) {
  return runner.Run(block, index, shared_bytes, thread);
}

const Dim3& CurrentBlock() { return runner.index(); }
const Dim3& CurrentThread() { return runner.current().index; }
std::byte* DynamicShared() { return runner.shared(); }
unsigned Lane() { return runner.lane(); }
bool IsLastOfWarp() { return runner.IsLastOfWarp(); }
std::uint64_t& ExchangeWord(unsigned lane) { return runner.WordOf(lane); }

void BlockBarrier() {
  if (++runner.current().barriers != runner.skipped) runner.Wait(State::kAtBlockBarrier);
}

void WarpBarrier(unsigned mask) {
  if ((mask >> Lane() & 1U) == 0) FailBlock("a warp's barrier is reached by a lane that is not in its mask");
  runner.current().mask = mask;
  runner.Wait(State::kAtWarpBarrier);
}

void CopyLater(void* to, const void* from, std::size_t bytes) {
  if (reinterpret_cast<std::uintptr_t>(to) % bytes != 0 ||
      reinterpret_cast<std::uintptr_t>(from) % bytes != 0)
    FailBlock("an asynchronous copy is not aligned to its size");
  if (runner.order == ThreadOrder::kDescending) {
    std::memcpy(to, from, bytes);
  } else {
    runner.current().copies.push_back({to, from, bytes});
  }
}

void CommitCopies() {
  Fiber& fiber = runner.current();
  fiber.groups.push_back(std::exchange(fiber.copies, {}));
}

void WaitForCopies(std::size_t groups_left) {
  Fiber& fiber = runner.current();
  for (; fiber.groups.size() > groups_left; fiber.groups.pop_front()) {
    for (const Copy& copy : fiber.groups.front()) std::memcpy(copy.to, copy.from, copy.bytes);
  }
}

void FailBlock(const char* why) {
  runner.Fail(why);
  for (;;) runner.Wait(State::kEnded);  // never resumed
}

}  // namespace kvasir::cuda_on_cpu
