#include "tests/conformance/decode_buffers.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "tests/conformance/decode_pages.h"

namespace kvasir::testing {

absl::Status DecodeBuffers::Write(const DecodeData& data, const RunOptions& options) {
  const PagedCache paged = PageData(data, capacity_, shard_, options);
  page_ = paged.page;
  table_width_ = paged.table_width;
  scale_ = data.scale;
  const std::size_t row_heads = static_cast<std::size_t>(rows() * capacity_.heads);
  const std::size_t local = row_heads / static_cast<std::size_t>(capacity_.dcp);
  const std::size_t latent = static_cast<std::size_t>(capacity_.latent);
  std::vector<float> q = data.q;
  q.resize(row_heads * static_cast<std::size_t>(capacity_.width()), std::numeric_limits<float>::quiet_NaN());
  KVASIR_RETURN_IF_ERROR(arena_.Put(backend_, paged.arena));
  KVASIR_RETURN_IF_ERROR(table_.Put(backend_, paged.table));
  KVASIR_RETURN_IF_ERROR(bounds_.Put(backend_, BoundsOf(data, capacity_, shard_, options)));
  KVASIR_RETURN_IF_ERROR(q_.Put(backend_, q));
  // What no operation writes must not look like a result.
  KVASIR_RETURN_IF_ERROR(partial_.Put(backend_, std::vector<float>(row_heads * latent, 1e30F)));
  KVASIR_RETURN_IF_ERROR(lse_.Put(backend_, std::vector<float>(row_heads, 1e30F)));
  KVASIR_RETURN_IF_ERROR(out_.Put(backend_, std::vector<float>(local * latent, 1e30F)));
  KVASIR_RETURN_IF_ERROR(out_lse_.Put(backend_, std::vector<float>(local, 1e30F)));
  return fault_.Put(backend_, {0});
}

LaunchList DecodeBuffers::List() const {
  const DecodeCase& c = capacity_;
  return {MlaDecodeOp{.q = q_.data(),
                      .arena = arena_.data(),
                      .page = page_,
                      .dtype = c.dtype,
                      .block_table = table_.data(),
                      .bounds = bounds_.data(),
                      .out = partial_.data(),
                      .lse = lse_.data(),
                      .requests = c.batch,
                      .query_rows = c.query_rows,
                      .heads = c.heads,
                      .latent = c.latent,
                      .rope = c.rope,
                      .table_width = table_width_,
                      .split_tokens = c.split_tokens,
                      .scale = scale_},
          CombineOp{.group = CommGroup::kContext,
                    .partial = partial_.data(),
                    .lse = lse_.data(),
                    .out = out_.data(),
                    .out_lse = out_lse_.data(),
                    .fault = fault_.data(),
                    .rows = rows(),
                    .heads_local = c.heads / c.dcp,
                    .dim = c.latent}};
}

absl::StatusOr<DecodeValues> DecodeBuffers::Read(std::int64_t requests) const {
  DecodeValues values;
  KVASIR_ASSIGN_OR_RETURN(values.out, out_.Get(backend_));
  KVASIR_ASSIGN_OR_RETURN(values.lse, out_lse_.Get(backend_));
  KVASIR_ASSIGN_OR_RETURN(const std::vector<std::int32_t> faults, fault_.Get(backend_));
  values.fault = faults[0] != 0;
  const std::int64_t used = requests * capacity_.query_rows * capacity_.heads / capacity_.dcp;
  const auto out_end = values.out.begin() + used * capacity_.latent;
  const auto lse_end = values.lse.begin() + used;
  if (!std::all_of(out_end, values.out.end(), [](float x) { return x == 0; }) ||
      !std::all_of(lse_end, values.lse.end(), [](float x) { return std::isinf(x) && x < 0; })) {
    return absl::InternalError("a padded row is not empty");
  }
  values.out.erase(out_end, values.out.end());
  values.lse.erase(lse_end, values.lse.end());
  return values;
}

}  // namespace kvasir::testing
