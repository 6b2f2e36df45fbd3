#include "cli/manifests/manifest_validation.h"

#include <cstdint>
#include <set>
#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "cli/manifests/manifest_checks.h"
#include "cli/manifests/priorities.h"
#include "shim/kube/wire/name_rules.h"
#include "shim/kube/wire/quantity.h"
#include "shim/kube/wire/reading_options.h"

namespace outboard::manifests {

namespace wire = kube::wire;
using kube::CheckDnsLabel;
using kube::CheckLabelValue;
using kube::CheckQualifiedName;
using kube::CheckSubdomain;
using kube::Fault;
using kube::FieldPath;
using kube::QuantityMilliValue;

namespace {

class Validator : private ManifestChecks {
 public:
  using ManifestChecks::TakeFaults;
  void Pod(const wire::Pod& pod);
  void Node(const wire::Node& node);
  void Namespace(const wire::Namespace& ns) { Metadata(ns.metadata(), CheckDnsLabel); }
  void PriorityClass(const wire::PriorityClass& priority_class);

 private:
  void Resources(const wire::ResourceRequirements& resources);
  void Container(const wire::Container& container, std::set<std::string>* names);
  void Port(const wire::ContainerPort& port);
  void Toleration(const wire::Toleration& toleration);
  void NodeAffinity(const wire::NodeAffinity& affinity);
  void PodTerm(const wire::PodAffinityTerm& term);
  template <typename WireAffinity>
  void PodAffinity(const WireAffinity& affinity);
  void Affinity(const wire::Affinity& affinity);
  void Spread(const wire::TopologySpreadConstraint& constraint);
  void Volume(const wire::Volume& volume, std::set<std::string>* names);
  void Spec(const wire::PodSpec& spec);
  void SpecLists(const wire::PodSpec& spec);
  void Taint(const wire::Taint& taint, std::set<std::pair<std::string, std::string>>* seen);
  // At the current path.
  void Text(const std::string& value, NameCheck check) {
    if (const std::string wrong = check(value); !wrong.empty()) Fail(wrong);
  }
};

void Validator::Resources(const wire::ResourceRequirements& resources) {
  FieldPath::Step step(&path_, "resources");
  Quantities("limits", resources.limits(), true);
  Quantities("requests", resources.requests(), true);
  FieldPath::Step requests(&path_, "requests");
  for (const auto& [name, request] : resources.requests()) {
    const auto limit = resources.limits().find(name);
    if (limit == resources.limits().end()) continue;
    const absl::StatusOr<int64_t> wanted = QuantityMilliValue(request.string());
    const absl::StatusOr<int64_t> most = QuantityMilliValue(limit->second.string());
    if (!wanted.ok() || !most.ok()) continue;  // Reported before.
    const bool exact = IsHugePages(name) ||
                       (absl::StrContains(name, "/") && !absl::StrContains(name, "kubernetes.io/"));
    if (exact && *wanted != *most) {
      At(name,
         absl::StrCat(request.string(), " must be equal to the limit of ", limit->second.string()));
    } else if (*wanted > *most) {
      At(name, absl::StrCat(request.string(), " must be less than or equal to the limit of ",
                            limit->second.string()));
    }
  }
}

void Validator::Port(const wire::ContainerPort& port) {
  if (port.has_containerport()) Range("containerPort", port.containerport(), 1, 65535);
  Range("hostPort", port.hostport(), 0, 65535);
  Word("protocol", port.protocol().empty() ? "TCP" : port.protocol(), {"TCP", "UDP", "SCTP"});
}

void Validator::Container(const wire::Container& container, std::set<std::string>* names) {
  if (const std::string wrong = CheckDnsLabel(container.name()); !wrong.empty()) {
    At("name", wrong);
  } else if (!names->insert(container.name()).second) {
    At("name", absl::StrCat("duplicate \"", container.name(), "\""));
  }
  Resources(container.resources());
  Each("ports", container.ports(), [&](const wire::ContainerPort& port) { Port(port); });
}

void Validator::Toleration(const wire::Toleration& toleration) {
  if (!toleration.key().empty()) Name("key", toleration.key(), CheckQualifiedName);
  const std::string& op = toleration.operator_();
  const bool compares = kube::Reading().comparison_operators && (op == "Lt" || op == "Gt");
  if (!compares) Word("operator", op.empty() ? "Equal" : op, {"Equal", "Exists"});
  if (op == "Exists") {
    if (!toleration.value().empty()) At("value", "must be empty when `operator` is Exists");
  } else if (toleration.key().empty()) {
    At("operator", "must be Exists when `key` is empty");
  } else if (compares) {
    if (int64_t number = 0; !absl::SimpleAtoi(toleration.value(), &number) ||
                            absl::AlphaNum(number).Piece() != toleration.value())
      At("value", "must be a decimal integer of 64 bits without leading zeros");
  } else {
    Name("value", toleration.value(), CheckLabelValue);
  }
  if (toleration.has_tolerationseconds() && toleration.effect() != "NoExecute") {
    At("effect", "must be NoExecute when `tolerationSeconds` is set");
  } else if (!toleration.effect().empty()) {
    Word("effect", toleration.effect(), {"NoSchedule", "PreferNoSchedule", "NoExecute"});
  }
}

void Validator::NodeAffinity(const wire::NodeAffinity& affinity) {
  FieldPath::Step step(&path_, "nodeAffinity");
  if (affinity.has_requiredduringschedulingignoredduringexecution()) {
    NodeSelector("requiredDuringSchedulingIgnoredDuringExecution",
                 affinity.requiredduringschedulingignoredduringexecution());
  }
  Each("preferredDuringSchedulingIgnoredDuringExecution",
       affinity.preferredduringschedulingignoredduringexecution(),
       [&](const wire::PreferredSchedulingTerm& term) {
         Range("weight", term.weight(), 1, 100);
         FieldPath::Step preference(&path_, "preference");
         NodeTerm(term.preference());
       });
}

void Validator::PodTerm(const wire::PodAffinityTerm& term) {
  Name("topologyKey", term.topologykey(), CheckQualifiedName);
  Selector("labelSelector", term.labelselector());
  Selector("namespaceSelector", term.namespaceselector());
  Each("namespaces", term.namespaces(),
       [&](const std::string& name) { Text(name, CheckDnsLabel); });
}

template <typename WireAffinity>
void Validator::PodAffinity(const WireAffinity& affinity) {
  Each("requiredDuringSchedulingIgnoredDuringExecution",
       affinity.requiredduringschedulingignoredduringexecution(),
       [&](const wire::PodAffinityTerm& term) { PodTerm(term); });
  Each("preferredDuringSchedulingIgnoredDuringExecution",
       affinity.preferredduringschedulingignoredduringexecution(),
       [&](const wire::WeightedPodAffinityTerm& term) {
         Range("weight", term.weight(), 1, 100);
         FieldPath::Step step(&path_, "podAffinityTerm");
         PodTerm(term.podaffinityterm());
       });
}

void Validator::Affinity(const wire::Affinity& affinity) {
  FieldPath::Step step(&path_, "affinity");
  NodeAffinity(affinity.nodeaffinity());
  {
    FieldPath::Step pods(&path_, "podAffinity");
    PodAffinity(affinity.podaffinity());
  }
  FieldPath::Step pods(&path_, "podAntiAffinity");
  PodAffinity(affinity.podantiaffinity());
}

void Validator::Spread(const wire::TopologySpreadConstraint& constraint) {
  if (constraint.maxskew() < 1)
    At("maxSkew", absl::StrCat(constraint.maxskew(), " must be greater than 0"));
  Name("topologyKey", constraint.topologykey(), CheckQualifiedName);
  Word("whenUnsatisfiable", constraint.whenunsatisfiable(), {"DoNotSchedule", "ScheduleAnyway"});
  if (constraint.has_mindomains()) {
    if (constraint.mindomains() < 1) {
      At("minDomains", absl::StrCat(constraint.mindomains(), " must be greater than 0"));
    } else if (constraint.whenunsatisfiable() != "DoNotSchedule") {
      At("minDomains", "can only use minDomains if whenUnsatisfiable=DoNotSchedule");
    }
  }
  if (constraint.has_nodeaffinitypolicy())
    Word("nodeAffinityPolicy", constraint.nodeaffinitypolicy(), {"Honor", "Ignore"});
  if (constraint.has_nodetaintspolicy())
    Word("nodeTaintsPolicy", constraint.nodetaintspolicy(), {"Honor", "Ignore"});
  if (!constraint.has_labelselector() && !constraint.matchlabelkeys().empty())
    At("matchLabelKeys", "must not be specified when labelSelector is not set");
  Each("matchLabelKeys", constraint.matchlabelkeys(),
       [&](const std::string& key) { Text(key, CheckQualifiedName); });
  Selector("labelSelector", constraint.labelselector());
}

void Validator::Volume(const wire::Volume& volume, std::set<std::string>* names) {
  if (const std::string wrong = CheckDnsLabel(volume.name()); !wrong.empty()) {
    At("name", wrong);
  } else if (!names->insert(volume.name()).second) {
    At("name", absl::StrCat("duplicate \"", volume.name(), "\""));
  }
  const wire::VolumeSource& source = volume.volumesource();
  if (source.has_persistentvolumeclaim() && source.persistentvolumeclaim().claimname().empty()) {
    FieldPath::Step step(&path_, "persistentVolumeClaim");
    At("claimName", "must not be empty");
  }
}

void Validator::SpecLists(const wire::PodSpec& spec) {
  Each("tolerations", spec.tolerations(),
       [&](const wire::Toleration& toleration) { Toleration(toleration); });
  Each("topologySpreadConstraints", spec.topologyspreadconstraints(),
       [&](const wire::TopologySpreadConstraint& constraint) { Spread(constraint); });
  Each("schedulingGates", spec.schedulinggates(),
       [&](const wire::PodSchedulingGate& gate) { Name("name", gate.name(), CheckQualifiedName); });
  Each("resourceClaims", spec.resourceclaims(),
       [&](const wire::PodResourceClaim& claim) { Name("name", claim.name(), CheckDnsLabel); });
  std::set<std::string> names;
  Each("volumes", spec.volumes(), [&](const wire::Volume& volume) { Volume(volume, &names); });
}

void Validator::Spec(const wire::PodSpec& spec) {
  FieldPath::Step step(&path_, "spec");
  if (spec.containers().empty()) At("containers", "must have at least one container");
  std::set<std::string> names;
  Each("containers", spec.containers(),
       [&](const wire::Container& container) { Container(container, &names); });
  Each("initContainers", spec.initcontainers(), [&](const wire::Container& container) {
    // The scheduler only needs to know whether it is a sidecar.
    if (container.has_restartpolicy())
      Word("restartPolicy", container.restartpolicy(), {"Always", "Never", "OnFailure"});
    Container(container, &names);
  });
  Resources(spec.resources());
  Quantities("overhead", spec.overhead(), true);
  if (!spec.nodename().empty()) {
    Name("nodeName", spec.nodename(), CheckSubdomain);
    if (!spec.schedulinggates().empty())
      At("nodeName", "cannot be set until all schedulingGates have been cleared");
  }
  if (spec.has_preemptionpolicy())
    Word("preemptionPolicy", spec.preemptionpolicy(), {"PreemptLowerPriority", "Never"});
  Labels("nodeSelector", spec.nodeselector());
  Affinity(spec.affinity());
  SpecLists(spec);
}

void Validator::Pod(const wire::Pod& pod) {
  Metadata(pod.metadata(), CheckSubdomain);
  Spec(pod.spec());
  FieldPath::Step step(&path_, "status");
  Word("phase", pod.status().phase(), {"Pending", "Running", "Succeeded", "Failed", "Unknown"});
}

void Validator::Taint(const wire::Taint& taint,
                      std::set<std::pair<std::string, std::string>>* seen) {
  Name("key", taint.key(), CheckQualifiedName);
  Name("value", taint.value(), CheckLabelValue);
  Word("effect", taint.effect(), {"NoSchedule", "PreferNoSchedule", "NoExecute"});
  if (!seen->emplace(taint.key(), taint.effect()).second)
    Fail("taints must be unique by key and effect pair");
}

void Validator::Node(const wire::Node& node) {
  Metadata(node.metadata(), CheckSubdomain);
  {
    FieldPath::Step step(&path_, "spec");
    std::set<std::pair<std::string, std::string>> seen;
    Each("taints", node.spec().taints(), [&](const wire::Taint& taint) { Taint(taint, &seen); });
  }
  FieldPath::Step step(&path_, "status");
  Quantities("capacity", node.status().capacity(), false);
  Quantities("allocatable", node.status().allocatable(), false);
}

void Validator::PriorityClass(const wire::PriorityClass& priority_class) {
  Metadata(priority_class.metadata(), CheckSubdomain);
  const std::string& name = priority_class.metadata().name();
  if (absl::StartsWith(name, "system-")) {
    const std::string wrong = CheckSystemClass(priority_class);
    FieldPath::Step step(&path_, "metadata");
    if (!wrong.empty()) {
      At("name", absl::StrCat("priority class names with 'system-' prefix are reserved for system "
                              "use only. error: ",
                              wrong));
    }
  } else if (priority_class.value() > kHighestUserPriority) {
    At("value",
       absl::StrCat("maximum allowed value of a user defined priority is ", kHighestUserPriority));
  }
  if (priority_class.has_preemptionpolicy()) {
    Word("preemptionPolicy", priority_class.preemptionpolicy(), {"PreemptLowerPriority", "Never"});
  }
}

template <typename Message>
std::vector<Fault> Check(const Message& message, void (Validator::*check)(const Message&)) {
  Validator validator;
  (validator.*check)(message);
  return validator.TakeFaults();
}

}  // namespace

std::vector<Fault> Validate(const wire::Pod& pod) { return Check(pod, &Validator::Pod); }

std::vector<Fault> Validate(const wire::Node& node) { return Check(node, &Validator::Node); }

std::vector<Fault> Validate(const wire::Namespace& ns) { return Check(ns, &Validator::Namespace); }

std::vector<Fault> Validate(const wire::PriorityClass& priority_class) {
  return Check(priority_class, &Validator::PriorityClass);
}

}  // namespace outboard::manifests
