// The shim's configuration as users write it: a KubeSchedulerConfiguration and, beside it, a
// ShimConfiguration.
//
// LoadConfig reads YAML (or JSON) strictly, fills in kube-scheduler's defaults and validates. What
// depends on the plugins that hosts serve is done later, by ResolveProfiles
// (shim/config/profiles.h).
//
// Threading: everything here is plain data and free functions; safe from any thread.
// Errors:    INVALID_ARGUMENT with one problem a line, `FILE:LINE:COL: path: what`; NOT_FOUND or
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
#include "proto/outboard/v1alpha1/plugin_host.pb.h"

namespace outboard::config {

// Where something stands in the configuration file.
struct Location {
  int line = 0;      // from 1; 0: a default, stands nowhere
  int column = 0;    // from 1
  std::string path;  // "profiles[0].plugins.score.enabled[1]"
};

// An entry of an `enabled` or `disabled` list.
struct PluginEntry {
  std::string name;
  int32_t weight = 0;  // 0: not given
  Location where;
};

struct PluginSet {
  std::vector<PluginEntry> enabled;
  std::vector<PluginEntry> disabled;
};

// An entry of `pluginConfig`.
struct PluginArgs {
  std::string name;
  // The args as JSON, without apiVersion and kind; "{}" if none were given. Judged by the host that
  // serves the plugin.
  std::string args_json;
  // Where `args` stands, for messages about what is in it.
  Location where;
};

// A profile after the default plugins were merged in; multiPoint is not expanded yet.
struct ProfileSpec {
  std::string scheduler_name;
  std::optional<int32_t> percentage_of_nodes_to_score;  // absent: the global one
  PluginSet multi_point;
  std::map<v1alpha1::ExtensionPoint, PluginSet> points;
  std::vector<PluginArgs> plugin_config;
  Location where;
};

struct ClientConnection {
  std::string kubeconfig;  // empty: in-cluster
  std::string accept_content_types;
  std::string content_type = "application/vnd.kubernetes.protobuf";
  double qps = 50;  // negative: no limit
  int32_t burst = 100;

  bool operator==(const ClientConnection&) const = default;
};

struct LeaderElection {
  bool leader_elect = true;
  absl::Duration lease_duration = absl::Seconds(15);
  absl::Duration renew_deadline = absl::Seconds(10);
  absl::Duration retry_period = absl::Seconds(2);
  std::string resource_lock = "leases";
  std::string resource_name = "kube-scheduler";
  std::string resource_namespace = "kube-system";

  bool operator==(const LeaderElection&) const = default;
};

// kubescheduler.config.k8s.io/v1
struct SchedulerConfig {
  int32_t parallelism = 16;  // accepted, without effect: a host filters all nodes in one call
  LeaderElection leader_election;
  ClientConnection client_connection;
  bool enable_profiling = true;             // accepted, without effect
  bool enable_contention_profiling = true;  // accepted, without effect
  int32_t percentage_of_nodes_to_score = 0;
  absl::Duration pod_initial_backoff = absl::Seconds(1);
  absl::Duration pod_max_backoff = absl::Seconds(10);
  bool delay_cache_until_active = false;  // accepted, without effect
  std::vector<ProfileSpec> profiles;      // at least one
};

// Files of a mutual TLS connection to a host.
struct HostTls {
  std::string ca_file;
  std::string cert_file;
  std::string key_file;
  std::string server_name;  // empty: the host part of the address
};

struct HostSpec {
  std::string name;
  // "unix:PATH" or "HOST:PORT"; empty: its instances are found in the socket directory.
  std::string address;
  std::optional<HostTls> tls;  // always with HOST:PORT, never with unix
  Location where;
};

// What the shim does when a plugin's host gives no answer.
enum class FailurePolicy { kFailClosed, kFailOpen, kUseLast };
absl::string_view FailurePolicyName(FailurePolicy policy);

struct FailurePolicyRule {
  std::string plugin;
  v1alpha1::ExtensionPoint point = v1alpha1::EXTENSION_POINT_UNSPECIFIED;
  FailurePolicy policy = FailurePolicy::kFailClosed;
  Location where;
};

struct Deadlines {
  absl::Duration cycle = absl::Seconds(1);         // PreFilter to Score, over all calls
  absl::Duration reserve = absl::Seconds(1);       // one call; Unreserve too
  absl::Duration permit = absl::Seconds(1);        // one call; not the wait that it may ask for
  absl::Duration queue = absl::Milliseconds(100);  // one call of SortKeys or PreEnqueue
};

// How one instance of a host takes another's place.
struct Replacement {
  // Cycles that a new instance answers beside the old one, for comparison, before it serves; and
  // how long they may take to come. 0: none.
  int32_t shadow_cycles = 20;
  absl::Duration shadow_timeout = absl::Seconds(5);
  // How long the old instance is kept ready to take over again.
  absl::Duration keep_warm = absl::Minutes(1);
  // So many calls that were not answered, while the old one is kept, bring it back; of answers that
  // cannot be used one is enough.
  int32_t rollback_failures = 2;
};

// HTTPS for the network, to whom the API server lets in.
struct SecureServing {
  std::string address = "0.0.0.0:10270";
  std::string cert_file;  // with key_file; empty: a certificate is made in memory
  std::string key_file;
  std::string client_ca_file;  // empty: bearer tokens only

