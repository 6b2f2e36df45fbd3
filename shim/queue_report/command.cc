#include "shim/queue_report/command.h"

#include <algorithm>
#include <cstdio>
#include <map>
#include <nlohmann/json.hpp>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/time/time.h"
#include "shim/http/client.h"
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
  CommandLine line;
  absl::StatusOr<http::ShimAddress> shim = http::TakeShimFlags(line.shim.server, &arguments);
  if (!shim.ok()) return shim.status();
  line.shim = *std::move(shim);
  std::vector<std::string> words;
  for (size_t i = 0; i < arguments.size(); ++i) {
    std::string flag = arguments[i];
    if (!absl::StartsWith(flag, "-")) {
      words.push_back(flag);
      continue;
    }
    if (flag == "-h" || flag == "--help") {
      line.help = true;
      return line;
    }
    std::string value;
    const size_t equals = flag.find('=');
    if (equals != std::string::npos) {
      value = flag.substr(equals + 1);
      flag.resize(equals);
    }
    if (flag != "--limit" && flag != "-o" && flag != "--output")
      return Usage(absl::StrCat("unknown flag ", flag));
    if (equals == std::string::npos) {
      if (i + 1 == arguments.size()) return Usage(absl::StrCat(flag, " needs a value"));
      value = arguments[++i];
    }
    if (flag == "--limit") {
      if (!absl::SimpleAtoi(value, &line.limit))
        return Usage(absl::StrCat("--limit must be a number, not \"", value, "\""));
    } else if (value == "table" || value == "json") {
      line.json = value == "json";
    } else {
      return Usage(absl::StrCat(flag, " must be table or json, not \"", value, "\""));
    }
  }
  if (words.size() > 1) return Usage("name at most one pod, as NAMESPACE/NAME");
  if (words.size() == 1) {
    const std::vector<std::string> parts = absl::StrSplit(words[0], '/');
    if (parts.size() != 2 || parts[0].empty() || parts[1].empty())
      return Usage(absl::StrCat("\"", words[0], "\" is not NAMESPACE/NAME"));
    line.pod = words[0];
  }
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
  absl::StatusOr<CommandLine> line = ParseQueue(arguments);
  if (!line.ok()) {
    fprintf(stderr, "outboard queue: %s\nTry: outboard queue --help\n",
            std::string(line.status().message()).c_str());
    return 2;
  }
  if (line->help) {
    fputs(kQueueHelp, stdout);
    return 0;
  }
  absl::StatusOr<std::string> answer = Ask(*line);
  if (answer.ok() && !line->pod.empty()) {
    const Json parsed = Json::parse(*answer, nullptr, /*allow_exceptions=*/false);
    if (parsed.is_object() && parsed.contains("pods") && parsed["pods"].empty())
      answer = absl::NotFoundError(absl::StrCat(
          line->pod, " is not in the queue: it has a node, or no profile takes it, or it is gone"));
  }
  if (answer.ok() && !line->json) answer = ToTable(*answer);
  if (!answer.ok()) {
    fprintf(stderr, "outboard queue: %s\n", std::string(answer.status().message()).c_str());
    return 1;
  }
  fputs(answer->c_str(), stdout);
  return 0;
}

}  // namespace outboard::queue_report
