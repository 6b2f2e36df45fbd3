#include "shim/queue_report/command.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/time.h"
#include "shim/http/client.h"
#include "shim/http/command_line.h"
#include "shim/http/page_text.h"

namespace outboard::queue_report {
namespace {

using Json = nlohmann::ordered_json;

constexpr absl::Duration kTimeout = absl::Seconds(30);

absl::Status Usage(std::string message) { return absl::InvalidArgumentError(std::move(message)); }

absl::StatusOr<std::string> Ask(const CommandLine& line) {
  std::multimap<std::string, std::string> parameters = {{"limit", absl::StrCat(line.limit)}};
  if (!line.pod.empty()) parameters.emplace("pod", line.pod);
  return http::GetPage(line.shim, "/queue", parameters, kTimeout);
}

absl::StatusOr<std::string> Show(const CommandLine& line) {
  const absl::StatusOr<std::string> page = Ask(line);
  if (!page.ok()) return page;
  if (!line.pod.empty()) {
    const Json parsed = Json::parse(*page, nullptr, /*allow_exceptions=*/false);
    if (parsed.is_object() && parsed.contains("pods") && parsed["pods"].empty())
      return absl::NotFoundError(absl::StrCat(
          line.pod, " is not in the queue: it has a node, or no profile takes it, or it is gone"));
  }
  return line.json ? *page : ToTable(*page);
}

std::string Why(const Json& pod, absl::Time now) {
  std::vector<std::string> parts;
  if (const std::string gate = pod.value("gatingPlugin", ""); !gate.empty())
    parts.push_back(absl::StrCat("gated by ", gate));
  if (const std::string host = pod.value("parkedHost", ""); !host.empty())
    parts.push_back(absl::StrCat("waits for host ", host));
  const std::vector<std::string> rejected = pod["unschedulablePlugins"];
  const std::vector<std::string> pending = pod["pendingPlugins"];
  if (!rejected.empty()) parts.push_back(absl::StrJoin(rejected, ","));
  if (!pending.empty()) parts.push_back(absl::StrCat("pending: ", absl::StrJoin(pending, ",")));
  if (const absl::Time until = http::TimeOf(pod.value("backoffUntil", ""));
      until != absl::InfinitePast())
    parts.push_back(absl::StrCat("back in ", http::Age(until - now)));
  return absl::StrJoin(parts, "; ");
}

}  // namespace

const char kQueueHelp[] =
    R"(outboard queue: which pods wait for a node, where in the queue, and why?

Asks a running outboard-shim. Places: active (its turn comes), backoff and errorBackoff (was tried a moment ago), unschedulable
(waits for an event), gated (PreEnqueue keeps it out), parked (a plugin host is away), inFlight (is being tried or bound).

Usage:
  outboard queue [NAMESPACE/NAME] [flags]

Flags:
  --server ADDRESS       HOST:PORT of the shim's servingAddress (default: 127.0.0.1:10269), or https://HOST:PORT of its secureServing
  --token-file FILE      With https://: a bearer token whose owner may see the page
  --certificate-authority FILE, --insecure-skip-tls-verify
                         With https://: who has signed the shim's certificate (default: the system's), or not to ask
  --limit N              Show at most N pods (default: 100); all are counted
  -o, --output FORMAT    table (default) or json (all that is known of each pod, and how far hosts have followed)
  -h, --help             This text

Columns: REQUEUED counts how often an event let the pod try again, LAST EVENT names it, REJECTED BY are plugins of its last attempt.
`outboard explain` tells what they said, node by node.

Exit codes: 0 shown; 1 the shim cannot be reached, or the pod is not in its queue; 2 wrong usage.

Example:
  outboard queue default/trainer-0
)";

absl::StatusOr<CommandLine> ParseQueue(std::vector<std::string> arguments) {
  const auto parsed = http::ParseCommandLine({.flags = {"--limit"}}, std::move(arguments));
  if (!parsed.ok()) return parsed.status();
  CommandLine line;
  line.shim = parsed->shim;
  line.json = parsed->json;
  line.help = parsed->help;
  if (line.help) return line;
  if (const auto limit = parsed->flags.find("--limit");
      limit != parsed->flags.end() && !absl::SimpleAtoi(limit->second, &line.limit))
    return Usage(absl::StrCat("--limit must be a number, not \"", limit->second, "\""));
  if (parsed->words.size() > 1) return Usage("name at most one pod, as NAMESPACE/NAME");
  if (parsed->words.empty()) return line;
  const absl::Status is_pod = http::CheckPodName(parsed->words[0]);
  if (!is_pod.ok()) return is_pod;
  line.pod = parsed->words[0];
  return line;
}

absl::StatusOr<std::string> ToTable(const std::string& json) {
  Json parsed = Json::parse(json, nullptr, /*allow_exceptions=*/false);
  if (!parsed.is_object() || !parsed["pods"].is_array() || !parsed["counts"].is_object())
    return absl::InternalError("the shim's answer is not what this version understands");
  const absl::Time now = http::TimeOf(parsed.value("time", ""));
  std::vector<std::vector<std::string>> rows = {
      {"POD", "WHERE", "FOR", "TRIED", "REQUEUED", "LAST EVENT", "REJECTED BY"}};
  for (Json& pod : parsed["pods"]) {
    const absl::Time since = http::TimeOf(pod.value("lastTransition", ""));
    rows.push_back({absl::StrCat(pod.value("namespace", ""), "/", pod.value("name", "")),
                    pod.value("where", ""),
                    since == absl::InfinitePast() ? "-" : http::Age(now - since),
                    absl::StrCat(pod.value("attempts", 0)), absl::StrCat(pod.value("requeues", 0)),
                    pod.value("lastEvent", "-"), Why(pod, now)});
  }
  std::vector<std::string> counts;
  for (const auto& [place, count] : parsed["counts"].items())
    counts.push_back(absl::StrCat(count.get<int64_t>(), " ", place));
  std::string out = absl::StrCat(absl::StrJoin(counts, ", "), "\n");
  if (rows.size() == 1) return out;
  out += http::AlignedRows(rows);
  if (const int64_t omitted = parsed.value("omitted", int64_t{0}); omitted > 0)
    absl::StrAppend(&out, "…and ", omitted, " more pods; --limit shows more\n");
  return out;
}

int RunQueue(const std::vector<std::string>& arguments) {
  return http::RunCommand("queue", kQueueHelp, ParseQueue(arguments), Show);
}

}  // namespace outboard::queue_report
