#include "shim/kube/wire/from_wire.h"

#include <string>

#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "google/protobuf/util/message_differencer.h"
#include "gtest/gtest.h"
#include "shim/kube/wire/reading_options.h"

namespace outboard::kube::from_wire_test {
namespace {

using ::google::protobuf::util::MessageDifferencer;

template <typename Message>
Message Text(const std::string& text) {
  Message message;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &message)) << text;
  return message;
}

// Adds identity, so that test cases contain only the relevant fields.
wire::Pod PodWith(const std::string& rest) {
  auto pod = Text<wire::Pod>(rest);
  pod.mutable_metadata()->set_name("p");
  pod.mutable_metadata()->set_namespace_("n");
  pod.mutable_metadata()->set_uid("u");
  return pod;
}

PodPtr Convert(const wire::Pod& pod) {
  absl::StatusOr<PodPtr> object = PodFromWire(pod);
  EXPECT_TRUE(object.ok()) << object.status();
  return object.ok() ? *object : std::make_shared<PodObject>();
}

void ExpectPod(const std::string& rest, const std::string& expected) {
  const PodPtr got = Convert(PodWith(rest));
  const auto want = Text<v1beta1::Pod>(
      R"pb(uid: "u" namespace: "n" name: "p" scheduler_name: "default-scheduler")pb" + expected);
  MessageDifferencer differ;
  std::string difference;
  differ.ReportDifferencesToString(&difference);
  EXPECT_TRUE(differ.Compare(want, got->pod)) << difference << "\ngot: " << got->pod.DebugString();
}

TEST(PodFromWire, Defaults) { ExpectPod("", ""); }

TEST(PodFromWire, Metadata) {
  ExpectPod(
      R"pb(metadata {
             generation: 4
             creationTimestamp { seconds: 100 nanos: 5 }
             deletionTimestamp { seconds: 200 }
             labels { key: "app" value: "web" }
             annotations { key: "note" value: "x" }
             annotations { key: "kubectl.kubernetes.io/last-applied-configuration" value: "{}" }
             ownerReferences { kind: "Node" name: "other" uid: "o" apiVersion: "v1" }
             ownerReferences {
               kind: "Job"
               name: "j"
               uid: "ju"
               apiVersion: "batch/v1"
               controller: true
             }
           })pb",
      R"pb(generation: 4
           creation_unix_seconds: 100
           deletion_unix_seconds: 200
           labels { key: "app" value: "web" }
           annotations { key: "note" value: "x" }
           controller { api_version: "batch/v1" kind: "Job" name: "j" uid: "ju" })pb");
}

TEST(PodFromWire, VanishesOnceNothingIsLeftToWaitFor) {
  const std::string deleted = "deletionTimestamp { seconds: 200 }";
  const std::string at_once = deleted + " deletionGracePeriodSeconds: 0";
  const auto vanishes = [](const std::string& metadata) {
    return Convert(PodWith("metadata { " + metadata + " }"))->vanishes;
  };
  EXPECT_FALSE(vanishes(""));
  EXPECT_FALSE(vanishes(deleted));
  EXPECT_FALSE(vanishes(deleted + " deletionGracePeriodSeconds: 30"));
  EXPECT_TRUE(vanishes(at_once));
  EXPECT_FALSE(vanishes(at_once + " finalizers: 'f'"));
}

