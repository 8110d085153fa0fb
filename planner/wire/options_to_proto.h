// The options of a question as a message. Reading them back, with every limit, is the service's:
// planner/service/convert_request.h.
#ifndef KVASIR_PLANNER_WIRE_OPTIONS_TO_PROTO_H_
#define KVASIR_PLANNER_WIRE_OPTIONS_TO_PROTO_H_

#include "kvasir/plan/v1/options.pb.h"
#include "planner/request/plan_options.h"

namespace kvasir {

// Requires options that CheckPlanOptions (planner/request/check_options.h) takes.
[[nodiscard]] plan::v1::PlanOptions OptionsToProto(const PlanOptions& options);

}  // namespace kvasir

#endif  // KVASIR_PLANNER_WIRE_OPTIONS_TO_PROTO_H_
