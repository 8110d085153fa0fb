#include "worker/choose_backend.h"

#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "common/base/status_macros.h"
#include "worker/cpu/cpu_backend.h"
#ifdef KVASIR_HAS_CUDA
#include "worker/cuda/cuda_backend.h"
#endif

namespace kvasir {
namespace {

std::unique_ptr<Backend> MakeCpu(const RankComms& comms, bool reference) {
  CpuOptions cpu;
  cpu.tensor = comms.tensor.get();
  cpu.context = comms.context.get();
  cpu.kernels = reference ? CpuKernels::kReference : CpuKernels::kFast;
  return MakeCpuBackend(cpu);
}

ChosenBackend Cpu(std::string remark) {
  return {.name = "cpu",
          .device = MakeCpuBackend({})->Describe().device,
          .remark = std::move(remark),
          .device_memory = Bytes(0),
          .make = MakeCpu};
}

#ifdef KVASIR_HAS_CUDA
// The definition stays on the host, whatever it is compared with.
absl::StatusOr<std::unique_ptr<Backend>> MakeCuda(const RankComms& comms, bool reference, int devices) {
  if (reference) return MakeCpu(comms, true);
  CudaOptions cuda;
  cuda.device = static_cast<int>(comms.tensor->rank() % devices);
  cuda.tensor = comms.tensor.get();
  cuda.context = comms.context.get();
  return MakeCudaBackend(cuda);
}

absl::StatusOr<ChosenBackend> Cuda() {
  KVASIR_ASSIGN_OR_RETURN(const std::vector<std::string> names, CudaDevices());
  if (names.empty()) return absl::FailedPreconditionError("this machine has no CUDA device");
  const int devices = static_cast<int>(names.size());
  ChosenBackend chosen;
  chosen.name = "cuda";
  chosen.device = absl::StrFormat("%d x %s", devices, names.front());
#ifndef KVASIR_CUDA_PROVEN
  chosen.remark = "the CUDA backend of this build has not been proven on hardware: no gpu-check is on record";
#endif
  KVASIR_ASSIGN_OR_RETURN(const std::unique_ptr<Backend> first, MakeCudaBackend({}));
  chosen.device_memory = Bytes(first->Describe().memory_bytes.value() * devices);
  chosen.make = [devices](const RankComms& comms, bool reference) {
    return MakeCuda(comms, reference, devices);
  };
  return chosen;
}
#else
absl::StatusOr<ChosenBackend> Cuda() {
  return absl::FailedPreconditionError("this build has no CUDA backend; configure with the preset cuda");
}
#endif

}  // namespace

absl::StatusOr<ChosenBackend> ChooseBackend(std::string_view word) {
  if (word == "cpu") return Cpu("");
  absl::StatusOr<ChosenBackend> cuda = Cuda();
  if (cuda.ok() || word == "cuda") return cuda;
  return Cpu("not cuda: " + std::string(cuda.status().message()));
}

}  // namespace kvasir
