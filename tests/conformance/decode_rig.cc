#include "tests/conformance/decode_rig.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "common/base/status_macros.h"
#include "tests/conformance/decode_buffers.h"
#include "tests/testing/thread_ranks.h"
#include "worker/cpu/cpu_backend.h"
#ifndef KVASIR_NO_FIBERS
#include "worker/cuda/cuda_backend.h"
#endif

namespace kvasir::testing {
namespace {

using Shape =
    std::tuple<std::int64_t, std::int64_t, std::int64_t, std::int64_t, std::int64_t, std::int64_t, DType>;

Shape ShapeOf(const DecodeCase& c) {
  return {c.query_rows, c.heads, c.latent, c.rope, c.block_tokens, c.split_tokens, c.dtype};
}

// Of each shape a case with its largest batch and its longest request.
std::map<Shape, DecodeCase> CapacitiesOf(std::span<const DecodePhase> phases) {
  std::map<Shape, DecodeCase> capacities;
  for (const DecodePhase& phase : phases) {
    DecodeCase c = phase.data->c;
    c.length = c.longest();
    c.mix.clear();
    DecodeCase& capacity = capacities.try_emplace(ShapeOf(c), c).first->second;
    capacity.batch = std::max(capacity.batch, c.batch);
    capacity.length = std::max(capacity.length, c.length);
  }
  return capacities;
}

// A captured list is destroyed before its graph runs.
absl::Status Capture(Backend& backend, DecodeBuffers& buffers) {
  LaunchList list = buffers.List();
  KVASIR_ASSIGN_OR_RETURN(buffers.graph(), backend.Capture(list));
  for (Launch& launch : list) launch = AddOp{};
  return absl::OkStatus();
}

// One rank's part of every phase; its own heads of the results.
absl::StatusOr<std::vector<DecodeValues>> RunRank(Backend& backend, std::span<const DecodePhase> phases,
                                                  std::int64_t rank) {
  std::map<Shape, DecodeBuffers> shapes;
  for (const auto& [shape, capacity] : CapacitiesOf(phases)) {
    const ContextShard shard{capacity.dcp, capacity.interleave, rank};
    shapes.try_emplace(shape, backend, capacity, shard);
  }
  std::vector<DecodeValues> values;
  for (const DecodePhase& phase : phases) {
    DecodeBuffers& buffers = shapes.at(ShapeOf(phase.data->c));
    KVASIR_RETURN_IF_ERROR(buffers.Write(*phase.data, phase.options));
    if (!phase.options.replay) {
      KVASIR_RETURN_IF_ERROR(backend.Run(buffers.List()));
    } else {
      if (buffers.graph() == nullptr) KVASIR_RETURN_IF_ERROR(Capture(backend, buffers));
      KVASIR_RETURN_IF_ERROR(buffers.graph()->Replay());
    }
    KVASIR_ASSIGN_OR_RETURN(DecodeValues read, buffers.Read(phase.data->c.batch));
    values.push_back(std::move(read));
  }
  return values;
}

// [rows, heads of each rank] side by side.
DecodeValues JoinHeads(const std::vector<std::vector<DecodeValues>>& ranks, std::size_t phase,
                       const DecodeData& data) {
  DecodeValues all;
  const std::size_t heads = static_cast<std::size_t>(data.c.heads / data.c.dcp);
  const std::size_t latent = static_cast<std::size_t>(data.c.latent);
  for (std::size_t row = 0; row < static_cast<std::size_t>(data.rows()); ++row) {
    for (const std::vector<DecodeValues>& rank : ranks) {
      const auto lse = rank[phase].lse.begin() + static_cast<std::ptrdiff_t>(row * heads);
      const auto out = rank[phase].out.begin() + static_cast<std::ptrdiff_t>(row * heads * latent);
      all.lse.insert(all.lse.end(), lse, lse + static_cast<std::ptrdiff_t>(heads));
      all.out.insert(all.out.end(), out, out + static_cast<std::ptrdiff_t>(heads * latent));
    }
  }
  for (const std::vector<DecodeValues>& rank : ranks) all.fault = all.fault || rank[phase].fault;
  return all;
}

}  // namespace

const std::vector<BackendUnderTest>& BackendsUnderTest() {
  static const std::vector<BackendUnderTest> backends = {
      {"reference",
       [](Communicator* context) {
         return MakeCpuBackend({.context = context, .kernels = CpuKernels::kReference});
       }},
      {"cpu", [](Communicator* context) { return MakeCpuBackend({.context = context}); }},
#ifndef KVASIR_NO_FIBERS
      // Its kernels as they stand, run by tests/cuda_on_cpu.
      {"cuda", [](Communicator* context) { return MakeCudaBackend({.context = context}).value(); },
       /*rounds_to_bf16=*/true},
#endif
  };
  return backends;
}

absl::StatusOr<std::vector<DecodeValues>> RunPhases(const BackendUnderTest& backend,
                                                    std::span<const DecodePhase> phases) {
  const std::int64_t dcp = phases.front().data->c.dcp;
  ThreadGroup group(dcp);
  std::vector<std::vector<DecodeValues>> ranks(static_cast<std::size_t>(dcp));
  KVASIR_RETURN_IF_ERROR(RunRanks(dcp, [&](std::int64_t rank) -> absl::Status {
    const std::unique_ptr<Backend> device = backend.make(group.rank(rank));
    KVASIR_ASSIGN_OR_RETURN(ranks[static_cast<std::size_t>(rank)], RunRank(*device, phases, rank));
    return absl::OkStatus();
  }));
  std::vector<DecodeValues> all;
  all.reserve(phases.size());
  for (std::size_t i = 0; i < phases.size(); ++i) all.push_back(JoinHeads(ranks, i, *phases[i].data));
  return all;
}

absl::StatusOr<DecodeValues> RunDecode(const BackendUnderTest& backend, const DecodeData& data,
                                       const RunOptions& options) {
  const DecodePhase phase{&data, options};
  KVASIR_ASSIGN_OR_RETURN(const std::vector<DecodeValues> values, RunPhases(backend, {&phase, 1}));
  return values.front();
}

}  // namespace kvasir::testing