TEST(PodFromWire, ResourcesAndLimitsAsRequests) {
  ExpectPod(R"pb(spec {
                   containers {
                     name: "a"
                     resources {
                       requests {
                         key: "cpu"
                         value { string: "250m" }
                       }
                       requests {
                         key: "nvidia.com/gpu"
                         value { string: "2" }
                       }
                       limits {
                         key: "cpu"
                         value { string: "1" }
                       }
                       limits {
                         key: "memory"
                         value { string: "1Gi" }
                       }
                       limits {
                         key: "hugepages-2Mi"
                         value { string: "4Mi" }
                       }
                     }
                   }
                   containers {
                     name: "b"
                     resources {
                       requests {
                         key: "memory"
                         value { string: "0" }
                       }
                     }
                   }
                   containers { name: "c" }
                   initContainers { name: "i" restartPolicy: "Always" }
                   overhead {
                     key: "cpu"
                     value { string: "10m" }
                   }
                   resources {
                     requests {
                       key: "cpu"
                       value { string: "3" }
                     }
                     limits {
                       key: "ephemeral-storage"
                       value { string: "1500m" }
                     }
                   }
                 })pb",
            R"pb(containers {
                   name: "a"
                   requests {
                     cpu_millis: 250
                     memory_bytes: 1073741824
                     scalar { key: "nvidia.com/gpu" value: 2 }
                     scalar { key: "hugepages-2Mi" value: 4194304 }
                   }
                   limits {
                     cpu_millis: 1000
                     memory_bytes: 1073741824
                     scalar { key: "hugepages-2Mi" value: 4194304 }
                   }
                 }
                 containers {
                   name: "b"
                   requests { memory_bytes: 0 }
                 }
                 containers { name: "c" }
                 init_containers { name: "i" restart_policy_always: true }
                 overhead { cpu_millis: 10 }
                 pod_requests { cpu_millis: 3000 }
                 pod_limits { ephemeral_storage_bytes: 2 })pb");
}

TEST(PodFromWire, PortsOnTheHostNetwork) {
  constexpr char kPorts[] =
      R"pb(containers {
             name: "a"
             ports { containerPort: 80 }
             ports { containerPort: 53 hostPort: 54 protocol: "UDP" hostIP: "10.0.0.1" }
             ports { containerPort: 1 protocol: "QUIC" }
           })pb";
  const std::string spec(kPorts);
  ExpectPod(
      "spec {" + spec + "}",
      R"pb(containers {
             name: "a"
             ports { container_port: 80 protocol: PROTOCOL_TCP }
             ports { container_port: 53 host_port: 54 protocol: PROTOCOL_UDP host_ip: "10.0.0.1" }
             ports { container_port: 1 protocol: 1000 }
           })pb");
  ExpectPod(
      "spec { hostNetwork: true " + spec + "}",
      R"pb(host_network: true
           containers {
             name: "a"
             ports { container_port: 80 host_port: 80 protocol: PROTOCOL_TCP }
             ports { container_port: 53 host_port: 54 protocol: PROTOCOL_UDP host_ip: "10.0.0.1" }
             ports { container_port: 1 host_port: 1 protocol: 1000 }
           })pb");
}

TEST(PodFromWire, CommandsAndTheVariablesThatCountProcesses) {
  ExpectPod(R"pb(spec {
                   containers {
                     name: "a"
                     command: "torchrun"
                     args: "--nnodes=2"
                     args: "train.py"
                     env { name: "WORLD_SIZE" value: "8" }
                     env { name: "AWS_SECRET_ACCESS_KEY" value: "s" }
                     env { name: "NNODES" }
                   }
                 })pb",
            R"pb(containers {
                   name: "a"
                   command: "torchrun"
                   args: "--nnodes=2"
                   args: "train.py"
                   env { key: "WORLD_SIZE" value: "8" }
                 })pb");
}

// Restores the defaults at its end.
class ScopedReading {
 public:
  explicit ScopedReading(const ReadingOptions& options) : before_(Reading()) {
    SetReading(options);
  }
  ~ScopedReading() { SetReading(before_); }

 private:
  const ReadingOptions before_;
};

TEST(PodFromWire, ReadsTheVariablesThatTheAdministratorAllows) {
  ReadingOptions options;
  options.environment_variables = {"RACK"};
  const ScopedReading reading(options);
  const auto pod = Convert(PodWith(R"pb(spec {
                                          containers {
                                            name: "a"
                                            env { name: "RACK" value: "r1" }
                                            env { name: "WORLD_SIZE" value: "8" }
                                          }
                                        })pb"));
  ASSERT_EQ(pod->pod.containers(0).env_size(), 1) << "a given list replaces the default";
  EXPECT_EQ(pod->pod.containers(0).env().at("RACK"), "r1");
}

