// The last look at a pass's metadata before a backend sees it: whatever built it, a pass that passes reads
// and writes inside the arena only.
#ifndef KVASIR_WORKER_ENGINE_CHECK_METADATA_H_
#define KVASIR_WORKER_ENGINE_CHECK_METADATA_H_

#include <cstdint>

#include "absl/status/status.h"
#include "common/plan/plan.h"
#include "worker/engine/step_metadata.h"

namespace kvasir {

// InvalidArgument naming the pass, the group, the row or column and the value: a token id outside the
// vocabulary, a position outside the context, a slot whose block is not one of the pool's, a bound beyond the
// table, or a block id of a column that some row looks at that is not one of the pool's. Columns beyond every
// bound are never looked at, so what stands in them is not judged. In a recurrent group also a state copy
// that the pool does not have, and more replayed or kept rows than its ring holds; looked at are the copies
// that are read or written, and copy 0, which holds the histories.
// `chain`: the plan's draft is a chain draft, whose passes say which states their rows start from.
[[nodiscard]] absl::Status CheckMetadata(const Plan& plan, std::int64_t vocab, const PassMetadata& metadata,
                                         bool chain = false);

}  // namespace kvasir

#endif  // KVASIR_WORKER_ENGINE_CHECK_METADATA_H_
