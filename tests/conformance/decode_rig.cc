#include "tests/conformance/decode_rig.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <random>
#include <span>

#include "common/base/status_macros.h"
#include "common/geometry/bf16.h"
#include "common/geometry/context_shard.h"
#include "tests/testing/thread_ranks.h"
#include "worker/cpu/cpu_backend.h"

namespace kvasir::testing {
namespace {

constexpr std::int64_t kAbsurdBlock = 2147480000;

// Device memory that holds a host vector.
template <class T>
class OnDevice {
 public:
  absl::Status Put(Backend& backend, const std::vector<T>& values) {
    count_ = values.size();
    KVASIR_ASSIGN_OR_RETURN(memory_, backend.Allocate(Bytes(static_cast<std::int64_t>(count_ * sizeof(T)))));
    return backend.Write(memory_->data(), std::as_bytes(std::span(values)));
  }
  absl::StatusOr<std::vector<T>> Get(Backend& backend) const {
    std::vector<T> values(count_);
    KVASIR_RETURN_IF_ERROR(backend.Read(std::as_writable_bytes(std::span(values)), memory_->data()));
    return values;
  }
  [[nodiscard]] T* data() const { return reinterpret_cast<T*>(memory_->data()); }

 private:
  std::unique_ptr<DeviceMemory> memory_;
  std::size_t count_ = 0;
};

// The paged host image of one rank's cache.
struct PagedCache {
  PageGeometry page;
  std::vector<std::byte> arena;
  std::vector<std::int64_t> table;  // [batch, width]
  std::int64_t table_width = 0;
};

void StoreToken(const DecodeData& data, const float* row, std::byte* to) {
  for (std::int64_t i = 0; i < data.width(); ++i) {
    if (data.c.dtype == DType::kF32) {
      std::memcpy(to + 4 * i, row + i, 4);
    } else {
      const std::uint16_t bits = FloatToBf16(row[i]);
      std::memcpy(to + 2 * i, &bits, 2);
    }
  }
}

// Blocks are numbered alike on all ranks, as in a real pool; one unused layer before ours keeps offsets
// honest.
PagedCache PageData(const DecodeData& data, const ContextShard& shard, const RunOptions& options) {
  const DecodeCase& c = data.c;
  PagedCache paged;
  paged.page.block_tokens = c.block_tokens;
  paged.page.row_bytes = data.width() * DTypeBytes(c.dtype);
  paged.page.layer_offset_bytes = c.block_tokens * paged.page.row_bytes;
  paged.page.stride_bytes = 2 * paged.page.layer_offset_bytes + 256;
  const std::int64_t columns = c.length / (c.block_tokens * c.dcp) + 1;
  paged.table_width = columns + 1;
  std::vector<std::int64_t> ids(static_cast<std::size_t>(c.batch * columns));
  std::iota(ids.begin(), ids.end(), std::int64_t{1});
  std::mt19937_64 random(options.page_seed);
  std::shuffle(ids.begin(), ids.end(), random);
  // All bits set is a NaN in bf16 and in f32.
  paged.arena.assign((ids.size() + 1) * static_cast<std::size_t>(paged.page.stride_bytes), std::byte{0xff});
  paged.table.assign(static_cast<std::size_t>(c.batch * paged.table_width), kAbsurdBlock);
  for (std::int64_t b = 0; b < c.batch; ++b) {
    const std::int64_t length = data.lengths[static_cast<std::size_t>(b)];
    for (std::int64_t p = 0; p < length; ++p) {
      const std::int64_t column = p / (c.block_tokens * c.dcp);
      const std::int64_t id = ids[static_cast<std::size_t>(b * columns + column)];
      paged.table[static_cast<std::size_t>(b * paged.table_width + column)] = id;
      if (OwnerOf(shard, p) != shard.rank || (b == 0 && p == options.poison)) continue;
      const std::int64_t slot = SlotOf(paged.page, id, LocalPosition(shard, p) % c.block_tokens);
      StoreToken(data, data.cache[static_cast<std::size_t>(b)].data() + p * data.width(),
                 paged.arena.data() + SlotOffset(paged.page, slot));
    }
  }
  return paged;
}

std::vector<std::int64_t> BoundsOf(const DecodeData& data, const ContextShard& shard,
                                   const RunOptions& options) {
  const DecodeCase& c = data.c;
  std::vector<std::int64_t> bounds;
  for (std::int64_t row = 0; row < data.rows(); ++row) {
    const std::int64_t length = data.lengths[static_cast<std::size_t>(row / c.query_rows)];
    std::int64_t bound =
        RowBound(length, std::min(length, c.query_rows), row % c.query_rows, c.causal != options.flip_causal);
    if (bound > 0) bound = std::max<std::int64_t>(0, bound + options.bound_shift);
    bounds.push_back(LocalLength(shard, bound));
  }
  return bounds;
}

// Eager, or captured and replayed after the list it was captured from is gone.
absl::Status RunList(Backend& backend, LaunchList list, bool replay) {
  if (!replay) return backend.Run(list);
  KVASIR_ASSIGN_OR_RETURN(const std::unique_ptr<Graph> graph, backend.Capture(list));
  for (Launch& launch : list) launch = AddOp{};
  list.clear();
  return graph->Replay();
}

// One rank's decode and combine; its own heads of the result.
absl::StatusOr<DecodeValues> RunRank(Backend& backend, const DecodeData& data, const ContextShard& shard,
                                     const RunOptions& options) {
  const DecodeCase& c = data.c;
  const PagedCache paged = PageData(data, shard, options);
  OnDevice<std::byte> arena;
  OnDevice<std::int64_t> table, bounds;
  OnDevice<float> q, partial, lse, out, out_lse;
  OnDevice<std::int32_t> fault;
  const std::size_t row_heads = static_cast<std::size_t>(data.rows() * c.heads);
  const std::size_t local = row_heads / static_cast<std::size_t>(c.dcp);
  const std::vector<float> dirty(row_heads * static_cast<std::size_t>(c.latent), 1e30F);
  KVASIR_RETURN_IF_ERROR(arena.Put(backend, paged.arena));
  KVASIR_RETURN_IF_ERROR(table.Put(backend, paged.table));
  KVASIR_RETURN_IF_ERROR(bounds.Put(backend, BoundsOf(data, shard, options)));
  KVASIR_RETURN_IF_ERROR(q.Put(backend, data.q));
  KVASIR_RETURN_IF_ERROR(partial.Put(backend, dirty));
  KVASIR_RETURN_IF_ERROR(lse.Put(backend, std::vector<float>(row_heads)));
  KVASIR_RETURN_IF_ERROR(out.Put(backend, std::vector<float>(local * static_cast<std::size_t>(c.latent))));
  KVASIR_RETURN_IF_ERROR(out_lse.Put(backend, std::vector<float>(local)));
  KVASIR_RETURN_IF_ERROR(fault.Put(backend, {0}));
  const LaunchList list = {MlaDecodeOp{.q = q.data(),
                                       .arena = arena.data(),
                                       .page = paged.page,
                                       .dtype = c.dtype,
                                       .block_table = table.data(),
                                       .bounds = bounds.data(),
                                       .out = partial.data(),
                                       .lse = lse.data(),
                                       .requests = c.batch,
                                       .query_rows = c.query_rows,
                                       .heads = c.heads,
                                       .latent = c.latent,
                                       .rope = c.rope,
                                       .table_width = paged.table_width,
                                       .split_tokens = c.split_tokens,
                                       .scale = data.scale},
                           CombineOp{.group = CommGroup::kContext,
                                     .partial = partial.data(),
                                     .lse = lse.data(),
                                     .out = out.data(),
                                     .out_lse = out_lse.data(),
                                     .fault = fault.data(),
                                     .rows = data.rows(),
                                     .heads_local = c.heads / c.dcp,
                                     .dim = c.latent}};
  KVASIR_RETURN_IF_ERROR(RunList(backend, list, options.replay));
  DecodeValues values;
  KVASIR_ASSIGN_OR_RETURN(values.out, out.Get(backend));
  KVASIR_ASSIGN_OR_RETURN(values.lse, out_lse.Get(backend));
  KVASIR_ASSIGN_OR_RETURN(const std::vector<std::int32_t> faults, fault.Get(backend));
  values.fault = faults[0] != 0;
  return values;
}

}  // namespace

const std::vector<BackendUnderTest>& BackendsUnderTest() {
  static const std::vector<BackendUnderTest> backends = {
      {"reference",
       [](Communicator* context) {
         return MakeCpuBackend({.context = context, .kernels = CpuKernels::kReference});
       }},
      {"cpu", [](Communicator* context) { return MakeCpuBackend({.context = context}); }},
  };
  return backends;
}

absl::StatusOr<DecodeValues> RunDecode(const BackendUnderTest& backend, const DecodeData& data,
                                       const RunOptions& options) {
  const DecodeCase& c = data.c;
  ThreadGroup group(c.dcp);
  std::vector<DecodeValues> parts(static_cast<std::size_t>(c.dcp));
  KVASIR_RETURN_IF_ERROR(RunRanks(c.dcp, [&](std::int64_t rank) -> absl::Status {
    const std::unique_ptr<Backend> device = backend.make(group.rank(rank));
    KVASIR_ASSIGN_OR_RETURN(parts[static_cast<std::size_t>(rank)],
                            RunRank(*device, data, {c.dcp, c.interleave, rank}, options));
    return absl::OkStatus();
  }));
  // [rows, heads of each rank] side by side.
  DecodeValues all;
  const std::size_t heads = static_cast<std::size_t>(c.heads / c.dcp);
  const std::size_t latent = static_cast<std::size_t>(c.latent);
  for (std::size_t row = 0; row < static_cast<std::size_t>(data.rows()); ++row) {
    for (const DecodeValues& part : parts) {
      const auto lse = part.lse.begin() + static_cast<std::ptrdiff_t>(row * heads);
      const auto out = part.out.begin() + static_cast<std::ptrdiff_t>(row * heads * latent);
      all.lse.insert(all.lse.end(), lse, lse + static_cast<std::ptrdiff_t>(heads));
      all.out.insert(all.out.end(), out, out + static_cast<std::ptrdiff_t>(heads * latent));
    }
  }
  for (const DecodeValues& part : parts) all.fault = all.fault || part.fault;
  return all;
}

}  // namespace kvasir::testing