TEST(PodFromWire, ComparisonOperatorsOfTolerationsAreBehindAFeatureGate) {
  const wire::Pod pod = PodWith(R"pb(spec {
                                       tolerations { key: "k" operator: "Lt" value: "5" }
                                       tolerations { key: "k" operator: "Gt" value: "5" }
                                     })pb");
  const auto closed = Convert(pod);
  EXPECT_EQ(closed->pod.tolerations(0).operator_(), kUnknownEnumValue);
  EXPECT_EQ(closed->pod.tolerations(1).operator_(), kUnknownEnumValue);
  ReadingOptions options;
  options.comparison_operators = true;
  const ScopedReading reading(options);
  const auto open = Convert(pod);
  EXPECT_EQ(open->pod.tolerations(0).operator_(), v1beta1::Toleration::OPERATOR_LT);
  EXPECT_EQ(open->pod.tolerations(1).operator_(), v1beta1::Toleration::OPERATOR_GT);
}

TEST(PodFromWire, FieldsOnRequest) {
  const auto pod = Convert(PodWith(
      R"pb(spec { serviceAccountName: "robot" priorityClassName: "high" runtimeClassName: "gvisor" }
           status {
             phase: "Running"
             conditions {
               type: "Ready"
               status: "False"
               reason: "ContainersNotReady"
               message: "containers with unready status: [a]"
               lastTransitionTime { seconds: 7 }
             }
             conditions { type: "x" status: "?" }
           })pb"));
  v1beta1::Pod part;
  ASSERT_TRUE(part.ParseFromString(pod->on_request));
  const auto want = Text<v1beta1::Pod>(R"pb(service_account_name: "robot"
                                            priority_class_name: "high"
                                            runtime_class_name: "gvisor"
                                            phase: POD_PHASE_RUNNING
                                            conditions {
                                              type: "Ready"
                                              status: CONDITION_STATUS_FALSE
                                              reason: "ContainersNotReady"
                                              transition_unix_seconds: 7
                                            }
                                            conditions { type: "x" status: 1000 })pb");
  EXPECT_TRUE(MessageDifferencer::Equals(want, part)) << part.DebugString();
  const auto bare = Convert(PodWith(""));
  EXPECT_EQ(bare->on_request, "") << "nothing is left of the pod before";
}

TEST(PodFromWire, SchedulingFields) {
  ExpectPod(R"pb(spec {
                   activeDeadlineSeconds: 3600
                   nodeName: "n1"
                   priority: -5
                   preemptionPolicy: "Never"
                   schedulingGates { name: "g/1" }
                   schedulingGates { name: "g/2" }
                   nodeSelector { key: "disk" value: "ssd" }
                   resourceClaims { name: "claim" resourceClaimName: "c1" }
                   resourceClaims { name: "made" resourceClaimTemplateName: "t" }
                   resourceClaims { name: "none" resourceClaimTemplateName: "t" }
                   resourceClaims { name: "later" resourceClaimTemplateName: "t" }
                   schedulingGroup { podGroupName: "gang" }
                   tolerations { operator: "Exists" }
                   tolerations { key: "k" value: "v" effect: "NoExecute" tolerationSeconds: 5 }
                   tolerations { key: "k" operator: "Gt" value: "5" effect: "Strange" }
                   topologySpreadConstraints {
                     maxSkew: 2
                     topologyKey: "zone"
                     whenUnsatisfiable: "ScheduleAnyway"
                     labelSelector { matchLabels { key: "a" value: "b" } }
                   }
                 }
                 status {
                   nominatedNodeName: "n2"
                   startTime { seconds: 9 }
                   resourceClaimStatuses { name: "made" resourceClaimName: "made-1" }
                   resourceClaimStatuses { name: "none" }
                   extendedResourceClaimStatus { resourceClaimName: "extended-1" }
                 })pb",
            R"pb(node_name: "n1"
                 priority: -5
                 preemption_policy: PREEMPTION_POLICY_NEVER
                 scheduling_gates: "g/1"
                 scheduling_gates: "g/2"
                 node_selector { key: "disk" value: "ssd" }
                 claims { name: "claim" claim_name: "c1" }
                 claims { name: "made" template_name: "t" made_claim_name: "made-1" }
                 claims { name: "none" template_name: "t" made_claim_name: "" }
                 claims { name: "later" template_name: "t" }
                 pod_group_name: "gang"
                 tolerations { operator: OPERATOR_EXISTS }
                 tolerations {
                   key: "k"
                   operator: OPERATOR_EQUAL
                   value: "v"
                   effect: TAINT_EFFECT_NO_EXECUTE
                 }
                 tolerations { key: "k" operator: 1000 value: "5" effect: 1000 }
                 topology_spread_constraints {
                   max_skew: 2
                   topology_key: "zone"
                   when_unsatisfiable: WHEN_UNSATISFIABLE_SCHEDULE_ANYWAY
                   label_selector { match_labels { key: "a" value: "b" } }
                 }
                 nominated_node_name: "n2"
                 active_deadline_seconds: 3600
                 start_unix_seconds: 9
                 extended_resource_claim: "extended-1")pb");
}

