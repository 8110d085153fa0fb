// The right answers of a run, learnt before its load begins.
#ifndef KVASIR_TESTS_TOOLS_SOAK_LEARN_H_
#define KVASIR_TESTS_TOOLS_SOAK_LEARN_H_

#include "kvasir/worker/v1/worker_service.grpc.pb.h"
#include "tests/tools/soak_questions.h"
#include "tests/tools/soak_tally.h"

namespace kvasir::soak {

// Asks everything once, on one stream: greedily without the draft only.
[[nodiscard]] Answers LearnAnswers(worker::v1::WorkerService::Stub& leader, Tally& tally);

}  // namespace kvasir::soak

#endif  // KVASIR_TESTS_TOOLS_SOAK_LEARN_H_
