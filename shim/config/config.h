// The shim's configuration file: a KubeSchedulerConfiguration and a ShimConfiguration.
//
// LoadConfigFile reads YAML (or JSON) strictly, fills in kube-scheduler's defaults and validates.
// Checks that depend on the hosts' plugins follow in ResolveProfiles (shim/config/profiles.h).
//
// Threading: plain data and free functions; thread-safe.
// Errors: INVALID_ARGUMENT with one problem per line, `FILE:LINE:COL: path: what`; NOT_FOUND or
// UNKNOWN if the file cannot be read.
#ifndef OUTBOARD_SHIM_CONFIG_CONFIG_H_
#define OUTBOARD_SHIM_CONFIG_CONFIG_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "outboard/v1beta1/plugin_host.pb.h"
#include "shim/config/extender_config.h"
#include "shim/config/location.h"
#include "shim/config/object_reading.h"
#include "shim/config/preemption_limits.h"
#include "shim/config/servers.h"
#include "shim/config/workload_labels.h"

namespace outboard::config {

// An entry of an `enabled` or `disabled` list.
struct PluginEntry {
  std::string name;
  int32_t weight = 0;  // 0: not set
  Location where;
};

struct PluginSet {
  std::vector<PluginEntry> enabled;
  std::vector<PluginEntry> disabled;
};

// An entry of `pluginConfig`.
struct PluginArgs {
  std::string name;
  // The args as JSON, without apiVersion and kind; "{}" if absent. Validated by the host that
  // serves the plugin.
  std::string args_json;
  Location where;  // of `args`, for messages about their content
};

// A profile with the default plugins merged in; multiPoint is not expanded yet.
struct ProfileSpec {
  std::string scheduler_name;
  std::optional<int32_t> percentage_of_nodes_to_score;  // absent: use the global value
  PluginSet multi_point;
  std::map<v1beta1::ExtensionPoint, PluginSet> points;
  std::vector<PluginArgs> plugin_config;
  Location where;
};

struct ClientConnection {
  std::string kubeconfig;  // empty: in-cluster
  std::string accept_content_types;
  std::string content_type = "application/vnd.kubernetes.protobuf";
  double qps = 50;  // negative: unlimited
  int32_t burst = 100;

  bool operator==(const ClientConnection&) const = default;
};

struct LeaderElection {
  bool leader_elect = true;
  absl::Duration lease_duration = absl::Seconds(15);
  absl::Duration renew_deadline = absl::Seconds(10);
  absl::Duration retry_period = absl::Seconds(2);
  std::string resource_lock = "leases";
  // Not kube-scheduler's: only one of two schedulers with the same lease would schedule.
  std::string resource_name = "outboard-scheduler";
  std::string resource_namespace = "kube-system";

  bool operator==(const LeaderElection&) const = default;
};

// kubescheduler.config.k8s.io/v1
struct SchedulerConfig {
  int32_t parallelism = 16;  // accepted without effect: a host filters all nodes in one call
  LeaderElection leader_election;
  ClientConnection client_connection;
  bool enable_profiling = true;             // accepted without effect
  bool enable_contention_profiling = true;  // accepted without effect
  int32_t percentage_of_nodes_to_score = 0;
  absl::Duration pod_initial_backoff = absl::Seconds(1);
  absl::Duration pod_max_backoff = absl::Seconds(10);
  bool delay_cache_until_active = false;  // accepted without effect
  std::vector<ProfileSpec> profiles;      // at least one
};

// Files for mutual TLS with a host.
struct HostTls {
  std::string ca_file, cert_file, key_file;
  std::string server_name;  // empty: the host part of the address
};

// Pods of the cluster, each of which is an instance of a host.
struct HostPodsSpec {
  std::string pod_namespace;
  std::string selector;  // of labels, as of `kubectl get pods --selector`
  int32_t port = 0;

