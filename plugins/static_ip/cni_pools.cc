#include "plugins/static_ip/cni_pools.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "plugin_host/sdk/custom_objects.h"
#include "plugin_host/sdk/selectors.h"
#include "plugin_host/sdk/validation.h"
#include "plugins/static_ip/calico_selector.h"

namespace outboard::static_ip {
namespace {

using nlohmann::json;
using sdk::Verdict;

// Calico's own storage, and its API server's view of it: the same spec.
constexpr char kCalicoStored[] = "ippools.v1.crd.projectcalico.org";
constexpr char kCalicoPools[] = "ippools.v3.projectcalico.org";
constexpr char kSpiderPools[] = "spiderippools.v2beta1.spiderpool.spidernet.io";
constexpr char kSpiderEndpoints[] = "spiderendpoints.v2beta1.spiderpool.spidernet.io";
constexpr char kHybridnetNetworks[] = "networks.v1.networking.alibaba.com";
constexpr char kKubeOvnSubnets[] = "subnets.v1.kubeovn.io";
constexpr char kKubeOvnVlans[] = "vlans.v1.kubeovn.io";
constexpr char kKubeOvnPools[] = "ippools.v1.kubeovn.io";

std::string TextOf(const json& spec, const char* key) {
  return sdk::TextAt(spec, {key}).value_or("");
}
bool IsTrue(const json& spec, const char* key) {
  const json* value = sdk::JsonAt(spec, {key});
  return value != nullptr && value->is_boolean() && value->get<bool>();
}

// A list of strings; nullopt if it is something else. Empty if absent.
std::optional<std::vector<std::string>> StringsOf(const json& object, const char* key) {
  const json* list = sdk::JsonAt(object, {key});
  std::vector<std::string> strings;
  if (list == nullptr || list->is_null()) return strings;
  if (!list->is_array()) return std::nullopt;
  for (const json& item : *list) {
    if (!item.is_string()) return std::nullopt;
    strings.push_back(item.get<std::string>());
  }
  return strings;
}

bool ReadExpression(const json& expression, v1beta1::SelectorRequirement* requirement) {
  static const auto& operators = *new std::map<std::string, v1beta1::SelectorRequirement::Operator>{
      {"In", v1beta1::SelectorRequirement::OPERATOR_IN},
      {"NotIn", v1beta1::SelectorRequirement::OPERATOR_NOT_IN},
      {"Exists", v1beta1::SelectorRequirement::OPERATOR_EXISTS},
      {"DoesNotExist", v1beta1::SelectorRequirement::OPERATOR_DOES_NOT_EXIST}};
  const auto op = operators.find(TextOf(expression, "operator"));
  const auto values = StringsOf(expression, "values");
  if (op == operators.end() || !values) return false;
  requirement->set_key(TextOf(expression, "key"));
  requirement->set_operator_(op->second);
  for (const std::string& value : *values) requirement->add_values(value);
  return true;
}

// A metav1.LabelSelector; nullopt if malformed.
std::optional<sdk::CompiledLabelSelector> ReadSelector(const json& selector) {
  v1beta1::LabelSelector read;
  const std::map<std::string, std::string> labels = sdk::StringsAt(selector, {"matchLabels"});
  const json* given = sdk::JsonAt(selector, {"matchLabels"});
  if (!selector.is_object() || (given != nullptr && given->size() != labels.size()))
    return std::nullopt;
  read.mutable_match_labels()->insert(labels.begin(), labels.end());
  const json* expressions = sdk::JsonAt(selector, {"matchExpressions"});
  if (expressions != nullptr && !expressions->is_null()) {
    if (!expressions->is_array()) return std::nullopt;
    for (const json& expression : *expressions) {
      if (!ReadExpression(expression, read.add_match_expressions())) return std::nullopt;
    }
  }
  absl::StatusOr<sdk::CompiledLabelSelector> compiled = sdk::CompiledLabelSelector::Parse(read);
  if (!compiled.ok()) return std::nullopt;
  return *std::move(compiled);
}

// The pools of the IPs that a SpiderEndpoint holds, by interface and family.
std::vector<PoolNames> ReadEndpoint(const json& endpoint) {
  std::vector<PoolNames> pools;
  const json* ips = sdk::JsonAt(endpoint, {"status", "current", "ips"});
  if (ips == nullptr || !ips->is_array()) return pools;
  for (const json& ip : *ips) {
    for (const char* key : {"ipv4Pool", "ipv6Pool"}) {
      if (const std::string pool = TextOf(ip, key); !pool.empty()) pools.push_back({pool});
    }
  }
  return pools;
}

std::string PodText(const v1beta1::Pod& pod) {
  return absl::StrCat("pod ", pod.namespace_(), "/", pod.name());
}

}  // namespace

const std::vector<std::string>& CniResources() {
  static const auto& resources = *new std::vector<std::string>{
      kCalicoStored,      kCalicoPools,    kSpiderPools,  kSpiderEndpoints,
      kHybridnetNetworks, kKubeOvnSubnets, kKubeOvnVlans, kKubeOvnPools};
  return resources;
}

bool NodeDemand::IsMetBy(sdk::Slot slot) const {
  return std::any_of(any_of.begin(), any_of.end(), [&](const NodeFlags* nodes) {
    return slot < nodes->size() && (*nodes)[slot] != 0;
  });
}

void CniPools::Clear() {
  pools_.clear();
  vlan_of_subnet_.clear();
  subnet_of_pool_.clear();
  kept_.clear();
  malformed_.Clear();
}

void CniPools::SetNode(sdk::Slot slot) {
  for (auto& [name, pool] : pools_) {
    if (slot >= pool.serves.size()) pool.serves.resize(slot + 1, 0);
    pool.serves[slot] = pool.selects(cluster_.node(slot)) ? 1 : 0;
  }
}

std::string CniPools::ReadCalico(const json& spec, Pool* pool) {
  pool->range = ParseCidr(TextOf(spec, "cidr"));
  if (!pool->range) return "cidr";
  std::optional<CalicoSelector> selector = CalicoSelector::Parse(TextOf(spec, "nodeSelector"));
  if (!selector) return "nodeSelector";
  // Calico does not use a disabled pool, not even for an IP that a pod names.
  if (IsTrue(spec, "disabled")) return "";
  pool->selects = [selector = *std::move(selector)](const sdk::NodeView& node) {
    return selector.Matches([&](absl::string_view key) { return node.Label(key); });
  };
  return "";
}

std::string CniPools::ReadSpiderpool(const json& spec, Pool* pool) {
  const auto names = StringsOf(spec, "nodeName");
  if (!names) return "nodeName";
  const json* affinity = sdk::JsonAt(spec, {"nodeAffinity"});
  const bool has_affinity = affinity != nullptr && !affinity->is_null();
  std::optional<sdk::CompiledLabelSelector> selector =
      has_affinity ? ReadSelector(*affinity) : std::nullopt;
  if (has_affinity && !selector) return "nodeAffinity";
  if (IsTrue(spec, "disable")) return "";
  // Names replace the affinity.
  if (!names->empty()) {
    pool->selects = [names = *names](const sdk::NodeView& node) {
      return std::find(names.begin(), names.end(), node.name()) != names.end();
    };
  } else if (selector) {
    pool->selects = [selector = *std::move(selector)](const sdk::NodeView& node) {
      return selector.Matches(node.proto().labels());
    };
  } else {
    pool->selects = [](const sdk::NodeView&) { return true; };
  }
  return "";
}

std::string CniPools::ReadHybridnet(const json& spec, Pool* pool) {
  const std::map<std::string, std::string> selector = sdk::StringsAt(spec, {"nodeSelector"});
  const json* given = sdk::JsonAt(spec, {"nodeSelector"});
  if (given != nullptr && !given->is_null() && given->size() != selector.size())
    return "nodeSelector";
  pool->selects = [selector](const sdk::NodeView& node) {
    return std::all_of(selector.begin(), selector.end(), [&](const auto& wanted) {
      return node.Label(wanted.first) == absl::string_view(wanted.second);
    });
  };
  return "";
}

std::string CniPools::ReadVlan(const json& spec, Pool* pool) {
  const std::string provider = TextOf(spec, "provider");
  if (provider.empty()) return "provider";
  // Kube-OVN's agent sets the label on nodes with the network: ProviderNetworkReadyTemplate in
  // pkg/util/const.go.
  pool->selects = [label = absl::StrCat(provider, ".provider-network.kubernetes.io/ready")](
                      const sdk::NodeView& node) {
    return node.Label(label) == absl::string_view("true");
  };
  return "";
}

void CniPools::SetPool(const v1beta1::GenericObject& object, const json& spec, Reader read) {
  Pool& pool = pools_[object.name()];
  pool = Pool();
  pool.selects = [](const sdk::NodeView&) { return false; };
  const std::string about = absl::StrCat(object.resource(), " ", object.name());
  malformed_.Forget(about);
  if (const std::string field = read(spec, &pool); !field.empty()) {
    const json* value = sdk::JsonAt(spec, {field.c_str()});
    malformed_.Warn(about, absl::StrCat("spec.", field), value == nullptr ? "" : value->dump(),
                    "as the CNI defines it; the pool serves no node");
  }
  pool.serves.assign(cluster_.nodes().occupied.size(), 0);
  for (const sdk::Slot slot : cluster_.node_order())
    pool.serves[slot] = pool.selects(cluster_.node(slot)) ? 1 : 0;
}

CniPools::Reader CniPools::ReaderOf(absl::string_view resource) const {
  switch (cni_) {
    case Cni::kCalico:
      return resource == kCalicoStored || resource == kCalicoPools ? &ReadCalico : nullptr;
    case Cni::kSpiderpool:
      return resource == kSpiderPools ? &ReadSpiderpool : nullptr;
    case Cni::kHybridnet:
      return resource == kHybridnetNetworks ? &ReadHybridnet : nullptr;
    case Cni::kKubeOvn:
      return resource == kKubeOvnVlans ? &ReadVlan : nullptr;
    case Cni::kNone:
    case Cni::kAntrea:
      break;
  }
  return nullptr;
}

void CniPools::SetObject(const v1beta1::GenericObject& object) {
  const std::string& resource = object.resource();
  const Reader reader = ReaderOf(resource);
  const bool of_spiderpool = cni_ == Cni::kSpiderpool && resource == kSpiderEndpoints;
  const bool of_kube_ovn =
      cni_ == Cni::kKubeOvn && (resource == kKubeOvnSubnets || resource == kKubeOvnPools);
  if (reader == nullptr && !of_spiderpool && !of_kube_ovn) return;
  const json whole = sdk::ParseCustomObject(object);
  const json* spec = sdk::JsonAt(whole, {"spec"});
  if (reader != nullptr) {
    SetPool(object, spec == nullptr ? json::object() : *spec, reader);
  } else if (of_spiderpool) {
    kept_[sdk::NamespacedKey(object.namespace_(), object.name())] = ReadEndpoint(whole);
  } else if (resource == kKubeOvnSubnets) {
    vlan_of_subnet_[object.name()] = sdk::TextAt(whole, {"spec", "vlan"}).value_or("");
  } else {
    subnet_of_pool_[object.name()] = sdk::TextAt(whole, {"spec", "subnet"}).value_or("");
  }
}

void CniPools::RemoveObject(const v1beta1::GenericObject& object) {
  const std::string& resource = object.resource();
  if (ReaderOf(resource) != nullptr) {
    pools_.erase(object.name());
    malformed_.Forget(absl::StrCat(resource, " ", object.name()));
  } else if (resource == kKubeOvnSubnets) {
    vlan_of_subnet_.erase(object.name());
  } else if (resource == kKubeOvnPools) {
    subnet_of_pool_.erase(object.name());
  } else if (resource == kSpiderEndpoints) {
    kept_.erase(sdk::NamespacedKey(object.namespace_(), object.name()));
  }
}

void CniPools::SetPod(const v1beta1::Pod& pod) {
  if (cni_ != Cni::kSpiderpool || SpiderpoolPoolsOf(pod)) return;
  const char* key =
      pod.annotations().contains(kSpiderpoolPools) ? kSpiderpoolPools : kSpiderpoolPool;
  malformed_.Warn(PodText(pod), key, pod.annotations().at(key), "JSON as Spiderpool reads it");
}

void CniPools::RemovePod(const v1beta1::Pod& pod) { malformed_.Forget(PodText(pod)); }

Verdict CniPools::DemandPools(const char* kind, const PoolNames& names,
                              std::vector<NodeDemand>* demands) const {
  // Spiderpool lets pods name pools by patterns; which pools these are is not interpreted here.
  const bool has_pattern = std::any_of(names.begin(), names.end(), [](const std::string& name) {
    return name.find_first_of("*?[") != std::string::npos;
  });
  if (pools_.empty() || has_pattern) return Verdict::Success();
  NodeDemand demand;
  for (const std::string& name : names) {
    const auto pool = pools_.find(name);
    if (pool != pools_.end()) demand.any_of.push_back(&pool->second.serves);
  }
  if (demand.any_of.empty())
    return Verdict::Unresolvable(absl::StrCat(kind, " ", QuotedList(names), " does not exist"));
  demand.rejection =
      Verdict::Unresolvable(absl::StrCat("node cannot use ", kind, " ", QuotedList(names)));
  demands->push_back(std::move(demand));
  return Verdict::Success();
}

Verdict CniPools::DemandKubeOvn(const v1beta1::Pod& pod, std::vector<NodeDemand>* demands) const {
  std::string subnet;
  // Kube-OVN writes it when it has given the IP.
  if (const std::string* given = sdk::FindValue(pod.annotations(), kKubeOvnSubnet)) subnet = *given;
  if (subnet.empty()) {
    const auto pool = subnet_of_pool_.find(KubeOvnPoolOf(pod));
    if (pool != subnet_of_pool_.end()) subnet = pool->second;
  }
  if (subnet.empty() || vlan_of_subnet_.empty()) return Verdict::Success();
  const auto known = vlan_of_subnet_.find(subnet);
  if (known == vlan_of_subnet_.end())
    return Verdict::Unresolvable(absl::StrCat("Subnet ", sdk::Quote(subnet), " does not exist"));
  if (known->second.empty()) return Verdict::Success();  // An overlay, which all nodes have.
  return DemandPools("Vlan", {known->second}, demands);
}

Verdict CniPools::DemandSpiderpool(const sdk::PodView& pod, bool has_kept_ip,
                                   std::vector<NodeDemand>* demands) const {
  std::vector<PoolNames> named = SpiderpoolPoolsOf(pod.proto()).value_or(std::vector<PoolNames>());
  // With other pools in the annotation Spiderpool gives the IP up.
  if (named.empty() && has_kept_ip && IsOfStatefulSet(pod.proto())) {
    const auto kept = kept_.find(sdk::NamespacedKey(pod.namespace_name(), pod.name()));
    if (kept != kept_.end()) named = kept->second;
  }
  for (const PoolNames& names : named) {
    Verdict verdict = DemandPools("SpiderIPPool", names, demands);
    if (!verdict.ok()) return verdict;
  }
  return Verdict::Success();
}

Verdict CniPools::DemandsOf(const sdk::PodView& pod, bool has_kept_ip,
                            std::vector<NodeDemand>* demands) const {
  switch (cni_) {
    case Cni::kKubeOvn:
      return DemandKubeOvn(pod.proto(), demands);
    case Cni::kSpiderpool:
      return DemandSpiderpool(pod, has_kept_ip, demands);
    case Cni::kHybridnet: {
      const std::string* network = sdk::FindValue(pod.proto().annotations(), kHybridnetNetwork);
      if (network == nullptr || network->empty()) return Verdict::Success();
      return DemandPools("Network", {*network}, demands);
    }
    case Cni::kNone:
    case Cni::kCalico:
    case Cni::kAntrea:
      break;
  }
  return Verdict::Success();
}

bool CniPools::CanServe(sdk::Slot slot, const Address& address) const {
  if (pools_.empty()) return true;
  return std::any_of(pools_.begin(), pools_.end(), [&](const auto& entry) {
    const Pool& pool = entry.second;
    return pool.range && pool.range->Contains(address) && slot < pool.serves.size() &&
           pool.serves[slot] != 0;
  });
}

std::optional<Address> CniPools::LowestAt(sdk::Slot slot, const AddressSet& free) const {
  if (free.empty()) return std::nullopt;
  if (pools_.empty()) return free.lowest();
  std::optional<Address> lowest;
  for (const auto& [name, pool] : pools_) {
    if (!pool.range || slot >= pool.serves.size() || pool.serves[slot] == 0) continue;
    const std::optional<Address> address = free.LowestIn(*pool.range);
    if (address && (!lowest || *address < *lowest)) lowest = address;
  }
  return lowest;
}

}  // namespace outboard::static_ip
