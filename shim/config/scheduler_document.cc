// Reads KubeSchedulerConfiguration, kubescheduler.config.k8s.io/v1.
#include <map>
#include <set>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "shim/config/default_plugins.h"
#include "shim/config/documents.h"
#include "shim/leader/lease_timings.h"

namespace outboard::config {
namespace {

constexpr char kGroupVersion[] = "kubescheduler.config.k8s.io/v1";

void Invalid(MapReader& reader, absl::string_view key, absl::string_view value,
             absl::string_view detail) {
  reader.problems().Add(reader.where(key), absl::StrCat("Invalid value: ", value, ": ", detail));
}

void Required(MapReader& reader, absl::string_view key) {
  reader.problems().Add(reader.where(key), "Required value");
}

std::string Quoted(absl::string_view text) { return absl::StrCat("\"", text, "\""); }

void ReadPercentage(MapReader& reader, std::optional<int32_t>* out) {
  constexpr char kKey[] = "percentageOfNodesToScore";
  int32_t value = 0;
  if (!reader.Int32(kKey, &value)) return;
  if (value < 0 || value > 100)
    Invalid(reader, kKey, absl::StrCat(value), "not in valid range [0-100]");
  *out = value;
}

void ReadPluginEntries(MapReader& reader, absl::string_view key, bool enabled,
                       std::vector<PluginEntry>* out) {
  reader.MapList(key, [&](MapReader& entry) {
    PluginEntry plugin;
    plugin.where = entry.where();
    if (!entry.String("name", &plugin.name) || plugin.name.empty()) Required(entry, "name");
    entry.Int32("weight", &plugin.weight);
    if (plugin.weight < 0) {
      // kube-scheduler accepts it, and prefers the nodes that the plugin scores lowest.
      Invalid(entry, "weight", absl::StrCat(plugin.weight), "must be greater than or equal to 0");
    }
    if (enabled && plugin.name == "*") {
      Invalid(entry, "name", Quoted(plugin.name), "only allowed in disabled lists");
    } else if (enabled && IsRemovedPlugin(plugin.name)) {
      entry.problems().Add(
          entry.where(),
          absl::StrCat("Invalid value: ", Quoted(plugin.name), ": was invalid in version \"",
                       kGroupVersion, "\" (KubeSchedulerConfiguration is version \"", kGroupVersion,
                       "\")"));
    }
    if (!plugin.name.empty()) out->push_back(std::move(plugin));
  });
}

PluginSet ReadPluginSet(MapReader& plugins, absl::string_view key) {
  PluginSet set;
  plugins.Map(key, [&](MapReader& reader) {
    ReadPluginEntries(reader, "enabled", true, &set.enabled);
    ReadPluginEntries(reader, "disabled", false, &set.disabled);
  });
  return set;
}

void ReadPlugins(MapReader& reader, ProfileSpec* profile) {
  profile->multi_point =
      MergePluginSet(PluginSet{DefaultMultiPoint(), {}}, ReadPluginSet(reader, "multiPoint"));
  for (v1beta1::ExtensionPoint point : AllPoints()) {
    PluginSet set = ReadPluginSet(reader, PointName(point));
    if (!set.enabled.empty() || !set.disabled.empty()) profile->points[point] = std::move(set);
  }
}

// Removes apiVersion and kind from the args, and validates them if kube-scheduler would.
void ReadArgs(const YAML::Node& node, PluginArgs* out, Problems* problems) {
  if (!node.IsMap()) {
    problems->Add(out->where, "expected a mapping");
    return;
  }
  YAML::Node args(YAML::NodeType::Map);
  for (const auto& entry : node) {
    const std::string key = entry.first.IsScalar() ? entry.first.Scalar() : "";
    if (key != "apiVersion" && key != "kind") {
      args.force_insert(entry.first, entry.second);
      continue;
    }
    const std::string value = entry.second.IsScalar() ? entry.second.Scalar() : "";
    const std::string wanted = key == "kind" ? absl::StrCat(out->name, "Args") : kGroupVersion;
    if (HasUpstreamArgs(out->name) && value != wanted) {
      problems->Add(LocationOf(entry.first, absl::StrCat(out->where.path, ".", key)),
                    absl::StrCat("Invalid value: ", Quoted(value),
                                 ": has to match plugin args, expected ", Quoted(wanted)));
    }
  }
  absl::StatusOr<std::string> json = YamlToJson(args);
  if (json.ok()) {
    out->args_json = *std::move(json);
  } else {
    problems->Add(out->where, json.status().message());
  }
}

void ReadPluginConfig(MapReader& reader, ProfileSpec* profile) {
  std::set<std::string> seen;
  reader.MapList("pluginConfig", [&](MapReader& entry) {
    PluginArgs args;
    args.args_json = "{}";
    args.where = entry.where();
    if (!entry.String("name", &args.name) || args.name.empty()) {
      Required(entry, "name");
    } else if (!seen.insert(args.name).second) {
      entry.problems().Add(entry.where(), absl::StrCat("Duplicate value: ", Quoted(args.name)));
    } else if (IsRemovedPlugin(args.name)) {
      entry.problems().Add(entry.where(),
                           absl::StrCat("Invalid value: ", Quoted(args.name), ": was removed"));
    }
    YAML::Node node;
    if (entry.Any("args", &node, &args.where)) ReadArgs(node, &args, &entry.problems());
    profile->plugin_config.push_back(std::move(args));
  });
}

void ReadProfile(MapReader& reader, ProfileSpec* profile) {
  profile->where = reader.where();
  reader.String("schedulerName", &profile->scheduler_name);
  ReadPercentage(reader, &profile->percentage_of_nodes_to_score);
  profile->multi_point.enabled = DefaultMultiPoint();
  reader.Map("plugins", [&](MapReader& plugins) { ReadPlugins(plugins, profile); });
  ReadPluginConfig(reader, profile);
}

void CheckProfileNames(const std::vector<ProfileSpec>& profiles, Problems* problems) {
  std::map<std::string, size_t> first;
  for (size_t i = 0; i < profiles.size(); ++i) {
    const Location& where = profiles[i].where;
    const std::string path = absl::StrCat("profiles[", i, "].schedulerName");
    if (profiles[i].scheduler_name.empty()) {
      problems->Add(where, path, "Required value");
      continue;
    }
    auto [it, fresh] = first.emplace(profiles[i].scheduler_name, i);
    if (!fresh) {
      problems->Add(where, path,
                    absl::StrCat("Duplicate value: profiles[", it->second, "].schedulerName"));
    }
  }
}

std::string QueueSortKey(const ProfileSpec& profile) {
  std::string key;
  auto it = profile.points.find(v1beta1::EXTENSION_POINT_QUEUE_SORT);
  if (it == profile.points.end()) return key;
  for (const PluginEntry& entry : it->second.enabled)
    absl::StrAppend(&key, "+", entry.name, "=", entry.weight);
  for (const PluginEntry& entry : it->second.disabled) absl::StrAppend(&key, "-", entry.name);
  return key;
}

// The part of the check that does not need to know plugins. ResolveProfiles checks the result of
// multiPoint.
void CheckCommonQueueSort(const std::vector<ProfileSpec>& profiles, Problems* problems) {
  for (size_t i = 0; i < profiles.size(); ++i) {
    const std::string path = absl::StrCat("profiles[", i, "].plugins.queueSort");
    auto it = profiles[i].points.find(v1beta1::EXTENSION_POINT_QUEUE_SORT);
    const size_t count = it == profiles[i].points.end() ? 0 : it->second.enabled.size();
    if (count > 1) {
      problems->Add(
          it->second.enabled[1].where, absl::StrCat(path, ".enabled"),
          absl::StrCat("Invalid value: ", count, ": only one queue sort plugin can be enabled"));
    }
    if (QueueSortKey(profiles[i]) != QueueSortKey(profiles[0])) {
      problems->Add(profiles[i].where, path, "Invalid value: must be the same for all profiles");
    }
  }
}

void ReadClientConnection(MapReader& reader, ClientConnection* out) {
  reader.String("kubeconfig", &out->kubeconfig);
  reader.String("acceptContentTypes", &out->accept_content_types);
  std::string content_type;
  reader.String("contentType", &content_type);
  if (!content_type.empty()) out->content_type = content_type;
  double qps = 0;
  reader.Float("qps", &qps);
  if (qps != 0) out->qps = qps;
  int32_t burst = 0;
  reader.Int32("burst", &burst);
  if (burst < 0) Invalid(reader, "burst", absl::StrCat(burst), "must be non-negative");
  if (burst > 0) out->burst = burst;
}

void ReadDuration(MapReader& reader, absl::string_view key, absl::Duration* out) {
  absl::Duration value;
  if (!reader.Duration(key, &value)) return;
  if (value != absl::ZeroDuration()) *out = value;
}

void ReadLeaderElection(MapReader& reader, LeaderElection* out,
                        std::vector<std::string>* warnings) {
  reader.Bool("leaderElect", &out->leader_elect);
  ReadDuration(reader, "leaseDuration", &out->lease_duration);
  ReadDuration(reader, "renewDeadline", &out->renew_deadline);
  ReadDuration(reader, "retryPeriod", &out->retry_period);
  const LeaderElection defaults;
  reader.String("resourceLock", &out->resource_lock);
  reader.String("resourceName", &out->resource_name);
  reader.String("resourceNamespace", &out->resource_namespace);
  if (out->resource_lock.empty()) out->resource_lock = defaults.resource_lock;
  if (out->resource_name.empty()) out->resource_name = defaults.resource_name;
  if (out->resource_namespace.empty()) out->resource_namespace = defaults.resource_namespace;
  if (!out->leader_elect) return;
  if (out->resource_name == "kube-scheduler" && out->resource_namespace == "kube-system") {
    const Location where = reader.where("resourceName");
    warnings->push_back(reader.problems().Line(
        where, where.path,
        "this is the lease of the cluster's own kube-scheduler: only one of the two would "
        "schedule; without this field the lease is outboard-scheduler"));
  }
  const std::pair<const char*, absl::Duration> durations[] = {
      {"leaseDuration", out->lease_duration},
      {"renewDeadline", out->renew_deadline},
      {"retryPeriod", out->retry_period}};
  bool valid = true;
  for (const auto& [key, value] : durations) {
    if (value <= absl::ZeroDuration()) {
      Invalid(reader, key, Quoted(absl::FormatDuration(value)), "must be greater than zero");
      valid = false;
    }
  }
  if (out->lease_duration <= out->renew_deadline) {
    Invalid(reader, "leaseDuration", Quoted(absl::FormatDuration(out->renew_deadline)),
            "must be greater than `RenewDeadline`");
    valid = false;
  }
  // kube-scheduler checks the retry period only when it starts.
  const auto error =
      leader::ValidateTimings({out->lease_duration, out->renew_deadline, out->retry_period});
  if (valid && error.has_value()) {
    Invalid(reader, error->field, Quoted(absl::FormatDuration(error->value)), error->message);
  }
  if (out->resource_lock != "leases") {
    Invalid(reader, "resourceLock", Quoted(out->resource_lock),
            "resourceLock value must be \"leases\"");
  }
}

void ReadExtenderTls(MapReader& reader) {
  bool insecure = false;
  std::string ignored;
  reader.Bool("insecure", &insecure);
  for (const char* key :
       {"serverName", "certFile", "keyFile", "caFile", "certData", "keyData", "caData"}) {
    reader.String(key, &ignored);
  }
}

// Extenders are read completely, so that errors in them are found, and then rejected.
void ReadExtenders(MapReader& reader) {
  bool any = false;
  int binders = 0;
  reader.MapList("extenders", [&](MapReader& extender) {
    any = true;
    std::string ignored, prioritize, bind;
    bool flag = false;
    int64_t weight = 0;
    absl::Duration timeout;
    for (const char* key : {"urlPrefix", "filterVerb", "preemptVerb"})
      extender.String(key, &ignored);
    extender.String("prioritizeVerb", &prioritize);
    extender.String("bindVerb", &bind);
    extender.Int64("weight", &weight);
    for (const char* key : {"enableHTTPS", "nodeCacheCapable", "ignorable"})
      extender.Bool(key, &flag);
    extender.Map("tlsConfig", ReadExtenderTls);
    extender.Duration("httpTimeout", &timeout);
    std::set<std::string> names;
    extender.MapList("managedResources", [&](MapReader& resource) {
      std::string name;
      resource.String("name", &name);
      resource.Bool("ignoredByScheduler", &flag);
      if (!names.insert(name).second) {
        Invalid(resource, "name", Quoted(name), "duplicate extender managed resource name");
      }
    });
    if (!prioritize.empty() && weight <= 0) {
      Invalid(extender, "weight", absl::StrCat(weight),
              "must have a positive weight applied to it");
    }
    if (!bind.empty()) ++binders;
  });
  if (binders > 1) {
    Invalid(reader, "extenders",
            Quoted(absl::StrCat("found ", binders, " extenders implementing bind")),
            "only one extender can implement bind");
  }
  if (any)
    reader.problems().Add(reader.where("extenders"),
                          "HTTP extenders are not supported yet; remove this field");
}

void ReadBackoff(MapReader& reader, SchedulerConfig* out) {
  int64_t initial = absl::ToInt64Seconds(out->pod_initial_backoff);
  int64_t max = absl::ToInt64Seconds(out->pod_max_backoff);
  reader.Int64("podInitialBackoffSeconds", &initial);
  reader.Int64("podMaxBackoffSeconds", &max);
  if (initial <= 0)
    Invalid(reader, "podInitialBackoffSeconds", absl::StrCat(initial), "must be greater than 0");
  if (max < initial) {
    Invalid(reader, "podMaxBackoffSeconds", absl::StrCat(max),
            "must be greater than or equal to PodInitialBackoffSeconds");
  }
  out->pod_initial_backoff = absl::Seconds(initial);
  out->pod_max_backoff = absl::Seconds(max);
}

}  // namespace

SchedulerConfig DefaultSchedulerConfig() {
  SchedulerConfig config;
  ProfileSpec profile;
  profile.scheduler_name = "default-scheduler";
  profile.multi_point.enabled = DefaultMultiPoint();
  profile.where.path = "profiles[0]";
  config.profiles.push_back(std::move(profile));
  return config;
}

void ReadSchedulerConfig(MapReader& reader, SchedulerConfig* out,
                         std::vector<std::string>* warnings) {
  reader.Int32("parallelism", &out->parallelism);
  if (out->parallelism <= 0) {
    Invalid(reader, "parallelism", absl::StrCat(out->parallelism),
            "should be an integer value greater than zero");
  }
  reader.Map("leaderElection",
             [&](MapReader& r) { ReadLeaderElection(r, &out->leader_election, warnings); });
  reader.Map("clientConnection",
             [&](MapReader& r) { ReadClientConnection(r, &out->client_connection); });
  reader.Bool("enableProfiling", &out->enable_profiling);
  out->enable_contention_profiling = out->enable_profiling;
  reader.Bool("enableContentionProfiling", &out->enable_contention_profiling);
  std::optional<int32_t> percentage;
  ReadPercentage(reader, &percentage);
  out->percentage_of_nodes_to_score = percentage.value_or(0);
  ReadBackoff(reader, out);
  reader.Bool("delayCacheUntilActive", &out->delay_cache_until_active);

  reader.MapList("profiles", [&](MapReader& r) { ReadProfile(r, &out->profiles.emplace_back()); });
  if (out->profiles.empty()) out->profiles = DefaultSchedulerConfig().profiles;
  if (out->profiles.size() == 1 && out->profiles[0].scheduler_name.empty()) {
    out->profiles[0].scheduler_name = "default-scheduler";
  }
  CheckProfileNames(out->profiles, &reader.problems());
  CheckCommonQueueSort(out->profiles, &reader.problems());
  ReadExtenders(reader);
  reader.Finish();
}

}  // namespace outboard::config