TEST(PodFromWire, Affinity) {
  ExpectPod(
      R"pb(spec {
             affinity {
               nodeAffinity {
                 requiredDuringSchedulingIgnoredDuringExecution {
                   nodeSelectorTerms {
                     matchExpressions { key: "cores" operator: "Gt" values: "4" }
                     matchFields { key: "metadata.name" operator: "In" values: "n1" }
                   }
                 }
                 preferredDuringSchedulingIgnoredDuringExecution {
                   weight: 7
                   preference { matchExpressions { key: "x" operator: "Sometimes" } }
                 }
               }
               podAffinity {
                 requiredDuringSchedulingIgnoredDuringExecution {
                   topologyKey: "zone"
                   namespaces: "ns"
                   labelSelector { matchExpressions { key: "a" operator: "DoesNotExist" } }
                 }
               }
               podAntiAffinity {
                 preferredDuringSchedulingIgnoredDuringExecution {
                   weight: 3
                   podAffinityTerm {
                     topologyKey: "host"
                     namespaceSelector {}
                   }
                 }
               }
             }
           })pb",
      R"pb(affinity {
             node_affinity {
               required_during_scheduling_ignored_during_execution {
                 node_selector_terms {
                   match_expressions { key: "cores" operator: OPERATOR_GT values: "4" }
                   match_fields { key: "metadata.name" operator: OPERATOR_IN values: "n1" }
                 }
               }
               preferred_during_scheduling_ignored_during_execution {
                 weight: 7
                 preference { match_expressions { key: "x" operator: 1000 } }
               }
             }
             pod_affinity {
               required_during_scheduling_ignored_during_execution {
                 topology_key: "zone"
                 namespaces: "ns"
                 label_selector { match_expressions { key: "a" operator: OPERATOR_DOES_NOT_EXIST } }
               }
             }
             pod_anti_affinity {
               preferred_during_scheduling_ignored_during_execution {
                 weight: 3
                 pod_affinity_term {
                   topology_key: "host"
                   namespace_selector {}
                 }
               }
             }
           })pb");
}

