#include "shim/config/config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "absl/strings/str_cat.h"
#include "shim/config/profiles.h"

namespace outboard::config {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr char kHead[] =
    "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n";
constexpr char kShimHead[] = "apiVersion: config.outboard.dev/v1alpha1\nkind: ShimConfiguration\n";

absl::StatusOr<Config> Parse(const std::string& body) {
  return ParseConfig(absl::StrCat(kHead, body), "f.yaml");
}
absl::StatusOr<Config> ParseShim(const std::string& body) {
  return ParseConfig(absl::StrCat(kShimHead, body), "f.yaml");
}

std::vector<std::string> NamesOf(const std::vector<PluginEntry>& entries) {
  std::vector<std::string> names;
  for (const PluginEntry& entry : entries) {
    names.push_back(entry.weight == 0 ? entry.name : absl::StrCat(entry.name, ":", entry.weight));
  }
  return names;
}

TEST(ParseConfig, DefaultsAreKubeSchedulers) {
  for (const char* text : {"", "---\n---\n", kHead}) {
    absl::StatusOr<Config> config = ParseConfig(text, "f.yaml");
    ASSERT_TRUE(config.ok()) << config.status();
    const SchedulerConfig& s = config->scheduler;
    EXPECT_EQ(s.parallelism, 16);
    EXPECT_EQ(s.percentage_of_nodes_to_score, 0);
    EXPECT_EQ(s.pod_initial_backoff, absl::Seconds(1));
    EXPECT_EQ(s.pod_max_backoff, absl::Seconds(10));
    EXPECT_TRUE(s.enable_profiling);
    EXPECT_TRUE(s.enable_contention_profiling);
    EXPECT_TRUE(s.leader_election.leader_elect);
    EXPECT_EQ(s.leader_election.lease_duration, absl::Seconds(15));
    EXPECT_EQ(s.leader_election.renew_deadline, absl::Seconds(10));
    EXPECT_EQ(s.leader_election.retry_period, absl::Seconds(2));
    EXPECT_EQ(s.leader_election.resource_lock, "leases");
    EXPECT_EQ(s.leader_election.resource_name, "outboard-scheduler");
    EXPECT_EQ(s.leader_election.resource_namespace, "kube-system");
    EXPECT_EQ(s.client_connection.content_type, "application/vnd.kubernetes.protobuf");
    EXPECT_EQ(s.client_connection.qps, 50);
    EXPECT_EQ(s.client_connection.burst, 100);
    ASSERT_THAT(s.profiles, SizeIs(1));
    EXPECT_EQ(s.profiles[0].scheduler_name, "default-scheduler");
    EXPECT_THAT(
        NamesOf(s.profiles[0].multi_point.enabled),
        ElementsAre("SchedulingGates", "PrioritySort", "NodeUnschedulable", "NodeName",
                    "TaintToleration:3", "NodeAffinity:2", "NodePorts", "NodeResourcesFit:1",
                    "VolumeRestrictions", "NodeVolumeLimits", "VolumeBinding", "VolumeZone",
                    "PodTopologySpread:2", "InterPodAffinity:2", "DynamicResources:2",
                    "DefaultPreemption", "NodeResourcesBalancedAllocation:1", "ImageLocality:1",
                    "DefaultBinder", "NodeDeclaredFeatures"));
    EXPECT_THAT(config->shim.hosts, IsEmpty());
    EXPECT_EQ(config->shim.serving_address, "127.0.0.1:10269");
    EXPECT_EQ(config->shim.deadlines.cycle, absl::Seconds(1));
  }
}

TEST(ParseConfig, ReadsEveryField) {
  absl::StatusOr<Config> config = Parse(R"(
parallelism: 4
leaderElection: {leaderElect: true, leaseDuration: 2m, renewDeadline: 90s, retryPeriod: 1m0.5s, resourceLock: leases, resourceName: mine, resourceNamespace: there}
clientConnection: {kubeconfig: /k, acceptContentTypes: a, contentType: application/json, qps: 5000.5, burst: 6000}
enableProfiling: no
percentageOfNodesToScore: 30
podInitialBackoffSeconds: 2
podMaxBackoffSeconds: 20
delayCacheUntilActive: true
profiles:
- schedulerName: a
  percentageOfNodesToScore: 100
  plugins:
    score:
      enabled:
      - name: NodeResourcesFit
        weight: 7
      disabled:
      - name: ImageLocality
  pluginConfig:
  - name: NodeResourcesFit
    args:
      apiVersion: kubescheduler.config.k8s.io/v1
      kind: NodeResourcesFitArgs
      scoringStrategy: {type: MostAllocated, resources: [{name: cpu, weight: 1}]}
- schedulerName: b
---
apiVersion: config.outboard.dev/v1alpha1
kind: ShimConfiguration
hosts:
- {name: main, address: "unix:/run/h.sock"}
- {name: far, address: "h.example:7000", tls: {caFile: ca, certFile: c, keyFile: k, serverName: s}}
socketDirectory: /run/hosts
servingAddress: "[::1]:0"
secureServing: {address: "[::]:443", certFile: /c, keyFile: /k, clientCAFile: /a}
deadlines: {cycle: 500ms, reserve: 2s, permit: 3s, bind: 4s, queue: 50ms}
failurePolicies:
- {plugin: GPUAware, point: score, policy: UseLast}
verbosity: 3
explainMemoryMiB: 128
allowedEnvironmentVariables: [RACK]
featureGates: {TaintTolerationComparisonOperators: true}
)");
  ASSERT_TRUE(config.ok()) << config.status();
  const SchedulerConfig& s = config->scheduler;
  EXPECT_EQ(s.parallelism, 4);
  EXPECT_EQ(s.leader_election.retry_period, absl::Milliseconds(60500));
  EXPECT_EQ(s.leader_election.resource_name, "mine");
  EXPECT_EQ(s.client_connection.kubeconfig, "/k");
  EXPECT_EQ(s.client_connection.qps, 5000.5);
  EXPECT_EQ(s.client_connection.burst, 6000);
  EXPECT_FALSE(s.enable_profiling);
  EXPECT_FALSE(s.enable_contention_profiling);
  EXPECT_EQ(s.pod_max_backoff, absl::Seconds(20));
  ASSERT_THAT(s.profiles, SizeIs(2));
  EXPECT_EQ(s.profiles[0].percentage_of_nodes_to_score, 100);
  EXPECT_THAT(NamesOf(s.profiles[0].points.at(v1beta1::EXTENSION_POINT_SCORE).enabled),
              ElementsAre("NodeResourcesFit:7"));
  EXPECT_THAT(NamesOf(s.profiles[0].points.at(v1beta1::EXTENSION_POINT_SCORE).disabled),
              ElementsAre("ImageLocality"));
  EXPECT_EQ(s.profiles[0].points.at(v1beta1::EXTENSION_POINT_SCORE).enabled[0].where.line, 18);
  ASSERT_THAT(s.profiles[0].plugin_config, SizeIs(1));
  EXPECT_EQ(
      s.profiles[0].plugin_config[0].args_json,
      R"({"scoringStrategy":{"type":"MostAllocated","resources":[{"name":"cpu","weight":1}]}})");
  EXPECT_EQ(s.profiles[0].plugin_config[0].where.path, "profiles[0].pluginConfig[0].args");
  EXPECT_EQ(s.profiles[0].plugin_config[0].where.line, 24);
  ASSERT_THAT(config->shim.hosts, SizeIs(2));
  EXPECT_EQ(config->shim.hosts[1].tls->server_name, "s");
  EXPECT_EQ(config->shim.deadlines.bind, absl::Seconds(4));
  EXPECT_EQ(config->shim.deadlines.queue, absl::Milliseconds(50));
  EXPECT_EQ(config->shim.verbosity, 3);
  EXPECT_EQ(config->shim.explain_memory_mib, 128);
  const kube::ReadingOptions reading = config->shim.reading.Options();
  EXPECT_THAT(reading.environment_variables, ElementsAre("RACK"));
  EXPECT_TRUE(reading.comparison_operators);
  EXPECT_EQ(config->shim.secure_serving, (SecureServing{"[::]:443", "/c", "/k", "/a"}));
  EXPECT_EQ(PolicyFor(config->shim, "GPUAware", v1beta1::EXTENSION_POINT_SCORE),
            FailurePolicy::kUseLast);
  EXPECT_EQ(PolicyFor(config->shim, "GPUAware", v1beta1::EXTENSION_POINT_FILTER),
            FailurePolicy::kFailClosed);
  EXPECT_EQ(PolicyFor(config->shim, "Other", v1beta1::EXTENSION_POINT_SCORE),
            FailurePolicy::kFailOpen);
  EXPECT_THAT(config->warnings, IsEmpty());
}

struct ErrorCase {
  const char* body;
  const char* error;  // the whole message; null: no error
};

// Line 1 of a body is line 3 of the file.
TEST(ParseConfig, ErrorsNameFileLineColumnAndPath) {
  const ErrorCase cases[] = {
      {"profiles:\n- plugins:\n    score:\n      enabled:\n      - name: A\n      - name: B\n      "
       "  weigth: 2\n",
       "f.yaml:9:9: profiles[0].plugins.score.enabled[1].weigth: unknown field; did you mean "
       "weight?"},
      {"nonsenseField: 1\n", "f.yaml:3:1: nonsenseField: unknown field"},
      {"parallelism: 1\nparallelism: 2\n", "f.yaml:4:1: parallelism: duplicate field"},
      {"parallelism: many\n", "f.yaml:3:1: parallelism: expected an integer, got \"many\""},
      {"parallelism: \"4\"\n", "f.yaml:3:1: parallelism: expected an integer, got \"4\""},
      {"parallelism: 5000000000\n",
       "f.yaml:3:1: parallelism: expected an integer from -2147483648 to 2147483647, got "
       "\"5000000000\""},
      {"parallelism: 0\n",
       "f.yaml:3:1: parallelism: Invalid value: 0: should be an integer value greater than zero"},
      {"parallelism: null\n", nullptr},
      {"percentageOfNodesToScore: 101\n",
       "f.yaml:3:1: percentageOfNodesToScore: Invalid value: 101: not in valid range [0-100]"},
      {"profiles:\n- percentageOfNodesToScore: -1\n",
       "f.yaml:4:3: profiles[0].percentageOfNodesToScore: Invalid value: -1: not in valid range "
       "[0-100]"},
      {"podInitialBackoffSeconds: 0\n",
       "f.yaml:3:1: podInitialBackoffSeconds: Invalid value: 0: must be greater than 0"},
      {"podInitialBackoffSeconds: 20\n",
       "f.yaml:1:1: podMaxBackoffSeconds: Invalid value: 10: must be greater than or equal to "
       "PodInitialBackoffSeconds"},
      {"clientConnection: {burst: -1}\n",
       "f.yaml:3:20: clientConnection.burst: Invalid value: -1: must be non-negative"},
      {"clientConnection: {qps: fast}\n",
       "f.yaml:3:20: clientConnection.qps: expected a number, got \"fast\""},
      {"clientConnection: []\n", "f.yaml:3:19: clientConnection: expected a mapping, got a list"},
      {"enableProfiling: 1\n", "f.yaml:3:1: enableProfiling: expected true or false, got \"1\""},
      {"leaderElection: {leaseDuration: 15}\n",
       "f.yaml:3:18: leaderElection.leaseDuration: expected a duration such as 15s or 1m30s, got "
       "\"15\""},
      {"leaderElection: {leaseDuration: inf}\n",
       "f.yaml:3:18: leaderElection.leaseDuration: expected a duration such as 15s or 1m30s, got "
       "\"inf\""},
      {"leaderElection: {leaseDuration: 5s, resourceName: x}\n",
       "f.yaml:3:18: leaderElection.leaseDuration: Invalid value: \"10s\": must be greater than "
       "`RenewDeadline`"},
      {"leaderElection: {leaderElect: false, leaseDuration: 5s}\n", nullptr},
      {"leaderElection: {resourceLock: endpoints}\n",
       "f.yaml:3:18: leaderElection.resourceLock: Invalid value: \"endpoints\": resourceLock value "
       "must be \"leases\""},
      {"profiles: [{schedulerName: a}, {schedulerName: a}]\n",
       "f.yaml:3:32: profiles[1].schedulerName: Duplicate value: profiles[0].schedulerName"},
      {"profiles: [{schedulerName: a}, {}]\n",
       "f.yaml:3:32: profiles[1].schedulerName: Required value"},
      {"profiles: [{schedulerName: 5}]\n",
       "f.yaml:3:13: profiles[0].schedulerName: expected a string, got \"5\"; put it in quotes"},
      {"profiles: [~]\n", "f.yaml:3:12: profiles[0]: expected a mapping, got nothing"},
      {"profiles: {}\n", "f.yaml:3:1: profiles: expected a list, got a mapping"},
      {"profiles: [{plugins: {filter: {enabled: [{weight: 1}]}}}]\n",
       "f.yaml:3:42: profiles[0].plugins.filter.enabled[0].name: Required value"},
      {"profiles: [{plugins: {score: {enabled: [{name: A, weight: -3}]}}}]\n",
       "f.yaml:3:51: profiles[0].plugins.score.enabled[0].weight: Invalid value: -3: must be "
       "greater "
       "than or equal to 0"},
      {"profiles: [{plugins: {multiPoint: {disabled: [{name: A, weight: -1}]}}}]\n",
       "f.yaml:3:57: profiles[0].plugins.multiPoint.disabled[0].weight: Invalid value: -1: must be "
       "greater than or equal to 0"},
      {"profiles: [{plugins: {filter: {enabled: [{name: EBSLimits}]}}}]\n",
       "f.yaml:3:42: profiles[0].plugins.filter.enabled[0]: Invalid value: \"EBSLimits\": was "
       "invalid in version "
       "\"kubescheduler.config.k8s.io/v1\" (KubeSchedulerConfiguration is version "
       "\"kubescheduler.config.k8s.io/v1\")"},
      {"profiles: [{plugins: {filter: {enabled: [{name: \"*\"}]}}}]\n",
       "f.yaml:3:43: profiles[0].plugins.filter.enabled[0].name: Invalid value: \"*\": only "
       "allowed in disabled lists"},
      {"profiles: [{plugins: {queueSort: {enabled: [{name: A}, {name: B}]}}}]\n",
       "f.yaml:3:56: profiles[0].plugins.queueSort.enabled: Invalid value: 2: only one queue sort "
       "plugin can be enabled"},
      {"profiles: [{schedulerName: a}, {schedulerName: b, plugins: {queueSort: {enabled: [{name: "
       "A}]}}}]\n",
       "f.yaml:3:32: profiles[1].plugins.queueSort: Invalid value: must be the same for all "
       "profiles"},
      {"profiles: [{plugins: {placementScore: {enabled: [{name: A, weight: 2}]}}}]\n", nullptr},
      {"profiles: [{plugins: {podGroupPostFilter: {enabled: [{name: A}]}}}]\n", nullptr},
      {"profiles: [{plugins: {placementGenerate: {enabled: [{name: A, nme: B}]}}}]\n",
       "f.yaml:3:63: profiles[0].plugins.placementGenerate.enabled[0].nme: unknown field; did you "
       "mean name?"},
      {"profiles: [{pluginConfig: [{name: A}, {name: A}]}]\n",
       "f.yaml:3:39: profiles[0].pluginConfig[1]: Duplicate value: \"A\""},
      {"profiles: [{pluginConfig: [{name: A, args: 5}]}]\n",
       "f.yaml:3:38: profiles[0].pluginConfig[0].args: expected a mapping"},
      {"profiles: [{pluginConfig: [{name: A, args: {a: .nan}}]}]\n",
       "f.yaml:3:38: profiles[0].pluginConfig[0].args: \".nan\" is not a finite number"},
      {"profiles: [{pluginConfig: [{name: A, args: {kind: AnyKind, apiVersion: a/v9}}]}]\n",
       nullptr},
      {"profiles: [{pluginConfig: [{name: NodeAffinity, args: {kind: NodeResourcesFitArgs}}]}]\n",
       "f.yaml:3:56: profiles[0].pluginConfig[0].args.kind: Invalid value: "
       "\"NodeResourcesFitArgs\": has to match "
       "plugin args, expected \"NodeAffinityArgs\""},
      {"extenders: []\n", nullptr},
      {"extenders: [{urlPrefix: http://a, filterVerb: f, nodeCacheCapable: true}]\n",
       "f.yaml:3:1: extenders: HTTP extenders are not supported yet; remove this field"},
      {"extenders: [{urlPrefix: http://a, httpTimeut: 5s}]\n",
       "f.yaml:3:1: extenders: HTTP extenders are not supported yet; remove this field\n"
       "f.yaml:3:35: extenders[0].httpTimeut: unknown field; did you mean httpTimeout?"},
      {"extenders: [{prioritizeVerb: p}]\n",
       "f.yaml:3:1: extenders: HTTP extenders are not supported yet; remove this field\n"
       "f.yaml:3:13: extenders[0].weight: Invalid value: 0: must have a positive weight applied to "
       "it"},
      {"a: [1\n", "f.yaml:4:1: a [ is not closed"},
      {"hosts: []\n",
       "f.yaml:3:1: hosts: unknown field; it belongs into the document of kind ShimConfiguration"},
      {"---\nkind: ShimConfig\n",
       "f.yaml:4:1: kind: expected KubeSchedulerConfiguration or ShimConfiguration, got "
       "\"ShimConfig\"; did you mean ShimConfiguration?"},
      {"---\nhosts: []\n",
       "f.yaml:4:1: kind: expected KubeSchedulerConfiguration or ShimConfiguration, got nothing"},
      {"---\nkind: ShimConfiguration\n",
       "f.yaml:4:1: apiVersion: expected config.outboard.dev/v1alpha1, got nothing"},
      {"---\nkind: Pod\n",
       "f.yaml:4:1: kind: expected KubeSchedulerConfiguration or ShimConfiguration, got \"Pod\""},
      {"---\nkind: KubeSchedulerConfiguration\napiVersion: kubescheduler.config.k8s.io/v1\n",
       "f.yaml:4:1: kind: duplicate document of this kind"},
      {"---\n5\n", "f.yaml:4:1: expected a mapping, got \"5\""},
  };
  for (const ErrorCase& c : cases) {
    absl::StatusOr<Config> config = Parse(c.body);
    if (c.error == nullptr) {
      EXPECT_TRUE(config.ok()) << c.body << config.status();
    } else {
      EXPECT_EQ(config.status().message(), c.error) << c.body;
      EXPECT_EQ(config.status().code(), absl::StatusCode::kInvalidArgument);
    }
  }
}

TEST(ParseConfig, OldVersionsAreNamed) {
  EXPECT_EQ(
      ParseConfig(
          "apiVersion: kubescheduler.config.k8s.io/v1beta3\nkind: KubeSchedulerConfiguration\n",
          "f")
          .status()
          .message(),
      "f:1:1: apiVersion: expected kubescheduler.config.k8s.io/v1, got "
      "\"kubescheduler.config.k8s.io/v1beta3\", which kube-scheduler has removed");
}

TEST(ParseConfig, ShimErrors) {
  const ErrorCase cases[] = {
      {"hosts: [{name: a, address: 'unix:'}]\n",
       "f.yaml:3:19: hosts[0].address: a socket path must have 1 to 107 bytes, not 0"},
      {"hosts: [{name: a, address: nowhere}]\n",
       "f.yaml:3:19: hosts[0].address: expected unix:PATH or HOST:PORT, got \"nowhere\""},
      {"hosts: [{name: a, address: 'h:99999'}]\n",
       "f.yaml:3:19: hosts[0].address: expected unix:PATH or HOST:PORT, got \"h:99999\""},
      {"hosts: [{name: a, address: 'h:1'}]\n",
       "f.yaml:3:19: hosts[0].address: a network address requires tls: {caFile, certFile, "
       "keyFile}"},
      {"hosts: [{name: a, address: 'h:1', tls: {caFile: a, certFile: b}}]\n",
       "f.yaml:3:40: hosts[0].tls.keyFile: Required value"},
      {"hosts: [{name: a, address: 'unix:/s', tls: {caFile: a, certFile: b, keyFile: c}}]\n",
       "f.yaml:3:39: hosts[0].tls: not supported for Unix sockets; file permissions control "
       "access"},
      {"hosts: [{name: a, address: 'unix:/s'}, {name: a, address: 'unix:/t'}]\n",
       "f.yaml:3:41: hosts[1].name: Duplicate value: \"a\""},
      {"hosts: [{name: a, address: 'unix:/s', metricsAddress: '[::1]:1'}]\n", nullptr},
      {"hosts: [{name: a, addresses: ['unix:/s', 'unix:/t']}]\n", nullptr},
      {"hosts: [{name: a, addresses: ['unix:/s', 'unix:/s']}]\n",
       "f.yaml:3:19: hosts[0].addresses: Duplicate value: \"unix:/s\""},
      {"hosts: [{name: a, addresses: ['h:1', nowhere], tls: {caFile: a, certFile: b, keyFile: "
       "c}}]\n",
       "f.yaml:3:19: hosts[0].addresses: expected unix:PATH or HOST:PORT, got \"nowhere\""},
      {"hosts: [{name: a, address: 'unix:/s', addresses: ['unix:/t']}]\n",
       "f.yaml:3:39: hosts[0].addresses: specify either address or addresses"},
      {"hosts: [{name: a, pods: {namespace: ns, selector: 'x.io/a=b,c=', port: 1}, tls: {caFile: "
       "a, "
       "certFile: b, keyFile: c, serverName: d}}]\n",
       nullptr},
      {"hosts: [{name: a, pods: {namespace: ns, selector: a=b, port: 1}, tls: {caFile: a, "
       "certFile: "
       "b, keyFile: c}}]\n",
       "f.yaml:3:25: hosts[0].pods: requires tls: {caFile, certFile, keyFile, serverName}; the "
       "certificate cannot name each pod's address"},
      {"hosts: [{name: a, pods: {namespace: ns, selector: 'a in (b)', port: 1}, tls: {caFile: a, "
       "certFile: b, keyFile: c, serverName: d}}]\n",
       "f.yaml:3:41: hosts[0].pods.selector: expected labels of pods, KEY=VALUE or several joined "
       "by commas, got \"a in (b)\""},
      {"hosts: [{name: a, pods: {namespace: ns, selector: a=b}, tls: {caFile: a, certFile: b, "
       "keyFile: c, serverName: d}}]\n",
       "f.yaml:3:25: hosts[0].pods.port: Required value: a port from 1 to 65535"},
      {"hosts: [{name: a, address: 'h:1', pods: {namespace: ns, selector: a=b, port: 1}, tls: "
       "{caFile: a, certFile: b, keyFile: c, serverName: d}}]\n",
       "f.yaml:3:41: hosts[0].pods: specify either pods or an address"},
      {"hosts: [{name: a, address: 'unix:/s', metricsAddress: '0.0.0.0:1'}]\n",
       "f.yaml:3:39: hosts[0].metricsAddress: expected 127.0.0.1:PORT or [::1]:PORT, got "
       "\"0.0.0.0:1\""},
      {"hosts: [{name: a, address: 'unix:/s', metricsAddress: '127.0.0.1:0'}]\n",
       "f.yaml:3:39: hosts[0].metricsAddress: expected 127.0.0.1:PORT or [::1]:PORT, got "
       "\"127.0.0.1:0\""},
      {"hosts: [{address: 'unix:/s'}]\n", "f.yaml:3:9: hosts[0].name: Required value"},
      {"servingAddress: 0.0.0.0:80\n",
       "f.yaml:3:1: servingAddress: only loopback addresses (127.0.0.1, ::1, localhost) are served "
       "without TLS; use secureServing for other addresses"},
      {"servingAddress: 'unix:/run/outboard/shim/shim.sock'\n", nullptr},
      {"servingAddress: 'unix:shim.sock'\n",
       "f.yaml:3:1: servingAddress: must be unix: and an absolute path of at most 107 bytes"},
      {"secureServing: {}\n", nullptr},
      {"secureServing: {address: ':443'}\n",
       "f.yaml:3:17: secureServing.address: expected HOST:PORT, for example 0.0.0.0:10270, got "
       "\":443\""},
      {"secureServing: {certFile: /c}\n",
       "f.yaml:3:16: secureServing.keyFile: Required value: set both certFile and keyFile"},
      {"secureServing: {clientCAFile: ca.crt}\n",
       "f.yaml:3:17: secureServing.clientCAFile: must be an absolute path"},
      {"servingAddress: 127.0.0.1:1\nsecureServing: {address: '127.0.0.1:1'}\n",
       "f.yaml:4:1: secureServing: its address must differ from servingAddress"},
      {"servingAddress: \"\"\n", nullptr},
      {"preemption: {maxEvictionsPerMinute: -1}\n",
       "f.yaml:3:14: preemption.maxEvictionsPerMinute: must be from 0, for no limit, to 1000000"},
      {"unknownProfiles: {prefixes: [ai-]}\n", nullptr},
      {"unknownProfiles: {prefixes: [\"\"]}\n",
       "f.yaml:3:19: unknownProfiles.prefixes: must not be empty"},
      {"deadlines: {cycle: 0s}\n",
       "f.yaml:3:13: deadlines.cycle: Invalid value: \"0\": must be from 1ms to 1m"},
      {"failurePolicies: [{plugin: A, point: filter, policy: UseLast}]\n",
       "f.yaml:3:46: failurePolicies[0].policy: UseLast is supported for score only"},
      {"failurePolicies: [{plugin: A, point: filer, policy: FailOpen}]\n",
       "f.yaml:3:31: failurePolicies[0].point: unknown extension point \"filer\"; did you mean "
       "filter?"},
      {"failurePolicies: [{plugin: A, point: everywhere, policy: failopen}]\n",
       "f.yaml:3:31: failurePolicies[0].point: unknown extension point \"everywhere\" (for "
       "example: "
       "filter)\n"
       "f.yaml:3:50: failurePolicies[0].policy: expected FailClosed, FailOpen or UseLast, got "
       "\"failopen\"; did you mean FailOpen?"},
      {"profiles: []\nsocketdirectory: /a\n",
       "f.yaml:3:1: profiles: unknown field; it belongs into the document of kind "
       "KubeSchedulerConfiguration\n"
       "f.yaml:4:1: socketdirectory: unknown field; did you mean socketDirectory?"},
      {"hosts: [{name: a, address: /run/a.sock}]\n",
       "f.yaml:3:19: hosts[0].address: expected unix:PATH or HOST:PORT, got \"/run/a.sock\"; did "
       "you "
       "mean unix:/run/a.sock?"},
      {"customResources: [{resource: a.v1.b.c, verbs: [patchstatus]}]\n",
       "f.yaml:3:40: customResources[0].verbs: expected create, update, updateStatus, delete, "
       "patch or patchStatus, got \"patchstatus\"; did you mean patchStatus?"},
      {"failurePolicies: [{plugin: A, point: filter, policy: Perhaps}]\n",
       "f.yaml:3:46: failurePolicies[0].policy: expected FailClosed, FailOpen or UseLast, got "
       "\"Perhaps\""},
      {"customResources: [{resource: widgets, verbs: [create]}]\n",
       "f.yaml:3:20: customResources[0].resource: \"widgets\" is not RESOURCE.VERSION.GROUP, for "
       "example trainingjobplacements.v1alpha1.accelerator.sched.io, or RESOURCE.VERSION of "
       "Kubernetes' core group, for example configmaps.v1"},
      {"customResources: [{resource: secrets.v1, verbs: [create]}]\n",
       "f.yaml:3:20: customResources[0].resource: Secrets cannot be read or written by plugins"},
      {"customResources: [{resource: pods.v1}]\n",
       "f.yaml:3:20: customResources[0].resource: pods.v1 needs verbs: hosts get these objects "
       "anyway, and plugins may only write them here"},
      {"customResources: [{resource: widgets.v1.example.com, verbs: [get]}]\n",
       "f.yaml:3:54: customResources[0].verbs: expected create, update, updateStatus, delete, "
       "patch or patchStatus, got \"get\"; the resource is always listed and watched"},
      {"customResources: [{resource: widgets.v1.example.com}, {resource: "
       "widgets.v1.example.com}]\n",
       "f.yaml:3:56: customResources[1].resource: Duplicate value: \"widgets.v1.example.com\""},
      {"customResources: [{resource: widgets.v1.example.com, verbs: [create, updateStatus, "
       "delete], namespaces: [a]}]\n",
       nullptr},
      {"extender: {address: '127.0.0.1:1', profile: default-scheduler}\n", nullptr},
      {"extender: {profile: default-scheduler}\n", "f.yaml:3:11: extender.address: Required value"},
      {"extender: {address: nowhere, profile: default-scheduler}\n",
       "f.yaml:3:12: extender.address: expected HOST:PORT, got \"nowhere\""},
      {"extender: {address: '0.0.0.0:1', profile: default-scheduler}\n",
       "f.yaml:3:12: extender.address: an address that is not loopback (127.0.0.1, ::1, localhost) "
       "needs tls: {certFile, keyFile}"},
      {"extender: {address: '0.0.0.0:1', profile: default-scheduler, tls: {certFile: a, keyFile: "
       "b}}\n",
       nullptr},
      {"extender: {address: '[::1]:1', profile: default-scheduler, tls: {certFile: a}}\n",
       "f.yaml:3:65: extender.tls.keyFile: Required value"},
      {"extender: {address: '127.0.0.1:1'}\n",
       "f.yaml:3:11: extender.profile: Required value, unless admitsBindings is true"},
      {"extender: {address: '127.0.0.1:1', admitsBindings: true}\n", nullptr},
      {"extender: {address: '127.0.0.1:1', admitsBindings: true, leaderService: leader-1}\n",
       nullptr},
      {"extender: {address: '127.0.0.1:1', admitsBindings: true, leaderService: Leader}\n",
       "f.yaml:3:58: extender.leaderService: expected the name of a Service, got \"Leader\""},
      {"extender: {address: '127.0.0.1:1', admitsBindings: true, leaderService: ns/leader}\n",
       "f.yaml:3:58: extender.leaderService: expected the name of a Service, got \"ns/leader\""},
      {"extender: {address: '127.0.0.1:0', admitsBindings: true, leaderService: leader}\n",
       "f.yaml:3:58: extender.leaderService: needs an address with a port other than 0"},
      {"extender: {address: '127.0.0.1:1', profile: other}\n",
       "f.yaml:3:36: extender.profile: no profile has the schedulerName \"other\"; existing names: "
       "\"default-scheduler\""},
      {"extender: {address: '127.0.0.1:1', profile: default-scheduler, deadline: 1ms}\n",
       "f.yaml:3:64: extender.deadline: must be from 10ms to 1m"},
      {"extender: {address: '127.0.0.1:1', profile: default-scheduler, admitsBindings: sure}\n",
       "f.yaml:3:64: extender.admitsBindings: expected true or false, got \"sure\""},
      {"extender: {address: '127.0.0.1:1', profile: default-scheduler, schedulerNames: "
       "[default-scheduler]}\n",
       "f.yaml:3:64: extender.schedulerNames: \"default-scheduler\" is the schedulerName of a "
       "profile: this scheduler places its pods itself"},
      {"extender: {address: '127.0.0.1:1', profile: default-scheduler, schedulerNames: [a, a]}\n",
       "f.yaml:3:64: extender.schedulerNames: Duplicate value: \"a\""},
      {"extender: {address: '127.0.0.1:1', profile: default-scheduler, schedulerNames: ['']}\n",
       "f.yaml:3:64: extender.schedulerNames: a name is empty"},
      {"extender: {address: '127.0.0.1:1', profile: default-scheduler, bindDeadline: 16m}\n",
       "f.yaml:3:64: extender.bindDeadline: must be from 10ms to 15m"},
      {"extender: {address: '127.0.0.1:1', profile: default-scheduler, maxBinds: 0}\n",
       "f.yaml:3:64: extender.maxBinds: must be from 1 to 4096"},
      {"metrics: {workloadTypeLabel: '', workloadTypes: [], jobNameLabels: []}\n", nullptr},
      {"metrics: {workloadTypeLabel: example.com/team, workloadTypes: [A.b_c]}\n", nullptr},
      {"metrics: {workloadTypeLabel: Example.com/team}\n",
       "f.yaml:3:11: metrics.workloadTypeLabel: \"Example.com/team\" is not the key of a label"},
      {"metrics: {workloadTypes: [training, 'a b']}\n",
       "f.yaml:3:11: metrics.workloadTypes: \"a b\" is not the value of a label"},
      {"metrics: {workloadTypes: [training, Training]}\n",
       "f.yaml:3:11: metrics.workloadTypes: Duplicate or reserved value: \"Training\""},
      {"metrics: {workloadTypes: [Other]}\n",
       "f.yaml:3:11: metrics.workloadTypes: Duplicate or reserved value: \"Other\""},
      {"allowedEnvironmentVariables: []\n", nullptr},
      {"allowedEnvironmentVariables: [A=B]\n",
       "f.yaml:3:1: allowedEnvironmentVariables: \"A=B\" is not the name of an environment "
       "variable"},
      {"allowedEnvironmentVariables: [A, A]\n",
       "f.yaml:3:1: allowedEnvironmentVariables: Duplicate value: \"A\""},
      {"metrics: {jobNameLabels: [job-name, -job]}\n",
       "f.yaml:3:11: metrics.jobNameLabels: \"-job\" is not the key of a label"},
      {"metrics: {jobNameLabels: [a, b, c, d, e, f, g, h, i, j, k, l, m, o, p, q, r]}\n",
       "f.yaml:3:11: metrics.jobNameLabels: must have at most 16 entries"},
      {"verbosity: 11\n", "f.yaml:3:1: verbosity: Invalid value: 11: must be from 0 to 10"},
      {"explainMemoryMiB: 0\n",
       "f.yaml:3:1: explainMemoryMiB: Invalid value: 0: must be from 1 to 65536"},
      {"host: []\n", "f.yaml:3:1: host: unknown field; did you mean hosts?"},
  };
  for (const ErrorCase& c : cases) {
    absl::StatusOr<Config> config = ParseShim(c.body);
    if (c.error == nullptr) {
      EXPECT_TRUE(config.ok()) << c.body << config.status();
    } else {
      EXPECT_EQ(config.status().message(), c.error) << c.body;
    }
  }
}

// By default kube-scheduler's pods, unless this scheduler places them.
TEST(ParseConfig, SchedulersOfTheExtender) {
  const auto names = [](const std::string& profile, const std::string& given) {
    absl::StatusOr<Config> config = ParseConfig(
        absl::StrCat("apiVersion: config.outboard.dev/v1alpha1\nkind: ShimConfiguration\n"
                     "extender: {address: '127.0.0.1:1', profile: ",
                     profile, given,
                     "}\n---\napiVersion: kubescheduler.config.k8s.io/v1\n"
                     "kind: KubeSchedulerConfiguration\nprofiles: [{schedulerName: ",
                     profile, "}]\n"),
        "f.yaml");
    EXPECT_TRUE(config.ok()) << config.status();
    return config.ok() ? config->shim.extender->scheduler_names : std::vector<std::string>();
  };
  EXPECT_THAT(names("gpu", ""), ElementsAre("default-scheduler"));
  EXPECT_THAT(names("default-scheduler", ""), IsEmpty());
  EXPECT_THAT(names("gpu", ", schedulerNames: []"), IsEmpty());
  EXPECT_THAT(names("default-scheduler", ", schedulerNames: [a, b]"), ElementsAre("a", "b"));
}

TEST(ParseConfig, WorkloadLabelsHaveDefaultsAndAGivenListReplacesThem) {
  absl::StatusOr<Config> config = ParseShim("metrics: {workloadTypes: [etl]}\n");
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->shim.metrics.type_label, "workload-type");
  EXPECT_THAT(config->shim.metrics.types, ElementsAre("etl"));
  EXPECT_THAT(config->shim.metrics.job_labels,
              ElementsAre("job-name", "batch.kubernetes.io/job-name",
                          "scheduling.x-k8s.io/pod-group", "training-job-id"));
  config = ParseShim("metrics: {workloadTypeLabel: team, jobNameLabels: [run]}\n");
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->shim.metrics.type_label, "team");
  EXPECT_THAT(config->shim.metrics.types,
              ElementsAre("training", "inference", "batch", "CPU-intensive", "GPU-intensive"));
  EXPECT_THAT(config->shim.metrics.job_labels, ElementsAre("run"));
}

