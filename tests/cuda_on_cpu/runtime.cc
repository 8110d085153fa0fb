#include <sys/mman.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "tests/cuda_on_cpu/cuda_runtime.h"

using Action = std::function<cudaError_t()>;

namespace kvasir::cuda_on_cpu {

struct Stream {
  bool captures = false;
  std::vector<Action> captured;
};

struct Work {
  std::vector<Action> actions;
};

}  // namespace kvasir::cuda_on_cpu

namespace {

using kvasir::cuda_on_cpu::Stream;
using kvasir::cuda_on_cpu::Work;

constexpr std::size_t kMemoryBytes = std::size_t{8} << 30;
constexpr std::size_t kSharedUnlessAsked = std::size_t{48} << 10;
constexpr std::size_t kSharedMost = std::size_t{227} << 10;  // of sm_90
constexpr std::size_t kAlignment = 256;

struct State {
  std::int64_t calls = 0;
  std::int64_t fail_at = 0;
  int devices = 1;
  cudaError_t last = cudaSuccess;
  std::string why;
};
thread_local State state;
// Of the device, whichever threads call it.
std::atomic<std::size_t> shared_most = kSharedUnlessAsked;
std::atomic<std::size_t> used = 0;

// Memory that can be locked, and whether it is.
struct Lockable {
  bool on = false;
  bool locked = false;
  std::map<void*, std::size_t> segments;

  void Protect(bool open) const {
    for (const auto& [at, bytes] : segments) mprotect(at, bytes, open ? PROT_READ | PROT_WRITE : PROT_NONE);
  }
};
Lockable lockable;

// While it lives, locked memory is open: a call of the runtime, or a kernel.
class Open {
 public:
  Open() {
    if (lockable.locked) lockable.Protect(true);
  }
  Open(const Open&) = delete;
  Open& operator=(const Open&) = delete;
  ~Open() {
    if (lockable.locked) lockable.Protect(false);
  }
};

// Counts the call; an error where it is the one that is to fail.
cudaError_t Count(cudaError_t failure) {
  ++state.calls;
  if (state.calls != state.fail_at) return cudaSuccess;
  state.fail_at = 0;
  state.last = failure;
  return failure;
}

// Now, or when the graph is launched that the stream captures.
cudaError_t Do(Stream* stream, Action action) {
  if (stream != nullptr && stream->captures) {
    stream->captured.push_back(std::move(action));
    return cudaSuccess;
  }
  return action();
}

cudaError_t RunKernel(const dim3& grid, const dim3& block, std::size_t shared_bytes,
                      const std::function<void()>& thread) {
  const Open open;
  gridDim = grid;
  blockDim = block;
  if (shared_bytes > shared_most) {
    state.why = "more dynamic shared memory than was asked for by cudaFuncSetAttribute";
    return state.last = cudaErrorInvalidValue;
  }
  for (unsigned z = 0; z < grid.z; ++z) {
    for (unsigned y = 0; y < grid.y; ++y) {
      for (unsigned x = 0; x < grid.x; ++x) {
        state.why = kvasir::cuda_on_cpu::RunBlock(block, dim3(x, y, z), shared_bytes, thread);
        if (!state.why.empty()) return state.last = cudaErrorLaunchFailure;
      }
    }
  }
  return cudaSuccess;
}

struct ErrorRow {
  cudaError_t error;
  const char* name;
  const char* text;
};
constexpr ErrorRow kErrors[] = {
    {cudaSuccess, "cudaSuccess", "no error"},
    {cudaErrorInvalidValue, "cudaErrorInvalidValue", "invalid argument"},
    {cudaErrorMemoryAllocation, "cudaErrorMemoryAllocation", "out of memory"},
    {cudaErrorInsufficientDriver, "cudaErrorInsufficientDriver", "no driver, or an old one"},
    {cudaErrorNoDevice, "cudaErrorNoDevice", "no device"},
    {cudaErrorIllegalAddress, "cudaErrorIllegalAddress", "an illegal memory access"},
    {cudaErrorLaunchFailure, "cudaErrorLaunchFailure", "a kernel failed"},
};

}  // namespace

namespace kvasir::cuda_on_cpu {

void Launch(Dim3 grid, Dim3 block, std::size_t shared_bytes, cudaStream_t stream,
            std::function<void()> thread) {
  if (Count(cudaErrorLaunchFailure) != cudaSuccess) return;
  const cudaError_t error =
      Do(stream, [=, thread = std::move(thread)] { return RunKernel(grid, block, shared_bytes, thread); });
  if (error != cudaSuccess) state.last = error;
}

void FailCall(std::int64_t n) { state.fail_at = n == 0 ? 0 : state.calls + n; }
std::int64_t Calls() { return state.calls; }
const std::string& WhyFailed() { return state.why; }
void SetDevices(int count) { state.devices = count; }
void AllocateLockable(bool on) { lockable.on = on; }
void LockMemory(bool locked) {
  lockable.locked = locked;
  lockable.Protect(!locked);
}

}  // namespace kvasir::cuda_on_cpu

cudaError_t cudaGetDeviceCount(int* count) {
  *count = state.devices;
  if (state.devices == 0) return cudaErrorInsufficientDriver;
  return Count(cudaErrorNoDevice);
}
cudaError_t cudaSetDevice(int device) {
  return device < 0 || device >= state.devices ? cudaErrorNoDevice : Count(cudaErrorNoDevice);
}
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int /*device*/) {
  *properties = {};
  std::strncpy(properties->name, "threads as fibers of the host", sizeof(properties->name) - 1);
  properties->totalGlobalMem = kMemoryBytes;
  properties->sharedMemPerBlockOptin = kSharedMost;
  properties->major = 9;
  properties->multiProcessorCount = 1;
  return Count(cudaErrorNoDevice);
}
cudaError_t cudaMemGetInfo(std::size_t* free, std::size_t* total) {
  *free = kMemoryBytes - used;
  *total = kMemoryBytes;
  return Count(cudaErrorNoDevice);
}

