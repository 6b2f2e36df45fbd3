#include "cli/manifests/manifest_validation.h"

#include <cstdint>
#include <set>
#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "cli/manifests/manifest_checks.h"
#include "shim/kube/wire/name_rules.h"
#include "shim/kube/wire/quantity.h"

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

using Result = std::optional<Fault>;

class Validator : private ManifestChecks {
 public:
  Result Pod(const wire::Pod& pod);
  Result Node(const wire::Node& node);
  Result Namespace(const wire::Namespace& ns);

 private:
  Result Resources(const wire::ResourceRequirements& resources);
  Result Container(const wire::Container& container, std::set<std::string>* names);
  Result Port(const wire::ContainerPort& port);
  Result Toleration(const wire::Toleration& toleration);
  Result NodeAffinity(const wire::NodeAffinity& affinity);
  Result PodTerm(const wire::PodAffinityTerm& term);
  template <typename WireAffinity>
  Result PodAffinity(const WireAffinity& affinity);
  Result Affinity(const wire::Affinity& affinity);
  Result Spread(const wire::TopologySpreadConstraint& constraint);
  Result Spec(const wire::PodSpec& spec);
  Result SpecLists(const wire::PodSpec& spec);
  Result Taint(const wire::Taint& taint, std::set<std::pair<std::string, std::string>>* seen);
};

Result Validator::Resources(const wire::ResourceRequirements& resources) {
  FieldPath::Step step(&path_, "resources");
  if (Result fault = Quantities("limits", resources.limits(), true)) return fault;
  if (Result fault = Quantities("requests", resources.requests(), true)) return fault;
  FieldPath::Step requests(&path_, "requests");
  for (const auto& [name, request] : resources.requests()) {
    auto limit = resources.limits().find(name);
    if (limit == resources.limits().end()) continue;
    const int64_t wanted = QuantityMilliValue(request.string()).value_or(0);
    const int64_t most = QuantityMilliValue(limit->second.string()).value_or(0);
    const bool exact = IsHugePages(name) ||
                       (absl::StrContains(name, "/") && !absl::StrContains(name, "kubernetes.io/"));
    if (exact && wanted != most) {
      return At(name, absl::StrCat(request.string(), " must be equal to the limit of ",
                                   limit->second.string()));
    }
    if (wanted > most) {
      return At(name, absl::StrCat(request.string(), " must be less than or equal to the limit of ",
                                   limit->second.string()));
    }
  }
  return std::nullopt;
}

Result Validator::Port(const wire::ContainerPort& port) {
  if (port.has_containerport()) {
    if (Result fault = Range("containerPort", port.containerport(), 1, 65535)) return fault;
  }
  if (Result fault = Range("hostPort", port.hostport(), 0, 65535)) return fault;
  return Word("protocol", port.protocol().empty() ? "TCP" : port.protocol(),
              {"TCP", "UDP", "SCTP"});
}

Result Validator::Container(const wire::Container& container, std::set<std::string>* names) {
  if (Result fault = Name("name", container.name(), CheckDnsLabel)) return fault;
  if (!names->insert(container.name()).second) {
    return At("name", absl::StrCat("duplicate \"", container.name(), "\""));
  }
  if (Result fault = Resources(container.resources())) return fault;
  return Each("ports", container.ports(),
              [&](const wire::ContainerPort& port) { return Port(port); });
}

Result Validator::Toleration(const wire::Toleration& toleration) {
  if (!toleration.key().empty()) {
    if (Result fault = Name("key", toleration.key(), CheckQualifiedName)) return fault;
  }
  const std::string& op = toleration.operator_();
  if (Result fault = Word("operator", op.empty() ? "Equal" : op, {"Equal", "Exists"})) return fault;
  if (op == "Exists") {
    if (!toleration.value().empty()) return At("value", "must be empty when `operator` is Exists");
  } else {
    if (toleration.key().empty()) return At("operator", "must be Exists when `key` is empty");
    if (Result fault = Name("value", toleration.value(), CheckLabelValue)) return fault;
  }
  if (toleration.has_tolerationseconds() && toleration.effect() != "NoExecute") {
    return At("effect", "must be NoExecute when `tolerationSeconds` is set");
  }
  if (toleration.effect().empty()) return std::nullopt;
  return Word("effect", toleration.effect(), {"NoSchedule", "PreferNoSchedule", "NoExecute"});
}

