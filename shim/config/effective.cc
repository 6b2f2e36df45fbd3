// Writes the configuration in force as YAML.
#include <yaml-cpp/yaml.h>

#include "absl/strings/str_cat.h"
#include "shim/config/profiles.h"

namespace outboard::config {
namespace {

template <typename T>
void Field(YAML::Emitter& out, absl::string_view key, const T& value) {
  out << YAML::Key << std::string(key) << YAML::Value << value;
}

// Quoted, so that a name such as "no" or "5" stays a string.
void Text(YAML::Emitter& out, absl::string_view key, absl::string_view value) {
  out << YAML::Key << std::string(key) << YAML::Value << YAML::DoubleQuoted << std::string(value);
}

void Texts(YAML::Emitter& out, absl::string_view key, const std::vector<std::string>& values) {
  out << YAML::Key << std::string(key) << YAML::Value << YAML::Flow << YAML::BeginSeq;
  for (const std::string& value : values) out << YAML::DoubleQuoted << value;
  out << YAML::EndSeq;
}

void Time(YAML::Emitter& out, absl::string_view key, absl::Duration value) {
  Field(out, key, absl::FormatDuration(value));
}

// Keeps strings as strings, which the emitter does not guarantee.
void EmitNode(YAML::Emitter& out, const YAML::Node& node) {
  if (node.IsMap()) {
    out << YAML::BeginMap;
    for (const auto& entry : node) {
      out << YAML::Key << YAML::DoubleQuoted << entry.first.Scalar() << YAML::Value;
      EmitNode(out, entry.second);
    }
    out << YAML::EndMap;
  } else if (node.IsSequence()) {
    out << YAML::BeginSeq;
    for (const YAML::Node& element : node) EmitNode(out, element);
    out << YAML::EndSeq;
  } else if (node.IsScalar() && node.Tag() == "!") {
    out << YAML::DoubleQuoted << node.Scalar();
  } else {
    out << node;
  }
}

void EmitEntries(YAML::Emitter& out, absl::string_view key,
                 const std::vector<PluginEntry>& entries) {
  out << YAML::Key << std::string(key) << YAML::Value << YAML::BeginSeq;
  for (const PluginEntry& entry : entries) {
    out << YAML::BeginMap;
    Text(out, "name", entry.name);
    if (entry.weight != 0) Field(out, "weight", entry.weight);
    out << YAML::EndMap;
  }
  out << YAML::EndSeq;
}

void EmitSet(YAML::Emitter& out, absl::string_view key, const PluginSet& set) {
  out << YAML::Key << std::string(key) << YAML::Value << YAML::BeginMap;
  if (!set.enabled.empty()) EmitEntries(out, "enabled", set.enabled);
  if (!set.disabled.empty()) EmitEntries(out, "disabled", set.disabled);
  out << YAML::EndMap;
}

void EmitPlugins(YAML::Emitter& out, const ProfileSpec& spec, const Profile* resolved) {
  out << YAML::Key << "plugins" << YAML::Value << YAML::BeginMap;
  if (resolved == nullptr) {
    EmitSet(out, "multiPoint", spec.multi_point);
    for (const auto& [point, set] : spec.points) EmitSet(out, PointName(point), set);
  } else {
    for (const auto& [point, plugins] : resolved->points) {
      if (plugins.empty()) continue;
      PluginSet set;
      for (const EnabledPlugin& plugin : plugins)
        set.enabled.push_back({plugin.name, plugin.weight, {}});
      EmitSet(out, PointName(point), set);
    }
    EmitSet(out, "multiPoint", PluginSet{{}, {{"*", 0, {}}}});
  }
  out << YAML::EndMap;
}

void EmitProfile(YAML::Emitter& out, const Config& config, const ProfileSpec& spec,
                 const Profile* resolved) {
  out << YAML::BeginMap;
  Text(out, "schedulerName", spec.scheduler_name);
  Field(out, "percentageOfNodesToScore",
        spec.percentage_of_nodes_to_score.value_or(config.scheduler.percentage_of_nodes_to_score));
  EmitPlugins(out, spec, resolved);
  const std::vector<PluginArgs>& all = resolved == nullptr ? spec.plugin_config : resolved->args;
  if (!all.empty()) {
    out << YAML::Key << "pluginConfig" << YAML::Value << YAML::BeginSeq;
    for (const PluginArgs& args : all) {
      out << YAML::BeginMap;
      Text(out, "name", args.name);
      // Written by this room as JSON, which is valid YAML.
      out << YAML::Key << "args" << YAML::Value;
      EmitNode(out, YAML::Load(args.args_json));
      out << YAML::EndMap;
    }
    out << YAML::EndSeq;
  }
  out << YAML::EndMap;
}

void EmitScheduler(YAML::Emitter& out, const Config& config, const Profiles* resolved) {
  const SchedulerConfig& scheduler = config.scheduler;
  out << YAML::BeginDoc << YAML::BeginMap;
  Field(out, "apiVersion", "kubescheduler.config.k8s.io/v1");
  Field(out, "kind", "KubeSchedulerConfiguration");
  Field(out, "parallelism", scheduler.parallelism);
  out << YAML::Key << "leaderElection" << YAML::Value << YAML::BeginMap;
  Field(out, "leaderElect", scheduler.leader_election.leader_elect);
  Time(out, "leaseDuration", scheduler.leader_election.lease_duration);
  Time(out, "renewDeadline", scheduler.leader_election.renew_deadline);
  Time(out, "retryPeriod", scheduler.leader_election.retry_period);
  Text(out, "resourceLock", scheduler.leader_election.resource_lock);
  Text(out, "resourceName", scheduler.leader_election.resource_name);
  Text(out, "resourceNamespace", scheduler.leader_election.resource_namespace);
  out << YAML::EndMap << YAML::Key << "clientConnection" << YAML::Value << YAML::BeginMap;
  Text(out, "kubeconfig", scheduler.client_connection.kubeconfig);
  Text(out, "acceptContentTypes", scheduler.client_connection.accept_content_types);
  Text(out, "contentType", scheduler.client_connection.content_type);
  Field(out, "qps", scheduler.client_connection.qps);
  Field(out, "burst", scheduler.client_connection.burst);
  out << YAML::EndMap;
  Field(out, "enableProfiling", scheduler.enable_profiling);
  Field(out, "enableContentionProfiling", scheduler.enable_contention_profiling);
  Field(out, "percentageOfNodesToScore", scheduler.percentage_of_nodes_to_score);
  Field(out, "podInitialBackoffSeconds", absl::ToInt64Seconds(scheduler.pod_initial_backoff));
  Field(out, "podMaxBackoffSeconds", absl::ToInt64Seconds(scheduler.pod_max_backoff));
  Field(out, "delayCacheUntilActive", scheduler.delay_cache_until_active);
  out << YAML::Key << "profiles" << YAML::Value << YAML::BeginSeq;
  for (size_t i = 0; i < scheduler.profiles.size(); ++i) {
    const bool have = resolved != nullptr && i < resolved->profiles.size();
    EmitProfile(out, config, scheduler.profiles[i], have ? &resolved->profiles[i] : nullptr);
  }
  out << YAML::EndSeq << YAML::EndMap;
}

void EmitShim(YAML::Emitter& out, const ShimConfig& shim) {
  out << YAML::BeginDoc << YAML::BeginMap;
  Field(out, "apiVersion", "config.outboard.dev/v1alpha1");
  Field(out, "kind", "ShimConfiguration");
  out << YAML::Key << "hosts" << YAML::Value << YAML::BeginSeq;
  for (const HostSpec& host : shim.hosts) {
    out << YAML::BeginMap;
    Text(out, "name", host.name);
    if (host.other_addresses.empty()) {
      Text(out, "address", host.address);
    } else {
      std::vector<std::string> addresses = host.other_addresses;
      addresses.insert(addresses.begin(), host.address);
      Texts(out, "addresses", addresses);
    }
    if (host.pods.has_value()) {
      out << YAML::Key << "pods" << YAML::Value << YAML::BeginMap;
      Text(out, "namespace", host.pods->pod_namespace);
      Text(out, "selector", host.pods->selector);
      Field(out, "port", host.pods->port);
      out << YAML::EndMap;
    }
    Text(out, "metricsAddress", host.metrics_address);
    if (host.tls.has_value()) {
      out << YAML::Key << "tls" << YAML::Value << YAML::BeginMap;
      Text(out, "caFile", host.tls->ca_file);
      Text(out, "certFile", host.tls->cert_file);
      Text(out, "keyFile", host.tls->key_file);
      Text(out, "serverName", host.tls->server_name);
      out << YAML::EndMap;
    }
    out << YAML::EndMap;
  }
  out << YAML::EndSeq;
  Text(out, "socketDirectory", shim.socket_directory);
  if (!shim.allowed_uids.empty()) {
    out << YAML::Key << "allowedUids" << YAML::Value << YAML::Flow << shim.allowed_uids;
  }
  out << YAML::Key << "replacement" << YAML::Value << YAML::BeginMap;
  Field(out, "shadowCycles", shim.replacement.shadow_cycles);
  Time(out, "shadowTimeout", shim.replacement.shadow_timeout);
  Time(out, "keepWarm", shim.replacement.keep_warm);
  Field(out, "rollbackFailures", shim.replacement.rollback_failures);
  out << YAML::EndMap;
  Text(out, "servingAddress", shim.serving_address);
  if (const auto& secure = shim.secure_serving; secure.has_value()) {
    out << YAML::Key << "secureServing" << YAML::Value << YAML::BeginMap;
    Text(out, "address", secure->address);
    Text(out, "certFile", secure->cert_file);
    Text(out, "keyFile", secure->key_file);
    Text(out, "clientCAFile", secure->client_ca_file);
    out << YAML::EndMap;
  }
  out << YAML::Key << "deadlines" << YAML::Value << YAML::BeginMap;
  Time(out, "cycle", shim.deadlines.cycle);
  Time(out, "reserve", shim.deadlines.reserve);
  Time(out, "permit", shim.deadlines.permit);
  Time(out, "bind", shim.deadlines.bind);
  Time(out, "queue", shim.deadlines.queue);
  out << YAML::EndMap << YAML::Key << "preemption" << YAML::Value << YAML::BeginMap;
  Field(out, "maxEvictionsPerAttempt", shim.preemption.per_attempt);
  Field(out, "maxEvictionsPerMinute", shim.preemption.per_minute);
  out << YAML::EndMap << YAML::Key << "failurePolicies" << YAML::Value << YAML::BeginSeq;
  for (const FailurePolicyRule& rule : shim.failure_policies) {
    out << YAML::BeginMap;
    Text(out, "plugin", rule.plugin);
    Field(out, "point", std::string(PointName(rule.point)));
    Field(out, "policy", std::string(FailurePolicyName(rule.policy)));
    out << YAML::EndMap;
  }
  out << YAML::EndSeq;
  if (!shim.custom_resources.empty()) {
    out << YAML::Key << "customResources" << YAML::Value << YAML::BeginSeq;
    for (const CustomResourceRule& rule : shim.custom_resources) {
      out << YAML::BeginMap;
      Text(out, "resource", rule.resource);
      out << YAML::Key << "verbs" << YAML::Value << YAML::Flow << YAML::BeginSeq;
      for (const v1beta1::DeclaredResource::Verb verb : rule.verbs)
        out << std::string(VerbName(verb));
      out << YAML::EndSeq;
      if (!rule.namespaces.empty())
        out << YAML::Key << "namespaces" << YAML::Value << YAML::Flow << rule.namespaces;
      out << YAML::EndMap;
    }
    out << YAML::EndSeq;
  }
  if (!shim.allowed_pod_keys.empty())
    out << YAML::Key << "allowedPodKeys" << YAML::Value << YAML::Flow << shim.allowed_pod_keys;
  if (shim.extender.has_value()) {
    out << YAML::Key << "extender" << YAML::Value << YAML::BeginMap;
    Text(out, "address", shim.extender->address);
    Text(out, "profile", shim.extender->profile);
    Texts(out, "schedulerNames", shim.extender->scheduler_names);
    Time(out, "deadline", shim.extender->deadline);
    Time(out, "bindDeadline", shim.extender->bind_deadline);
    out << YAML::Key << "maxBinds" << YAML::Value << shim.extender->max_binds;
    out << YAML::Key << "admitsBindings" << YAML::Value << shim.extender->admits_bindings;
    Text(out, "leaderService", shim.extender->leader_service);
    if (shim.extender->tls.has_value()) {
      out << YAML::Key << "tls" << YAML::Value << YAML::BeginMap;
      Text(out, "certFile", shim.extender->tls->cert_file);
      Text(out, "keyFile", shim.extender->tls->key_file);
      Text(out, "clientCAFile", shim.extender->tls->client_ca_file);
      out << YAML::EndMap;
    }
    out << YAML::EndMap;
  }
  out << YAML::Key << "metrics" << YAML::Value << YAML::BeginMap;
  Text(out, "workloadTypeLabel", shim.metrics.type_label);
  Texts(out, "workloadTypes", shim.metrics.types);
  Texts(out, "jobNameLabels", shim.metrics.job_labels);
  out << YAML::EndMap;
  if (!shim.unknown_profiles.prefixes.empty()) {
    out << YAML::Key << "unknownProfiles" << YAML::Value << YAML::BeginMap;
    Texts(out, "prefixes", shim.unknown_profiles.prefixes);
    out << YAML::EndMap;
  }
  Texts(out, "allowedEnvironmentVariables", shim.reading.environment_variables);
  out << YAML::Key << "featureGates" << YAML::Value << YAML::BeginMap;
  Field(out, "TaintTolerationComparisonOperators",
        shim.reading.feature_gates.taint_toleration_comparison_operators);
  out << YAML::EndMap;
  Field(out, "verbosity", shim.verbosity);
  Field(out, "explainMemoryMiB", shim.explain_memory_mib);
  out << YAML::EndMap;
}

}  // namespace

std::string EffectiveConfigYaml(const Config& config, const Profiles* resolved) {
  YAML::Emitter out;
  EmitScheduler(out, config, resolved);
  EmitShim(out, config.shim);
  return absl::StrCat(out.c_str(), "\n");
}

}  // namespace outboard::config
