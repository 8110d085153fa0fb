// What MakeRankModel refuses, by name.
#include <gtest/gtest.h>

#include <functional>

#include "common/base/typed_error.h"
#include "tests/testing/matchers.h"
#include "tests/testing/model_ranks.h"
#include "tests/worker/cpu/small_models.h"

namespace kvasir::testing {
namespace {

// As MtpDraft leaves a module's shape.
void MakeMtp(ModelDescription& draft) {
  draft.draft = DraftShape{.method = DraftMethod::kMtp,
                           .causal = true,
                           .target_taps = {},
                           .target_hidden = draft.draft->target_hidden};
}

struct RefusalCase {
  const char* name;
  std::function<void(Plan&, ModelRanksOptions&)> change;
  absl::StatusCode code;
  const char* message;
};
void PrintTo(const RefusalCase& c, std::ostream* out) { *out << c.name; }

PlanGroup& Draft(Plan& plan) { return plan.pools[0].groups[1]; }
PlanGroup& Target(Plan& plan) { return plan.pools[0].groups[0]; }

LayoutKey PerHead(std::int64_t heads) {
  LayoutKey layout;
  layout.kind = LayoutKind::kKeyValue;
  layout.heads = heads;
  layout.key_dim = layout.value_dim = 8;
  return layout;
}

MlpShape BesideDense() {
  return {.intermediate = 64,
          .experts = 8,
          .experts_per_token = 2,
          .expert_intermediate = 16,
          .scoring = ExpertScoring::kSoftmax};
}

constexpr auto kUnimplemented = absl::StatusCode::kUnimplemented;
constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;

const RefusalCase kCases[] = {
    {"recurrent group", [](Plan& p, ModelRanksOptions&) { Draft(p).behaviour.mixer = Mixer::kRecurrent; },
     kUnimplemented, "BACKEND_UNSUPPORTED_GROUP draft.mla: it holds recurrent layers of a draft"},
    {"recurrent layers that are not KDA",
     [](Plan& p, ModelRanksOptions&) { Target(p).behaviour.mixer = Mixer::kRecurrent; }, kUnimplemented,
     "BACKEND_UNSUPPORTED_GROUP target.mla: layer layers.0 of the model is not KDA"},
    {"KDA without states",
     [](Plan& p, ModelRanksOptions& o) {
       Target(p).behaviour.mixer = Mixer::kRecurrent;
       o.target.layers[0].mixer = KdaShape{.heads = 8, .head_dim = 8, .conv_kernel = 4};
     },
     kInvalid, "layer layers.0: its state has 0 tensors, a KDA layer's has 2"},
    {"KDA with another history",
     [](Plan& p, ModelRanksOptions& o) {
       Target(p).behaviour.mixer = Mixer::kRecurrent;
       Target(p).layers[0].layout.states = {{"conv", 2 * 3 * 64, DType::kF32},
                                            {"recurrent", 64 * 8, DType::kF32}};
       o.target.layers[0].mixer = KdaShape{.heads = 8, .head_dim = 8, .conv_kernel = 4};
     },
     kInvalid, "tensor 0 of its state is 'conv' with 384 elements of f32, the model's is 'conv' with 576"},
    {"window", [](Plan& p, ModelRanksOptions&) { Target(p).behaviour.window = 128; }, kUnimplemented,
     "BACKEND_UNSUPPORTED_GROUP target.mla: its window is 128 tokens"},
    {"grouped-query cache",
     [](Plan& p, ModelRanksOptions&) { Target(p).layers[1].layout.kind = LayoutKind::kKeyValue; },
     kUnimplemented,
     "BACKEND_UNSUPPORTED_GROUP target.mla: layer layers.1 of the model is not attention with keys and "
     "values "
     "per head"},
    {"keys and values of a target",
     [](Plan& p, ModelRanksOptions& o) {
       o.target.layers[1].mixer = AttentionShape{.heads = 8, .kv_heads = 8, .head_dim = 8, .value_dim = 8};
       Target(p).layers[1].layout = PerHead(8);
     },
     kUnimplemented, "target.mla: layer layers.1 keeps keys and values per head of a target"},
    {"keys and values sharded over context",
     [](Plan& p, ModelRanksOptions& o) {
       o.draft->layers[1].mixer = AttentionShape{.heads = 8, .kv_heads = 8, .head_dim = 8, .value_dim = 8};
       Draft(p).layers[1].layout = PerHead(8);
       Draft(p).layers[1].layout.sharded = true;
     },
     kUnimplemented, "draft.mla: layer layers.1 has keys and values that are sharded over context"},
    {"windowed keys and values",
     [](Plan& p, ModelRanksOptions& o) {
       o.draft->layers[1].mixer =
           AttentionShape{.heads = 8, .kv_heads = 8, .head_dim = 8, .value_dim = 8, .window = 4};
       Draft(p).layers[1].layout = PerHead(8);
     },
     kUnimplemented, "draft.mla: layer layers.1 has a window or chunks"},
    {"heads that do not turn in pairs",
     [](Plan& p, ModelRanksOptions& o) {
       o.draft->layers[1].mixer = AttentionShape{.heads = 8, .kv_heads = 8, .head_dim = 1, .value_dim = 1};
       Draft(p).layers[1].layout = PerHead(8);
     },
     kUnimplemented, "draft.mla: layer layers.1 has heads of 1 elements, which do not turn in pairs"},
    {"kv heads that ranks do not divide",
     [](Plan& p, ModelRanksOptions& o) {
       p.topology.tp = 2;
       o.draft->layers[0].mixer = AttentionShape{.heads = 12, .kv_heads = 3, .head_dim = 8, .value_dim = 8};
       Draft(p).layers[0].layout = PerHead(3);
     },
     kInvalid, "2 tensor ranks do not divide the 12 heads over 3 kv heads"},
    {"a Markov head behind an anchor that predicts nothing",
     [](Plan&, ModelRanksOptions& o) { o.draft->draft->method = DraftMethod::kDflash; }, kUnimplemented,
     "its draft has a Markov or confidence head"},
    {"DFlash over attention over residuals",
     [](Plan&, ModelRanksOptions& o) {
       o.draft->draft->method = DraftMethod::kDflash;
       o.draft->draft->markov_rank = 0;
       o.target.residual_block = 2;
     },
     kUnimplemented, "a DFlash draft of a target with attention over residuals"},
    {"blocks with another number of rows",
     [](Plan& p, ModelRanksOptions&) {
       p.draft_tokens = 3;
       Draft(p).behaviour.block_rows = 4;
     },
     kInvalid, "the plan's blocks of the draft have 4 rows, those of small-draft have 3"},
    {"fp8 cache", [](Plan& p, ModelRanksOptions&) { Draft(p).layers[0].layout.dtype = DType::kFp8E4M3; },
     kUnimplemented, "keeps fp8_e4m3 elements"},
    {"attention that is not MLA",
     [](Plan&, ModelRanksOptions& o) { o.target.layers[0].mixer = AttentionShape{.heads = 8}; },
     kUnimplemented, "BACKEND_UNSUPPORTED_GROUP target.mla: layer layers.0 of the model is not MLA"},
    {"experts", [](Plan&, ModelRanksOptions& o) { o.target.layers[2].mlp = {.experts = 64}; }, kUnimplemented,
     "BACKEND_UNSUPPORTED_GROUP target.mla: layer layers.2 mixes 64 experts, and its description does not "
     "say "
     "how they are chosen"},
    {"experts beside a dense MLP",
     [](Plan&, ModelRanksOptions& o) { o.target.layers[2].mlp = BesideDense(); }, kUnimplemented,
     "BACKEND_UNSUPPORTED_GROUP target.mla: layer layers.2 has a dense MLP beside its experts"},
    {"further cache",
     [](Plan&, ModelRanksOptions& o) { o.target.layers[0].extra = {IndexerShape{8, 16, 32}}; },
     kUnimplemented, "BACKEND_UNSUPPORTED_GROUP target.mla: layer layers.0 keeps a further cache (indexer)"},
    {"compressed rows",
     [](Plan&, ModelRanksOptions& o) { std::get<MlaShape>(o.target.layers[1].mixer).ratio = 4; },
     kUnimplemented,
     "BACKEND_UNSUPPORTED_GROUP target.mla: layer layers.1 has MLA with a window, compressed"},
    {"MLP that is not gated", [](Plan&, ModelRanksOptions& o) { o.target.layers[0].mlp.gated = false; },
     kUnimplemented, "BACKEND_UNSUPPORTED_GROUP target.mla: layer layers.0 has an MLP that is not gated"},
    {"rotary embedding", [](Plan&, ModelRanksOptions& o) { o.target.rope.kind = RopeKind::kLlama3; },
     kUnimplemented, "BACKEND_UNSUPPORTED_GROUP target.mla: its rotary embedding"},
    {"draft method", [](Plan&, ModelRanksOptions& o) { o.draft->draft->method = DraftMethod::kEagle3; },
     kUnimplemented, "BACKEND_UNSUPPORTED_GROUP draft.mla: its draft is not DSpark"},
    {"layer without a mixer",
     [](Plan& p, ModelRanksOptions& o) {
       Target(p).layers.pop_back();
       o.target.layers[2].mixer = NoMixer{};
     },
     kUnimplemented, "BACKEND_UNSUPPORTED_GROUP target: layer 2 of model"},
    {"other row", [](Plan& p, ModelRanksOptions&) { Target(p).layers[0].layout.key_dim = 25; }, kInvalid,
     "the plan's rows are 25 + 8 elements, the model's are 24 + 8"},
    {"missing layer", [](Plan& p, ModelRanksOptions&) { Target(p).layers.pop_back(); }, kInvalid,
     "no cache for target layer 2"},
    {"layer planned twice", [](Plan& p, ModelRanksOptions&) { Target(p).layers[1].id.index = 0; }, kInvalid,
     "the model has 3 layers, each planned once"},
    {"layer beyond the model", [](Plan& p, ModelRanksOptions&) { Target(p).layers[1].id.index = 9; },
     kInvalid, "the model has 3 layers, each planned once"},
    {"heads", [](Plan& p, ModelRanksOptions&) { p.topology.tp = 3; }, kInvalid,
     "3 tensor ranks do not divide the 8 heads"},
    {"vocabulary", [](Plan&, ModelRanksOptions& o) { o.draft->vocab = 100; }, kInvalid,
     "the draft has 100 tokens, the target 96"},
    {"hidden size", [](Plan&, ModelRanksOptions& o) { o.draft->hidden = 64; }, kInvalid,
     "hidden size 64 of the draft is not the target's 48"},
    {"tapped hidden size", [](Plan&, ModelRanksOptions& o) { o.draft->draft->target_hidden = 50; }, kInvalid,
     "reads hidden states of 50 elements, the target's have 48"},
    {"tap", [](Plan&, ModelRanksOptions& o) { o.draft->draft->target_taps = {0, 3}; }, kInvalid,
     "tap 3 is not one of the target's 3 layers"},
    {"no taps", [](Plan&, ModelRanksOptions& o) { o.draft->draft->target_taps = {}; }, kInvalid,
     "taps no target layer"},
    {"MTP of another width",
     [](Plan&, ModelRanksOptions& o) {
       MakeMtp(*o.draft);
       o.draft->hidden = 64;
       o.draft->draft->own_embedding = o.draft->draft->own_head = true;
     },
     kInvalid, "hidden size 64 of a draft that joins the target's states is not their 48"},
    {"MTP with taps",
     [](Plan&, ModelRanksOptions& o) {
       MakeMtp(*o.draft);
       o.draft->draft->target_taps = {0, 1};
     },
     kInvalid, "drafts one token after the other, and has taps"},
    {"MTP with a confidence head",
     [](Plan&, ModelRanksOptions& o) {
       MakeMtp(*o.draft);
       o.draft->draft->confidence_head = true;
     },
     kInvalid, "drafts one token after the other, and has taps, a Markov or confidence head"},
    {"MTP in a group that is not causal", [](Plan&, ModelRanksOptions& o) { MakeMtp(*o.draft); },
     kUnimplemented, "its rows are not causal, and an MTP module drafts one after the other"},
    {"several MTP modules",
     [](Plan& p, ModelRanksOptions& o) {
       MakeMtp(*o.draft);
       Draft(p).behaviour.causal = true;
     },
     kUnimplemented, "its draft has 2 MTP modules, and one is run"},
    {"not a draft", [](Plan&, ModelRanksOptions& o) { o.draft->draft.reset(); }, kInvalid, "is not a draft"},
};

RankModelOptions TargetOnly(const Plan& plan, const ModelRanksOptions& options) {
  RankModelOptions model;
  model.plan = &plan;
  model.target = &options.target;
  model.rows_max = 1;
  return model;
}

class RefusalTest : public ::testing::TestWithParam<RefusalCase> {};
INSTANTIATE_TEST_SUITE_P(Cases, RefusalTest, ::testing::ValuesIn(kCases));

TEST_P(RefusalTest, NamesWhatIsWrong) {
  ModelRanksOptions options = OptionsOf(PlainModels(), 1, 1, DType::kBf16);
  Plan plan = HandMadePlan(options);
  GetParam().change(plan, options);
  const auto backend = MakeCpuBackend({});
  RankModelOptions model;
  model.plan = &plan;
  model.place.topology = plan.topology;
  model.target = &options.target;
  model.draft = &*options.draft;
  model.rows_max = 4;
  EXPECT_THAT(MakeRankModel(*backend, model), StatusIs(GetParam().code, GetParam().message));
}

TEST(ModelRefusalTest, AnUnsupportedGroupHasItsReason) {
  ModelRanksOptions options = OptionsOf(PlainModels(), 1, 1, DType::kBf16);
  Plan plan = HandMadePlan(options);
  Target(plan).behaviour.mixer = Mixer::kRecurrent;
  const auto backend = MakeCpuBackend({});
  const auto made = MakeRankModel(*backend, TargetOnly(plan, options));
  EXPECT_EQ(ReasonOf(made.status()), "BACKEND_UNSUPPORTED_GROUP");
  EXPECT_EQ(ErrorOf(made.status()).metadata.at("group"), "target.mla");
}

TEST(ModelRefusalTest, AModelThatDoesNotFitSaysWhatItNeeds) {
  const ModelRanksOptions options = OptionsOf(PlainModels(), 1, 1, DType::kBf16);
  const Plan plan = HandMadePlan(options);
  const auto backend = MakeCpuBackend({.memory_limit = Bytes(1000)});
  EXPECT_THAT(MakeRankModel(*backend, TargetOnly(plan, options)),
              StatusIs(absl::StatusCode::kResourceExhausted, "bytes asked for"));
}

}  // namespace
}  // namespace kvasir::testing
