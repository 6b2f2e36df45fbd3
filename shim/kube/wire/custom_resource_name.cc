#include "shim/kube/wire/custom_resource_name.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "shim/kube/wire/name_rules.h"

namespace outboard::kube {
namespace {

// Built-in groups without a dot. The core group is empty.
constexpr absl::string_view kShortGroups[] = {"apps", "autoscaling", "batch", "policy"};

// Built-in groups with a dot.
constexpr absl::string_view kOwnGroups[] = {
    "admissionregistration.k8s.io",
    "apiextensions.k8s.io",
    "apiregistration.k8s.io",
    "authentication.k8s.io",
    "authorization.k8s.io",
    "certificates.k8s.io",
    "coordination.k8s.io",
    "discovery.k8s.io",
    "events.k8s.io",
    "flowcontrol.apiserver.k8s.io",
    "networking.k8s.io",
    "node.k8s.io",
    "rbac.authorization.k8s.io",
    "resource.k8s.io",
    "scheduling.k8s.io",
    "storage.k8s.io",
    "storagemigration.k8s.io",
};

// A group without a dot could also be a version that was forgotten.
bool IsGroup(const CustomResourceName& name) {
  if (absl::StrContains(name.group, '.')) return CheckSubdomain(name.group).empty();
  if (!IsUsualVersion(name.version)) return false;
  return name.group.empty() || std::find(std::begin(kShortGroups), std::end(kShortGroups),
                                         name.group) != std::end(kShortGroups);
}

}  // namespace

bool IsUsualVersion(absl::string_view version) {
  return version.size() > 1 && version[0] == 'v' &&
         absl::ascii_isdigit(static_cast<unsigned char>(version[1]));
}

bool IsOwnGroup(absl::string_view group) {
  return !absl::StrContains(group, '.') ||
         std::find(std::begin(kOwnGroups), std::end(kOwnGroups), group) != std::end(kOwnGroups);
}

std::string CustomResourceName::path() const { return path(""); }

std::string CustomResourceName::path(absl::string_view ns) const {
  return absl::StrCat(group.empty() ? "/api/" : "/apis/", api_version(),
                      ns.empty() ? "" : "/namespaces/", ns, "/", resource);
}

std::string CustomResourceName::path(absl::string_view ns, absl::string_view name) const {
  return absl::StrCat(path(ns), "/", name);
}

bool IsWriteOnly(const CustomResourceName& name) {
  return name.group.empty() &&
         (name.resource == "pods" || name.resource == "nodes" || name.resource == "namespaces");
}

absl::StatusOr<CustomResourceName> ParseCustomResourceName(absl::string_view text) {
  CustomResourceName name;
  const std::pair<absl::string_view, absl::string_view> first =
      absl::StrSplit(text, absl::MaxSplits('.', 1));
  const std::pair<absl::string_view, absl::string_view> second =
      absl::StrSplit(first.second, absl::MaxSplits('.', 1));
  name.resource = std::string(first.first);
  name.version = std::string(second.first);
  name.group = std::string(second.second);
  // Parts of a path must not lead to another path.
  if (!CheckDnsLabel(name.resource).empty() || !CheckDnsLabel(name.version).empty() ||
      !IsGroup(name) || absl::EndsWith(text, ".")) {
    return absl::InvalidArgumentError(
        absl::StrCat("\"", text,
                     "\" is not RESOURCE.VERSION.GROUP, for example "
                     "trainingjobplacements.v1alpha1.accelerator.sched.io, or RESOURCE.VERSION of "
                     "Kubernetes' core group, for example configmaps.v1"));
  }
  if (name.group.empty() && name.resource == "secrets")
    return absl::InvalidArgumentError("Secrets cannot be read or written by plugins");
  return name;
}

}  // namespace outboard::kube
