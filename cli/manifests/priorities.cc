#include "cli/manifests/priorities.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "cli/manifests/kinds.h"

namespace outboard::manifests {

namespace wire = kube::wire;
using kube::Fault;
using kube::FieldPath;

namespace {

constexpr char kPreemptLowerPriority[] = "PreemptLowerPriority";

struct SystemClass {
  const char* name;
  int32_t value;
};
constexpr SystemClass kSystemClasses[] = {
    {"system-node-critical", 2000001000},
    {"system-cluster-critical", 2000000000},
};

Fault At(const char* message, const char* field, const std::string& what) {
  Fault fault;
  FieldPath::Step step(&fault.path, message);
  FieldPath::Step last(&fault.path, field);
  return Fault{fault.path, what};
}

}  // namespace

std::string CheckSystemClass(const wire::PriorityClass& priority_class) {
  const std::string& name = priority_class.metadata().name();
  for (const SystemClass& system : kSystemClasses) {
    if (name != system.name) continue;
    if (priority_class.value() != system.value)
      return absl::StrCat("value of ", name, " PriorityClass must be ", system.value);
    if (priority_class.globaldefault())
      return absl::StrCat("globalDefault of ", name, " PriorityClass must be false");
    return "";
  }
  return absl::StrCat(name, " is not a known system priority class");
}

PriorityClasses::PriorityClasses() {
  for (const SystemClass& system : kSystemClasses)
    classes_[system.name] = {system.value, kPreemptLowerPriority};
}

std::optional<Fault> PriorityClasses::Add(const wire::PriorityClass& priority_class) {
  const std::string& name = priority_class.metadata().name();
  classes_[name] = {priority_class.value(), priority_class.has_preemptionpolicy()
                                                ? priority_class.preemptionpolicy()
                                                : kPreemptLowerPriority};
  if (!priority_class.globaldefault()) return std::nullopt;
  if (!default_.empty()) {
    Fault fault;
    FieldPath::Step step(&fault.path, "globalDefault");
    return Fault{fault.path, absl::StrCat("PriorityClass ", default_,
                                          " is already marked as default. Only one default can "
                                          "exist")};
  }
  default_ = name;
  return std::nullopt;
}

std::optional<Fault> PriorityClasses::Resolve(wire::Pod* pod) const {
  wire::PodSpec* spec = pod->mutable_spec();
  const bool admitted = !pod->metadata().resourceversion().empty();
  std::string name = spec->priorityclassname();
  if (name.empty()) {
    if (spec->has_priority() || default_.empty()) return std::nullopt;
    name = default_;
  }
  const auto found = classes_.find(name);
  if (found == classes_.end()) {
    if (spec->has_priority()) return std::nullopt;
    std::vector<std::string> names;
    for (const auto& [known, priority_class] : classes_) names.push_back(known);
    return At(
        "spec", "priorityClassName",
        absl::StrCat("no PriorityClass with name ", name, " was found", DidYouMean(name, names)));
  }
  const auto& [value, policy] = found->second;
  if (spec->has_priority() && spec->priority() != value && !admitted) {
    return At("spec", "priority",
              absl::StrCat("the integer value of priority (", spec->priority(),
                           ") must not be provided in pod spec; priority admission controller "
                           "computed ",
                           value, " from the given PriorityClass name"));
  }
  if (spec->has_preemptionpolicy() && spec->preemptionpolicy() != policy && !admitted) {
    return At("spec", "preemptionPolicy",
              absl::StrCat("the string value of PreemptionPolicy (", spec->preemptionpolicy(),
                           ") must not be provided in pod spec; priority admission controller "
                           "computed ",
                           policy, " from the given PriorityClass name"));
  }
  spec->set_priorityclassname(name);
  if (!spec->has_priority()) spec->set_priority(value);
  if (!spec->has_preemptionpolicy()) spec->set_preemptionpolicy(policy);
  return std::nullopt;
}

}  // namespace outboard::manifests
