#include "shim/diagnostics/queue_report.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "absl/strings/string_view.h"

namespace outboard::diagnostics {
namespace {

using Json = nlohmann::ordered_json;
using queue::Place;
using queue::QueuedPod;

const char* NameOf(Place place) {
  switch (place) {
    case Place::kNone:
      break;
    case Place::kActive:
      return "active";
    case Place::kBackoff:
      return "backoff";
    case Place::kErrorBackoff:
      return "errorBackoff";
    case Place::kUnschedulable:
      return "unschedulable";
    case Place::kGated:
      return "gated";
    case Place::kParked:
      return "parked";
    case Place::kInFlight:
      return "inFlight";
  }
  return "none";
}

void Count(Place place, QueueCounts* counts) {
  switch (place) {
    case Place::kNone:
      break;
    case Place::kActive:
      ++counts->active;
      break;
    case Place::kBackoff:
      ++counts->backoff;
      break;
    case Place::kErrorBackoff:
      ++counts->error_backoff;
      break;
    case Place::kUnschedulable:
      ++counts->unschedulable;
      break;
    case Place::kGated:
      ++counts->gated;
      break;
    case Place::kParked:
      ++counts->parked;
      break;
    case Place::kInFlight:
      ++counts->in_flight;
      break;
  }
}

bool IsAsked(const QueuedPod& pod, absl::string_view key) {
  if (key.empty()) return true;
  const std::string& ns = pod.pod->pod.namespace_();
  return key.size() == ns.size() + 1 + pod.pod->pod.name().size() &&
         key.substr(0, ns.size()) == ns && key[ns.size()] == '/' &&
         key.substr(ns.size() + 1) == pod.pod->pod.name();
}

// `to_wall` converts times of the queue to wall times; what is not set stays so.
PodEntry Copy(const QueuedPod& pod, absl::Duration to_wall) {
  PodEntry entry;
  entry.ns = pod.pod->pod.namespace_();
  entry.name = pod.pod->pod.name();
  entry.uid = pod.uid();
  entry.profile = pod.pod->pod.scheduler_name();
  entry.place = pod.place;
  entry.deleted = pod.deleted;
  entry.attempts = pod.attempts;
  entry.requeues = pod.requeues;
  entry.unschedulable_plugins.assign(pod.unschedulable_plugins.begin(),
                                     pod.unschedulable_plugins.end());
  entry.pending_plugins.assign(pod.pending_plugins.begin(), pod.pending_plugins.end());
  entry.gating_plugin = pod.gating_plugin;
  entry.gate_message = pod.gate_message;
  entry.parked_host = pod.parked_host;
  entry.last_event = pod.last_event;
  entry.queued = pod.timestamp + to_wall;
  entry.initial_attempt = pod.initial_attempt_time.value_or(absl::InfinitePast()) + to_wall;
  entry.last_transition = pod.last_transition + to_wall;
  if (pod.place == Place::kBackoff || pod.place == Place::kErrorBackoff)
    entry.backoff_until = pod.backoff_expiration.value_or(absl::InfinitePast()) + to_wall;
  return entry;
}

void AddTime(const char* name, absl::Time time, Json* json) {
  if (time == absl::InfinitePast()) return;
  (*json)[name] = absl::FormatTime("%Y-%m-%d%ET%H:%M:%E3SZ", time, absl::UTCTimeZone());
}

void AddText(const char* name, const std::string& text, Json* json) {
  if (!text.empty()) (*json)[name] = text;
}

Json PodJson(const PodEntry& pod) {
  Json json = {{"namespace", pod.ns},     {"name", pod.name},           {"uid", pod.uid},
               {"profile", pod.profile},  {"where", NameOf(pod.place)}, {"attempts", pod.attempts},
               {"requeues", pod.requeues}};
  AddText("lastEvent", pod.last_event, &json);
  json["unschedulablePlugins"] = pod.unschedulable_plugins;
  json["pendingPlugins"] = pod.pending_plugins;
  AddText("gatingPlugin", pod.gating_plugin, &json);
  AddText("gateMessage", pod.gate_message, &json);
  AddText("parkedHost", pod.parked_host, &json);
  if (pod.deleted) json["deleted"] = true;
  AddTime("queued", pod.queued, &json);
  AddTime("initialAttempt", pod.initial_attempt, &json);
  AddTime("lastTransition", pod.last_transition, &json);
  AddTime("backoffUntil", pod.backoff_until, &json);
  return json;
}

}  // namespace

QueueReport CollectQueue(const queue::SchedulingQueue& queue, const QueueQuery& query,
                         absl::Time now, absl::Time wall) {
  QueueReport report;
  report.time = wall;
  std::vector<const QueuedPod*> asked;
  queue.ForEach([&](const QueuedPod& pod) {
    Count(pod.place, &report.counts);
    if (IsAsked(pod, query.pod)) asked.push_back(&pod);
  });
  const size_t listed = std::min({asked.size(), query.limit, kMaxQueueLimit});
  std::partial_sort(asked.begin(), asked.begin() + static_cast<ptrdiff_t>(listed), asked.end(),
                    [](const QueuedPod* a, const QueuedPod* b) {
                      if (a->place != b->place) return a->place < b->place;
                      return a->sequence < b->sequence;
                    });
  report.omitted = asked.size() - listed;
  report.pods.reserve(listed);
  for (size_t i = 0; i < listed; ++i) report.pods.push_back(Copy(*asked[i], wall - now));
  return report;
}

std::string ToJson(const QueueReport& report) {
  Json json;
  AddTime("time", report.time, &json);
  if (!report.api_server.empty()) json["apiServer"] = report.api_server;
  if (report.leader.has_value()) json["leader"] = *report.leader;
  const QueueCounts& counts = report.counts;
  json["counts"] = {{"active", counts.active},
                    {"backoff", counts.backoff},
                    {"errorBackoff", counts.error_backoff},
                    {"unschedulable", counts.unschedulable},
                    {"gated", counts.gated},
                    {"parked", counts.parked},
                    {"inFlight", counts.in_flight}};
  json["pods"] = Json::array();
  for (const PodEntry& pod : report.pods) json["pods"].push_back(PodJson(pod));
  json["omitted"] = report.omitted;
  json["hosts"] = Json::array();
  for (const HostEntry& host : report.hosts) {
    json["hosts"].push_back({{"name", host.name},
                             {"instance", host.instance},
                             {"usable", host.usable},
                             {"sentVersion", host.sent_version},
                             {"acknowledgedVersion", host.acknowledged_version}});
  }
  return json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace outboard::diagnostics
