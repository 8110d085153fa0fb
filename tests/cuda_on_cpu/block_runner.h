// One block of a kernel on the CPU: its threads as fibers of this thread, resumed in turn until all wait or
// have ended.
#ifndef KVASIR_TESTS_CUDA_ON_CPU_BLOCK_RUNNER_H_
#define KVASIR_TESTS_CUDA_ON_CPU_BLOCK_RUNNER_H_

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <string>

namespace kvasir::cuda_on_cpu {

struct Dim3 {
  unsigned x = 1, y = 1, z = 1;
  Dim3() = default;
  // NOLINTNEXTLINE(google-explicit-constructor): a number is a grid, as in CUDA
  Dim3(unsigned in_x, unsigned in_y = 1, unsigned in_z = 1) : x(in_x), y(in_y), z(in_z) {}
};

// In which order threads run between barriers, and asynchronous copies: at their latest, or (descending) at
// once. A kernel that lacks a barrier or a wait gives other results in one of them.
enum class ThreadOrder : std::int8_t { kAscending, kDescending };
void SetThreadOrder(ThreadOrder order);  // of this thread

// Each thread passes its n-th barrier of a block without waiting, as if it was not there; 0: none. Of this
// thread.
void SkipBarrier(std::int64_t n);

// Empty, or why the block could not run to its end.
[[nodiscard]] std::string RunBlock(const Dim3& block, const Dim3& index, std::size_t shared_bytes,
                                   const std::function<void()>& thread);

// What a kernel's thread asks for; only within RunBlock.
[[nodiscard]] const Dim3& CurrentBlock();
[[nodiscard]] const Dim3& CurrentThread();
[[nodiscard]] std::byte* DynamicShared();
void BlockBarrier();
void WarpBarrier(unsigned mask);
// This thread's place in its warp, and the words by which a warp's threads exchange values.
[[nodiscard]] unsigned Lane();
[[nodiscard]] std::uint64_t& ExchangeWord(unsigned lane);
// Whether the 31 other lanes of the warp have asked the same before.
[[nodiscard]] bool IsLastOfWarp();
[[noreturn]] void FailBlock(const char* why);

// `value` of the lane that `from` names for this lane; both must be in the mask.
template <class T, class From>
T Exchange(unsigned mask, T value, From from) {
  static_assert(sizeof(T) <= sizeof(std::uint64_t));
  std::uint64_t word = 0;
  std::memcpy(&word, &value, sizeof value);
  ExchangeWord(Lane()) = word;
  WarpBarrier(mask);
  const unsigned source = from(Lane());
  if (source >= 32 || (mask >> source & 1U) == 0) FailBlock("a shuffle reads a lane that is not in its mask");
  word = ExchangeWord(source);
  WarpBarrier(mask);
  T out;
  std::memcpy(&out, &word, sizeof out);
  return out;
}

// An operation of the whole warp over the operands of its lanes, in their order: run once, by the lane that
// comes last.
template <class Operands, class Operation>
void AsAWarp(Operands& mine, Operation operation) {
  ExchangeWord(Lane()) = reinterpret_cast<std::uintptr_t>(&mine);
  if (IsLastOfWarp()) {
    Operands* all[32];
    for (unsigned lane = 0; lane < 32; ++lane) all[lane] = reinterpret_cast<Operands*>(ExchangeWord(lane));
    operation(all);
  }
  WarpBarrier(0xffffffffU);
}

// Copies that may be done at any time until their group is waited for.
void CopyLater(void* to, const void* from, std::size_t bytes);
void CommitCopies();
void WaitForCopies(std::size_t groups_left);

}  // namespace kvasir::cuda_on_cpu

#endif  // KVASIR_TESTS_CUDA_ON_CPU_BLOCK_RUNNER_H_