TEST(PodFromWire, EveryVolumeKindByItsName) {
  const google::protobuf::Descriptor* type = wire::VolumeSource::descriptor();
  ASSERT_EQ(type->field_count(), 30);
  for (int i = 0; i < type->field_count(); ++i) {
    wire::Pod pod = PodWith("");
    wire::VolumeSource* source = pod.mutable_spec()->add_volumes()->mutable_volumesource();
    source->GetReflection()->MutableMessage(source, type->field(i));
    const PodPtr got = Convert(pod);
    EXPECT_EQ(got->pod.volumes(0).source(), type->field(i)->name());
  }
  ExpectPod(R"pb(spec {
                   volumes {
                     name: "new"
                     volumeSource {}
                   }
                   volumes {
                     name: "data"
                     volumeSource { persistentVolumeClaim { claimName: "c" } }
                   }
                   volumes {
                     name: "model"
                     volumeSource { image { reference: "r/m:1" } }
                   }
                   volumes {
                     name: "cert"
                     volumeSource { csi { driver: "certs.example.com" } }
                   }
                 })pb",
            R"pb(volumes { name: "new" source: "unknown" }
                 volumes { name: "data" source: "persistentVolumeClaim" claim_name: "c" }
                 volumes { name: "model" source: "image" image_reference: "r/m:1" }
                 volumes { name: "cert" source: "csi" csi_driver: "certs.example.com" })pb");
}

TEST(PodFromWire, VolumesWithTheirDisks) {
  ExpectPod(R"pb(spec {
                   volumes {
                     name: "scratch"
                     volumeSource { ephemeral {} }
                   }
                   volumes {
                     name: "g"
                     volumeSource { gcePersistentDisk { pdName: "pd" readOnly: true } }
                   }
                   volumes {
                     name: "a"
                     volumeSource { awsElasticBlockStore { volumeID: "vol" } }
                   }
                   volumes {
                     name: "i"
                     volumeSource { iscsi { iqn: "iqn.x" readOnly: true } }
                   }
                   volumes {
                     name: "r"
                     volumeSource {
                       rbd { monitors: "m1" monitors: "m2" image: "img" pool: "rbd" readOnly: true }
                     }
                   }
                 })pb",
            R"pb(volumes { name: "scratch" source: "ephemeral" claim_name: "p-scratch" }
                 volumes {
                   name: "g"
                   source: "gcePersistentDisk"
                   disk: "pd"
                   read_only: true
                   migrated {
                     driver: "pd.csi.storage.gke.io"
                     volume_handle: "projects/UNSPECIFIED/zones/UNSPECIFIED/disks/pd"
                     in_tree_plugin: "kubernetes.io/gce-pd"
                   }
                 }
                 volumes {
                   name: "a"
                   source: "awsElasticBlockStore"
                   disk: "vol"
                   migrated {
                     driver: "ebs.csi.aws.com"
                     volume_handle: "vol"
                     in_tree_plugin: "kubernetes.io/aws-ebs"
                   }
                 }
                 volumes { name: "i" source: "iscsi" disk: "iqn.x" read_only: true }
                 volumes {
                   name: "r"
                   source: "rbd"
                   disk: "img"
                   read_only: true
                   monitors: "m1"
                   monitors: "m2"
                   pool: "rbd"
                 })pb");
}

TEST(PodFromWire, SpreadConstraintsWhole) {
  ExpectPod(R"pb(spec {
                   topologySpreadConstraints {
                     maxSkew: 1
                     topologyKey: "zone"
                     whenUnsatisfiable: "DoNotSchedule"
                     minDomains: 3
                     nodeAffinityPolicy: "Ignore"
                     nodeTaintsPolicy: "Honor"
                     matchLabelKeys: "pod-template-hash"
                   }
                   topologySpreadConstraints {
                     maxSkew: 1
                     topologyKey: "host"
                     whenUnsatisfiable: "Later"
                     nodeAffinityPolicy: "Later"
                   }
                 })pb",
            R"pb(topology_spread_constraints {
                   max_skew: 1
                   topology_key: "zone"
                   when_unsatisfiable: WHEN_UNSATISFIABLE_DO_NOT_SCHEDULE
                   min_domains: 3
                   node_affinity_policy: NODE_INCLUSION_POLICY_IGNORE
                   node_taints_policy: NODE_INCLUSION_POLICY_HONOR
                   match_label_keys: "pod-template-hash"
                 }
                 topology_spread_constraints {
                   max_skew: 1
                   topology_key: "host"
                   when_unsatisfiable: 1000
                   node_affinity_policy: 1000
                 })pb");
}

