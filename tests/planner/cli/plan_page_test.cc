// plan --html: the page says what the machine form says, whatever the verdict and whatever the names.
#include "planner/cli/page/plan_page.h"

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "planner/cli/commands.h"
#include "planner/cli/page/html_text.h"
#include "planner/cli/quantity.h"
#include "tests/planner/cli/run_cli_test.h"
#include "tests/testing/matchers.h"

namespace kvasir::cli {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

std::string Contents(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::size_t Count(const std::string& text, const std::string& part) {
  std::size_t count = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

json DataOf(const std::string& page) {
  const std::string head = "<script type=\"application/json\" id=\"data\">";
  const std::size_t at = page.find(head) + head.size();
  return json::parse(page.substr(at, page.find("</script>", at) - at), nullptr, false);
}

// "1008,2016,...": `count` lengths that no slider stops at.
std::string Lengths(std::int64_t count) {
  std::string text;
  for (std::int64_t i = 1; i <= count; ++i) text += (i == 1 ? "" : ",") + std::to_string(i * 1008);
  return text;
}

class PlanPageTest : public RunCliTest {
 protected:
  PlanPageTest() { fs::create_directories(root_); }

  // The page of `plan` with these words.
  std::string Page(std::vector<std::string> words, int code) {
    const fs::path file = root_ / "plan.html";
    words.insert(words.end(), {"--html", file.string()});
    const Answer answer = Run(words);
    EXPECT_EQ(answer.code, code) << answer.err;
    EXPECT_THAT(answer.out, HasSubstr("\nPage     " + file.string() + "\n"));
    return Contents(file);
  }
  json Machine(std::vector<std::string> words) {
    words.insert(words.end(), {"--output", "json"});
    return json::parse(Run(words).out, nullptr, false);
  }
};

struct Case {
  std::string name;
  std::vector<std::string> words;
  int code = kExitOk;
  std::string verdict;
  std::string shown = {};
};

std::vector<Case> Cases() {
  return {
      {"hybrid", CommandOf("plan", kKimi, {"--kv-memory", "46.8GiB", "--context", "131072"}), kExitOk, "fits",
       "✓</span> Fits"},
      {"snapshots",
       CommandOf("plan", kKimi,
                 {"--kv-memory", "46.8GiB", "--context", "128k", "--state-rollback", "snapshots"}),
       kExitOk, "fits", "✓</span> Fits"},
      {"window",
       {"plan", "--target", "gemma-3-27b", "--tp", "2", "--kv-memory", "20GiB"},
       kExitOk,
       "fits",
       "✓</span> Fits"},
      {"windowed target, draft",
       {"plan", "--target", "gpt-oss-120b", "--draft", "gpt-oss-120b-eagle3", "--tp", "4", "--kv-memory",
        "30GiB"},
       kExitOk,
       "fits",
       "✓</span> Fits"},
      {"small", CommandOf("plan", kDemo, {"--kv-memory", "8MiB"}), kExitOk, "fits", "✓</span> Fits"},
      {"one token", CommandOf("plan", kDemo, {"--kv-memory", "8MiB", "--context", "1"}), kExitOk, "fits",
       "✓</span> Fits"},
      {"many lengths", CommandOf("plan", kKimi, {"--kv-memory", "46.8GiB", "--context", Lengths(60)}),
       kExitOk, "fits", "✓</span> Fits"},
      {"too little", CommandOf("plan", kKimi, {"--kv-memory", "400MiB", "--context", "1m"}), kExitDoesNotFit,
       "does_not_fit", "▲</span> Does not fit"},
      {"nothing fits", CommandOf("plan", kDemo, {"--kv-memory", "4096"}), kExitDoesNotFit, "does_not_fit",
       "▲</span> Does not fit"},
      {"one refusal", CommandOf("plan", kKimi, {"--kv-memory", "40GiB", "--draft-backend", "flashmla"}),
       kExitRefused, "refused", "✕</span> Refused"},
      {"many refusals",
       {"plan", "--target", "demo-target", "--draft", "kimi-k3-dspark", "--tp", "3", "--dcp", "2",
        "--kv-cache-dtype", "int4", "--max-requests", "-1", "--kv-memory", "1GiB"},
       kExitRefused,
       "refused",
       "✕</span> Refused"},
  };
}

TEST_F(PlanPageTest, HasTheMachineFormOfEveryVerdict) {
  for (const Case& c : Cases()) {
    SCOPED_TRACE(c.name);
    const std::string page = Page(c.words, c.code);
    const json data = DataOf(page);
    const json machine = Machine(c.words);
    EXPECT_EQ(data["schema"], "kvasir.page/1");
    EXPECT_EQ(data["plan"], machine);
    EXPECT_EQ(machine["verdict"], c.verdict);
    EXPECT_THAT(page, HasSubstr(c.shown));
    EXPECT_THAT(page, Not(HasSubstr("{{")));
    if (c.verdict == "fits") {
      EXPECT_THAT(page, HasSubstr("<code>" + machine["plan_id"].get<std::string>() + "</code>"));
    }
  }
}

// A number in the tables that are there without the script.
std::string Cell(std::int64_t value) { return ">" + Thousands(value) + "</td>"; }

TEST_F(PlanPageTest, TablesHaveTheNumbersOfTheMachineForm) {
  for (const Case& c : Cases()) {
    if (c.verdict != "fits") continue;
    SCOPED_TRACE(c.name);
    const std::string page = Page(c.words, c.code);
    const json machine = Machine(c.words);
    std::int64_t sum = 0;
    for (const json& owned : machine["attribution"]) {
      sum += owned["bytes"].get<std::int64_t>();
      EXPECT_THAT(page, HasSubstr("<code>" + owned["owner"].get<std::string>() + "</code>"));
      EXPECT_THAT(page, HasSubstr(Cell(owned["bytes"])));
    }
    EXPECT_EQ(sum, machine["arena_bytes"]);
    EXPECT_THAT(page, HasSubstr("<b>" + Thousands(sum) + "</b> bytes"));
    for (const json& row : machine["capacity"]) {
      EXPECT_THAT(page, HasSubstr(Thousands(row["context_tokens"]) + "</th>"));
      EXPECT_THAT(page,
                  HasSubstr(Cell(row["requests"]) + "<td class=\"n\"" + Cell(row["guaranteed_requests"])));
    }
    for (const json& pool : machine["pools"]) {
      for (const json& group : pool["groups"])
        EXPECT_THAT(page, HasSubstr("<b>" + group["name"].get<std::string>() + "</b>"));
    }
  }
}

TEST_F(PlanPageTest, StopsAgreeWithTheCapacityTable) {
  for (const Case& c : Cases()) {
    if (c.verdict != "fits") continue;
    SCOPED_TRACE(c.name);
    const json data = DataOf(Page(c.words, c.code));
    const json& plan = data["plan"];
    EXPECT_EQ(data["stops"].back()["context_tokens"], plan["context_tokens"]);
    for (const json& stop : data["stops"])
      EXPECT_EQ(stop["alternatives"].size(), plan["alternatives"].size()) << stop;
    for (const json& row : plan["capacity"]) {
      const auto stop = std::find_if(data["stops"].begin(), data["stops"].end(), [&](const json& s) {
        return s["context_tokens"] == row["context_tokens"];
      });
      ASSERT_NE(stop, data["stops"].end()) << row;
      EXPECT_EQ((*stop)["requests"], row["requests"]);
      EXPECT_EQ((*stop)["guaranteed_requests"], row["guaranteed_requests"]);
      EXPECT_EQ((*stop)["bytes_per_request"], row["bytes_per_request"]);
      for (std::size_t i = 0; i < plan["alternatives"].size(); ++i) {
        for (const json& other : plan["alternatives"][i]["capacity"]) {
          if (other["context_tokens"] == row["context_tokens"]) {
            EXPECT_EQ((*stop)["alternatives"][i], other["requests"]);
          }
        }
      }
    }
    for (const json& stop : data["stops"]) {
      std::int64_t sum = 0;
      for (const json& bytes : stop["pool_bytes"]) sum += bytes.get<std::int64_t>();
      EXPECT_EQ(sum, stop["bytes_per_request"]);
    }
  }
}

TEST_F(PlanPageTest, ParentsOfPoolsFillTheArena) {
  for (const Case& c : Cases()) {
    if (c.verdict != "fits") continue;
    SCOPED_TRACE(c.name);
    const json data = DataOf(Page(c.words, c.code));
    const json& plan = data["plan"];
    ASSERT_EQ(data["load"].size(), plan["pools"].size());
    std::int64_t parents = 1;  // the null parent
    for (const json& pool : data["load"]) parents += pool["parents"].get<std::int64_t>();
    std::int64_t free = 0;
    for (const json& owned : plan["attribution"]) {
      if (owned["owner"] == "free_parents") free = owned["bytes"].get<std::int64_t>();
    }
    EXPECT_EQ(parents * plan["parent_bytes"].get<std::int64_t>() + free,
              plan["parents"].get<std::int64_t>() * plan["parent_bytes"].get<std::int64_t>());
    for (std::size_t i = 0; i < data["load"].size(); ++i) {
      std::size_t layers = 0;
      for (const json& group : plan["pools"][i]["groups"]) layers += group["layers"].size();
      EXPECT_EQ(data["load"][i]["layers"].size(), layers);
    }
  }
}

TEST_F(PlanPageTest, StopsAscendToTheLongestContext) {
  for (const std::int64_t longest : {1, 2, 3, 127, 128, 4096, 45'952, 131'072, 1'048'576, 1 << 30}) {
    Plan plan;
    plan.context_tokens = longest;
    std::vector<CapacityRow> asked(2);
    asked[0].context_tokens = 8192;
    asked[1].context_tokens = longest;
    const std::vector<std::int64_t> stops = PageStops(plan, asked);
    EXPECT_EQ(stops.back(), longest);
    EXPECT_GE(stops.front(), 1);
    EXPECT_LE(stops.size(), 40U);
    EXPECT_TRUE(std::is_sorted(stops.begin(), stops.end(), std::less_equal<>()));
  }
}

// A folder may have any name, and so a model of it.
TEST_F(PlanPageTest, HostileNamesAreText) {
  const std::string hostile = "a</script><b>\"&'{{data}}\xff</title><img src=x onerror=alert(1)>";
  const fs::path folder = root_ / "a<" / "script><b>\"&'{{data}}\xff<" / "title><img src=x onerror=alert(1)>";
  fs::create_directories(folder);
  std::string text = Run({"models", "inspect", "demo-target", "--output", "text"}).out;
  const std::string name = "kvasir/demo-target";
  ASSERT_NE(text.find(name), std::string::npos);
  std::ofstream(folder / "model.txt") << text;
  const std::string path = (folder / "model.txt").string();
  const std::string page = Page({"plan", "--target", path, "--kv-memory", "8MiB"}, kExitOk);
  EXPECT_EQ(Count(page, "</script>"), 2U);
  EXPECT_EQ(Count(page, "</title>"), 1U);
  EXPECT_THAT(page, AllOf(Not(HasSubstr("<img")), Not(HasSubstr("<b>\"")), Not(HasSubstr("\xff"))));
  EXPECT_THAT(page, HasSubstr("&lt;img src=x onerror=alert(1)&gt;"));
  EXPECT_EQ(DataOf(page)["plan"]["verdict"], "fits");
  // As a model's own name.
  text.replace(text.find(name), name.size(), "a<b>&\"'");
  std::ofstream(root_ / "named.txt") << text;
  const Answer named = Run({"plan", "--target", (root_ / "named.txt").string(), "--kv-memory", "8MiB",
                            "--html", (root_ / "named.html").string()});
  if (named.code != kExitBadUsage) {
    EXPECT_THAT(Contents(root_ / "named.html"), AllOf(HasSubstr("a&lt;b&gt;"), Not(HasSubstr("a<b>"))));
  }
  EXPECT_EQ(Escaped(hostile).find_first_of("<>\"'"), std::string::npos);
}

TEST(HtmlText, Escapes) {
  EXPECT_EQ(Escaped("a<b>&\"'"), "a&lt;b&gt;&amp;&quot;&#39;");
  EXPECT_EQ(Escaped("×\n\x7f\xc3"), "×\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD");
  EXPECT_EQ(Escaped("\xed\xa0\x80 \xf0\x9f\x98\x80 \xc0\x80"),
            "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD \xf0\x9f\x98\x80 \xEF\xBF\xBD\xEF\xBF\xBD");
  EXPECT_EQ(EscapedScript(R"("</script>&<!--")"), R"("\u003c/script\u003e\u0026\u003c!--")");
}

TEST(HtmlText, FilledInOnePass) {
  EXPECT_EQ(Filled("{{a}}-{{b}}-{{c}}{{", {Text("a", "{{b}}"), Markup("b", "<i>")}), "{{b}}-<i>-{{c}}{{");
}

TEST(HtmlText, SharesAreExactAndNeverBeyondTheWhole) {
  EXPECT_EQ(Share(1, 3), "33.3333%");
  EXPECT_EQ(Share(0, 5), "0.0000%");
  EXPECT_EQ(Share(std::int64_t{1} << 50, std::int64_t{1} << 50), "100.0000%");
  EXPECT_EQ(Share(0, 0), "0%");
}

TEST_F(PlanPageTest, ThePageIsAboutTheQuestionThatItRepeats) {
  const std::vector<std::string> words =
      CommandOf("plan", kDemo, {"--no-save", "--kv-memory=8MiB", "--context", "2k"});
  const std::string command = DataOf(Page(words, kExitOk))["command"];
  EXPECT_EQ(
      command,
      "kvasir plan --target demo-target --draft demo-dspark --tp 2 --dcp 2 --kv-memory 8MiB --context 2k");
  EXPECT_THAT(Contents(root_ / "plan.html"), HasSubstr("<code>" + command + "</code>"));
}

TEST_F(PlanPageTest, ProgramsGetNoLineAboutIt) {
  const std::string file = (root_ / "plan.html").string();
  const std::vector<std::string> words =
      CommandOf("plan", kDemo, {"--kv-memory", "8MiB", "--output", "json"});
  std::vector<std::string> with = words;
  with.push_back("--html=" + file);
  EXPECT_EQ(Run(with).out, Run(words).out);
  EXPECT_TRUE(fs::exists(file));
}

TEST_F(PlanPageTest, AFileThatCannotBeWritten) {
  const std::vector<std::string> words = CommandOf("plan", kDemo, {"--kv-memory", "8MiB", "--html"});
  for (const std::string& file :
       {(root_ / "none" / "plan.html").string(), root_.string(), std::string("/dev/full")}) {
    std::vector<std::string> all = words;
    all.push_back(file);
    const Answer answer = Run(all);
    EXPECT_EQ(answer.code, kExitBadUsage);
    EXPECT_EQ(answer.out, "");
    EXPECT_THAT(answer.err,
                AllOf(HasSubstr("--html " + file + ": cannot be written: "), HasSubstr("name a file")));
    EXPECT_FALSE(fs::exists(root_ / "kvasir" / "plans"));
  }
}

TEST_F(PlanPageTest, OnlyPlansOfOurOwnBecomeAPage) {
  const std::string file = (root_ / "plan.html").string();
  const std::vector<std::vector<std::string>> cases = {
      CommandOf("plan", kDemo, {"--kv-memory", "8MiB", "--html", ""}),
      CommandOf("plan", kKimi, {"--kv-memory", "40GiB", "--ruleset", "vllm-2026-11", "--html", file}),
      CommandOf("plan", kKimi, {"--kv-memory", "40GiB", "--emit", "vllm", "--html", file}),
      {"plan", "--html", file, "--kv-memory", "40GiB", "--", "vllm", "serve", "moonshotai/Kimi-K3"},
      CommandOf("plan", kDemo, {"--kv-memory", "8MiB", "--server", "localhost:1", "--html", file}),
      CommandOf("plan", kDemo, {"--kv-memory", "8MiB", "--server=localhost:1", "--html=" + file}),
  };
  for (const std::vector<std::string>& words : cases) {
    const Answer answer = Run(words);
    EXPECT_EQ(answer.code, kExitBadUsage) << answer.out;
    EXPECT_THAT(answer.err, HasSubstr("kvasir plan: --html"));
    EXPECT_FALSE(fs::exists(file));
    EXPECT_TRUE(remote_words_.empty());
  }
}

}  // namespace
}  // namespace kvasir::cli
