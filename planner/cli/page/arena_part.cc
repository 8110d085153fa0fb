// One rank's arena as rows of parents, drawn to scale.
#include <algorithm>
#include <string_view>
#include <utility>

#include "absl/strings/str_format.h"
#include "common/base/checked_math.h"
#include "planner/cli/page/html_text.h"
#include "planner/cli/page/page_parts.h"
#include "planner/cli/quantity.h"

namespace kvasir::cli {
namespace {

constexpr std::int64_t kColours = 8;
constexpr std::int64_t kTones = 3;
constexpr std::int64_t kRows = 12;
constexpr std::int64_t kOneRow = 48;     // parents that still fit into one row
constexpr std::int64_t kLabelShare = 8;  // what has more than this part of a row is labelled
constexpr std::int64_t kLineMax = 400;   // parents of a row whose edges can be told apart

// Consecutive bytes of the arena with one owner.
struct Stretch {
  std::string kind = {};    // class
  std::string bands = {};   // markup: what the blocks inside hold, as shares of the height
  std::string label = {};   // stands in the drawing, once
  std::string colour = {};  // class behind the label
  std::string text = {};    // for people
  std::int64_t begin = 0;   // bytes
  std::int64_t end = 0;
};

std::int64_t GroupBytes(const Plan& plan, const PlanGroup& group) {
  return OwnedBy(plan, "payload." + group.name) + OwnedBy(plan, "speculative." + group.name);
}

std::string Bands(const Plan& plan, std::size_t index, std::int64_t pool_bytes) {
  std::string out;
  const PlanPool& pool = plan.pools[index];
  for (std::size_t g = 0; g < pool.groups.size(); ++g) {
    out += Filled("<b class=\"{{kind}}\" style=\"height:{{height}}\"></b>",
                  {Text("kind", GroupClass(index, g)),
                   Text("height", Share(GroupBytes(plan, pool.groups[g]), pool_bytes))});
  }
  return out;
}

std::vector<Stretch> Stretches(const Plan& plan) {
  const std::int64_t parent = plan.parent_bytes.value();
  std::vector<Stretch> out;
  std::int64_t at = 0;
  const auto add = [&](std::string_view name, std::int64_t bytes, Stretch stretch) {
    if (bytes <= 0) return;
    stretch.text = absl::StrFormat("%s: %s, %s of the arena", name, BytesText(bytes),
                                   PercentText(bytes, plan.arena_bytes.value()));
    stretch.begin = at;
    stretch.end = at += bytes;
    out.push_back(std::move(stretch));
  };
  add("null parent", parent, {.kind = "null"});
  for (std::size_t i = 0; i < plan.pools.size(); ++i) {
    const std::string& name = plan.pools[i].name;
    const std::int64_t parents = ParentsOf(plan, i);
    add(absl::StrFormat("pool %s, %s", name, Counted(parents, "parent")), parents * parent,
        {.kind = "over", .bands = Bands(plan, i, parents * parent), .label = name, .colour = PoolClass(i)});
  }
  add("free parents", OwnedBy(plan, "free_parents"), {.kind = "free", .label = "free", .colour = "free"});
  add("unassigned", OwnedBy(plan, "unassigned"), {.kind = "rest"});
  return out;
}

// Edges of parents, thin enough to leave the colours alone.
std::string EdgeLines(std::int64_t in_row, std::int64_t count) {
  if (in_row > kLineMax || in_row < 2) return "";
  std::string path;
  for (std::int64_t i = 1; i < std::min(in_row, count + 1); ++i) path += absl::StrFormat("M%d 0v1", i);
  return absl::StrFormat(
      "<svg viewBox=\"0 0 %d 1\" preserveAspectRatio=\"none\" aria-hidden=\"true\"><path d=\"%s\"/></svg>",
      in_row, path);
}

std::string MapRow(std::vector<Stretch>& stretches, std::int64_t begin, std::int64_t row_bytes,
                   std::string_view lines) {
  std::string out = "<div class=\"row\">";
  for (Stretch& stretch : stretches) {
    const std::int64_t from = std::max(stretch.begin, begin);
    const std::int64_t to = std::min(stretch.end, begin + row_bytes);
    if (from >= to) continue;
    std::string label;
    if (!stretch.label.empty() && to - from > row_bytes / kLabelShare) {
      label = Filled("<em class=\"{{colour}}\">{{name}}</em>",
                     {Text("colour", stretch.colour), Text("name", std::exchange(stretch.label, ""))});
    }
    out += Filled(
        "<i class=\"{{kind}}\" style=\"left:{{left}};width:{{width}}\" "
        "title=\"{{text}}\">{{bands}}{{label}}</i>",
        {Text("kind", stretch.kind), Text("left", Share(from - begin, row_bytes)),
         Text("width", Share(to - from, row_bytes)), Text("text", stretch.text),
         Markup("bands", stretch.bands), Markup("label", label)});
  }
  return out + std::string(lines) + "</div>\n";
}

// Rows of whole parents; the last holds what is over, too.
std::string Map(const Plan& plan) {
  const std::int64_t rows = plan.parents <= kOneRow ? 1 : kRows;
  const std::int64_t in_row = std::max<std::int64_t>(CeilDiv(plan.parents + 1, rows), 1);
  const std::int64_t row_bytes = in_row * plan.parent_bytes.value();
  std::vector<Stretch> stretches = Stretches(plan);
  std::string summary;
  for (const Stretch& stretch : stretches) summary += (summary.empty() ? "" : "; ") + stretch.text;
  std::string out;
  for (std::int64_t begin = 0; row_bytes > 0 && begin < plan.arena_bytes.value(); begin += row_bytes) {
    const std::int64_t left = (plan.arena_bytes.value() - begin) / plan.parent_bytes.value();
    out += MapRow(stretches, begin, row_bytes, EdgeLines(in_row, std::min(left, in_row)));
  }
  return Filled(
      "<div class=\"map\" role=\"img\" aria-label=\"The arena of a rank, to scale. "
      "{{summary}}\">\n{{rows}}</div>\n",
      {Text("summary", summary), Markup("rows", out)});
}

struct Cells {
  std::string kind;  // class of the swatch
  std::string name;
  std::string remark;
  std::optional<std::int64_t> parents;
  std::int64_t bytes = 0;
  bool within = false;  // of the row above it
};

std::string TableRow(const Plan& plan, const Cells& cells) {
  return Filled(
      "<tr{{row}}><th scope=\"row\"><i class=\"swatch {{kind}}\"></i>{{name}}</th><td "
      "class=\"n\">{{parents}}</td>"
      "<td class=\"n\">{{bytes}}</td><td class=\"n\">{{share}}</td><td>{{remark}}</td></tr>\n",
      {Markup("row", cells.within ? " class=\"within\"" : ""), Text("kind", cells.kind),
       Text("name", cells.name), Text("parents", cells.parents.has_value() ? Thousands(*cells.parents) : ""),
       Text("bytes", BytesText(cells.bytes)),
       Text("share", PercentText(cells.bytes, std::max<std::int64_t>(plan.arena_bytes.value(), 1))),
       Text("remark", cells.remark)});
}

std::string PoolRows(const Plan& plan, std::size_t index) {
  const PlanPool& pool = plan.pools[index];
  const std::int64_t parents = ParentsOf(plan, index);
  std::int64_t left = parents * plan.parent_bytes.value();
  const auto layer_word = [](std::size_t count) {
    return Counted(static_cast<std::int64_t>(count), "layer");
  };
  std::string out =
      TableRow(plan, {PoolClass(index), pool.name,
                      absl::StrFormat("%s in a parent, each of %s", Counted(pool.blocks_per_parent, "block"),
                                      BytesText(pool.stride_bytes)),
                      parents, left});
  for (std::size_t g = 0; g < pool.groups.size(); ++g) {
    const PlanGroup& group = pool.groups[g];
    const std::int64_t bytes = GroupBytes(plan, group);
    out += TableRow(plan, {GroupClass(index, g), group.name,
                           layer_word(group.layers.size()) + ", " + BehaviourText(plan, group), std::nullopt,
                           bytes, true});
    left -= bytes;
  }
  if (left == 0) return out;
  return out +
         TableRow(plan, {"over", "around them", "padding, slack, prefill and a last parent that is not full",
                         std::nullopt, left, true});
}

}  // namespace

std::int64_t OwnedBy(const Plan& plan, const std::string& owner) {
  for (const OwnedBytes& owned : plan.attribution) {
    if (owned.owner == owner) return owned.bytes.value();
  }
  return 0;
}

std::int64_t ParentsOf(const Plan& plan, std::size_t pool) {
  const std::int64_t requests = CapacityAt(plan, plan.context_tokens).requests;
  const PoolLoad load = LoadsOf(plan)[pool];
  return CeilDiv(BlocksForRequests(load, requests, plan.context_tokens, plan.prefill_chunk),
                 load.blocks_per_parent);
}

std::string PoolClass(std::size_t pool) {
  return absl::StrFormat("p%d", static_cast<std::int64_t>(pool) % kColours);
}

std::string GroupClass(std::size_t pool, std::size_t group) {
  return absl::StrFormat("%s t%d", PoolClass(pool), static_cast<std::int64_t>(group) % kTones);
}

std::string ArenaPart(const Plan& plan) {
  if (plan.arena_bytes.value() <= 0 || plan.parent_bytes.value() <= 0) return "";
  std::string rows = TableRow(plan, {"null", "null parent", "where empty entries of every block table point",
                                     1, plan.parent_bytes.value()});
  for (std::size_t i = 0; i < plan.pools.size(); ++i) rows += PoolRows(plan, i);
  const std::int64_t free = OwnedBy(plan, "free_parents");
  rows += TableRow(plan, {"free", "free parents", "too few for one more request of this length",
                          free / plan.parent_bytes.value(), free});
  rows += TableRow(plan,
                   {"rest", "unassigned", "less than one parent", std::nullopt, OwnedBy(plan, "unassigned")});
  const std::string scale = absl::StrFormat(
      "<p class=\"caption\">%s of %s, in order from left to right; equal areas are equal bytes. While it "
      "serves, any pool "
      "takes any parent.</p>\n",
      Escaped(Counted(plan.parents, "parent")), Escaped(BytesText(plan.parent_bytes.value())));
  return Section("arena", "Arena of a rank",
                 absl::StrFormat("%s, to scale, with as many requests of %s tokens as fit. %s",
                                 BytesText(plan.arena_bytes.value()), Thousands(plan.context_tokens),
                                 plan.topology.tp == 1
                                     ? "There is one rank."
                                     : absl::StrFormat("All %d ranks are cut equally; this is each of them.",
                                                       plan.topology.tp)),
                 Map(plan) + scale +
                     "<div class=\"scroll\"><table class=\"owners\">\n<thead><tr><th "
                     "scope=\"col\">Owner</th><th scope=\"col\" "
                     "class=\"n\">Parents</th><th scope=\"col\" class=\"n\">Size</th><th scope=\"col\" "
                     "class=\"n\">Share</th><th scope=\"col\">What it is</th></tr></thead>\n<tbody>\n" +
                     rows + "</tbody></table></div>\n");
}

}  // namespace kvasir::cli
