// A fiber's stack, and what AddressSanitizer must be told when the program goes on on another one.
#ifndef KVASIR_TESTS_CUDA_ON_CPU_FIBER_STACK_H_
#define KVASIR_TESTS_CUDA_ON_CPU_FIBER_STACK_H_

#include <cstddef>
#include <memory>

#if defined(__SANITIZE_ADDRESS__)
#define KVASIR_FIBERS_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define KVASIR_FIBERS_SANITIZED 1
#endif
#endif
#ifdef KVASIR_FIBERS_SANITIZED
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif

namespace kvasir::cuda_on_cpu {

class FiberStack {
 public:
  static constexpr std::size_t kBytes = std::size_t{128} << 10;

  FiberStack() : bytes_(new std::byte[kBytes]) {}  // not zeroed: what is not used is not there
  [[nodiscard]] std::byte* top() const { return bytes_.get() + kBytes; }

#ifdef KVASIR_FIBERS_SANITIZED
  // Frames that were never left: of every fiber the first few, of a block that failed all.
  void Clear(bool all) const {
    const std::size_t bytes = all ? kBytes : std::size_t{4096};
    __asan_unpoison_memory_region(top() - bytes, bytes);
  }
  // The runner goes over to this fiber, and is back.
  void Enter(void** runner_fake) const { __sanitizer_start_switch_fiber(runner_fake, bytes_.get(), kBytes); }
  static void Returned(void* runner_fake) { __sanitizer_finish_switch_fiber(runner_fake, nullptr, nullptr); }
  // This fiber has its turn, for the first time or again; and gives it back, for good or not.
  void Arrived() {
    __sanitizer_finish_switch_fiber(fake_, &runner_bottom_, &runner_bytes_);
    fake_ = nullptr;
  }
  void Leave(bool for_good) {
    __sanitizer_start_switch_fiber(for_good ? nullptr : &fake_, runner_bottom_, runner_bytes_);
  }

 private:
  void* fake_ = nullptr;
  const void* runner_bottom_ = nullptr;
  std::size_t runner_bytes_ = 0;
#else
  void Clear(bool /*all*/) const {}
  void Enter(void** /*runner_fake*/) const {}
  static void Returned(void* /*runner_fake*/) {}
  void Arrived() {}
  void Leave(bool /*for_good*/) {}

 private:
#endif
  std::unique_ptr<std::byte[]> bytes_;
};

}  // namespace kvasir::cuda_on_cpu

#endif  // KVASIR_TESTS_CUDA_ON_CPU_FIBER_STACK_H_
