#include "shim/kube/wire/manifest_validation.h"

#include <cstdint>
#include <functional>
#include <limits>
#include <set>
#include <string>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "shim/kube/wire/name_rules.h"
#include "shim/kube/wire/quantity.h"

namespace outboard::kube {
namespace {

using Result = std::optional<Fault>;
using QuantityMap = google::protobuf::Map<std::string, wire::Quantity>;
using StringMap = google::protobuf::Map<std::string, std::string>;
using NameCheck = std::string (*)(absl::string_view);

constexpr int64_t kSaturated = std::numeric_limits<int64_t>::max();

bool IsOneOf(absl::string_view text, std::initializer_list<absl::string_view> words) {
  for (absl::string_view word : words) {
    if (text == word) return true;
  }
  return false;
}

class Validator {
 public:
  Result Pod(const wire::Pod& pod);
  Result Node(const wire::Node& node);
  Result Namespace(const wire::Namespace& ns);

 private:
  Result Fail(absl::string_view message) const { return Fault{path_, std::string(message)}; }
  Result At(absl::string_view name, absl::string_view message) {
    FieldPath::Step step(&path_, name);
    return Fail(message);
  }
  Result Name(absl::string_view field, const std::string& value, NameCheck check) {
    const std::string wrong = check(value);
    return wrong.empty() ? std::nullopt : At(field, wrong);
  }
  Result Word(absl::string_view field, const std::string& value,
              std::initializer_list<absl::string_view> words) {
    if (IsOneOf(value, words)) return std::nullopt;
    return At(field, absl::StrCat("\"", value, "\" must be one of ", absl::StrJoin(words, ", ")));
  }
  Result Range(absl::string_view field, int64_t value, int64_t min, int64_t max) {
    if (value >= min && value <= max) return std::nullopt;
    return At(field, absl::StrCat(value, " must be between ", min, " and ", max));
  }
  // Calls `check` for each item with the path at `field[i]`.
  template <typename List, typename Check>
  Result Each(absl::string_view field, const List& list, Check check) {
    FieldPath::Step step(&path_, field);
    for (int i = 0; i < list.size(); ++i) {
      FieldPath::Step index(&path_, i);
      if (Result fault = check(list[i])) return fault;
    }
    return std::nullopt;
  }
  template <typename Check>
  Result In(absl::string_view field, Check check) {
    FieldPath::Step step(&path_, field);
    return check();
  }

  Result Metadata(const wire::ObjectMeta& meta, NameCheck check_name);
  Result Labels(absl::string_view field, const StringMap& labels);
  Result Quantities(absl::string_view field, const QuantityMap& quantities, bool of_container);
  Result Resources(const wire::ResourceRequirements& resources);
  Result Container(const wire::Container& container, std::set<std::string>* names);
  Result Port(const wire::ContainerPort& port);
  Result Toleration(const wire::Toleration& toleration);
  Result Selector(absl::string_view field, const wire::LabelSelector& selector);
  Result NodeTerm(const wire::NodeSelectorTerm& term);
  Result NodeAffinity(const wire::NodeAffinity& affinity);
  Result PodTerm(const wire::PodAffinityTerm& term);
  template <typename WireAffinity>
  Result PodAffinity(const WireAffinity& affinity);
  Result Affinity(const wire::Affinity& affinity);
  Result Spread(const wire::TopologySpreadConstraint& constraint);
  Result Spec(const wire::PodSpec& spec);
  Result SpecLists(const wire::PodSpec& spec);
  Result Taint(const wire::Taint& taint, std::set<std::pair<std::string, std::string>>* seen);

