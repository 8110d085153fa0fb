// Requests that are wrong in one way each: documented code, reason and field, no process dies, and a good
// request right after succeeds. Bytes go over a real socket.
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "common/base/sha256.h"
#include "common/base/typed_error.h"
#include "common/rpc/call.h"
#include "tests/planner/service/planner_rig.h"
#include "tests/testing/matchers.h"

namespace kvasir {
namespace {

using planner::v1::ApplyPlanRequest;
using planner::v1::CreatePlanRequest;
using testing::GoodApplyRequest;
using testing::GoodLayersRequest;
using testing::GoodPlanRequest;
using testing::PlannerRig;

constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;

struct Case {
  std::string name = {};
  std::string method = {};
  std::function<std::string()> bytes;
  absl::StatusCode code = kInvalid;
  std::string reason = {};
  std::string field = {};
};
void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

Case Plan(std::string name, const std::function<void(CreatePlanRequest&)>& spoil, std::string reason,
          std::string field, absl::StatusCode code = kInvalid) {
  return {std::move(name),
          "CreatePlan",
          [spoil] {
            CreatePlanRequest request = GoodPlanRequest();
            spoil(request);
            return request.SerializeAsString();
          },
          code,
          std::move(reason),
          std::move(field)};
}

Case Layer(std::string name, const std::function<void(plan::v1::LayerSpec&)>& spoil, std::string reason,
           const std::string& field) {
  return {std::move(name),
          "CreatePlan",
          [spoil] {
            CreatePlanRequest request = GoodLayersRequest();
            spoil(*request.mutable_target()->mutable_layers()->mutable_layers(1));
            return request.SerializeAsString();
          },
          kInvalid,
          std::move(reason),
          "target.layers.layers[1]." + field};
}

Case Apply(std::string name, const std::function<void(ApplyPlanRequest&)>& spoil, std::string reason,
           std::string field, absl::StatusCode code = kInvalid) {
  return {std::move(name),
          "ApplyPlan",
          [spoil] {
            ApplyPlanRequest request = GoodApplyRequest();
            spoil(request);
            return request.SerializeAsString();
          },
          code,
          std::move(reason),
          std::move(field)};
}

Case Raw(std::string name, std::string method, std::function<std::string()> bytes, std::string reason,
         std::string field, absl::StatusCode code = kInvalid) {
  return {std::move(name), std::move(method), std::move(bytes), code, std::move(reason), std::move(field)};
}

plan::v1::StateSpec& State(plan::v1::LayerSpec& layer) {
  plan::v1::StateSpec& state = *layer.mutable_state();
  state.set_head_count(4);
  plan::v1::StateTensorSpec* tensor = state.add_states();
  tensor->set_name("recurrent");
  tensor->set_element_count(64);
  tensor->set_dtype("f32");
  return state;
}

// The plan's text with one word exchanged; the id follows unless it is kept.
void Exchange(ApplyPlanRequest& request, const std::string& from, const std::string& to) {
  std::string text = request.plan_text();
  const std::size_t at = text.find(from);
  ASSERT_NE(at, std::string::npos) << from;
  text.replace(at, from.size(), to);
  request.set_plan_text(text);
  request.set_plan_id(Sha256Hex(text));
}

std::vector<Case> Bytes() {
  const auto truncated = [] {
    const std::string bytes = GoodPlanRequest().SerializeAsString();
    return bytes.substr(0, bytes.size() - 3);
  };
  const auto not_utf8 = [] {
    std::string bytes = GoodPlanRequest().SerializeAsString();
    bytes[bytes.find("demo-target")] = '\xff';
    return bytes;
  };
  const auto too_large = [] { return std::string(kMessageBytesMax + 1, '\0'); };
  return {
      Raw("truncated", "CreatePlan", truncated, "MALFORMED_MESSAGE", ""),
      Raw("not_utf8", "CreatePlan", not_utf8, "MALFORMED_MESSAGE", ""),
      Raw(
          "garbage", "ValidateSpecs", [] { return std::string(300, '\x9b'); }, "MALFORMED_MESSAGE", ""),
      Raw(
          "garbage_apply", "ApplyPlan", [] { return std::string("\x0a\x7f"); }, "MALFORMED_MESSAGE", ""),
      Raw(
          "garbage_get", "GetDeployment", [] { return std::string("\x0a\x7f"); }, "MALFORMED_MESSAGE", ""),
      Raw("too_large", "CreatePlan", too_large, "MESSAGE_TOO_LARGE", "",
          absl::StatusCode::kResourceExhausted),
      Raw("too_large_apply", "ApplyPlan", too_large, "MESSAGE_TOO_LARGE", "",
          absl::StatusCode::kResourceExhausted),
      Raw(
          "no_such_method", "Forget", [] { return std::string(); }, "UNIMPLEMENTED", "",
          absl::StatusCode::kUnimplemented),
      Raw(
          "empty", "CreatePlan", [] { return std::string(); }, "MISSING_FIELD", "target"),
  };
}

std::vector<Case> Models() {
  using R = CreatePlanRequest;
  return {
      Plan(
          "no_options", [](R& r) { r.clear_options(); }, "MISSING_FIELD", "options"),
      Plan(
          "target_without_source", [](R& r) { r.mutable_target()->Clear(); }, "MISSING_FIELD",
          "target.source"),
      Plan(
          "draft_without_source", [](R& r) { r.mutable_draft()->Clear(); }, "MISSING_FIELD", "draft.source"),
      Plan(
          "unknown_model", [](R& r) { r.mutable_target()->set_catalogue_name("gpt-9"); }, "MODEL_UNKNOWN",
          "target.catalogue_name", absl::StatusCode::kNotFound),
      Plan(
          "model_name_too_long", [](R& r) { r.mutable_target()->set_catalogue_name(std::string(300, 'x')); },
          "VALUE_OUT_OF_RANGE", "target.catalogue_name"),
      Plan(
          "config_is_not_json", [](R& r) { r.mutable_target()->mutable_config_json()->set_json("{"); },
          "MODEL_CONFIG_INVALID", "target.config_json.json"),
      Plan(
          "config_of_unknown_architecture",
          [](R& r) { r.mutable_target()->mutable_config_json()->set_json("{\"architectures\": [\"X\"]}"); },
          "MODEL_CONFIG_INVALID", "target.config_json.json.architectures"),
      Plan(
          "config_too_long",
          [](R& r) { r.mutable_target()->mutable_config_json()->set_json(std::string((4 << 20) + 1, ' ')); },
          "VALUE_OUT_OF_RANGE", "target.config_json.json"),
      Plan(
          "model_text_garbage", [](R& r) { r.mutable_draft()->set_model_text("not a model\n"); },
          "MODEL_TEXT_INVALID", "draft.model_text"),
      Plan(
          "anchor_of_a_target",
          [](R& r) { r.mutable_target()->mutable_layers()->set_anchor_predicts_nothing(true); },
          "CONFLICTING_FIELDS", "target.layers.anchor_predicts_nothing"),
      Plan(
          "zero_layers", [](R& r) { r.mutable_target()->mutable_layers(); }, "MISSING_FIELD",
          "target.layers.layers"),
      Plan(
          "too_many_layers",
          [](R& r) {
            for (int i = 0; i <= 1024; ++i) r.mutable_target()->mutable_layers()->add_layers();
          },
          "TOO_MANY_ITEMS", "target.layers.layers"),
  };
}

std::vector<Case> Layers() {
  using L = plan::v1::LayerSpec;
  return {
      Layer(
          "no_role", [](L& l) { l.clear_role(); }, "MISSING_FIELD", "role"),
      Layer(
          "unknown_role", [](L& l) { l.set_role(static_cast<plan::v1::ModelRole>(7)); }, "UNKNOWN_VALUE",
          "role"),
      Layer(
          "role_of_the_other", [](L& l) { l.set_role(plan::v1::MODEL_ROLE_DRAFT); }, "CONFLICTING_FIELDS",
          "role"),
      Layer(
          "negative_index", [](L& l) { l.set_index(-1); }, "VALUE_OUT_OF_RANGE", "index"),
      Layer(
          "no_mixer", [](L& l) { l.clear_mixer(); }, "MISSING_FIELD", "mixer"),
      Layer(
          "negative_heads", [](L& l) { l.mutable_latent()->set_head_count(-8); }, "VALUE_OUT_OF_RANGE",
          "latent.head_count"),
      Layer(
          "overflowing_dim", [](L& l) { l.mutable_latent()->set_latent_dim(2147483647); },
          "VALUE_OUT_OF_RANGE", "latent.latent_dim"),
      Layer(
          "overflowing_window", [](L& l) { l.mutable_latent()->set_window_tokens(INT64_MAX); },
          "VALUE_OUT_OF_RANGE", "latent.window_tokens"),
      Layer(
          "zero_key_dim",
          [](L& l) {
            l.mutable_attention()->set_head_count(4);
            l.mutable_attention()->set_kv_head_count(4);
          },
          "VALUE_OUT_OF_RANGE", "attention.key_dim"),
      Layer(
          "kv_heads_do_not_divide",
          [](L& l) {
            l.mutable_attention()->set_head_count(4);
            l.mutable_attention()->set_kv_head_count(3);
            l.mutable_attention()->set_key_dim(64);
            l.mutable_attention()->set_value_dim(64);
          },
          "CONFLICTING_FIELDS", "attention.kv_head_count"),
      Layer(
          "unknown_dtype", [](L& l) { l.set_dtype("int3"); }, "UNKNOWN_VALUE", "dtype"),
      Layer(
          "layer_name_too_long", [](L& l) { l.set_name(std::string(257, 'n')); }, "VALUE_OUT_OF_RANGE",
          "name"),
      Layer(
          "state_without_tensors", [](L& l) { State(l).clear_states(); }, "MISSING_FIELD", "state.states"),
      Layer(
          "state_too_large",
          [](L& l) { State(l).mutable_states(0)->set_element_count(std::int64_t{1} << 33); },
          "VALUE_OUT_OF_RANGE", "state.states[0].element_count"),
      Layer(
          "state_of_odd_heads", [](L& l) { State(l).mutable_states(0)->set_element_count(63); },
          "CONFLICTING_FIELDS", "state.states[0].element_count"),
      Layer(
          "state_tensor_twice",
          [](L& l) {
            plan::v1::StateSpec& s = State(l);
            const plan::v1::StateTensorSpec first = s.states(0);
            *s.add_states() = first;
          },
          "DUPLICATE_ITEM", "state.states[1].name"),
      Layer(
          "state_tensor_without_dtype", [](L& l) { State(l).mutable_states(0)->clear_dtype(); },
          "UNKNOWN_VALUE", "state.states[0].dtype"),
  };
}

std::vector<Case> Options() {
  using R = CreatePlanRequest;
  return {
      Plan(
          "negative_tp", [](R& r) { r.mutable_options()->mutable_topology()->set_tp(-2); },
          "VALUE_OUT_OF_RANGE", "options.topology.tp"),
      Plan(
          "too_many_ranks", [](R& r) { r.mutable_options()->mutable_topology()->set_tp(1025); },
          "VALUE_OUT_OF_RANGE", "options.topology.tp"),
      Plan(
          "negative_dcp", [](R& r) { r.mutable_options()->mutable_topology()->set_dcp(-1); },
          "VALUE_OUT_OF_RANGE", "options.topology.dcp"),
      Plan(
          "no_memory", [](R& r) { r.mutable_options()->clear_kv_memory_bytes(); }, "MISSING_FIELD",
          "options.kv_memory_bytes"),
      Plan(
          "negative_memory", [](R& r) { r.mutable_options()->set_kv_memory_bytes(0, -1); },
          "VALUE_OUT_OF_RANGE", "options.kv_memory_bytes[0]"),
      Plan(
          "overflowing_memory", [](R& r) { r.mutable_options()->set_kv_memory_bytes(0, INT64_MAX); },
          "VALUE_OUT_OF_RANGE", "options.kv_memory_bytes[0]"),
      Plan(
          "overflowing_context", [](R& r) { r.mutable_options()->set_context_tokens(0, INT64_MAX); },
          "VALUE_OUT_OF_RANGE", "options.context_tokens[0]"),
      Plan(
          "too_many_contexts",
          [](R& r) {
            for (int i = 0; i < 20; ++i) r.mutable_options()->add_context_tokens(i + 1);
          },
          "TOO_MANY_ITEMS", "options.context_tokens"),
      Plan(
          "too_many_requests", [](R& r) { r.mutable_options()->set_request_count_max(4097); },
          "VALUE_OUT_OF_RANGE", "options.request_count_max"),
      Plan(
          "too_many_draft_tokens", [](R& r) { r.mutable_options()->set_draft_tokens(33); },
          "VALUE_OUT_OF_RANGE", "options.draft_tokens"),
      Plan(
          "negative_block", [](R& r) { r.mutable_options()->set_block_tokens(-64); }, "VALUE_OUT_OF_RANGE",
          "options.block_tokens"),
      Plan(
          "backend_name_too_long",
          [](R& r) { r.mutable_options()->set_target_backend(std::string(999, 'b')); }, "VALUE_OUT_OF_RANGE",
          "options.target_backend"),
      Raw(
          "explain_nothing", "ExplainPlan", [] { return std::string(); }, "MISSING_FIELD", "subject"),
      Raw(
          "explain_garbage", "ExplainPlan",
          [] {
            planner::v1::ExplainPlanRequest request;
            request.set_plan_text("not a plan\n");
            return request.SerializeAsString();
          },
          "PLAN_TEXT_INVALID", "plan_text"),
      Raw(
          "explain_a_bad_question", "ExplainPlan",
          [] {
            planner::v1::ExplainPlanRequest request;
            *request.mutable_request() = GoodPlanRequest();
            request.mutable_request()->mutable_options()->set_block_tokens(-1);
            return request.SerializeAsString();
          },
          "VALUE_OUT_OF_RANGE", "request.options.block_tokens"),
  };
}

std::vector<Case> Applies() {
  using R = ApplyPlanRequest;
  return {
      Apply(
          "no_name", [](R& r) { r.clear_deployment(); }, "MISSING_FIELD", "deployment"),
      Apply(
          "bad_name", [](R& r) { r.set_deployment("../etc/passwd"); }, "BAD_NAME", "deployment"),
      Apply(
          "long_name", [](R& r) { r.set_deployment(std::string(64, 'a')); }, "BAD_NAME", "deployment"),
      Apply(
          "no_plan", [](R& r) { r.clear_plan_text(); }, "MISSING_FIELD", "plan_text"),
      Apply(
          "wrong_hash", [](R& r) { r.set_plan_id(std::string(64, '0')); }, "PLAN_HASH_MISMATCH", "plan_id"),
      Apply(
          "changed_text", [](R& r) { r.set_plan_text(r.plan_text() + "\n"); }, "PLAN_HASH_MISMATCH",
          "plan_id"),
      Apply(
          "garbage_plan",
          [](R& r) {
            r.set_plan_text("garbage");
            r.clear_plan_id();
          },
          "PLAN_TEXT_INVALID", "plan_text"),
      Apply(
          "plan_that_does_not_verify", [](R& r) { Exchange(r, " parents=1", " parents=2"); }, "PLAN_INVALID",
          "plan_text"),
      Apply(
          "no_target_text", [](R& r) { r.clear_target_model_text(); }, "MISSING_FIELD", "target_model_text"),
      Apply(
          "no_draft_text", [](R& r) { r.clear_draft_model_text(); }, "MISSING_FIELD", "draft_model_text"),
      Apply(
          "garbage_model", [](R& r) { r.set_target_model_text("x"); }, "MODEL_TEXT_INVALID",
          "target_model_text"),
      Apply(
          "models_exchanged", [](R& r) { r.set_target_model_text(r.draft_model_text()); },
          "MODEL_DIGEST_MISMATCH", "target_model_text"),
      Apply(
          "negative_seed", [](R& r) { r.set_weight_seed(-1); }, "VALUE_OUT_OF_RANGE", "weight_seed"),
      Apply(
          "seed_and_checkpoint", [](R& r) { r.mutable_checkpoint()->set_target("t"); }, "CONFLICTING_FIELDS",
          "weight_seed"),
      Apply(
          "no_target_directory",
          [](R& r) {
            r.set_weight_seed(0);
            r.mutable_checkpoint()->set_draft("d");
          },
          "MISSING_FIELD", "checkpoint.target"),
      Apply(
          "no_draft_directory",
          [](R& r) {
            r.set_weight_seed(0);
            r.mutable_checkpoint()->set_target("t");
          },
          "MISSING_FIELD", "checkpoint.draft"),
      Apply(
          "long_directory", [](R& r) { r.mutable_checkpoint()->set_target(std::string(4097, 't')); },
          "VALUE_OUT_OF_RANGE", "checkpoint.target"),
      Apply(
          "no_workers", [](R& r) { r.clear_workers(); }, "RANKS_INCOMPLETE", "workers"),
      Apply(
          "bad_address", [](R& r) { r.mutable_workers(1)->set_address("node-b"); }, "BAD_ADDRESS",
          "workers[1].address"),
      Apply(
          "port_zero", [](R& r) { r.mutable_workers(1)->set_address("node-b:0"); }, "BAD_ADDRESS",
          "workers[1].address"),
      Apply(
          "rank_missing", [](R& r) { r.mutable_workers()->RemoveLast(); }, "RANKS_INCOMPLETE", "workers"),
      Apply(
          "rank_twice", [](R& r) { r.mutable_workers(1)->set_ranks(0, 0); }, "DUPLICATE_ITEM",
          "workers[1].ranks"),
      Apply(
          "rank_beyond", [](R& r) { r.mutable_workers(1)->set_ranks(0, 2); }, "VALUE_OUT_OF_RANGE",
          "workers[1].ranks"),
      Apply(
          "worker_twice", [](R& r) { r.mutable_workers(1)->set_address("node-a:1"); }, "DUPLICATE_ITEM",
          "workers[1].address"),
      Apply(
          "too_many_workers",
          [](R& r) {
            while (r.workers_size() <= 1024) r.add_workers();
          },
          "TOO_MANY_ITEMS", "workers"),
      Apply(
          "unknown_mode", [](R& r) { r.set_mode(static_cast<planner::v1::DeploymentMode>(9)); },
          "UNKNOWN_VALUE", "mode"),
      Apply(
          "negative_timeout", [](R& r) { r.mutable_prepare_timeout()->set_seconds(-1); },
          "VALUE_OUT_OF_RANGE", "prepare_timeout"),
      Apply(
          "overflowing_timeout", [](R& r) { r.mutable_commit_timeout()->set_seconds(INT64_MAX); },
          "VALUE_OUT_OF_RANGE", "commit_timeout"),
      Apply(
          "broken_duration", [](R& r) { r.mutable_drain_timeout()->set_nanos(2'000'000'000); },
          "VALUE_OUT_OF_RANGE", "drain_timeout"),
      Apply(
          "zero_comm_timeout", [](R& r) { r.mutable_comm_timeout(); }, "VALUE_OUT_OF_RANGE", "comm_timeout"),
      Apply(
          "long_request_id", [](R& r) { r.set_request_id(std::string(65, 'r')); }, "VALUE_OUT_OF_RANGE",
          "request_id"),
      Apply(
          "too_many_rows", [](R& r) { r.mutable_preflight()->set_compared_rows(65); }, "VALUE_OUT_OF_RANGE",
          "preflight.compared_rows"),
      Raw(
          "get_without_name", "GetDeployment", [] { return std::string(); }, "MISSING_FIELD", "deployment"),
      Raw(
          "get_unknown", "GetDeployment",
          [] {
            planner::v1::GetDeploymentRequest request;
            request.set_deployment("nobody");
            return request.SerializeAsString();
          },
          "DEPLOYMENT_UNKNOWN", "deployment", absl::StatusCode::kNotFound),
      Raw(
          "delete_unknown", "DeleteDeployment",
          [] {
            planner::v1::DeleteDeploymentRequest request;
            request.set_deployment("nobody");
            return request.SerializeAsString();
          },
          "DEPLOYMENT_UNKNOWN", "deployment", absl::StatusCode::kNotFound),
      Raw(
          "delete_with_bad_drain", "DeleteDeployment",
          [] {
            planner::v1::DeleteDeploymentRequest request;
            request.set_deployment("demo");
            request.mutable_drain_timeout()->set_seconds(3601);
            return request.SerializeAsString();
          },
          "VALUE_OUT_OF_RANGE", "drain_timeout"),
  };
}

std::vector<Case> AllCases() {
  std::vector<Case> all;
  for (const std::vector<Case>& some : {Bytes(), Models(), Layers(), Options(), Applies()}) {
    all.insert(all.end(), some.begin(), some.end());
  }
  return all;
}

// One server for all cases: what one request leaves behind must not harm the next.
class MalformedRequestTest : public ::testing::TestWithParam<Case> {
 protected:
  static void SetUpTestSuite() { rig = std::make_unique<PlannerRig>(); }
  static void TearDownTestSuite() { rig.reset(); }
  static std::unique_ptr<PlannerRig> rig;
};
std::unique_ptr<PlannerRig> MalformedRequestTest::rig;

TEST_P(MalformedRequestTest, GetsItsTypedErrorAndAGoodRequestFollows) {
  const Case& c = GetParam();
  const TypedError error = ErrorOf(rig->Send(c.method, c.bytes()));
  EXPECT_EQ(absl::StatusCodeToString(error.code), absl::StatusCodeToString(c.code)) << error.message;
  EXPECT_EQ(error.reason, c.reason) << error.message;
  EXPECT_EQ(error.field, c.field) << error.message;
  KVASIR_EXPECT_OK(rig->Send("CreatePlan", GoodPlanRequest().SerializeAsString()));
}

INSTANTIATE_TEST_SUITE_P(All, MalformedRequestTest, ::testing::ValuesIn(AllCases()),
                         [](const auto& param) { return param.param.name; });

TEST(MalformedRequests, AreManyAndNamedApart) { EXPECT_GE(AllCases().size(), 80U); }

TEST(MalformedRequests, ADeadlineInThePastIsNoticed) {
  PlannerRig rig;
  EXPECT_EQ(
      rig.Send("CreatePlan", GoodPlanRequest().SerializeAsString(), std::chrono::milliseconds(-1000)).code(),
      absl::StatusCode::kDeadlineExceeded);
  KVASIR_EXPECT_OK(rig.Send("CreatePlan", GoodPlanRequest().SerializeAsString()));
}

}  // namespace
}  // namespace kvasir