  bool operator==(const SecureServing&) const = default;
};

// A custom resource that plugins may use: read, and have written by the shim as far as said here.
struct CustomResourceRule {
  std::string resource;  // RESOURCE.VERSION.GROUP
  std::vector<v1alpha1::CustomResource::Verb> verbs;
  std::vector<std::string> namespaces;  // where verbs hold; empty: everywhere
  Location where;
};

// How the extender shows who it is, and whom it lets in.
struct ServerTls {
  std::string cert_file;
  std::string key_file;
  std::string client_ca_file;  // empty: everybody

  bool operator==(const ServerTls&) const = default;
};

// What a kube-scheduler that has an extender is served.
struct ExtenderConfig {
  std::string address;  // HOST:PORT
  // Of the profile whose plugins judge: its schedulerName.
  std::string profile;
  std::optional<ServerTls> tls;  // always beyond loopback
  // Within it every request is answered, or told that it will not be.
  absl::Duration deadline = absl::Seconds(2);
  // The API server may ask it, as a webhook, whether another's bind leaves a node within its means.
  bool admits_bindings = false;
  Location where;  // of `profile`

  // Wherever it stands.
  bool operator==(const ExtenderConfig& other) const {
    return address == other.address && profile == other.profile && tls == other.tls &&
           deadline == other.deadline && admits_bindings == other.admits_bindings;
  }
};

// config.outboard.dev/v1alpha1
struct ShimConfig {
  std::vector<HostSpec> hosts;
  // Where hosts put sockets `NAME@ANYTHING.sock`; empty: none is watched.
  std::string socket_directory;
  // Users whose processes may stand behind a socket; empty: the shim's own and root.
  std::vector<int64_t> allowed_uids;
  Replacement replacement;
  std::string serving_address = "127.0.0.1:10269";  // plain HTTP; empty: none
  std::optional<SecureServing> secure_serving;
  Deadlines deadlines;
  std::vector<FailurePolicyRule> failure_policies;
  std::vector<CustomResourceRule> custom_resources;
  std::optional<ExtenderConfig> extender;  // absent: none is served
  int32_t verbosity = 0;                   // of the log, 0..10
};

struct Config {
  std::string file;  // as given, for messages
  SchedulerConfig scheduler;
  ShimConfig shim;
  // What is accepted but probably not meant, `FILE:LINE:COL: path: what`.
  std::vector<std::string> warnings;
};

// Reads `path`; at most 1 MiB.
absl::StatusOr<Config> LoadConfigFile(const std::string& path);
// Reads `text`; `file` is only for messages. Empty text is a configuration of defaults.
absl::StatusOr<Config> ParseConfig(absl::string_view text, std::string file);

// Whether `next` can take the place of the configuration in force without a restart. Errors:
// INVALID_ARGUMENT, a line for each field that cannot. Pure.
absl::Status CheckReload(const Config& in_force, const Config& next);

// HOST:PORT or [HOST]:PORT in its parts; false if malformed.
bool SplitHostPort(absl::string_view address, std::string* host, int* port);
// Whether a HOST is one of the names of this machine that only it can reach.
bool IsLoopback(absl::string_view host);

// "updateStatus" for UPDATE_STATUS, as in the configuration; empty if unknown.
absl::string_view VerbName(v1alpha1::CustomResource::Verb verb);

// The policy for a plugin at a point: the configured one, else at PreScore that of Score, else
// FailOpen for Score and PostBind, else FailClosed.
FailurePolicy PolicyFor(const ShimConfig& config, absl::string_view plugin,
                        v1alpha1::ExtensionPoint point);

// "preFilter" for PRE_FILTER, as in the configuration; empty if unknown.
absl::string_view PointName(v1alpha1::ExtensionPoint point);
// All points in the order of the configuration API.
const std::vector<v1alpha1::ExtensionPoint>& AllPoints();

}  // namespace outboard::config

#endif  // OUTBOARD_SHIM_CONFIG_CONFIG_H_
