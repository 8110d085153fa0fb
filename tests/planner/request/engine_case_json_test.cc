// Reading of engine cases: the smallest one, every option, and an error for each kind of fault.
#include "planner/request/engine_case_json.h"

#include <gtest/gtest.h>

#include <ostream>
#include <string>

#include "absl/strings/str_format.h"
#include "common/base/typed_error.h"
#include "planner/rulesets/vllm/plan_engine.h"
#include "tests/testing/matchers.h"

namespace kvasir {
namespace {

using vllm::EngineSpec;
using vllm::SpecKind;

constexpr char kFull[] =
    R"("kind":"full","block_size":16,"num_kv_heads":8,"head_size":128,"dtype":"bfloat16")";

// A case of one full layer, with `config` beside max_model_len and `rest` beside the other keys.
std::string Case(const std::string& spec = kFull, const std::string& config = "",
                 const std::string& rest = "") {
  return R"({"specs":{"f":{)" + spec +
         R"(}},"layers":[{"name":"l.0","spec":"f"}],"available_memory_bytes":[1000000000],)" +
         R"("config":{"max_model_len":4096)" + config + "}" + rest + "}";
}

TEST(EngineCaseJson, ReadsTheSmallestCase) {
  const auto read = ReadEngineCaseJson(Case());
  KVASIR_ASSERT_OK(read);
  ASSERT_EQ(read->specs.size(), 1U);
  EXPECT_EQ(read->specs[0].head_size_v, 128) << "as the key's";
  EXPECT_TRUE(read->specs[0].dcp_sharded);
  EXPECT_EQ(read->config.max_num_batched_tokens, 8192);
  EXPECT_FALSE(read->config.auto_fit);
  EXPECT_TRUE(read->config.enable_prefix_caching);
  EXPECT_FALSE(PlanEngine(*read, vllm::EngineVersion::k2026_11).failure.has_value());
}

TEST(EngineCaseJson, ReadsEveryKind) {
  const std::string rest = R"(,"num_kv_heads":1,"head_size":64,"dtype":"uint8")";
  for (const auto& [kind, fields] : {std::pair<std::string, std::string>{"mla", rest},
                                     {"hidden_state", rest},
                                     {"rswa", rest + R"(,"rswa_window":8)"},
                                     {"sink_full", rest + R"(,"sink_len":4)"},
                                     {"sliding", rest + R"(,"sliding_window":8)"},
                                     {"sliding_mla", rest + R"(,"sliding_window":8)"},
                                     {"kpool_tail", rest + R"(,"sliding_window":8)"},
                                     {"chunked_local", rest + R"(,"attention_chunk_size":8)"},
                                     {"cross", rest},
                                     {"encoder_only", rest},
                                     {"circular_buffer", rest},
                                     {"mamba", R"(,"shapes":[[2,3],[4]],"dtypes":["float32","bfloat16"])"}}) {
    const auto read =
        ReadEngineCaseJson(Case(absl::StrFormat(R"("kind":"%s","block_size":16%s)", kind, fields)));
    KVASIR_ASSERT_OK(read) << kind;
    EXPECT_EQ(SpecKindWord(read->specs[0].kind), kind);
    const bool latent = kind == "mla" || kind == "hidden_state" || kind == "sliding_mla" || kind == "mamba";
    EXPECT_EQ(read->specs[0].head_size_v, latent ? 0 : 64) << kind;
  }
}

TEST(EngineCaseJson, ReadsADumpWithClassNamesAndResults) {
  const auto read = ReadEngineCaseJson(Case(
      R"("type":"FullAttentionSpec","block_size":16,"num_kv_heads":8,"head_size":128,"dtype":"bfloat16",)"
      R"("kv_quant_mode":"FP8_PER_TENSOR","page_size_padded":null,"page_size_bytes":65536,)"
      R"("unpadded_page_size_bytes":65536,"max_memory_usage_bytes":1)"));
  KVASIR_ASSERT_OK(read);
  EXPECT_EQ(read->specs[0].kind, SpecKind::kFull);
  EXPECT_EQ(read->specs[0].kv_quant_mode, vllm::QuantMode::kFp8PerTensor);
}

TEST(EngineCaseJson, ReadsFractionsAndTheOlderNameOfCompression) {
  const auto tokens = [](const std::string& field) {
    const auto read = ReadEngineCaseJson(
        Case(R"("kind":"mla","block_size":16,"num_kv_heads":1,"head_size":64,"dtype":"uint8",)" + field));
    EXPECT_THAT(read, testing::IsOk()) << field;
    return read.ok() ? read->specs[0].tokens_per_state : vllm::TokensPerState{0, 0};
  };
  EXPECT_EQ(tokens(R"("tokens_per_state":4)"), (vllm::TokensPerState{4, 1}));
  EXPECT_EQ(tokens(R"("compress_ratio":4)"), (vllm::TokensPerState{4, 1}));
  EXPECT_EQ(tokens(R"("tokens_per_state":"2/4")"), (vllm::TokensPerState{1, 2}));
}

TEST(EngineCaseJson, ReadsOptions) {
  const auto read = ReadEngineCaseJson(Case(
      kFull, R"(,"original_max_model_len":-1,"dcp":2,"num_gpu_blocks_override":0,"mamba_cache_mode":"align",)"
             R"("kv_connector_extra_config":{"enable_cross_layers_blocks":"True","other":1},)"
             R"("speculative":{"method":"mtp","num_speculative_tokens":3,"num_nextn_predict_layers":2},)"
             R"("kv_cache_layout":"BLHNC","enable_prefix_caching":false)"));
  KVASIR_ASSERT_OK(read);
  EXPECT_TRUE(read->config.auto_fit);
  EXPECT_EQ(read->config.num_gpu_blocks_override, 0);
  EXPECT_EQ(read->config.mamba_cache_mode, vllm::MambaCacheMode::kAlign);
  EXPECT_TRUE(read->config.kv_connector);
  EXPECT_TRUE(read->config.cross_layer_blocks);
  EXPECT_EQ(read->config.speculative->num_nextn_predict_layers, 2);
  EXPECT_EQ(read->config.kv_cache_layout, vllm::KvLayout::kBLHNC);
  EXPECT_FALSE(read->config.enable_prefix_caching);
}

TEST(EngineCaseJson, ReadsWorkersWithTheirLayersAndOverrides) {
  const auto read = ReadEngineCaseJson(
      R"({"specs":{"f":{)" + std::string(kFull) +
      R"(}},"layers":[{"name":"a","spec":"f"},{"name":"b","spec":"f"}],)"
      R"("available_memory_bytes":[1000,-2000],"worker_layers":[["b","a"],null],)"
      R"("worker_overrides":[null,{"b":{"num_kv_heads":4}}],"config":{"max_model_len":16}})");
  KVASIR_ASSERT_OK(read);
  EXPECT_EQ(read->workers[0].layers, (std::vector<std::int32_t>{1, 0}));
  EXPECT_FALSE(read->workers[1].layers.has_value());
  EXPECT_EQ(read->workers[1].available_bytes, -2000);
  ASSERT_EQ(read->workers[1].overrides.size(), 1U);
  EXPECT_EQ(read->specs[static_cast<std::size_t>(read->workers[1].overrides[0].spec)].num_kv_heads, 4);
}

struct FaultCase {
  std::string name;
  std::string json;
  std::string reason;
  std::string field;
};

void PrintTo(const FaultCase& c, std::ostream* out) { *out << c.name; }

class Fault : public ::testing::TestWithParam<FaultCase> {};

TEST_P(Fault, NamesReasonAndField) {
  const auto read = ReadEngineCaseJson(GetParam().json);
  ASSERT_FALSE(read.ok());
  EXPECT_EQ(read.status().code(), absl::StatusCode::kInvalidArgument);
  const TypedError error = ErrorOf(read.status());
  EXPECT_EQ(error.reason, GetParam().reason) << error.message;
  EXPECT_EQ(error.field, GetParam().field) << error.message;
  EXPECT_FALSE(error.message.empty());
}

std::string Edited(std::string json, const std::string& from, const std::string& to) {
  const std::size_t at = json.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return json.replace(at, from.size(), to);
}

INSTANTIATE_TEST_SUITE_P(
    , Fault,
    ::testing::Values(
        FaultCase{"no_json", "{", "MALFORMED_MESSAGE", ""},
        FaultCase{"a_list", "[]", "MALFORMED_MESSAGE", ""},
        FaultCase{"too_deep", std::string(40, '['), "MALFORMED_MESSAGE", ""},
        FaultCase{"too_long", std::string(kEngineCaseBytesMax + 1, ' '), "MALFORMED_MESSAGE", ""},
        FaultCase{"no_specs", R"({"layers":[]})", "MISSING_FIELD", "specs"},
        FaultCase{"no_config", Edited(Case(), R"("config")", R"("konfig")"), "MISSING_FIELD", "config"},
        FaultCase{"another_key", Case(kFull, "", R"(,"extra":1)"), "UNKNOWN_VALUE", "extra"},
        FaultCase{"another_option", Case(kFull, R"(,"dpc":2)"), "UNKNOWN_VALUE", "config.dpc"},
        FaultCase{"a_field_of_another_kind", Case(std::string(kFull) + R"(,"shapes":[])"), "UNKNOWN_VALUE",
                  "specs.f.shapes"},
        FaultCase{"kind", Edited(Case(), R"("full")", R"("fuller")"), "UNKNOWN_VALUE", "specs.f.kind"},
        FaultCase{"no_kind", Edited(Case(), R"("kind":"full",)", ""), "MISSING_FIELD", "specs.f.kind"},
        FaultCase{"block_of_0", Edited(Case(), R"("block_size":16)", R"("block_size":0)"),
                  "VALUE_OUT_OF_RANGE", "specs.f.block_size"},
        FaultCase{"a_float", Edited(Case(), R"("head_size":128)", R"("head_size":128.5)"),
                  "VALUE_OUT_OF_RANGE", "specs.f.head_size"},
        FaultCase{"beyond_64_bits",
                  Edited(Case(), R"("head_size":128)", R"("head_size":18446744073709551615)"),
                  "VALUE_OUT_OF_RANGE", "specs.f.head_size"},
        FaultCase{"dtype", Edited(Case(), "bfloat16", "bf16"), "UNKNOWN_VALUE", "specs.f.dtype"},
        FaultCase{"two_compressions",
                  Case(R"("kind":"mla","block_size":16,"num_kv_heads":1,"head_size":64,"dtype":"uint8",)"
                       R"("tokens_per_state":4,"compress_ratio":2)"),
                  "CONFLICTING_FIELDS", "specs.f.compress_ratio"},
        FaultCase{"fraction", Case(std::string(kFull) + R"(,"tokens_per_state":"1/0")"), "VALUE_OUT_OF_RANGE",
                  "specs.f.tokens_per_state"},
        FaultCase{"layer_of_no_spec", Edited(Case(), R"("spec":"f")", R"("spec":"g")"), "UNKNOWN_VALUE",
                  "layers[0].spec"},
        FaultCase{"blank_name", Edited(Case(), "l.0", "l 0"), "BAD_NAME", "layers[0].name"},
        FaultCase{"two_layers_of_one_name",
                  Edited(Case(), R"("layers":[)", R"("layers":[{"name":"l.0","spec":"f"},)"),
                  "DUPLICATE_ITEM", "layers[1].name"},
        FaultCase{"no_worker", Edited(Case(), "[1000000000]", "[]"), "MISSING_FIELD",
                  "available_memory_bytes"},
        FaultCase{"memory", Edited(Case(), "[1000000000]", R"(["much"])"), "VALUE_OUT_OF_RANGE",
                  "available_memory_bytes"},
        FaultCase{"worker_layers_of_two", Case(kFull, "", R"(,"worker_layers":[["l.0"],["l.0"]])"),
                  "CONFLICTING_FIELDS", "worker_layers"},
        FaultCase{"worker_layer", Case(kFull, "", R"(,"worker_layers":[["l.1"]])"), "UNKNOWN_VALUE",
                  "worker_layers"},
        FaultCase{"worker_layer_twice",
                  Edited(Case(kFull, "", R"(,"worker_layers":[["l.0","l.0"]])"), R"("layers":[)",
                         R"("layers":[{"name":"x","spec":"f"},)"),
                  "DUPLICATE_ITEM", "worker_layers"},
        FaultCase{"override", Case(kFull, "", R"(,"worker_overrides":[{"l.0":{"head_size":-1}}])"),
                  "VALUE_OUT_OF_RANGE", "worker_overrides.l.0.head_size"},
        FaultCase{"layout", Case(kFull, R"(,"kv_cache_layout":"NHWC")"), "UNKNOWN_VALUE",
                  "config.kv_cache_layout"},
        FaultCase{"method", Case(kFull, R"(,"speculative":{})"), "UNKNOWN_VALUE",
                  "config.speculative.method"}),
    [](const auto& param) { return param.param.name; });

}  // namespace
}  // namespace kvasir