Result Validator::NodeAffinity(const wire::NodeAffinity& affinity) {
  if (affinity.has_requiredduringschedulingignoredduringexecution()) {
    Result fault = NodeSelector("requiredDuringSchedulingIgnoredDuringExecution",
                                affinity.requiredduringschedulingignoredduringexecution());
    if (fault) return fault;
  }
  return Each("preferredDuringSchedulingIgnoredDuringExecution",
              affinity.preferredduringschedulingignoredduringexecution(),
              [&](const wire::PreferredSchedulingTerm& term) -> Result {
                if (Result fault = Range("weight", term.weight(), 1, 100)) return fault;
                return In("preference", [&] { return NodeTerm(term.preference()); });
              });
}

Result Validator::PodTerm(const wire::PodAffinityTerm& term) {
  if (Result fault = Name("topologyKey", term.topologykey(), CheckQualifiedName)) return fault;
  if (Result fault = Selector("labelSelector", term.labelselector())) return fault;
  if (Result fault = Selector("namespaceSelector", term.namespaceselector())) return fault;
  return Each("namespaces", term.namespaces(), [&](const std::string& name) -> Result {
    const std::string wrong = CheckDnsLabel(name);
    return wrong.empty() ? std::nullopt : Fail(wrong);
  });
}

template <typename WireAffinity>
Result Validator::PodAffinity(const WireAffinity& affinity) {
  Result fault = Each("requiredDuringSchedulingIgnoredDuringExecution",
                      affinity.requiredduringschedulingignoredduringexecution(),
                      [&](const wire::PodAffinityTerm& term) { return PodTerm(term); });
  if (fault) return fault;
  return Each("preferredDuringSchedulingIgnoredDuringExecution",
              affinity.preferredduringschedulingignoredduringexecution(),
              [&](const wire::WeightedPodAffinityTerm& term) -> Result {
                if (Result wrong = Range("weight", term.weight(), 1, 100)) return wrong;
                return In("podAffinityTerm", [&] { return PodTerm(term.podaffinityterm()); });
              });
}

Result Validator::Affinity(const wire::Affinity& affinity) {
  FieldPath::Step step(&path_, "affinity");
  if (Result fault = In("nodeAffinity", [&] { return NodeAffinity(affinity.nodeaffinity()); }))
    return fault;
  if (Result fault = In("podAffinity", [&] { return PodAffinity(affinity.podaffinity()); }))
    return fault;
  return In("podAntiAffinity", [&] { return PodAffinity(affinity.podantiaffinity()); });
}

Result Validator::Spread(const wire::TopologySpreadConstraint& constraint) {
  if (constraint.maxskew() < 1)
    return At("maxSkew", absl::StrCat(constraint.maxskew(), " must be greater than 0"));
  if (Result fault = Name("topologyKey", constraint.topologykey(), CheckQualifiedName))
    return fault;
  if (Result fault = Word("whenUnsatisfiable", constraint.whenunsatisfiable(),
                          {"DoNotSchedule", "ScheduleAnyway"})) {
    return fault;
  }
  if (constraint.has_mindomains()) {
    if (constraint.mindomains() < 1)
      return At("minDomains", absl::StrCat(constraint.mindomains(), " must be greater than 0"));
    if (constraint.whenunsatisfiable() != "DoNotSchedule")
      return At("minDomains", "can only use minDomains if whenUnsatisfiable=DoNotSchedule");
  }
  if (constraint.has_nodeaffinitypolicy()) {
    if (Result fault =
            Word("nodeAffinityPolicy", constraint.nodeaffinitypolicy(), {"Honor", "Ignore"}))
      return fault;
  }
  if (constraint.has_nodetaintspolicy()) {
    if (Result fault = Word("nodeTaintsPolicy", constraint.nodetaintspolicy(), {"Honor", "Ignore"}))
      return fault;
  }
  if (!constraint.has_labelselector() && !constraint.matchlabelkeys().empty())
    return At("matchLabelKeys", "must not be specified when labelSelector is not set");
  Result fault =
      Each("matchLabelKeys", constraint.matchlabelkeys(), [&](const std::string& key) -> Result {
        const std::string wrong = CheckQualifiedName(key);
        return wrong.empty() ? std::nullopt : Fail(wrong);
      });
  if (fault) return fault;
  return Selector("labelSelector", constraint.labelselector());
}

