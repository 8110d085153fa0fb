// Every public configuration at hand, read and compared with what others say of it: our table of the
// reference, the facts beside the files, the values that vLLM's own tests expect, and the catalogue.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <iostream>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "common/models/cache_facts.h"
#include "common/models/catalogue.h"
#include "common/models/model_text.h"
#include "common/models/read_config.h"
#include "tests/common/models/expected_layers.h"
#include "tests/common/models/layer_words.h"
#include "tests/testing/matchers.h"
#include "tests/testing/shared_data.h"

namespace kvasir::testing {
namespace {

using Json = nlohmann::json;
namespace fs = std::filesystem;

// "org__name" of a folder is "org/name" on the hub.
std::string HubName(std::string folder) {
  const std::size_t at = folder.find("__");
  return at == std::string::npos ? folder : folder.replace(at, 2, "/");
}

std::string FolderOf(std::string hub_name) {
  const std::size_t at = hub_name.find('/');
  return at == std::string::npos ? hub_name : hub_name.replace(at, 1, "__");
}

std::vector<std::string> Folders(const std::string& data) {
  std::vector<std::string> out;
  for (const auto& entry : fs::directory_iterator(data + "/configs")) {
    if (entry.is_directory()) out.push_back(entry.path().filename().string());
  }
  std::sort(out.begin(), out.end());
  return out;
}

std::optional<Json> ReadJson(const std::string& path) {
  const std::optional<std::string> text = ReadFile(path);
  if (!text.has_value()) return std::nullopt;
  Json json = Json::parse(*text, nullptr, false);
  EXPECT_FALSE(json.is_discarded()) << path;
  return json;
}

// A file of a model's folder among the shared configurations; "" is the folder itself.
std::string PathOf(const std::string& data, std::string_view folder, std::string_view file = "") {
  return (fs::path(data) / "configs" / folder / file).string();
}

const ExpectedLayers* Expectation(std::string_view folder) {
  for (const ExpectedLayers& row : AllExpectedLayers()) {
    if (row.folder == folder) return &row;
  }
  return nullptr;
}

void ExpectLayers(const ExpectedLayers& row, const ModelDescription& model) {
  EXPECT_EQ(static_cast<std::int64_t>(model.layers.size()), row.layers) << row.folder;
  EXPECT_EQ(KindsText(model), row.kinds) << row.folder;
  EXPECT_EQ(HeadsText(model), row.heads) << row.folder;
  EXPECT_EQ(WindowOf(model), row.window) << row.folder;
  EXPECT_EQ(StatesText(model), row.states) << row.folder;
  EXPECT_EQ(model.mtp_depth, row.mtp) << row.folder;
  EXPECT_EQ(model.draft.has_value() ? model.draft->block : 0, row.block) << row.folder;
}

TEST(PublicConfigs, EveryOneIsReadIntoTheRightLayers) {
  KVASIR_SHARED_DATA_OR_SKIP(data);
  int read = 0;
  int compared = 0;
  for (const std::string& folder : Folders(data)) {
    const std::string path = PathOf(data, folder);
    if (!fs::exists(fs::path(path) / "config.json")) continue;
    const auto model = ReadConfigPath(path);
    EXPECT_TRUE(model.ok()) << folder << ": " << model.status();
    if (!model.ok()) continue;
    ++read;
    const auto again = ModelFromText(ModelToText(*model));
    EXPECT_TRUE(again.ok()) << folder << ": " << again.status();
    if (again.ok()) {
      EXPECT_EQ(*again, *model) << folder;
    }
    if (const ExpectedLayers* row = Expectation(folder)) {
      ++compared;
      ExpectLayers(*row, *model);
    }
  }
  std::cout << read << " configurations read, " << compared << " compared with the table\n";
  EXPECT_EQ(compared, read) << "a configuration is missing in expected_layers.cc";
}

// Facts that are fields of the configuration, completed with what every file has.
std::optional<std::string> ConfigOfFacts(const Json& facts) {
  if (!facts.contains("config_fields")) return std::nullopt;
  Json config = facts["config_fields"];
  config["dtype"] = "bfloat16";
  Json& text = config.contains("text_config") ? config["text_config"] : config;
  if (!text.contains("max_position_embeddings")) text["max_position_embeddings"] = 4096;
  if (!text.contains("vocab_size")) text["vocab_size"] = 32000;
  if (!text.contains("intermediate_size")) text["intermediate_size"] = 1024;
  return config.dump();
}

TEST(PublicConfigs, FactsAgree) {
  KVASIR_SHARED_DATA_OR_SKIP(data);
  int fields = 0;
  int pages = 0;
  for (const std::string& folder : Folders(data)) {
    const std::optional<Json> facts = ReadJson(PathOf(data, folder, "facts.json"));
    if (!facts.has_value()) continue;
    const std::optional<std::string> config = ConfigOfFacts(*facts);
    if (!config.has_value()) continue;
    const auto model = ReadConfigJson(*config, HubName(folder));
    EXPECT_TRUE(model.ok()) << folder << ": " << model.status();
    if (!model.ok()) continue;
    ++fields;
    const ExpectedLayers* row = Expectation(folder);
    EXPECT_NE(row, nullptr) << folder << " is missing in expected_layers.cc";
    if (row != nullptr) ExpectLayers(*row, *model);
    if (!facts->contains("golden_vllm")) continue;
    // The page of the recurrent layer's states, as an engine's log gives it.
    for (const auto& [name, value] : (*facts)["golden_vllm"].items()) {
      if (!name.starts_with("mamba_page_bytes")) continue;
      ++pages;
      const ModelLayer& layer = model->layers[0];
      const auto page = CacheFactsOf(layer.extra.empty() ? layer.mixer : layer.extra[0], model->dtype, 1);
      KVASIR_ASSERT_OK(page);
      EXPECT_EQ(page->fixed_bytes(), value.get<std::int64_t>()) << folder;
    }
  }
  std::cout << fields << " models read from facts, " << pages << " page sizes compared\n";
}

// ---- What vLLM's own tests expect ----

struct Arch {
  std::int64_t heads = 0;
  std::int64_t kv_heads = 0;
  std::int64_t head_size = 0;
  bool mla = false;
};

// As vLLM counts: of the first attention layer; MLA has as many key-value heads as heads, and a head as wide
// as a row.
Arch ArchOf(const ModelDescription& model) {
  for (const ModelLayer& layer : model.layers) {
    if (const auto* s = std::get_if<AttentionShape>(&layer.mixer))
      return {s->heads, s->kv_heads, s->head_dim, false};
    if (const auto* s = std::get_if<MlaShape>(&layer.mixer))
      return {s->heads, s->heads, s->kv_lora_rank + s->rope_dim, true};
  }
  return {};
}

std::string DTypeWord(const ModelDescription& model) {
  return model.dtype == DType::kBf16 ? "bfloat16" : model.dtype == DType::kF16 ? "float16" : "float32";
}

void ExpectArch(const Json& expected, const ModelDescription& model, bool compare_dtype) {
  const Arch arch = ArchOf(model);
  std::int64_t experts = 0;
  for (const ModelLayer& layer : model.layers) experts = std::max(experts, layer.mlp.experts);
  EXPECT_EQ(model.hidden, expected["hidden_size"]) << model.name;
  EXPECT_EQ(static_cast<std::int64_t>(model.layers.size()), expected["total_num_hidden_layers"])
      << model.name;
  EXPECT_EQ(arch.heads, expected["total_num_attention_heads"]) << model.name;
  EXPECT_EQ(arch.kv_heads, expected["total_num_kv_heads"]) << model.name;
  EXPECT_EQ(arch.head_size, expected["head_size"]) << model.name;
  EXPECT_EQ(arch.mla, expected["is_deepseek_mla"]) << model.name;
  EXPECT_EQ(model.vocab, expected["vocab_size"]) << model.name;
  EXPECT_EQ(experts, expected["num_experts"]) << model.name;
  EXPECT_EQ(model.multimodal, expected["is_multimodal_model"]) << model.name;
  std::string dtype = expected["dtype"];
  if (dtype.starts_with("torch.")) dtype = dtype.substr(6);
  if (compare_dtype) {
    EXPECT_EQ(DTypeWord(model), dtype) << model.name;
  }
}

// Fine-tunes and conversions of models whose configuration is at hand under another name.
std::string SameShapeAs(const std::string& hub_name) {
  if (hub_name == "lmsys/gpt-oss-20b-bf16") return "openai/gpt-oss-20b";
  if (hub_name == "tiiuae/falcon-mamba-7b-instruct") return "tiiuae/falcon-mamba-7b";
  return hub_name;
}

TEST(PublicConfigs, WhatVllmExpectsOfThemAgrees) {
  KVASIR_SHARED_DATA_OR_SKIP(data);
  int compared = 0;
  int from_catalogue = 0;
  int errors = 0;
  int absent = 0;
  for (const char* name :
       {"vllm_base_model_arch_groundtruth.json", "vllm_draft_model_arch_groundtruth.json"}) {
    const std::optional<Json> all = ReadJson(data + "/model_arch_expected/" + name);
    ASSERT_TRUE(all.has_value()) << name;
    for (const auto& [hub_name, expected] : all->items()) {
      if (expected["head_size"].is_string()) {
        ++errors;
        continue;
      }
      const std::string path = PathOf(data, FolderOf(SameShapeAs(hub_name)));
      if (fs::exists(fs::path(path) / "config.json")) {
        const auto model = ReadConfigPath(path);
        KVASIR_ASSERT_OK(model);
        ExpectArch(expected, *model, true);
        ++compared;
      } else if (const auto known = FindInCatalogue(hub_name); known.ok()) {
        // The file's dtype is not known there; vLLM prints float32 where a file has none.
        ExpectArch(expected, *known, false);
        ++from_catalogue;
      } else {
        ++absent;
      }
    }
  }
  std::cout << compared << " configurations compared, " << from_catalogue << " from the catalogue, " << errors
            << " hold an error text, " << absent << " have no configuration here\n";
  EXPECT_GE(compared, 5);
}

TEST(PublicConfigs, FactsOfVllmAgreeWithTheCatalogue) {
  KVASIR_SHARED_DATA_OR_SKIP(data);
  int compared = 0;
  for (const std::string& folder : Folders(data)) {
    const std::optional<Json> facts = ReadJson(PathOf(data, folder, "facts.json"));
    if (!facts.has_value() || !facts->contains("vllm_arch")) continue;
    const auto known = FindInCatalogue(HubName(folder));
    if (!known.ok()) continue;
    ExpectArch((*facts)["vllm_arch"], *known, false);
    ++compared;
  }
  std::cout << compared << " catalogue entries compared with facts\n";
}

// ---- The catalogue ----

// Entries whose file is a transcription that says otherwise than the hub, or leaves out what the model has.
const std::set<std::string>& LayersOnly() {
  static const std::set<std::string> kNames = {
      "google/gemma-3-4b-it",              // context 163840 and vocabulary 262144 in the transcription
      "google/gemma-3-12b-it",             // the same
      "google/gemma-3-27b-it",             // the same
      "meta-llama/Llama-3.1-8B-Instruct",  // no rope_scaling in the transcription
  };
  return kNames;
}

TEST(PublicConfigs, CatalogueEntriesAreWhatTheFilesSay) {
  KVASIR_SHARED_DATA_OR_SKIP(data);
  int whole = 0;
  int layers = 0;
  int facts_only = 0;
  for (const CatalogueEntry& entry : ListCatalogue()) {
    const auto known = FindInCatalogue(entry.name);
    KVASIR_ASSERT_OK(known);
    const std::string path = PathOf(data, FolderOf(entry.hub_name));
    if (fs::exists(fs::path(path) / "config.json")) {
      auto model = ReadConfigPath(path);
      KVASIR_ASSERT_OK(model);
      model->name = known->name;
      EXPECT_EQ(model->layers, known->layers) << entry.name;
      if (LayersOnly().contains(entry.hub_name)) {
        ++layers;
        continue;
      }
      EXPECT_EQ(ModelToText(*model), ModelToText(*known)) << entry.name;
      ++whole;
      continue;
    }
    const std::optional<Json> facts = ReadJson(PathOf(data, FolderOf(entry.hub_name), "facts.json"));
    const std::optional<std::string> config = facts.has_value() ? ConfigOfFacts(*facts) : std::nullopt;
    if (!config.has_value()) continue;
    const auto model = ReadConfigJson(*config, "facts");
    KVASIR_ASSERT_OK(model);
    EXPECT_EQ(model->layers, known->layers) << entry.name;
    ++facts_only;
  }
  std::cout << whole << " entries equal their file, " << layers << " in their layers, " << facts_only
            << " in the layers that facts give\n";
}

TEST(Catalogue, EveryEntryMeetsTheLimits) {
  const std::vector<CatalogueEntry> entries = ListCatalogue();
  EXPECT_GE(entries.size(), 60U);
  for (const CatalogueEntry& entry : entries) {
    const auto model = FindInCatalogue(entry.hub_name);
    KVASIR_ASSERT_OK(model);
    const auto again = ModelFromText(ModelToText(*model));
    EXPECT_TRUE(again.ok()) << entry.name << ": " << again.status();
  }
}

}  // namespace
}  // namespace kvasir::testing
