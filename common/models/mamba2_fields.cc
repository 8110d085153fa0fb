#include "common/models/mamba2_fields.h"

#include <optional>

#include "absl/strings/str_format.h"
#include "common/models/config_fields.h"

namespace kvasir {

Mamba2Shape ReadMamba2(const ConfigObject& config, const Mamba2Fields& fields, std::int64_t inner) {
  Mamba2Shape mamba;
  mamba.heads = config.Int(fields.heads, kHeadsRange);
  const bool given = config.Has(fields.head_dim) && !config.IsText(fields.head_dim);
  mamba.head_dim = given ? config.Int(fields.head_dim, kDimRange) : inner / mamba.heads;
  mamba.state_dim = config.Int(fields.state_dim, kDimRange);
  mamba.groups = config.IntOr(fields.groups, kHeadsRange, 1);
  mamba.conv_kernel = config.IntOr(fields.conv_kernel, kKernelRange, 4);
  mamba.state_dtype = std::nullopt;
  mamba.draft_rows = false;
  if (mamba.heads * mamba.head_dim != inner) {
    config.Fail(ConfigFault::kContradiction, fields.heads,
                absl::StrFormat("%d heads of %d lanes do not make the inner width %d", mamba.heads,
                                mamba.head_dim, inner));
  }
  if (mamba.heads % mamba.groups != 0) {
    config.Fail(ConfigFault::kContradiction, fields.groups,
                absl::StrFormat("it must divide %s = %d", fields.heads, mamba.heads));
  }
  return mamba;
}

}  // namespace kvasir
