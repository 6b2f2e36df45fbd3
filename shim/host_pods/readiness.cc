#include "shim/host_pods/readiness.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "shim/cut_text.h"

namespace outboard::host_pods {
namespace {

using hosts::InstanceState;

constexpr size_t kMaxMessage = 1024;

// In the order in which they prevail in a pod with several hosts.
enum class Kind { kRefused, kPending, kReady };

struct Verdict {
  Kind kind;
  const char* reason;
  const char* text;
};

Verdict StateOf(const hosts::InstanceView* instance) {
  if (instance == nullptr)
    return {Kind::kPending, "NotConnected", "the scheduler has no session with it yet"};
  switch (instance->state) {
    case InstanceState::kServing:
      return {Kind::kReady, "Serving", "pods are scheduled by it"};
    case InstanceState::kStandby:
      return {Kind::kReady, "Standby", "it is ready to take over"};
    case InstanceState::kRefused:
      return {Kind::kRefused, "Refused", "its configuration or its plugins are not usable"};
    case InstanceState::kQuarantined:
      return {Kind::kRefused, "Quarantined", "its build has failed"};
    case InstanceState::kWaiting:
      return {Kind::kPending, "Waiting", "it waits for its session"};
    case InstanceState::kSyncing:
      return {Kind::kPending, "Syncing", "its cache of the cluster is being filled"};
    case InstanceState::kShadow:
      return {Kind::kPending, "Comparing", "it is compared with the serving instance"};
    case InstanceState::kDraining:
      return {Kind::kPending, "Draining", "it ends"};
  }
  return {Kind::kPending, "Unknown", "its state is unknown"};
}

// A session ends when its instance was replaced; that of another host in the pod may begin later.
Verdict VerdictOf(const HostInPod& host) {
  const Verdict state = StateOf(host.instance);
  if (state.kind == Kind::kPending && host.was_ready)
    return {Kind::kReady, "Standby", "it was ready before"};
  return state;
}

}  // namespace

std::optional<Readiness> WantedReadiness(const Readiness& current,
                                         const std::vector<HostInPod>& hosts) {
  Verdict first = {Kind::kReady, "", ""};
  std::vector<std::string> texts;
  for (const HostInPod& host : hosts) {
    const Verdict verdict = VerdictOf(host);
    if (*first.reason == '\0' || verdict.kind < first.kind) first = verdict;
    const std::string why = host.instance == nullptr ? "" : host.instance->why;
    texts.push_back(
        absl::StrCat("host ", host.host, ": ", verdict.text, why.empty() ? "" : ": ", why));
  }
  if (first.kind == Kind::kPending && (current.status == "True" || current.reason == first.reason))
    return std::nullopt;
  const Readiness wanted{first.kind == Kind::kReady ? "True" : "False", first.reason,
                         std::string(CutAtCharacter(absl::StrJoin(texts, "; "), kMaxMessage))};
  // Serving and standby take turns; each of them proves the pod.
  if (wanted.status == "True" && current.status == "True") return std::nullopt;
  if (wanted == current) return std::nullopt;
  return wanted;
}

}  // namespace outboard::host_pods
