// DSpark's two heads, as drafts of every backbone spell them.
#ifndef KVASIR_COMMON_MODELS_MARKOV_FIELDS_H_
#define KVASIR_COMMON_MODELS_MARKOV_FIELDS_H_

#include "common/models/config_object.h"
#include "common/models/model_description.h"

namespace kvasir {

// markov_rank, markov_head_type, enable_confidence_head, confidence_head_with_markov.
void ReadMarkovHeads(const ConfigObject& fields, DraftShape& draft);

}  // namespace kvasir

#endif  // KVASIR_COMMON_MODELS_MARKOV_FIELDS_H_
