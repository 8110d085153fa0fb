#include "common/models/markov_fields.h"

#include <string>

#include "common/models/config_fields.h"
#include "common/models/model_fields.h"

namespace kvasir {

void ReadMarkovHeads(const ConfigObject& fields, DraftShape& draft) {
  draft.markov_rank = fields.IntOr("markov_rank", kDimOrNoneRange, 0);
  const std::string type = fields.TextOr("markov_head_type", "vanilla");
  if (draft.markov_rank > 0) {
    bool known = false;
    for (const auto& [head, word] : model_fields::kMarkovHeads) {
      if (word != type) continue;
      draft.markov_head = head;
      known = true;
    }
    if (!known) {
      fields.Fail(ConfigFault::kUnsupported, "markov_head_type", "expected vanilla, gated or rnn");
    }
  }
  draft.confidence_head = fields.BoolOr("enable_confidence_head", false);
  const bool sees_row = fields.BoolOr("confidence_head_with_markov", true);
  if (draft.confidence_head) draft.confidence_markov = sees_row;
}

}  // namespace kvasir