TEST(ParseConfig, WarnsAboutKubeSchedulersLease) {
  absl::StatusOr<Config> config = Parse("leaderElection:\n  resourceName: kube-scheduler\n");
  ASSERT_TRUE(config.ok());
  EXPECT_THAT(config->warnings,
              ElementsAre("f.yaml:4:3: leaderElection.resourceName: this is the lease of the "
                          "cluster's own kube-scheduler: only one of the two would schedule; "
                          "without this field the lease is outboard-scheduler"));
  for (const char* own :
       {"leaderElection: {leaderElect: true}\n", "leaderElection: {resourceName: ''}\n",
        "leaderElection: {leaderElect: false, resourceName: kube-scheduler}\n",
        "leaderElection: {resourceName: kube-scheduler, resourceNamespace: a}\n"}) {
    config = Parse(own);
    ASSERT_TRUE(config.ok());
    EXPECT_THAT(config->warnings, IsEmpty()) << own;
  }
}

TEST(ParseConfig, LimitsItsInput) {
  EXPECT_THAT(std::string(ParseConfig(std::string((1 << 20) + 1, '#'), "f").status().message()),
              HasSubstr("1 MiB"));
  EXPECT_FALSE(ParseConfig(std::string(100000, '['), "f").ok());
  EXPECT_FALSE(ParseConfig(absl::StrCat(kHead, std::string(100000, '{')), "f").ok());
}

// Found by the fuzzer: YAML::LoadAll does not terminate for these.
TEST(ParseConfig, EndsWhereYamlCppWouldNot) {
  for (const char* text : {",", ", a: b", "]", "a: b\n---\n, c: d\n"}) {
    EXPECT_FALSE(ParseConfig(text, "f").ok()) << text;
  }
}

TEST(LoadConfigFile, ReportsTheFaultOfTheFile) {
  absl::Status status = LoadConfigFile("/nonexistent/x.yaml").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("/nonexistent/x.yaml: cannot be opened: No such file"));
  EXPECT_FALSE(LoadConfigFile("/").ok());

  const std::string path = ::testing::TempDir() + "/outboard_config_test.yaml";
  std::ofstream(path) << kHead << "parallelism: 3\n";
  absl::StatusOr<Config> config = LoadConfigFile(path);
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->scheduler.parallelism, 3);
  EXPECT_EQ(config->file, path);
}

}  // namespace
}  // namespace outboard::config
