// A block of each pool with the layers inside, drawn to scale.
#include <algorithm>
#include <string_view>
#include <tuple>

#include "absl/strings/str_format.h"
#include "planner/cli/page/html_text.h"
#include "planner/cli/page/page_parts.h"
#include "planner/cli/quantity.h"

namespace kvasir::cli {
namespace {

constexpr std::size_t kEdgesMax = 160;  // layers of a bar whose edges can be told apart

struct Page {
  const PlanLayer* layer = nullptr;
  std::size_t group = 0;
};

// The layers of one part, by offset.
std::vector<Page> PagesOf(const PlanPool& pool, std::int64_t part) {
  std::vector<Page> pages;
  for (std::size_t g = 0; g < pool.groups.size(); ++g) {
    for (const PlanLayer& layer : pool.groups[g].layers) {
      if (layer.part == part) pages.push_back({&layer, g});
    }
  }
  std::sort(pages.begin(), pages.end(), [](const Page& a, const Page& b) {
    return std::tie(a.layer->offset_bytes, a.layer->id) < std::tie(b.layer->offset_bytes, b.layer->id);
  });
  return pages;
}

std::string Bar(const PlanPool& pool, std::size_t index, std::int64_t part) {
  const std::vector<Page> pages = PagesOf(pool, part);
  std::string label = pool.parts == 1 ? "" : absl::StrFormat("part %d of %d", part + 1, pool.parts);
  std::string out;
  std::int64_t end = 0;
  for (const Page& page : pages) {
    const PlanLayer& layer = *page.layer;
    out += Filled("<li class=\"{{kind}}\" style=\"left:{{left}};width:{{width}}\" title=\"{{text}}\"></li>",
                  {Text("kind", GroupClass(index, page.group)),
                   Text("left", Share(layer.offset_bytes, pool.stride_bytes)),
                   Text("width", Share(layer.page_bytes, pool.stride_bytes)),
                   Text("text", absl::StrFormat("%s (%s): offset %s, %s bytes", layer.name,
                                                pool.groups[page.group].name, Thousands(layer.offset_bytes),
                                                Thousands(layer.page_bytes)))});
    end = std::max(end, layer.offset_bytes + layer.page_bytes);
  }
  if (end < pool.stride_bytes) {
    out += Filled("<li class=\"over\" style=\"left:{{left}};width:{{width}}\" title=\"{{text}}\"></li>",
                  {Text("left", Share(end, pool.stride_bytes)),
                   Text("width", Share(pool.stride_bytes - end, pool.stride_bytes)),
                   Text("text", absl::StrFormat("to the next block: offset %s, %s bytes", Thousands(end),
                                                Thousands(pool.stride_bytes - end)))});
  }
  const auto layers = static_cast<std::int64_t>(pages.size());
  return Filled(
      "<div class=\"part\">{{label}}<ol class=\"block{{fine}}\" data-block "
      "aria-label=\"{{name}}\">{{layers}}</ol></div>\n",
      {Markup("label", label.empty() ? "" : "<span>" + label + "</span>"),
       Markup("fine", pages.size() > kEdgesMax ? " fine" : ""),
       Text("name", absl::StrFormat("Block of pool %s%s: %s by offset", pool.name,
                                    label.empty() ? "" : ", " + label, Counted(layers, "layer"))),
       Markup("layers", out)});
}

std::string Unit(const PlanPool& pool) {
  if (pool.lifetime.kind != LifetimeKind::kPerSequence) {
    return absl::StrFormat("%s of each layer%s", Counted(pool.block_tokens, "token"),
                           pool.sharded ? ", spread over the context's ranks" : "");
  }
  std::string text = pool.parts == 1 ? "the state of one request"
                                     : absl::StrFormat("one of %d parts of a request's state", pool.parts);
  if (pool.lifetime.copies > 1) text += absl::StrFormat(", kept %d times", pool.lifetime.copies);
  return text;
}

std::string Legend(const Plan& plan, const PlanPool& pool, std::size_t index) {
  std::string out = "<ul class=\"legend\">\n";
  for (std::size_t g = 0; g < pool.groups.size(); ++g) {
    const PlanGroup& group = pool.groups[g];
    std::int64_t bytes = 0;
    for (const PlanLayer& layer : group.layers) bytes += layer.page_bytes;
    out +=
        Filled("<li><i class=\"swatch {{kind}}\"></i><b>{{name}}</b> {{text}}</li>\n",
               {Text("kind", GroupClass(index, g)), Text("name", group.name),
                Text("text", absl::StrFormat("%s, %s, %s",
                                             Counted(static_cast<std::int64_t>(group.layers.size()), "layer"),
                                             BytesText(bytes), BehaviourText(plan, group)))});
  }
  return out + "</ul>\n";
}

// The same without pointing at anything.
std::string LayerTable(const PlanPool& pool) {
  std::string rows;
  for (std::int64_t part = 0; part < pool.parts; ++part) {
    for (const Page& page : PagesOf(pool, part)) {
      rows += Filled(
          "<tr><th scope=\"row\">{{name}}</th><td>{{group}}</td>{{part}}<td class=\"n\">{{offset}}</td><td "
          "class=\"n\">{{bytes}}</td></tr>\n",
          {Text("name", page.layer->name), Text("group", pool.groups[page.group].name),
           Markup("part", pool.parts == 1 ? "" : absl::StrFormat("<td class=\"n\">%d</td>", part + 1)),
           Text("offset", Thousands(page.layer->offset_bytes)),
           Text("bytes", Thousands(page.layer->page_bytes))});
    }
  }
  return Filled(
      "<details class=\"layers\"><summary>Layers of {{pool}} as a table</summary>\n<div "
      "class=\"scroll\"><table>\n"
      "<thead><tr><th scope=\"col\">Layer</th><th scope=\"col\">Group</th>{{part}}<th scope=\"col\" "
      "class=\"n\">Offset</th><th scope=\"col\" class=\"n\">Bytes</th></tr></thead>\n<tbody>\n{{rows}}"
      "</tbody></table></div></details>\n",
      {Text("pool", pool.name),
       Markup("part", pool.parts == 1 ? "" : "<th scope=\"col\" class=\"n\">Part</th>"),
       Markup("rows", rows)});
}

}  // namespace

std::string BlocksPart(const Plan& plan) {
  std::string body;
  for (std::size_t i = 0; i < plan.pools.size(); ++i) {
    const PlanPool& pool = plan.pools[i];
    std::string bars;
    for (std::int64_t part = 0; part < pool.parts; ++part) bars += Bar(pool, i, part);
    body += Filled(
        "<article class=\"pool\">\n<h3>{{name}}</h3>\n<p class=\"caption\">{{text}}</p>\n{{bars}}"
        "{{legend}}{{table}}</article>\n",
        {Text("name", pool.name),
         Text("text", absl::StrFormat("A block is %s bytes: %s. Blocks begin %s bytes apart.",
                                      Thousands(pool.block_bytes), Unit(pool), Thousands(pool.stride_bytes))),
         Markup("bars", bars), Markup("legend", Legend(plan, pool, i)), Markup("table", LayerTable(pool))});
  }
  return Section(
      "blocks", "A block of each pool",
      "Layers in the order of their offsets, each bar at its own scale. Point at a layer, or go to a bar "
      "and use the arrow keys.",
      body);
}

}  // namespace kvasir::cli
