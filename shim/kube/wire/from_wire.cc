#include "shim/kube/wire/from_wire.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/message.h"
#include "shim/kube/wire/quantity.h"
#include "shim/kube/wire/utf8.h"

namespace outboard::kube {
namespace {

namespace api = ::outboard::v1alpha1;
using QuantityMap = google::protobuf::Map<std::string, wire::Quantity>;
using StringList = google::protobuf::RepeatedPtrField<std::string>;
using StringMap = google::protobuf::Map<std::string, std::string>;

// Holds the whole manifest once more; no plugin may ask for it.
constexpr absl::string_view kLastApplied = "kubectl.kubernetes.io/last-applied-configuration";

template <typename Enum>
Enum UnknownEnum() {
  return static_cast<Enum>(kUnknownEnumValue);
}

// The API server checks the bytes of most texts, but not of all (schedulerName, annotations,
// images).
void CopyText(const std::string& from, std::string* to) {
  if (Utf8Prefix(from) == from.size()) {
    *to = from;
  } else {
    *to = ToUtf8(from);
  }
}

void CopyTexts(const StringList& from, StringList* to) {
  to->Reserve(from.size());
  for (const std::string& text : from) CopyText(text, to->Add());
}

void CopyTexts(const StringMap& from, StringMap* to) {
  for (const auto& [key, value] : from) {
    CopyText(value, Utf8Prefix(key) == key.size() ? &(*to)[key] : &(*to)[ToUtf8(key)]);
  }
}

void CopyAnnotations(const StringMap& from, StringMap* to) {
  for (const auto& [key, value] : from) {
    if (key == kLastApplied) continue;
    CopyText(value, Utf8Prefix(key) == key.size() ? &(*to)[key] : &(*to)[ToUtf8(key)]);
  }
}

absl::Status InField(absl::string_view path, absl::string_view key, const absl::Status& status) {
  return absl::InvalidArgumentError(absl::StrCat(path, ".", key, ": ", status.message()));
}

absl::Status ConvertResources(absl::string_view path, const QuantityMap& from,
                              api::ResourceList* to) {
  for (const auto& [name, quantity] : from) {
    const bool is_cpu = name == "cpu";
    absl::StatusOr<int64_t> amount =
        is_cpu ? QuantityMilliValue(quantity.string()) : QuantityValue(quantity.string());
    if (!amount.ok()) return InField(path, name, amount.status());
    if (is_cpu) {
      to->set_cpu_millis(*amount);
    } else if (name == "memory") {
      to->set_memory_bytes(*amount);
    } else if (name == "ephemeral-storage") {
      to->set_ephemeral_storage_bytes(*amount);
    } else if (name == "pods") {
      to->set_pods(*amount);
    } else {
      (*to->mutable_extended())[ToUtf8(name)] = *amount;
    }
  }
  return absl::OkStatus();
}

// Limits stand in for requests that are not named.
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
  for (const auto& [name, amount] : limits.extended()) {
    requests->mutable_extended()->insert({name, amount});
  }
}

api::Protocol ConvertProtocol(const std::string& text) {
  if (text == "TCP" || text.empty()) return api::TCP;
  if (text == "UDP") return api::UDP;
  if (text == "SCTP") return api::SCTP;
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
  return absl::OkStatus();
}

api::SelectorRequirement::Operator ConvertOperator(const std::string& text, bool of_nodes) {
  using Requirement = api::SelectorRequirement;
  if (text == "In") return Requirement::IN;
  if (text == "NotIn") return Requirement::NOT_IN;
  if (text == "Exists") return Requirement::EXISTS;
  if (text == "DoesNotExist") return Requirement::DOES_NOT_EXIST;
  if (of_nodes && text == "Gt") return Requirement::GT;
  if (of_nodes && text == "Lt") return Requirement::LT;
  return UnknownEnum<Requirement::Operator>();
}

template <typename WireRequirements>
void ConvertRequirements(const WireRequirements& from, bool of_nodes,
                         google::protobuf::RepeatedPtrField<api::SelectorRequirement>* to) {
  for (const auto& requirement : from) {
    api::SelectorRequirement* out = to->Add();
    CopyText(requirement.key(), out->mutable_key());
    out->set_operator_(ConvertOperator(requirement.operator_(), of_nodes));
    CopyTexts(requirement.values(), out->mutable_values());
  }
}

void ConvertLabelSelector(const wire::LabelSelector& from, api::LabelSelector* to) {
  CopyTexts(from.matchlabels(), to->mutable_match_labels());
  ConvertRequirements(from.matchexpressions(), false, to->mutable_match_expressions());
}

void ConvertNodeTerm(const wire::NodeSelectorTerm& from, api::NodeSelectorTerm* to) {
  ConvertRequirements(from.matchexpressions(), true, to->mutable_match_expressions());
  ConvertRequirements(from.matchfields(), true, to->mutable_match_fields());
}

void ConvertNodeAffinity(const wire::NodeAffinity& from, api::NodeAffinity* to) {
  if (from.has_requiredduringschedulingignoredduringexecution()) {
    api::NodeSelector* out = to->mutable_required_during_scheduling_ignored_during_execution();
    for (const auto& term :
         from.requiredduringschedulingignoredduringexecution().nodeselectorterms()) {
      ConvertNodeTerm(term, out->add_node_selector_terms());
    }
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

// PodAffinity and PodAntiAffinity.
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

api::TaintEffect ConvertEffect(const std::string& text) {
  if (text == "NoSchedule") return api::NO_SCHEDULE;
  if (text == "PreferNoSchedule") return api::PREFER_NO_SCHEDULE;
  if (text == "NoExecute") return api::NO_EXECUTE;
  return text.empty() ? api::TAINT_EFFECT_UNSPECIFIED : UnknownEnum<api::TaintEffect>();
}

void ConvertToleration(const wire::Toleration& from, api::Toleration* to) {
  CopyText(from.key(), to->mutable_key());
  if (from.operator_().empty() || from.operator_() == "Equal") {
    to->set_operator_(api::Toleration::EQUAL);
  } else if (from.operator_() == "Exists") {
    to->set_operator_(api::Toleration::EXISTS);
  } else {
    to->set_operator_(UnknownEnum<api::Toleration::Operator>());
  }
  CopyText(from.value(), to->mutable_value());
  to->set_effect(ConvertEffect(from.effect()));
}

void ConvertSpread(const wire::TopologySpreadConstraint& from, api::TopologySpreadConstraint* to) {
  using Spread = api::TopologySpreadConstraint;
  to->set_max_skew(from.maxskew());
  CopyText(from.topologykey(), to->mutable_topology_key());
  if (from.whenunsatisfiable() == "DoNotSchedule") {
    to->set_when_unsatisfiable(Spread::DO_NOT_SCHEDULE);
  } else if (from.whenunsatisfiable() == "ScheduleAnyway") {
    to->set_when_unsatisfiable(Spread::SCHEDULE_ANYWAY);
  } else {
    to->set_when_unsatisfiable(UnknownEnum<Spread::WhenUnsatisfiable>());
  }
  if (from.has_labelselector())
    ConvertLabelSelector(from.labelselector(), to->mutable_label_selector());
}

// The JSON name of the kind of volume that is set.
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

void ConvertVolume(const wire::Volume& from, api::Volume* to) {
  CopyText(from.name(), to->mutable_name());
  const wire::VolumeSource& source = from.volumesource();
  to->set_source(*VolumeKind(source));
  if (source.has_persistentvolumeclaim())
    CopyText(source.persistentvolumeclaim().claimname(), to->mutable_claim_name());
  if (source.has_image()) CopyText(source.image().reference(), to->mutable_image_reference());
}

void ConvertController(const wire::ObjectMeta& meta, api::Pod* to) {
  for (const wire::OwnerReference& owner : meta.ownerreferences()) {
    if (!owner.controller()) continue;
    api::ControllerReference* out = to->mutable_controller();
    CopyText(owner.apiversion(), out->mutable_api_version());
    CopyText(owner.kind(), out->mutable_kind());
    CopyText(owner.name(), out->mutable_name());
    CopyText(owner.uid(), out->mutable_uid());
    return;
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
    pod->set_preemption_policy(api::NEVER);
  } else if (spec.has_preemptionpolicy()) {
    pod->set_preemption_policy(api::PREEMPT_LOWER_PRIORITY);
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
  for (const auto& volume : spec.volumes()) ConvertVolume(volume, pod->add_volumes());
  for (const auto& claim : spec.resourceclaims())
    CopyText(claim.name(), pod->add_resource_claims());
  CopyText(spec.schedulinggroup().podgroupname(), pod->mutable_pod_group_name());
  return ConvertPodResources(spec, pod);
}

// Only statuses that name resources say anything about a resize.
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

absl::Status ConvertStatus(const wire::PodStatus& status, PodObject* object) {
  api::Pod* pod = &object->pod;
  CopyText(status.phase(), &object->phase);
  CopyText(status.nominatednodename(), pod->mutable_nominated_node_name());
  pod->set_start_unix_seconds(status.starttime().seconds());
  bool resize_seen = false;
  for (const wire::PodCondition& condition : status.conditions()) {
    if (condition.type() == "PodScheduled") {
      CopyText(condition.status(), &object->scheduled.status);
      CopyText(condition.reason(), &object->scheduled.reason);
      CopyText(condition.message(), &object->scheduled.message);
      object->scheduled.observed_generation = condition.observedgeneration();
    } else if (condition.type() == "PodResizePending" && !resize_seen) {
      resize_seen = true;
      pod->set_resize_infeasible(condition.reason() == "Infeasible");
    }
  }
  absl::Status done =
      ConvertContainerStatuses("status.containerStatuses", status.containerstatuses(), pod);
  if (!done.ok()) return done;
  return ConvertContainerStatuses("status.initContainerStatuses", status.initcontainerstatuses(),
                                  pod);
}

absl::Status CheckIdentity(const wire::ObjectMeta& meta) {
  if (meta.name().empty()) return absl::InvalidArgumentError("metadata.name: must not be empty");
  if (meta.uid().empty()) return absl::InvalidArgumentError("metadata.uid: must not be empty");
  for (const std::string* text : {&meta.name(), &meta.namespace_(), &meta.uid()}) {
    if (Utf8Prefix(*text) != text->size()) return absl::InvalidArgumentError("metadata: not UTF-8");
  }
  return absl::OkStatus();
}

absl::Status Named(absl::string_view kind, const wire::ObjectMeta& meta,
                   const absl::Status& status) {
  return absl::InvalidArgumentError(
      ToUtf8(absl::StrCat(kind, " ", meta.namespace_(), meta.namespace_().empty() ? "" : "/",
                          meta.name(), ": ", status.message())));
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
  pod->set_generation(meta.generation());
  ConvertController(meta, pod);
  if (absl::Status status = ConvertSpec(from.spec(), pod); !status.ok())
    return Named("pod", meta, status);
  if (absl::Status status = ConvertStatus(from.status(), object.get()); !status.ok()) {
    return Named("pod", meta, status);
  }
  return object;
}

absl::StatusOr<NodePtr> NodeFromWire(const wire::Node& from) {
  const wire::ObjectMeta& meta = from.metadata();
  if (absl::Status status = CheckIdentity(meta); !status.ok()) return Named("node", meta, status);
  auto object = std::make_shared<NodeObject>();
  object->resource_version = meta.resourceversion();
  api::Node* node = &object->node;
  CopyText(meta.uid(), node->mutable_uid());
  CopyText(meta.name(), node->mutable_name());
  CopyTexts(meta.labels(), node->mutable_labels());
  CopyAnnotations(meta.annotations(), node->mutable_annotations());
  node->set_creation_unix_seconds(meta.creationtimestamp().seconds());
  node->set_unschedulable(from.spec().unschedulable());
  for (const wire::Taint& taint : from.spec().taints()) {
    api::Taint* out = node->add_taints();
    CopyText(taint.key(), out->mutable_key());
    CopyText(taint.value(), out->mutable_value());
    out->set_effect(ConvertEffect(taint.effect()));
  }
  absl::Status status = ConvertResources("status.allocatable", from.status().allocatable(),
                                         node->mutable_allocatable());
  if (!status.ok()) return Named("node", meta, status);
  for (const wire::ContainerImage& image : from.status().images()) {
    api::ContainerImage* out = node->add_images();
    for (const std::string& name : image.names()) CopyText(name, out->add_names());
    out->set_size_bytes(image.sizebytes());
  }
  for (const wire::NodeCondition& condition : from.status().conditions()) {
    if (!object->conditions.empty()) object->conditions += ',';
    absl::StrAppend(&object->conditions, condition.type(), "=", condition.status());
  }
  return object;
}

absl::StatusOr<NamespacePtr> NamespaceFromWire(const wire::Namespace& from) {
  const wire::ObjectMeta& meta = from.metadata();
  if (absl::Status status = CheckIdentity(meta); !status.ok())
    return Named("namespace", meta, status);
  auto object = std::make_shared<NamespaceObject>();
  object->resource_version = meta.resourceversion();
  object->object_uid = meta.uid();
  CopyText(meta.name(), object->ns.mutable_name());
  CopyTexts(meta.labels(), object->ns.mutable_labels());
  return object;
}

}  // namespace outboard::kube
