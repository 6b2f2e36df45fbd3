#include "plugins/static_ip/cni.h"

#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "plugin_host/sdk/label_values.h"
#include "plugin_host/sdk/validation.h"

namespace outboard::static_ip {
namespace {

using nlohmann::json;

constexpr char kCalicoIps[] = "cni.projectcalico.org/ipAddrs";
constexpr char kAntreaIps[] = "ipam.antrea.io/pod-ips";
// Far more than a pod has interfaces.
constexpr size_t kMaxPools = 64;

// Appends the pools of an interface: `{"ipv4": ["a"], "ipv6": ["b", "c"]}`.
bool AppendPools(const json& pools, std::vector<PoolNames>* names) {
  if (!pools.is_object()) return false;
  for (const char* family : {"ipv4", "ipv6"}) {
    const auto list = pools.find(family);
    if (list == pools.end() || list->is_null()) continue;
    if (!list->is_array() || list->size() > kMaxPools) return false;
    PoolNames of_family;
    for (const json& name : *list) {
      if (!name.is_string()) return false;
      of_family.push_back(name.get<std::string>());
    }
    if (!of_family.empty()) names->push_back(std::move(of_family));
  }
  return true;
}

}  // namespace

Cni ReadCni(const sdk::ArgsObject& root) {
  struct Name {
    const char* name;
    Cni cni;
  };
  static constexpr Name kNames[] = {
      {"none", Cni::kNone},           {"calico", Cni::kCalico},
      {"antrea", Cni::kAntrea},       {"kube-ovn", Cni::kKubeOvn},
      {"hybridnet", Cni::kHybridnet}, {"spiderpool", Cni::kSpiderpool}};
  const std::string text = root.String("cni", "none");
  for (const Name& name : kNames) {
    if (text == name.name) return name.cni;
  }
  if (text == "galaxy") {
    root.Problem("cni",
                 sdk::InvalidValue(text,
                                   "galaxy-ipam gives IPs only where kube-scheduler calls it "
                                   "as an extender to bind; Outboard calls no extenders"));
  } else {
    root.Problem("cni", sdk::NotSupported(text, {"antrea", "calico", "hybridnet", "kube-ovn",
                                                 "none", "spiderpool"}));
  }
  return Cni::kNone;
}

bool IsOfStatefulSet(const v1beta1::Pod& pod) {
  return pod.has_controller() && pod.controller().kind() == "StatefulSet";
}

bool IsReservedHere(Cni cni, const v1beta1::Pod& pod) {
  switch (cni) {
    case Cni::kNone:
    case Cni::kCalico:
      return true;
    case Cni::kAntrea:
      // Antrea ignores the annotation of a StatefulSet's pod, and gives it the IP of its ordinal.
      return !IsOfStatefulSet(pod);
    case Cni::kKubeOvn:
    case Cni::kSpiderpool:
    case Cni::kHybridnet:
      return false;
  }
  return true;
}

sdk::PodPatch PatchFor(Cni cni, const v1beta1::Pod& pod, const Address& address,
                       const std::string& pool) {
  sdk::PodPatch patch;
  if (cni == Cni::kCalico) {
    patch.annotations[kCalicoIps] = json::array({ToText(address)}).dump();
  } else if (cni == Cni::kAntrea) {
    patch.annotations[kAntreaIps] = ToText(address);
    // Without a pool, of the pod or of its namespace, Antrea does not read the IP.
    if (sdk::FindValue(pod.annotations(), kAntreaPools) == nullptr && !pool.empty())
      patch.annotations[kAntreaPools] = pool;
  }
  return patch;
}

std::string QuotedList(const PoolNames& names) {
  return absl::StrJoin(names, ", ", [](std::string* out, const std::string& name) {
    absl::StrAppend(out, sdk::Quote(name));
  });
}

std::optional<std::vector<PoolNames>> SpiderpoolPoolsOf(const v1beta1::Pod& pod) {
  std::vector<PoolNames> names;
  const auto parse = [](const std::string& text) {
    return json::parse(text, nullptr, /*allow_exceptions=*/false);
  };
  if (const std::string* text = sdk::FindValue(pod.annotations(), kSpiderpoolPools)) {
    const json interfaces = parse(*text);
    if (!interfaces.is_array() || interfaces.size() > kMaxPools) return std::nullopt;
    for (const json& interface : interfaces) {
      if (!AppendPools(interface, &names)) return std::nullopt;
    }
  } else if ((text = sdk::FindValue(pod.annotations(), kSpiderpoolPool)) != nullptr) {
    if (!AppendPools(parse(*text), &names)) return std::nullopt;
  }
  return names;
}

std::string KubeOvnPoolOf(const v1beta1::Pod& pod) {
  const std::string* pool = sdk::FindValue(pod.annotations(), kKubeOvnPool);
  if (pool == nullptr || pool->find_first_of(",;") != std::string::npos || ParseAddress(*pool))
    return "";
  return *pool;
}

}  // namespace outboard::static_ip
