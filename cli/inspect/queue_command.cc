#include "cli/inspect/queue_command.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/time.h"
#include "cli/command_line.h"
#include "shim/http/page_text.h"

namespace outboard::inspect {
namespace {

using Json = nlohmann::ordered_json;

constexpr absl::Duration kQueueTimeout = absl::Seconds(30);

absl::StatusOr<std::string> GetQueue(const QueueLine& line) {
  std::multimap<std::string, std::string> parameters = {{"limit", absl::StrCat(line.limit)}};
  if (!line.pod.empty()) parameters.emplace("pod", line.pod);
  return http::GetPage(line.shim, "/queue", parameters, kQueueTimeout);
}

// A replica that does not lead makes no attempts: all pods that wait look new to it.
absl::Status NotTheLeader(const std::string& leader) {
  return absl::FailedPreconditionError(absl::StrCat(
      http::FollowerNote(leader), "; --output json shows the queue of this one all the same"));
}

absl::StatusOr<std::string> ShowQueue(const QueueLine& line) {
  const absl::StatusOr<std::string> page = GetQueue(line);
  if (!page.ok()) return page;
  const Json parsed = Json::parse(*page, nullptr, /*allow_exceptions=*/false);
  if (!line.json && parsed.is_object() && parsed.contains("leader"))
    return NotTheLeader(parsed.value("leader", ""));
  if (!line.pod.empty()) {
    if (parsed.is_object() && parsed.contains("pods") && parsed["pods"].empty())
      return absl::NotFoundError(absl::StrCat(
          line.pod,
          " is not in the queue: it has a node, no profile schedules it, or it was deleted"));
  }
  return line.json ? *page : QueueTable(*page);
}

std::string QueueReason(const Json& pod, absl::Time now) {
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

Asks a running outboard-shim. A pod is in one of these places:
  active                 waits for its turn
  backoff, errorBackoff  waits because an attempt failed a moment ago
  unschedulable          waits for an event
  gated                  a PreEnqueue plugin keeps it out of the queue
  parked                 waits for a plugin host
  inFlight               an attempt or a bind is in progress

Usage:
  outboard queue [NAMESPACE/NAME] [flags]

Flags:
)" OUTBOARD_SHIM_FLAGS_HELP R"(
  --limit N              List at most N pods (default: 100); the counts include all pods
  -o, --output FORMAT    table (default) or json (all details of each pod, and how far each host has followed)
  -h, --help             Print this text

Columns: REQUEUED counts the events that let the pod try again, LAST EVENT names the last one, REJECTED BY lists the
plugins that rejected it in its last attempt. `outboard explain` shows their reasons, node by node.

A replica that does not lead names the leader: ask that one.

Exit codes: 0 shown; 1 the shim cannot be reached or does not lead, or the pod is not in its queue; 2 invalid usage.

Example:
  outboard queue default/trainer-0
)";

config::FlagTable QueueFlags(QueueLine* line) {
  config::FlagTable flags;
  cli::AddShimFlags(&flags, &line->shim);
  flags.Number("--limit", "a number, 0 or more", &line->limit);
  flags.Output(&line->json);
  return flags;
}

absl::StatusOr<QueueLine> ParseQueue(const std::vector<std::string>& arguments) {
  QueueLine line;
  config::FlagTable flags = QueueFlags(&line);
  if (absl::Status parsed = flags.Parse(arguments); !parsed.ok()) return parsed;
  line.help = flags.help();
  if (line.help || flags.words().empty()) return line;
  if (flags.words().size() > 1)
    return absl::InvalidArgumentError(absl::StrCat("unexpected argument \"", flags.words()[1],
                                                   "\"; give at most one pod, as NAMESPACE/NAME"));
  line.pod = flags.words()[0];
  if (absl::Status is_pod = cli::CheckPodName(line.pod); !is_pod.ok()) return is_pod;
  return line;
}

absl::StatusOr<std::string> QueueTable(const std::string& json) {
  Json parsed = Json::parse(json, nullptr, /*allow_exceptions=*/false);
  if (!parsed.is_object() || !parsed["pods"].is_array() || !parsed["counts"].is_object())
    return absl::InternalError("this version does not understand the shim's answer");
  const absl::Time now = http::TimeOf(parsed.value("time", ""));
  std::vector<std::vector<std::string>> rows = {
      {"POD", "WHERE", "FOR", "TRIED", "REQUEUED", "LAST EVENT", "REJECTED BY"}};
  for (Json& pod : parsed["pods"]) {
    const absl::Time since = http::TimeOf(pod.value("lastTransition", ""));
    rows.push_back({absl::StrCat(pod.value("namespace", ""), "/", pod.value("name", "")),
                    pod.value("where", ""),
                    since == absl::InfinitePast() ? "-" : http::Age(now - since),
                    absl::StrCat(pod.value("attempts", 0)), absl::StrCat(pod.value("requeues", 0)),
                    pod.value("lastEvent", "-"), QueueReason(pod, now)});
  }
  std::vector<std::string> counts;
  for (const auto& [place, count] : parsed["counts"].items())
    counts.push_back(absl::StrCat(count.get<int64_t>(), " ", place));
  std::string out =
      absl::StrCat(http::Notice(parsed.value("apiServer", "")), absl::StrJoin(counts, ", "), "\n");
  if (rows.size() == 1) return out;
  out += http::AlignedRows(rows);
  if (const int64_t omitted = parsed.value("omitted", int64_t{0}); omitted > 0)
    absl::StrAppend(&out, "…and ", omitted, " more pods; --limit shows more\n");
  return out;
}

int RunQueue(const std::vector<std::string>& arguments) {
  return cli::RunCommand("queue", kQueueHelp, ParseQueue(arguments), ShowQueue);
}

}  // namespace outboard::inspect