  friend bool operator==(const HostPodsSpec&, const HostPodsSpec&) = default;
};

struct HostSpec {
  std::string name;
  // "unix:PATH" or "HOST:PORT"; empty: see `pods`.
  std::string address;
  // Of further instances, each like `address`.
  std::vector<std::string> other_addresses;
  // Without an address and this: instances are found in the socket directory.
  std::optional<HostPodsSpec> pods;
  std::optional<HostTls> tls;  // required for HOST:PORT and pods, invalid for unix
  // HOST:PORT on this machine where the host serves its metrics; empty: the page has none of it.
  std::string metrics_address;
  Location where;
};

// What the shim does when a plugin's host fails.
enum class FailurePolicy { kFailClosed, kFailOpen, kUseLast };
absl::string_view FailurePolicyName(FailurePolicy policy);

struct FailurePolicyRule {
  std::string plugin;
  v1beta1::ExtensionPoint point = v1beta1::EXTENSION_POINT_UNSPECIFIED;
  FailurePolicy policy = FailurePolicy::kFailClosed;
  Location where;
};

struct Deadlines {
  absl::Duration cycle = absl::Seconds(1);         // PreFilter to Score, over all calls
  absl::Duration reserve = absl::Seconds(1);       // one call; Unreserve too
  absl::Duration permit = absl::Seconds(1);        // one call, without the wait that it may request
  absl::Duration bind = absl::Seconds(1);          // one call; PreBind and PostBind too
  absl::Duration queue = absl::Milliseconds(100);  // one call of SortKeys or PreEnqueue
};

// How a new instance of a host replaces the serving one.
struct Replacement {
  // Number of cycles in which a new instance runs in the shadow of the old one before it serves,
  // and the maximum wait for them. 0: no shadow.
  int32_t shadow_cycles = 20;
  absl::Duration shadow_timeout = absl::Seconds(5);
  absl::Duration keep_warm = absl::Minutes(1);  // the old instance stays ready to take over
  // While the old instance is kept, this many unanswered calls cause a rollback; a single unusable
  // answer does too.
  int32_t rollback_failures = 2;
};

// A custom resource that plugins may use: the shim watches it and writes it within these limits.
struct CustomResourceRule {
  std::string resource;  // RESOURCE.VERSION.GROUP
  std::vector<v1beta1::DeclaredResource::Verb> verbs;
  std::vector<std::string> namespaces;  // where `verbs` apply; empty: everywhere
  Location where;
};

// Pods that wait for a scheduler that does not exist; see shim/reload/unknown_profiles.h.
struct UnknownProfiles {
  // A schedulerName with one of these prefixes is meant for this installation.
  std::vector<std::string> prefixes;
};

// config.outboard.dev/v1alpha1
struct ShimConfig {
  std::vector<HostSpec> hosts;
  // Where hosts create sockets `NAME@ANYTHING.sock`; empty: no directory is watched.
  std::string socket_directory;
  // Users whose processes may own a socket; empty: the shim's own user and root.
  std::vector<int64_t> allowed_uids;
  Replacement replacement;
  // Plain HTTP: a loopback address or unix:PATH; empty: no server.
  std::string serving_address = "127.0.0.1:10269";
  std::optional<SecureServing> secure_serving;
  Deadlines deadlines;
  PreemptionLimits preemption;
  std::vector<FailurePolicyRule> failure_policies;
  std::vector<CustomResourceRule> custom_resources;
  // Keys of Kubernetes that plugins may set on the pod that is being placed.
  std::vector<std::string> allowed_pod_keys;
  std::optional<ExtenderConfig> extender;  // absent: no extender
  WorkloadLabels metrics;
  ObjectReading reading;
  int32_t verbosity = 0;            // log level, 0..10
  int32_t explain_memory_mib = 64;  // for AttemptLog; 1..65536
  UnknownProfiles unknown_profiles;
};

struct Config {
  std::string file;  // as specified, for messages
  SchedulerConfig scheduler;
  ShimConfig shim;
  // Accepted but probably unintended settings, `FILE:LINE:COL: path: what`.
  std::vector<std::string> warnings;
  std::string sha256;  // of the file's text, in hexadecimal
};

// Reads `path`, at most 1 MiB.
absl::StatusOr<Config> LoadConfigFile(const std::string& path);
// The same, to find more problems: with INVALID_ARGUMENT `out` has what could be read.
absl::Status ReadConfigFile(const std::string& path, Config* out);
// Parses `text`; `file` is only for messages. Empty text gives the defaults.
absl::StatusOr<Config> ParseConfig(absl::string_view text, std::string file);

// Gives the fields of `next` that only a restart can change the values that are in force, and
// returns the names of those that differ. Pure.
// Errors: INVALID_ARGUMENT if the rest of `next` cannot be used with these values.
absl::StatusOr<std::vector<std::string>> KeepUntilRestart(const Config& in_force, Config* next);

// Splits HOST:PORT or [HOST]:PORT; false if malformed.
bool SplitHostPort(absl::string_view address, std::string* host, int* port);
// Whether HOST is a loopback name or address.
bool IsLoopback(absl::string_view host);
// The configuration's name of a verb: "updateStatus" for UPDATE_STATUS; empty if unknown.
absl::string_view VerbName(v1beta1::DeclaredResource::Verb verb);

// The policy for a plugin at a point. Defaults: at PreScore the plugin's policy for Score; FailOpen
// for Score and PostBind; FailClosed for all others.
FailurePolicy PolicyFor(const ShimConfig& config, absl::string_view plugin,
                        v1beta1::ExtensionPoint point);

// The configuration's name of a point: "preFilter" for PRE_FILTER; empty if unknown.
absl::string_view PointName(v1beta1::ExtensionPoint point);
// In the order of the configuration API.
const std::vector<v1beta1::ExtensionPoint>& AllPoints();

}  // namespace outboard::config

#endif  // OUTBOARD_SHIM_CONFIG_CONFIG_H_
