#include "worker/cuda/workspace.h"

#include <variant>

namespace kvasir::cuda {
namespace {

// Splits of the longest sequence that a block table of this width can hold.
std::int64_t SplitsOf(std::int64_t table_width, const PageGeometry& page, std::int64_t split_tokens) {
  return (table_width * page.block_tokens + split_tokens - 1) / split_tokens;
}

}  // namespace

DecodeScratch DecodeScratchOf(const MlaDecodeOp& op, float* at) {
  return {at, SplitsOf(op.table_width, op.page, op.split_tokens), op.requests * op.query_rows * op.heads,
          op.latent};
}

DecodeScratch DecodeScratchOf(const GqaDecodeOp& op, float* at) {
  return {at, SplitsOf(op.table_width, op.page, op.split_tokens), op.requests * op.query_rows * op.heads,
          op.value_dim};
}

MarkovScratch MarkovScratchOf(const MarkovChainOp& op, float* at) { return {at, op.requests, op.rank}; }

std::int64_t ScratchFloats(const Launch& launch) {
  if (const auto* op = std::get_if<MlaDecodeOp>(&launch)) return DecodeScratchOf(*op, nullptr).floats();
  if (const auto* op = std::get_if<GqaDecodeOp>(&launch)) return DecodeScratchOf(*op, nullptr).floats();
  if (const auto* op = std::get_if<MarkovChainOp>(&launch)) return MarkovScratchOf(*op, nullptr).floats();
  return 0;
}

}  // namespace kvasir::cuda