Result Validator::SpecLists(const wire::PodSpec& spec) {
  Result fault = Each("tolerations", spec.tolerations(),
                      [&](const wire::Toleration& toleration) { return Toleration(toleration); });
  if (fault) return fault;
  fault =
      Each("topologySpreadConstraints", spec.topologyspreadconstraints(),
           [&](const wire::TopologySpreadConstraint& constraint) { return Spread(constraint); });
  if (fault) return fault;
  fault = Each("schedulingGates", spec.schedulinggates(), [&](const wire::PodSchedulingGate& gate) {
    return Name("name", gate.name(), CheckQualifiedName);
  });
  if (fault) return fault;
  fault = Each("resourceClaims", spec.resourceclaims(), [&](const wire::PodResourceClaim& claim) {
    return Name("name", claim.name(), CheckDnsLabel);
  });
  if (fault) return fault;
  std::set<std::string> names;
  return Each("volumes", spec.volumes(), [&](const wire::Volume& volume) -> Result {
    if (Result wrong = Name("name", volume.name(), CheckDnsLabel)) return wrong;
    if (!names.insert(volume.name()).second)
      return At("name", absl::StrCat("duplicate \"", volume.name(), "\""));
    return std::nullopt;
  });
}

Result Validator::Spec(const wire::PodSpec& spec) {
  FieldPath::Step step(&path_, "spec");
  if (spec.containers().empty()) return At("containers", "must have at least one container");
  std::set<std::string> names;
  auto check = [&](const wire::Container& container) { return Container(container, &names); };
  if (Result fault = Each("containers", spec.containers(), check)) return fault;
  auto check_init = [&](const wire::Container& container) -> Result {
    if (container.has_restartpolicy()) {
      // The scheduler only needs to know whether it is a sidecar.
      if (Result fault =
              Word("restartPolicy", container.restartpolicy(), {"Always", "Never", "OnFailure"}))
        return fault;
    }
    return Container(container, &names);
  };
  if (Result fault = Each("initContainers", spec.initcontainers(), check_init)) return fault;
  if (Result fault = Resources(spec.resources())) return fault;
  if (Result fault = Quantities("overhead", spec.overhead(), true)) return fault;
  if (!spec.nodename().empty()) {
    if (Result fault = Name("nodeName", spec.nodename(), CheckSubdomain)) return fault;
    if (!spec.schedulinggates().empty())
      return At("nodeName", "cannot be set until all schedulingGates have been cleared");
  }
  if (spec.has_preemptionpolicy()) {
    if (Result fault =
            Word("preemptionPolicy", spec.preemptionpolicy(), {"PreemptLowerPriority", "Never"}))
      return fault;
  }
  if (Result fault = Labels("nodeSelector", spec.nodeselector())) return fault;
  if (Result fault = Affinity(spec.affinity())) return fault;
  return SpecLists(spec);
}

Result Validator::Pod(const wire::Pod& pod) {
  if (Result fault = Metadata(pod.metadata(), CheckSubdomain)) return fault;
  if (Result fault = Spec(pod.spec())) return fault;
  FieldPath::Step step(&path_, "status");
  return Word("phase", pod.status().phase(),
              {"Pending", "Running", "Succeeded", "Failed", "Unknown"});
}

Result Validator::Taint(const wire::Taint& taint,
                        std::set<std::pair<std::string, std::string>>* seen) {
  if (Result fault = Name("key", taint.key(), CheckQualifiedName)) return fault;
  if (Result fault = Name("value", taint.value(), CheckLabelValue)) return fault;
  if (Result fault =
          Word("effect", taint.effect(), {"NoSchedule", "PreferNoSchedule", "NoExecute"}))
    return fault;
  if (!seen->emplace(taint.key(), taint.effect()).second)
    return Fail("taints must be unique by key and effect pair");
  return std::nullopt;
}

Result Validator::Node(const wire::Node& node) {
  if (Result fault = Metadata(node.metadata(), CheckSubdomain)) return fault;
  Result fault = In("spec", [&] {
    std::set<std::pair<std::string, std::string>> seen;
    return Each("taints", node.spec().taints(),
                [&](const wire::Taint& taint) { return Taint(taint, &seen); });
  });
  if (fault) return fault;
  FieldPath::Step step(&path_, "status");
  if (Result wrong = Quantities("capacity", node.status().capacity(), false)) return wrong;
  return Quantities("allocatable", node.status().allocatable(), false);
}

Result Validator::Namespace(const wire::Namespace& ns) {
  return Metadata(ns.metadata(), CheckDnsLabel);
}

}  // namespace

std::optional<Fault> Validate(const wire::Pod& pod) { return Validator().Pod(pod); }

std::optional<Fault> Validate(const wire::Node& node) { return Validator().Node(node); }

std::optional<Fault> Validate(const wire::Namespace& ns) { return Validator().Namespace(ns); }

}  // namespace outboard::manifests