  FieldPath path_;
};

Result Validator::Metadata(const wire::ObjectMeta& meta, NameCheck check_name) {
  FieldPath::Step step(&path_, "metadata");
  if (meta.name().empty() && !meta.generatename().empty()) {
    return At("generateName", "no name is generated here; set metadata.name");
  }
  if (Result fault = Name("name", meta.name(), check_name)) return fault;
  if (!meta.namespace_().empty()) {
    if (Result fault = Name("namespace", meta.namespace_(), CheckDnsLabel)) return fault;
  }
  if (Result fault = Labels("labels", meta.labels())) return fault;
  return In("annotations", [&]() -> Result {
    for (const auto& [key, value] : meta.annotations()) {
      if (Result fault = Name(key, absl::AsciiStrToLower(key), CheckQualifiedName)) return fault;
    }
    return std::nullopt;
  });
}

Result Validator::Labels(absl::string_view field, const StringMap& labels) {
  FieldPath::Step step(&path_, field);
  for (const auto& [key, value] : labels) {
    if (Result fault = Name(key, key, CheckQualifiedName)) return fault;
    if (Result fault = Name(key, value, CheckLabelValue)) return fault;
  }
  return std::nullopt;
}

bool IsHugePages(absl::string_view name) { return absl::StartsWith(name, "hugepages-"); }

bool IsWhole(const std::string& quantity) {
  const int64_t millis = QuantityMilliValue(quantity).value_or(0);
  return millis == kSaturated || millis % 1000 == 0;
}

Result Validator::Quantities(absl::string_view field, const QuantityMap& quantities,
                             bool of_container) {
  FieldPath::Step step(&path_, field);
  for (const auto& [name, quantity] : quantities) {
    if (Result fault = Name(name, name, CheckQualifiedName)) return fault;
    const bool fractional = IsOneOf(name, {"cpu", "memory", "ephemeral-storage", "storage"});
    if (of_container && !IsOneOf(name, {"cpu", "memory", "ephemeral-storage"}) &&
        !IsHugePages(name) && !absl::StrContains(name, "/")) {
      return At(name,
                "must be cpu, memory, ephemeral-storage, hugepages-SIZE or a name with a domain, "
                "as in example.com/foo");
    }
    absl::StatusOr<int64_t> millis = QuantityMilliValue(quantity.string());
    if (!millis.ok()) return At(name, millis.status().message());
    if (*millis < 0)
      return At(name, absl::StrCat(quantity.string(), " must be greater than or equal to 0"));
    if (!fractional && !IsWhole(quantity.string()))
      return At(name, absl::StrCat(quantity.string(), " must be an integer"));
  }
  return std::nullopt;
}

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
    return At("name", absl::StrCat("\"", container.name(), "\" is there twice"));
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

Result Validator::Selector(absl::string_view field, const wire::LabelSelector& selector) {
  FieldPath::Step step(&path_, field);
  if (Result fault = Labels("matchLabels", selector.matchlabels())) return fault;
  return Each("matchExpressions", selector.matchexpressions(),
              [&](const wire::LabelSelectorRequirement& requirement) -> Result {
                if (Result fault = Name("key", requirement.key(), CheckQualifiedName)) return fault;
                const std::string& op = requirement.operator_();
                if (Result fault = Word("operator", op, {"In", "NotIn", "Exists", "DoesNotExist"}))
                  return fault;
                const bool wants_values = IsOneOf(op, {"In", "NotIn"});
                if (wants_values != (requirement.values_size() > 0)) {
                  return At("values",
                            wants_values
                                ? "must be specified when `operator` is In or NotIn"
                                : "may not be specified when `operator` is Exists or DoesNotExist");
                }
                return Each("values", requirement.values(),
                            [&](const std::string& value) -> Result {
                              const std::string wrong = CheckLabelValue(value);
                              return wrong.empty() ? std::nullopt : Fail(wrong);
                            });
              });
}

Result Validator::NodeTerm(const wire::NodeSelectorTerm& term) {
  using Requirement = wire::NodeSelectorRequirement;
  Result fault = Each(
      "matchExpressions", term.matchexpressions(), [&](const Requirement& requirement) -> Result {
        if (Result wrong = Name("key", requirement.key(), CheckQualifiedName)) return wrong;
        const std::string& op = requirement.operator_();
        if (Result wrong =
                Word("operator", op, {"In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"}))
          return wrong;
        if (IsOneOf(op, {"In", "NotIn"}) && requirement.values().empty()) {
          return At("values", "must be specified when `operator` is In or NotIn");
        }
        if (IsOneOf(op, {"Exists", "DoesNotExist"}) && !requirement.values().empty()) {
          return At("values", "may not be specified when `operator` is Exists or DoesNotExist");
        }
        if (IsOneOf(op, {"Gt", "Lt"}) && requirement.values_size() != 1) {
          return At("values", "must be one value when `operator` is Gt or Lt");
        }
        return std::nullopt;
      });
  if (fault) return fault;
  return Each("matchFields", term.matchfields(), [&](const Requirement& requirement) -> Result {
    if (Result wrong = Word("key", requirement.key(), {"metadata.name"})) return wrong;
    if (Result wrong = Word("operator", requirement.operator_(), {"In", "NotIn"})) return wrong;
    if (requirement.values_size() != 1)
      return At("values", "must be one value in a field selector");
    return std::nullopt;
  });
}

Result Validator::NodeAffinity(const wire::NodeAffinity& affinity) {
  if (affinity.has_requiredduringschedulingignoredduringexecution()) {
    const wire::NodeSelector& selector = affinity.requiredduringschedulingignoredduringexecution();
    FieldPath::Step step(&path_, "requiredDuringSchedulingIgnoredDuringExecution");
    if (selector.nodeselectorterms().empty())
      return At("nodeSelectorTerms", "must have at least one node selector term");
    Result fault = Each("nodeSelectorTerms", selector.nodeselectorterms(),
                        [&](const wire::NodeSelectorTerm& term) { return NodeTerm(term); });
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
      return At("name", absl::StrCat("\"", volume.name(), "\" is there twice"));
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
      // Only the scheduler's question matters here: is it a sidecar?
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

}  // namespace outboard::kube
