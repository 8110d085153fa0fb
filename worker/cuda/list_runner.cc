#include "worker/cuda/list_runner.h"

#include <algorithm>
#include <span>
#include <utility>
#include <variant>

#include "absl/strings/str_format.h"
#include "common/base/status_macros.h"
#include "worker/cuda/cuda_status.h"
#include "worker/cuda/kernels.h"
#include "worker/cuda/workspace.h"

namespace kvasir::cuda {
namespace {

absl::Status Grow(std::int64_t bytes, std::shared_ptr<DeviceBuffer>& buffer) {
  if (buffer != nullptr && buffer->size().value() >= bytes) return absl::OkStatus();
  KVASIR_ASSIGN_OR_RETURN(buffer, DeviceBuffer::Make(Bytes(std::max<std::int64_t>(bytes, 1))));
  return absl::OkStatus();
}

BadToken WordOf(const ListMemory& memory) {
  return {reinterpret_cast<DeviceWord*>(memory.bad_token->data())};
}

// One overload per operation: a new operation does not compile until it has one. Collectives are of one rank
// here.
struct Enqueuer {
  cudaStream_t stream;
  const DeviceLimits& device;
  const ListMemory& memory;

  void operator()(const EmbedOp& op) const { Embed(op, WordOf(memory), stream); }
  void operator()(const RmsNormOp& op) const { RmsNorm(op, stream); }
  void operator()(const LinearOp& op) const { Linear(op, stream); }
  void operator()(const RopeOp& op) const { Rope(op, stream); }
  void operator()(const AbsorbQueryOp& op) const { AbsorbQuery(op, stream); }
  void operator()(const CacheWriteOp& op) const { CacheWrite(op, stream); }
  // CheckShapes found one for each operation of the list.
  template <class Op>
  [[nodiscard]] DecodeKernelId KernelOf(const Op& op) const {
    return std::get<DecodeKernelId>(ChooseDecode(ShapeOf(op), device));
  }
  void operator()(const MlaDecodeOp& op) const {
    MlaDecode(op, KernelOf(op), memory.scratch->floats(), stream);
  }
  void operator()(const GqaDecodeOp& op) const {
    GqaDecode(op, KernelOf(op), memory.scratch->floats(), stream);
  }
  void operator()(const GatherHeadsOp& op) const {
    InterleaveRanks(op.in, 1, op.rows, op.heads_local * op.dim, op.out, stream);
  }
  void operator()(const CombineOp& op) const { Combine(op, 1, 0, stream); }
  void operator()(const ProjectValueOp& op) const { ProjectValue(op, stream); }
  void operator()(const AllReduceOp& /*op*/) const {}
  void operator()(const GatherColumnsOp& op) const {
    InterleaveRanks(op.in, 1, op.rows, op.cols_local, op.out, stream);
  }
  void operator()(const AddOp& op) const { Add(op, stream); }
  void operator()(const SwiGluOp& op) const { SwiGlu(op, stream); }
  void operator()(const MixResidualsOp& op) const { MixResiduals(op, stream); }
  void operator()(const SigmoidGateOp& op) const { SigmoidGate(op, stream); }
  void operator()(const CopyRowsOp& op) const { CopyRows(op, stream); }
  void operator()(const ArgmaxOp& op) const { Argmax(op, stream); }
  void operator()(const MarkovChainOp& op) const {
    MarkovChain(op, WordOf(memory), memory.scratch->floats(), stream);
  }
  void operator()(const ShortConvOp& op) const { ShortConv(op, stream); }
  void operator()(const L2NormOp& op) const { L2Norm(op, stream); }
  void operator()(const KdaGateOp& op) const { KdaGate(op, stream); }
  void operator()(const KdaReplayOp& op) const { KdaReplay(op, stream); }
  void operator()(const KdaStepOp& op) const { KdaStep(op, stream); }
  void operator()(const RouteExpertsOp& op) const { RouteExperts(op, stream); }
  void operator()(const ExpertMlpOp& op) const { ExpertMlp(op, stream); }
};

// Of the first operation whose table has no such token.
absl::Status BadTokenError(const LaunchList& list, DeviceWord word) {
  const auto id = static_cast<std::int32_t>(static_cast<std::uint32_t>(word));
  const auto lacks = [id](std::int64_t vocabulary) { return id < 0 || id >= vocabulary; };
  for (const Launch& launch : list) {
    if (const auto* op = std::get_if<EmbedOp>(&launch); op != nullptr && lacks(op->vocab)) {
      return absl::InvalidArgumentError(absl::StrFormat(
          "token id %d of row %d is outside the vocabulary of %d tokens", id, word >> 32, op->vocab));
    }
    if (const auto* op = std::get_if<MarkovChainOp>(&launch); op != nullptr && lacks(op->vocab)) {
      return absl::InvalidArgumentError(
          absl::StrFormat("anchor token id %d of request %d is outside the vocabulary of %d tokens", id,
                          word >> 32, op->vocab));
    }
  }
  return absl::InternalError(absl::StrFormat("token id %d was refused, and no table lacks it", id));
}

}  // namespace

std::int64_t ListRunner::Ranks(CommGroup group) const {
  const Communicator* communicator = Group(group);
  return communicator == nullptr ? 1 : communicator->size();
}

std::int64_t ListRunner::RankIn(CommGroup group) const {
  const Communicator* communicator = Group(group);
  return communicator == nullptr ? 0 : communicator->rank();
}

bool ListRunner::IsHost(const Launch& launch) const { return GatheredFloats(launch) > 0; }

std::int64_t ListRunner::GatheredFloats(const Launch& launch) const {
  const auto all = [this](CommGroup group, std::int64_t mine) {
    return Ranks(group) == 1 ? 0 : Ranks(group) * mine;
  };
  if (const auto* op = std::get_if<GatherHeadsOp>(&launch))
    return all(op->group, op->rows * op->heads_local * op->dim);
  if (const auto* op = std::get_if<GatherColumnsOp>(&launch))
    return all(op->group, op->rows * op->cols_local);
  if (const auto* op = std::get_if<AllReduceOp>(&launch)) return all(op->group, op->count);
  const auto* op = std::get_if<CombineOp>(&launch);
  return op == nullptr ? 0 : all(op->group, op->rows * op->heads_local * Ranks(op->group) * (op->dim + 1));
}

absl::Status ListRunner::Reserve(const LaunchList& list, ListMemory& memory) const {
  std::int64_t scratch = 0;
  std::int64_t gathered = 0;
  for (const Launch& launch : list) {
    scratch = std::max(scratch, ScratchFloats(launch));
    gathered = std::max(gathered, GatheredFloats(launch));
  }
  constexpr auto kFloat = static_cast<std::int64_t>(sizeof(float));
  KVASIR_RETURN_IF_ERROR(Grow(scratch * kFloat, memory.scratch));
  KVASIR_RETURN_IF_ERROR(Grow(gathered * kFloat, memory.gathered));
  return Grow(static_cast<std::int64_t>(sizeof(DeviceWord)), memory.bad_token);
}

absl::Status ListRunner::Enqueue(const Launch& launch, const ListMemory& memory) const {
  std::visit(Enqueuer{stream(), device_, memory}, launch);
  return FromCuda(cudaGetLastError(), "a kernel's launch");
}

absl::Status ListRunner::Gather(CommGroup group, const float* mine, std::int64_t count, float* to) {
  const auto local = static_cast<std::size_t>(count);
  mine_.resize(local);
  all_.resize(local * static_cast<std::size_t>(Ranks(group)));
  KVASIR_RETURN_IF_ERROR(
      FromCuda(cudaMemcpyAsync(mine_.data(), mine, local * sizeof(float), cudaMemcpyDeviceToHost, stream()),
               "cudaMemcpyAsync"));
  KVASIR_RETURN_IF_ERROR(FromCuda(cudaStreamSynchronize(stream()), "cudaStreamSynchronize"));
  KVASIR_RETURN_IF_ERROR(
      Group(group)->AllGather(std::as_bytes(std::span(mine_)), std::as_writable_bytes(std::span(all_))));
  KVASIR_RETURN_IF_ERROR(FromCuda(
      cudaMemcpyAsync(to, all_.data(), all_.size() * sizeof(float), cudaMemcpyHostToDevice, stream()),
      "cudaMemcpyAsync"));
  // The buffers are used again.
  return FromCuda(cudaStreamSynchronize(stream()), "cudaStreamSynchronize");
}

absl::Status ListRunner::RunOnHost(const Launch& launch, const ListMemory& memory) {
  float* gathered = memory.gathered->floats();
  if (const auto* heads = std::get_if<GatherHeadsOp>(&launch)) {
    const std::int64_t cols = heads->heads_local * heads->dim;
    KVASIR_RETURN_IF_ERROR(Gather(heads->group, heads->in, heads->rows * cols, gathered));
    InterleaveRanks(gathered, Ranks(heads->group), heads->rows, cols, heads->out, stream());
  }
  if (const auto* columns = std::get_if<GatherColumnsOp>(&launch)) {
    KVASIR_RETURN_IF_ERROR(
        Gather(columns->group, columns->in, columns->rows * columns->cols_local, gathered));
    InterleaveRanks(gathered, Ranks(columns->group), columns->rows, columns->cols_local, columns->out,
                    stream());
  }
  if (const auto* sum = std::get_if<AllReduceOp>(&launch)) {
    KVASIR_RETURN_IF_ERROR(Gather(sum->group, sum->x, sum->count, gathered));
    SumRanks(gathered, Ranks(sum->group), sum->count, sum->x, stream());
  }
  if (const auto* combine = std::get_if<CombineOp>(&launch)) {
    const std::int64_t ranks = Ranks(combine->group);
    const std::int64_t row_heads = combine->rows * combine->heads_local * ranks;
    float* lse = gathered + ranks * row_heads * combine->dim;
    KVASIR_RETURN_IF_ERROR(Gather(combine->group, combine->partial, row_heads * combine->dim, gathered));
    KVASIR_RETURN_IF_ERROR(Gather(combine->group, combine->lse, row_heads, lse));
    CombineOp parts = *combine;
    parts.partial = gathered;
    parts.lse = lse;
    Combine(parts, ranks, RankIn(combine->group), stream());
  }
  return FromCuda(cudaGetLastError(), "a kernel's launch");
}

absl::Status ListRunner::ClearBadToken(const ListMemory& memory) const {
  return FromCuda(cudaMemsetAsync(memory.bad_token->data(), 0xff, sizeof kNoBadToken, stream()),
                  "cudaMemsetAsync");
}

absl::Status ListRunner::Finish(const LaunchList& list, const ListMemory& memory) const {
  DeviceWord word = 0;
  KVASIR_RETURN_IF_ERROR(FromCuda(
      cudaMemcpyAsync(&word, memory.bad_token->data(), sizeof word, cudaMemcpyDeviceToHost, stream()),
      "cudaMemcpyAsync"));
  KVASIR_RETURN_IF_ERROR(FromCuda(cudaStreamSynchronize(stream()), "cudaStreamSynchronize"));
  return word == kNoBadToken ? absl::OkStatus() : BadTokenError(list, word);
}

}  // namespace kvasir::cuda