// As on a device, what is allocated is not zeroed. The size stands before the memory.
cudaError_t cudaMalloc(void** at, std::size_t bytes) {
  *at = nullptr;
  const cudaError_t error = Count(cudaErrorMemoryAllocation);
  if (error != cudaSuccess) return error;
  if (bytes > kMemoryBytes - used) return state.last = cudaErrorMemoryAllocation;
  if (lockable.on) {
    void* segment = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (segment == MAP_FAILED) return state.last = cudaErrorMemoryAllocation;
    lockable.segments[segment] = bytes;
    *at = segment;
    return cudaSuccess;
  }
  const std::size_t rounded = (bytes + 2 * kAlignment - 1) / kAlignment * kAlignment;
  auto* block = static_cast<std::byte*>(std::aligned_alloc(kAlignment, rounded + kAlignment));
  if (block == nullptr) return state.last = cudaErrorMemoryAllocation;
  std::memcpy(block, &bytes, sizeof bytes);
  constexpr std::size_t kMarked = std::size_t{1} << 20;  // large arenas stay untouched pages
  std::memset(block + kAlignment, 0xcb, bytes < kMarked ? bytes : kMarked);
  used += bytes;
  *at = block + kAlignment;
  return cudaSuccess;
}
cudaError_t cudaFree(void* at) {
  if (at == nullptr) return cudaSuccess;
  if (const auto segment = lockable.segments.find(at); segment != lockable.segments.end()) {
    munmap(at, segment->second);
    lockable.segments.erase(segment);
    return cudaSuccess;
  }
  std::byte* block = static_cast<std::byte*>(at) - kAlignment;
  std::size_t bytes = 0;
  std::memcpy(&bytes, block, sizeof bytes);
  used -= bytes;
  std::free(block);
  return cudaSuccess;
}

cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind /*kind*/,
                            cudaStream_t stream) {
  const cudaError_t error = Count(cudaErrorIllegalAddress);
  if (error != cudaSuccess || bytes == 0) return error;
  return Do(stream, [=] {
    const Open open;
    std::memcpy(to, from, bytes);
    return cudaSuccess;
  });
}
cudaError_t cudaMemsetAsync(void* at, int value, std::size_t bytes, cudaStream_t stream) {
  const cudaError_t error = Count(cudaErrorIllegalAddress);
  if (error != cudaSuccess || bytes == 0) return error;
  return Do(stream, [=] {
    const Open open;
    std::memset(at, value, bytes);
    return cudaSuccess;
  });
}

cudaError_t cudaStreamCreate(cudaStream_t* stream) {
  *stream = nullptr;
  const cudaError_t error = Count(cudaErrorMemoryAllocation);
  if (error == cudaSuccess) *stream = new Stream;
  return error;
}
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  delete stream;
  return cudaSuccess;
}
cudaError_t cudaStreamSynchronize(cudaStream_t /*stream*/) {
  const cudaError_t error = Count(cudaErrorIllegalAddress);
  return error != cudaSuccess ? error : cudaGetLastError();
}

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode /*mode*/) {
  const cudaError_t error = Count(cudaErrorInvalidValue);
  if (error != cudaSuccess) return error;
  stream->captures = true;
  stream->captured.clear();
  return cudaSuccess;
}
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  *graph = nullptr;
  stream->captures = false;
  const cudaError_t error = Count(cudaErrorInvalidValue);
  if (error == cudaSuccess) *graph = new Work{std::exchange(stream->captured, {})};
  return error;
}
// NOLINTNEXTLINE(google-runtime-int): the toolkit's own signature
cudaError_t cudaGraphInstantiate(cudaGraphExec_t* exec, cudaGraph_t graph, unsigned long long /*flags*/) {
  *exec = nullptr;
  const cudaError_t error = Count(cudaErrorMemoryAllocation);
  if (error == cudaSuccess) *exec = new Work(*graph);
  return error;
}
cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t /*stream*/) {
  const cudaError_t error = Count(cudaErrorLaunchFailure);
  if (error != cudaSuccess) return error;
  for (const Action& action : exec->actions) {
    const cudaError_t failed = action();
    if (failed != cudaSuccess) return failed;
  }
  return cudaSuccess;
}
cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  delete graph;
  return cudaSuccess;
}
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec) {
  delete exec;
  return cudaSuccess;
}

cudaError_t cudaGetLastError() { return std::exchange(state.last, cudaSuccess); }
const char* cudaGetErrorName(cudaError_t error) {
  for (const ErrorRow& row : kErrors) {
    if (row.error == error) return row.name;
  }
  return "cudaErrorUnknown";
}
const char* cudaGetErrorString(cudaError_t error) {
  for (const ErrorRow& row : kErrors) {
    if (row.error == error) return row.text;
  }
  return "unknown error";
}
cudaError_t cudaSetSharedMemory(std::size_t bytes) {
  if (bytes > kSharedMost) return state.last = cudaErrorInvalidValue;
  if (bytes > shared_most) shared_most = bytes;
  return Count(cudaErrorInvalidValue);
}
