// Pods.
#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/message.h"
#include "shim/kube/wire/csi_translation.h"
#include "shim/kube/wire/from_wire.h"
#include "shim/kube/wire/from_wire_parts.h"
#include "shim/kube/wire/reading_options.h"

namespace outboard::kube {
namespace {

namespace api = ::outboard::v1beta1;

// Limits replace absent requests.
void FillRequestsFromLimits(const api::ResourceList& limits, api::ResourceList* requests) {
  if (limits.has_cpu_millis() && !requests->has_cpu_millis()) {
    requests->set_cpu_millis(limits.cpu_millis());
  }
  if (limits.has_memory_bytes() && !requests->has_memory_bytes()) {
    requests->set_memory_bytes(limits.memory_bytes());
  }
  if (limits.has_ephemeral_storage_bytes() && !requests->has_ephemeral_storage_bytes()) {
    requests->set_ephemeral_storage_bytes(limits.ephemeral_storage_bytes());
  }
  if (limits.has_pods() && !requests->has_pods()) requests->set_pods(limits.pods());
  for (const auto& [name, amount] : limits.scalar()) {
    requests->mutable_scalar()->insert({name, amount});
  }
}

api::Protocol ConvertProtocol(const std::string& text) {
  if (text == "TCP" || text.empty()) return api::PROTOCOL_TCP;
  if (text == "UDP") return api::PROTOCOL_UDP;
  if (text == "SCTP") return api::PROTOCOL_SCTP;
  return UnknownEnum<api::Protocol>();
}

absl::Status ConvertContainer(absl::string_view path, const wire::Container& from,
                              bool host_network, api::Container* to) {
  CopyText(from.name(), to->mutable_name());
  CopyText(from.image(), to->mutable_image());
  const wire::ResourceRequirements& resources = from.resources();
  if (!resources.requests().empty()) {
    absl::Status status = ConvertResources(absl::StrCat(path, ".resources.requests"),
                                           resources.requests(), to->mutable_requests());
    if (!status.ok()) return status;
  }
  if (!resources.limits().empty()) {
    absl::Status status = ConvertResources(absl::StrCat(path, ".resources.limits"),
                                           resources.limits(), to->mutable_limits());
    if (!status.ok()) return status;
    FillRequestsFromLimits(to->limits(), to->mutable_requests());
  }
  for (const wire::ContainerPort& port : from.ports()) {
    api::ContainerPort* out = to->add_ports();
    out->set_container_port(port.containerport());
    out->set_host_port(host_network && port.hostport() == 0 ? port.containerport()
                                                            : port.hostport());
    out->set_protocol(ConvertProtocol(port.protocol()));
    if (port.has_hostip()) CopyText(port.hostip(), out->mutable_host_ip());
  }
  to->set_restart_policy_always(from.restartpolicy() == "Always");
  for (const std::string& word : from.command()) CopyText(word, to->add_command());
  for (const std::string& word : from.args()) CopyText(word, to->add_args());
  for (const wire::EnvVar& variable : from.env()) {
    if (variable.has_value() && Reading().environment_variables.contains(variable.name()))
      CopyText(variable.value(), &(*to->mutable_env())[variable.name()]);
  }
  return absl::OkStatus();
}

void ConvertNodeAffinity(const wire::NodeAffinity& from, api::NodeAffinity* to) {
  if (from.has_requiredduringschedulingignoredduringexecution()) {
    ConvertNodeSelector(from.requiredduringschedulingignoredduringexecution(),
                        to->mutable_required_during_scheduling_ignored_during_execution());
  }
  for (const auto& term : from.preferredduringschedulingignoredduringexecution()) {
    api::PreferredSchedulingTerm* out =
        to->add_preferred_during_scheduling_ignored_during_execution();
    out->set_weight(term.weight());
    ConvertNodeTerm(term.preference(), out->mutable_preference());
  }
}

void ConvertPodTerm(const wire::PodAffinityTerm& from, api::PodAffinityTerm* to) {
  if (from.has_labelselector())
    ConvertLabelSelector(from.labelselector(), to->mutable_label_selector());
  CopyTexts(from.namespaces(), to->mutable_namespaces());
  CopyText(from.topologykey(), to->mutable_topology_key());
  if (from.has_namespaceselector()) {
    ConvertLabelSelector(from.namespaceselector(), to->mutable_namespace_selector());
  }
}

// For PodAffinity and PodAntiAffinity.
template <typename WireAffinity>
void ConvertPodAffinity(const WireAffinity& from, api::PodAffinity* to) {
  for (const auto& term : from.requiredduringschedulingignoredduringexecution()) {
    ConvertPodTerm(term, to->add_required_during_scheduling_ignored_during_execution());
  }
  for (const auto& term : from.preferredduringschedulingignoredduringexecution()) {
    api::WeightedPodAffinityTerm* out =
        to->add_preferred_during_scheduling_ignored_during_execution();
    out->set_weight(term.weight());
    ConvertPodTerm(term.podaffinityterm(), out->mutable_pod_affinity_term());
  }
}

void ConvertAffinity(const wire::Affinity& from, api::Affinity* to) {
  if (from.has_nodeaffinity())
    ConvertNodeAffinity(from.nodeaffinity(), to->mutable_node_affinity());
  if (from.has_podaffinity()) ConvertPodAffinity(from.podaffinity(), to->mutable_pod_affinity());
  if (from.has_podantiaffinity()) {
    ConvertPodAffinity(from.podantiaffinity(), to->mutable_pod_anti_affinity());
  }
}

void ConvertToleration(const wire::Toleration& from, api::Toleration* to) {
  CopyText(from.key(), to->mutable_key());
  if (from.operator_().empty() || from.operator_() == "Equal") {
    to->set_operator_(api::Toleration::OPERATOR_EQUAL);
  } else if (from.operator_() == "Exists") {
    to->set_operator_(api::Toleration::OPERATOR_EXISTS);
  } else if (Reading().comparison_operators && from.operator_() == "Lt") {
    to->set_operator_(api::Toleration::OPERATOR_LT);
  } else if (Reading().comparison_operators && from.operator_() == "Gt") {
    to->set_operator_(api::Toleration::OPERATOR_GT);
  } else {
    to->set_operator_(UnknownEnum<api::Toleration::Operator>());
  }
  CopyText(from.value(), to->mutable_value());
  to->set_effect(ConvertEffect(from.effect()));
}

api::TopologySpreadConstraint::NodeInclusionPolicy ConvertInclusion(const std::string& text) {
  using Spread = api::TopologySpreadConstraint;
  if (text == "Honor") return Spread::NODE_INCLUSION_POLICY_HONOR;
  if (text == "Ignore") return Spread::NODE_INCLUSION_POLICY_IGNORE;
  return text.empty() ? Spread::NODE_INCLUSION_POLICY_UNSPECIFIED
                      : UnknownEnum<Spread::NodeInclusionPolicy>();
}

void ConvertSpread(const wire::TopologySpreadConstraint& from, api::TopologySpreadConstraint* to) {
  using Spread = api::TopologySpreadConstraint;
  to->set_max_skew(from.maxskew());
  CopyText(from.topologykey(), to->mutable_topology_key());
  if (from.whenunsatisfiable() == "DoNotSchedule") {
    to->set_when_unsatisfiable(Spread::WHEN_UNSATISFIABLE_DO_NOT_SCHEDULE);
  } else if (from.whenunsatisfiable() == "ScheduleAnyway") {
    to->set_when_unsatisfiable(Spread::WHEN_UNSATISFIABLE_SCHEDULE_ANYWAY);
  } else {
    to->set_when_unsatisfiable(UnknownEnum<Spread::WhenUnsatisfiable>());
  }
  if (from.has_labelselector())
    ConvertLabelSelector(from.labelselector(), to->mutable_label_selector());
  if (from.has_mindomains()) to->set_min_domains(from.mindomains());
  to->set_node_affinity_policy(ConvertInclusion(from.nodeaffinitypolicy()));
  to->set_node_taints_policy(ConvertInclusion(from.nodetaintspolicy()));
  CopyTexts(from.matchlabelkeys(), to->mutable_match_label_keys());
}

// The JSON name of the volume kind that is set.
const std::string* VolumeKind(const wire::VolumeSource& source) {
  static const std::string* const kUnknown = new std::string("unknown");
  static const google::protobuf::Descriptor* const type = wire::VolumeSource::descriptor();
  // Nearly every pod has a projected volume, for its token.
  if (source.has_projected()) return &type->FindFieldByNumber(26)->name();
  const google::protobuf::Reflection* reflection = source.GetReflection();
  for (int i = 0; i < type->field_count(); ++i) {
    if (reflection->HasField(source, type->field(i))) return &type->field(i)->name();
  }
  return kUnknown;
}

// Sources with restrictions on sharing between pods.
void ConvertDisk(const wire::VolumeSource& source, api::Volume* to) {
  if (source.has_gcepersistentdisk()) {
    CopyText(source.gcepersistentdisk().pdname(), to->mutable_disk());
    to->set_read_only(source.gcepersistentdisk().readonly());
  } else if (source.has_awselasticblockstore()) {
    CopyText(source.awselasticblockstore().volumeid(), to->mutable_disk());
    to->set_read_only(source.awselasticblockstore().readonly());
  } else if (source.has_iscsi()) {
    CopyText(source.iscsi().iqn(), to->mutable_disk());
    to->set_read_only(source.iscsi().readonly());
  } else if (source.has_rbd()) {
    CopyText(source.rbd().image(), to->mutable_disk());
    CopyText(source.rbd().pool(), to->mutable_pool());
    CopyTexts(source.rbd().monitors(), to->mutable_monitors());
    to->set_read_only(source.rbd().readonly());
  }
}

void ConvertVolume(const wire::Volume& from, const api::Pod& pod, api::Volume* to) {
  CopyText(from.name(), to->mutable_name());
  const wire::VolumeSource& source = from.volumesource();
  to->set_source(*VolumeKind(source));
  if (source.has_persistentvolumeclaim()) {
    CopyText(source.persistentvolumeclaim().claimname(), to->mutable_claim_name());
  } else if (source.has_ephemeral()) {
    // The name of the claim that the ephemeral volume controller creates.
    CopyText(absl::StrCat(pod.name(), "-", from.name()), to->mutable_claim_name());
  }
  if (source.has_csi()) CopyText(source.csi().driver(), to->mutable_csi_driver());
  if (source.has_image()) CopyText(source.image().reference(), to->mutable_image_reference());
  ConvertDisk(source, to);
  TranslateInlineVolume(from, pod.namespace_(), to);
}

// Infers the features that a node must declare for the pod: names of k8s.io/component-helpers'
// nodedeclaredfeatures, sorted.
void InferNodeFeatures(const wire::PodSpec& spec, api::Pod* pod) {
  const auto restarts_all = [](const wire::Container& container) {
    const auto& rules = container.restartpolicyrules();
    return std::any_of(rules.begin(), rules.end(), [](const wire::ContainerRestartRule& rule) {
      return rule.action() == "RestartAllContainers";
    });
  };
  if (std::any_of(spec.containers().begin(), spec.containers().end(), restarts_all) ||
      std::any_of(spec.initcontainers().begin(), spec.initcontainers().end(), restarts_all)) {
    pod->add_required_node_features("RestartAllContainersOnContainerExits");
  }
  if (spec.hostnetwork() && spec.has_hostusers() && !spec.hostusers()) {
    pod->add_required_node_features("UserNamespacesHostNetworkSupport");
  }
}

absl::Status ConvertPodResources(const wire::PodSpec& spec, api::Pod* pod) {
  if (!spec.overhead().empty()) {
    absl::Status status =
        ConvertResources("spec.overhead", spec.overhead(), pod->mutable_overhead());
    if (!status.ok()) return status;
  }
  if (!spec.resources().requests().empty()) {
    absl::Status status = ConvertResources("spec.resources.requests", spec.resources().requests(),
                                           pod->mutable_pod_requests());
    if (!status.ok()) return status;
  }
  if (!spec.resources().limits().empty()) {
    return ConvertResources("spec.resources.limits", spec.resources().limits(),
                            pod->mutable_pod_limits());
  }
  return absl::OkStatus();
}

absl::Status ConvertSpec(const wire::PodSpec& spec, api::Pod* pod) {
  if (spec.schedulername().empty()) {
    pod->set_scheduler_name("default-scheduler");
  } else {
    CopyText(spec.schedulername(), pod->mutable_scheduler_name());
  }
  CopyText(spec.nodename(), pod->mutable_node_name());
  pod->set_priority(spec.priority());
  if (spec.preemptionpolicy() == "Never") {
    pod->set_preemption_policy(api::PREEMPTION_POLICY_NEVER);
  } else if (spec.has_preemptionpolicy()) {
    pod->set_preemption_policy(api::PREEMPTION_POLICY_PREEMPT_LOWER_PRIORITY);
  }
  for (const auto& gate : spec.schedulinggates())
    CopyText(gate.name(), pod->add_scheduling_gates());
  CopyTexts(spec.nodeselector(), pod->mutable_node_selector());
  if (spec.has_affinity()) ConvertAffinity(spec.affinity(), pod->mutable_affinity());
  for (const auto& toleration : spec.tolerations())
    ConvertToleration(toleration, pod->add_tolerations());
  for (const auto& constraint : spec.topologyspreadconstraints()) {
    ConvertSpread(constraint, pod->add_topology_spread_constraints());
  }
  pod->set_host_network(spec.hostnetwork());
  pod->set_active_deadline_seconds(spec.activedeadlineseconds());
  for (int i = 0; i < spec.containers_size(); ++i) {
    absl::Status status =
        ConvertContainer(absl::StrCat("spec.containers[", i, "]"), spec.containers(i),
                         spec.hostnetwork(), pod->add_containers());
    if (!status.ok()) return status;
  }
  for (int i = 0; i < spec.initcontainers_size(); ++i) {
    absl::Status status =
        ConvertContainer(absl::StrCat("spec.initContainers[", i, "]"), spec.initcontainers(i),
                         spec.hostnetwork(), pod->add_init_containers());
    if (!status.ok()) return status;
  }
  for (const auto& volume : spec.volumes()) ConvertVolume(volume, *pod, pod->add_volumes());
  for (const auto& claim : spec.resourceclaims()) {
    api::PodResourceClaim* out = pod->add_claims();
    CopyText(claim.name(), out->mutable_name());
    CopyText(claim.resourceclaimname(), out->mutable_claim_name());
    CopyText(claim.resourceclaimtemplatename(), out->mutable_template_name());
  }
  CopyText(spec.schedulinggroup().podgroupname(), pod->mutable_pod_group_name());
  InferNodeFeatures(spec, pod);
  return ConvertPodResources(spec, pod);
}

// Only container statuses with resources matter for a resize.
absl::Status ConvertContainerStatuses(
    absl::string_view path, const google::protobuf::RepeatedPtrField<wire::ContainerStatus>& from,
    api::Pod* pod) {
  for (int i = 0; i < from.size(); ++i) {
    const wire::ContainerStatus& status = from[i];
    if (!status.has_resources() && status.allocatedresources().empty()) continue;
    api::ContainerStatus* out = pod->add_container_statuses();
    CopyText(status.name(), out->mutable_name());
    if (!status.allocatedresources().empty()) {
      absl::Status done =
          ConvertResources(absl::StrCat(path, "[", i, "].allocatedResources"),
                           status.allocatedresources(), out->mutable_allocated_requests());
      if (!done.ok()) return done;
    }
    if (status.has_resources()) {
      absl::Status done =
          ConvertResources(absl::StrCat(path, "[", i, "].resources.requests"),
                           status.resources().requests(), out->mutable_actual_requests());
      if (!done.ok()) return done;
    }
  }
  return absl::OkStatus();
}

void ConvertConditions(const wire::PodStatus& status, PodObject* object) {
  api::Pod* pod = &object->pod;
  bool resize_seen = false;
  bool disruption_seen = false;
  for (const wire::PodCondition& condition : status.conditions()) {
    if (condition.type() == "PodScheduled") {
      CopyText(condition.status(), &object->scheduled.status);
      CopyText(condition.reason(), &object->scheduled.reason);
      CopyText(condition.message(), &object->scheduled.message);
      object->scheduled.observed_generation = condition.observedgeneration();
    } else if (condition.type() == "PodResizePending" && !resize_seen) {
      resize_seen = true;
      pod->set_resize_infeasible(condition.reason() == "Infeasible");
    } else if (condition.type() == "DisruptionTarget" && !disruption_seen) {
      disruption_seen = true;
      pod->set_preempted_by_scheduler(condition.status() == "True" &&
                                      condition.reason() == "PreemptionByScheduler");
    }
  }
}

void ConvertClaimStatuses(const wire::PodStatus& status, api::Pod* pod) {
  for (const wire::PodResourceClaimStatus& made : status.resourceclaimstatuses()) {
    for (api::PodResourceClaim& claim : *pod->mutable_claims()) {
      if (claim.name() == made.name() && !claim.template_name().empty())
        CopyText(made.resourceclaimname(), claim.mutable_made_claim_name());
    }
  }
  CopyText(status.extendedresourceclaimstatus().resourceclaimname(),
           pod->mutable_extended_resource_claim());
}

absl::Status ConvertStatus(const wire::PodStatus& status, PodObject* object) {
  api::Pod* pod = &object->pod;
  CopyText(status.phase(), &object->phase);
  CopyText(status.nominatednodename(), pod->mutable_nominated_node_name());
  pod->set_start_unix_seconds(status.starttime().seconds());
  ConvertConditions(status, object);
  ConvertClaimStatuses(status, pod);
  if (!status.allocatedresources().empty()) {
    absl::Status done = ConvertResources("status.allocatedResources", status.allocatedresources(),
                                         pod->mutable_pod_allocated_requests());
    if (!done.ok()) return done;
  }
  if (status.has_resources()) {
    absl::Status done = ConvertResources("status.resources.requests", status.resources().requests(),
                                         pod->mutable_pod_actual_requests());
    if (!done.ok()) return done;
  }
  absl::Status done =
      ConvertContainerStatuses("status.containerStatuses", status.containerstatuses(), pod);
  if (!done.ok()) return done;
  return ConvertContainerStatuses("status.initContainerStatuses", status.initcontainerstatuses(),
                                  pod);
}

api::PodPhase ConvertPhase(const std::string& text) {
  if (text.empty()) return api::POD_PHASE_UNSPECIFIED;
  if (text == "Pending") return api::POD_PHASE_PENDING;
  if (text == "Running") return api::POD_PHASE_RUNNING;
  return text == "Unknown" ? api::POD_PHASE_UNKNOWN : UnknownEnum<api::PodPhase>();
}

// See PodObject::on_request.
std::string ConvertOnRequest(const wire::Pod& from) {
  // Reused: conditions are many small messages.
  thread_local api::Pod part;
  part.Clear();
  CopyText(from.spec().serviceaccountname(), part.mutable_service_account_name());
  CopyText(from.spec().priorityclassname(), part.mutable_priority_class_name());
  CopyText(from.spec().runtimeclassname(), part.mutable_runtime_class_name());
  part.set_phase(ConvertPhase(from.status().phase()));
  for (const wire::PodCondition& condition : from.status().conditions())
    ConvertCondition(condition, part.add_conditions());
  return part.SerializeAsString();
}

}  // namespace

absl::StatusOr<PodPtr> PodFromWire(const wire::Pod& from) {
  const wire::ObjectMeta& meta = from.metadata();
  if (absl::Status status = CheckIdentity(meta); !status.ok()) return Named("pod", meta, status);
  auto object = std::make_shared<PodObject>();
  object->resource_version = meta.resourceversion();
  api::Pod* pod = &object->pod;
  CopyText(meta.uid(), pod->mutable_uid());
  CopyText(meta.namespace_(), pod->mutable_namespace_());
  CopyText(meta.name(), pod->mutable_name());
  CopyTexts(meta.labels(), pod->mutable_labels());
  CopyAnnotations(meta.annotations(), pod->mutable_annotations());
  pod->set_creation_unix_seconds(meta.creationtimestamp().seconds());
  pod->set_deletion_unix_seconds(meta.deletiontimestamp().seconds());
  object->vanishes = meta.has_deletiontimestamp() && meta.has_deletiongraceperiodseconds() &&
                     meta.deletiongraceperiodseconds() == 0 && meta.finalizers().empty();
  pod->set_generation(meta.generation());
  ConvertController(meta, pod);
  if (absl::Status status = ConvertSpec(from.spec(), pod); !status.ok())
    return Named("pod", meta, status);
  if (absl::Status status = ConvertStatus(from.status(), object.get()); !status.ok()) {
    return Named("pod", meta, status);
  }
  object->on_request = ConvertOnRequest(from);
  return object;
}

}  // namespace outboard::kube