TEST(PodFromWire, FeaturesThatTheNodeMustDeclare) {
  ExpectPod(R"pb(spec {
                   hostNetwork: true
                   hostUsers: false
                   containers {
                     name: "c"
                     restartPolicyRules { action: "RestartAllContainers" }
                   }
                 })pb",
            R"pb(host_network: true
                 containers { name: "c" }
                 required_node_features: "RestartAllContainersOnContainerExits"
                 required_node_features: "UserNamespacesHostNetworkSupport")pb");
  ExpectPod(R"pb(spec {
                   initContainers {
                     name: "i"
                     restartPolicyRules { action: "Restart" }
                     restartPolicyRules { action: "RestartAllContainers" }
                   }
                 })pb",
            R"pb(init_containers { name: "i" }
                 required_node_features: "RestartAllContainersOnContainerExits")pb");
  // None of these fields alone requires a feature.
  ExpectPod("spec { hostUsers: false }", "");
  ExpectPod("spec { hostNetwork: true }", "host_network: true");
  ExpectPod("spec { hostNetwork: true hostUsers: true }", "host_network: true");
  ExpectPod("spec { containers { restartPolicyRules { action: 'Restart' } } }", "containers {}");
}

TEST(PodFromWire, PreemptedBySchedulerComesFromTheFirstCondition) {
  const auto preempted = [](const std::string& conditions) {
    return Convert(PodWith("status {" + conditions + "}"))->pod.preempted_by_scheduler();
  };
  const std::string ours =
      "conditions { type: 'DisruptionTarget' status: 'True' reason: 'PreemptionByScheduler' }";
  EXPECT_TRUE(preempted(ours));
  EXPECT_FALSE(
      preempted("conditions { type: 'DisruptionTarget' status: 'False' "
                "reason: 'PreemptionByScheduler' }"));
  EXPECT_FALSE(
      preempted("conditions { type: 'DisruptionTarget' status: 'True' "
                "reason: 'EvictionByEvictionAPI' }" +
                ours));
  EXPECT_FALSE(preempted("conditions { type: 'Ready' status: 'True' }"));
}

TEST(PodFromWire, PodLevelStatusOfAResize) {
  ExpectPod(R"pb(status {
                   allocatedResources {
                     key: "cpu"
                     value { string: "1" }
                   }
                   resources {
                     requests {
                       key: "cpu"
                       value { string: "1500m" }
                     }
                     limits {
                       key: "cpu"
                       value { string: "9" }
                     }
                   }
                 })pb",
            R"pb(pod_allocated_requests { cpu_millis: 1000 }
                 pod_actual_requests { cpu_millis: 1500 })pb");
  // The presence of resources counts, even if they are empty.
  ExpectPod("status { resources {} }", "pod_actual_requests {}");
  absl::StatusOr<PodPtr> bad =
      PodFromWire(PodWith("status { allocatedResources { key: 'memory' value { string: 'x' } } }"));
  EXPECT_NE(bad.status().message().find("status.allocatedResources.memory"), std::string::npos)
      << bad.status();
}

TEST(PodFromWire, Status) {
  const wire::Pod pod = PodWith(R"pb(status {
                                       phase: "Running"
                                       conditions {
                                         type: "PodScheduled"
                                         status: "False"
                                         reason: "Unschedulable"
                                         message: "0/1 nodes"
                                         observedGeneration: 3
                                       }
                                       conditions { type: "PodResizePending" reason: "Infeasible" }
                                       containerStatuses { name: "plain" }
                                       containerStatuses {
                                         name: "a"
                                         allocatedResources {
                                           key: "cpu"
                                           value { string: "1" }
                                         }
                                         resources {
                                           requests {
                                             key: "cpu"
                                             value { string: "2" }
                                           }
                                         }
                                       }
                                       initContainerStatuses {
                                         name: "i"
                                         resources {}
                                       }
                                     })pb");
  const PodPtr got = Convert(pod);
  EXPECT_EQ(got->phase, "Running");
  EXPECT_EQ(got->scheduled.status, "False");
  EXPECT_EQ(got->scheduled.reason, "Unschedulable");
  EXPECT_EQ(got->scheduled.message, "0/1 nodes");
  EXPECT_EQ(got->scheduled.observed_generation, 3);
  EXPECT_TRUE(got->pod.resize_infeasible());
  ASSERT_EQ(got->pod.container_statuses_size(), 2);
  EXPECT_EQ(got->pod.container_statuses(0).allocated_requests().cpu_millis(), 1000);
  EXPECT_EQ(got->pod.container_statuses(0).actual_requests().cpu_millis(), 2000);
  EXPECT_EQ(got->pod.container_statuses(1).name(), "i");
  EXPECT_TRUE(got->pod.container_statuses(1).has_actual_requests());
  EXPECT_FALSE(got->pod.container_statuses(1).has_allocated_requests());
}

// Bytes that are not UTF-8 would break a stream of contract messages.
TEST(PodFromWire, FreeTextsBecomeUtf8) {
  wire::Pod pod = PodWith("");
  (*pod.mutable_metadata()->mutable_annotations())["a"] =
      "gr\xc3\xbc\xc3\x9f \xff\xed\xa0\x80 \xf0\x9f\x98\x80";
  pod.mutable_spec()->add_containers()->set_image("x\xc0");
  pod.mutable_spec()->set_schedulername("s\xff");
  (*pod.mutable_spec()->mutable_nodeselector())["k\xff"] = "v\xff";
  const PodPtr got = Convert(pod);
  constexpr char kBad[] = "\xEF\xBF\xBD";
  EXPECT_EQ(got->pod.annotations().at("a"),
            std::string("gr\xc3\xbc\xc3\x9f ") + kBad + kBad + kBad + kBad + " \xf0\x9f\x98\x80");
  EXPECT_EQ(got->pod.containers(0).image(), std::string("x") + kBad);
  EXPECT_EQ(got->pod.scheduler_name(), std::string("s") + kBad);
  EXPECT_EQ(got->pod.node_selector().at(std::string("k") + kBad), std::string("v") + kBad);
  v1beta1::Pod copy;
  EXPECT_TRUE(copy.ParseFromString(got->pod.SerializeAsString()));
  // Identity is not repaired: two objects could become one.
  pod.mutable_metadata()->set_uid("u\xff");
  EXPECT_EQ(std::string(PodFromWire(pod).status().message()), "pod n/p: metadata: not UTF-8");
  // Neither is the version: it is sent back as a precondition.
  pod.mutable_metadata()->set_uid("u");
  pod.mutable_metadata()->set_resourceversion("47\xb1");
  EXPECT_EQ(std::string(PodFromWire(pod).status().message()), "pod n/p: metadata: not UTF-8");
}

TEST(PodFromWire, NeedsIdentity) {
  wire::Pod pod = PodWith("");
  pod.mutable_metadata()->clear_uid();
  EXPECT_EQ(std::string(PodFromWire(pod).status().message()),
            "pod n/p: metadata.uid: must not be empty");
  pod.mutable_metadata()->clear_name();
  EXPECT_FALSE(PodFromWire(pod).ok());
}

TEST(NodeFromWire, Everything) {
  absl::StatusOr<NodePtr> node = NodeFromWire(Text<wire::Node>(R"pb(
    metadata {
      name: "n1"
      uid: "u"
      resourceVersion: "3"
      creationTimestamp { seconds: 5 }
      labels { key: "zone" value: "a" }
      annotations { key: "k" value: "v" }
    }
    spec {
      unschedulable: true
      taints { key: "t" value: "v" effect: "NoSchedule" }
      taints { key: "x" effect: "?" }
    }
    status {
      capacity {
        key: "cpu"
        value { string: "9" }
      }
      allocatable {
        key: "cpu"
        value { string: "3920m" }
      }
      allocatable {
        key: "memory"
        value { string: "2Gi" }
      }
      allocatable {
        key: "pods"
        value { string: "110" }
      }
      allocatable {
        key: "nvidia.com/gpu"
        value { string: "8" }
      }
      conditions { type: "Ready" status: "True" }
      conditions { type: "MemoryPressure" status: "False" }
      images { names: "a:1" names: "a@sha256:0" sizeBytes: 77 }
      declaredFeatures: "B"
      declaredFeatures: "A"
    })pb"));
  ASSERT_TRUE(node.ok()) << node.status();
  EXPECT_EQ((*node)->conditions, "Ready=True,MemoryPressure=False");
  EXPECT_EQ((*node)->resource_version, "3");
  const auto want = Text<v1beta1::Node>(R"pb(
    uid: "u"
    name: "n1"
    unschedulable: true
    creation_unix_seconds: 5
    labels { key: "zone" value: "a" }
    annotations { key: "k" value: "v" }
    taints { key: "t" value: "v" effect: TAINT_EFFECT_NO_SCHEDULE }
    taints { key: "x" effect: 1000 }
    allocatable {
      cpu_millis: 3920
      memory_bytes: 2147483648
      pods: 110
      scalar { key: "nvidia.com/gpu" value: 8 }
    }
    images { names: "a:1" names: "a@sha256:0" size_bytes: 77 }
    declared_features: "A"
    declared_features: "B")pb");
  EXPECT_TRUE(MessageDifferencer::Equals(want, (*node)->node)) << (*node)->node.DebugString();
}

TEST(NodeFromWire, FieldsOnRequestWithoutHeartbeats) {
  // Also what is not in the shim's schema: it has the numbers of upstream's.
  const auto convert = [](int64_t heartbeat) {
    wire::Node node = Text<wire::Node>(R"pb(
      metadata { name: "n1" uid: "u" resourceVersion: "3" }
      status {
        capacity {
          key: "cpu"
          value { string: "4" }
        }
        conditions {
          type: "Ready"
          status: "True"
          reason: "KubeletReady"
          lastTransitionTime { seconds: 7 }
        }
        addresses { type: "InternalIP" address: "10.0.0.1" }
      })pb");
    wire::Time time;
    time.set_seconds(heartbeat);
    wire::NodeCondition* condition = node.mutable_status()->mutable_conditions(0);
    condition->GetReflection()->MutableUnknownFields(condition)->AddLengthDelimited(
        3, time.SerializeAsString());
    const absl::StatusOr<NodePtr> read = NodeFromWire(node);
    EXPECT_TRUE(read.ok()) << read.status();
    return *read;
  };
  const NodePtr node = convert(100);
  v1beta1::Node part;
  ASSERT_TRUE(part.ParseFromString(node->on_request));
  const auto want =
      Text<v1beta1::Node>(R"pb(capacity { cpu_millis: 4000 }
                               conditions {
                                 type: "Ready"
                                 status: CONDITION_STATUS_TRUE
                                 reason: "KubeletReady"
                                 transition_unix_seconds: 7
                               }
                               addresses { type: "InternalIP" address: "10.0.0.1" })pb");
  EXPECT_TRUE(MessageDifferencer::Equals(want, part)) << part.DebugString();
  EXPECT_EQ(convert(110)->on_request, node->on_request) << "a heartbeat is not a change";
}

TEST(NamespaceFromWire, Everything) {
  absl::StatusOr<NamespacePtr> ns =
      NamespaceFromWire(Text<wire::Namespace>(R"pb(metadata {
                                                     name: "shop"
                                                     uid: "u"
                                                     resourceVersion: "8"
                                                     labels { key: "team" value: "x" }
                                                   })pb"));
  ASSERT_TRUE(ns.ok()) << ns.status();
  EXPECT_EQ((*ns)->key(), "shop");
  EXPECT_EQ((*ns)->uid(), "u");
  EXPECT_EQ((*ns)->ns.labels().at("team"), "x");
}

}  // namespace
}  // namespace outboard::kube::from_wire_test
