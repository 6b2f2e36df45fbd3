// The pools of a CNI, as its own objects describe them: which nodes can use them.
#ifndef OUTBOARD_PLUGINS_STATIC_IP_CNI_POOLS_H_
#define OUTBOARD_PLUGINS_STATIC_IP_CNI_POOLS_H_

#include <cstdint>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "plugin_host/sdk/label_values.h"
#include "plugin_host/sdk/verdict.h"
#include "plugin_host/sdk/views.h"
#include "plugins/static_ip/address.h"
#include "plugins/static_ip/cni.h"

namespace outboard::static_ip {

// The resources that are read, where the shim's configuration names them.
const std::vector<std::string>& CniResources();

// Nodes by slot.
using NodeFlags = std::vector<uint8_t>;

// The pod's node must be in one of the sets.
struct NodeDemand {
  std::vector<const NodeFlags*> any_of;
  sdk::Verdict rejection;

  bool IsMetBy(sdk::Slot slot) const;
};

// Threading: thread-compatible; called on the cluster cache's thread.
// Lifetime:  pointers in demands are valid until the next change.
// Errors:    none. What cannot be read selects no node, with one warning per object.
class CniPools {
 public:
  CniPools(Cni cni, sdk::ClusterView cluster) : cni_(cni), cluster_(cluster) {}

  void Clear();
  void SetNode(sdk::Slot slot);
  // Objects of other resources, and of other CNIs, are ignored.
  void SetObject(const v1beta1::GenericObject& object);
  void RemoveObject(const v1beta1::GenericObject& object);
  // Only reports malformed annotations.
  void SetPod(const v1beta1::Pod& pod);
  void RemovePod(const v1beta1::Pod& pod);

  // Where a pod whose IP the CNI keeps can run. Appends to `demands` what is known; success without
  // any demand: on every node. `has_kept_ip`: the pod wants the IP that the CNI keeps for its name.
  sdk::Verdict DemandsOf(const sdk::PodView& pod, bool has_kept_ip,
                         std::vector<NodeDemand>* demands) const;

  // Of an IP that StaticIP reserves: whether the CNI can give it to a pod on the node. True if
  // nothing is known of the CNI's pools.
  bool CanServe(sdk::Slot slot, const Address& address) const;
  // The lowest such address of `free`.
  std::optional<Address> LowestAt(sdk::Slot slot, const AddressSet& free) const;

 private:
  struct Pool {
    std::function<bool(const sdk::NodeView&)> selects;
    NodeFlags serves;
    std::optional<Range> range;  // Of Calico.
  };
  // Each reads the spec of a pool. Returns the malformed field; empty: none.
  using Reader = std::string (*)(const nlohmann::json& spec, Pool* pool);
  static std::string ReadCalico(const nlohmann::json& spec, Pool* pool);
  static std::string ReadSpiderpool(const nlohmann::json& spec, Pool* pool);
  static std::string ReadHybridnet(const nlohmann::json& spec, Pool* pool);
  static std::string ReadVlan(const nlohmann::json& spec, Pool* pool);

  // Null: not a resource of this CNI's pools.
  Reader ReaderOf(absl::string_view resource) const;
  void SetPool(const v1beta1::GenericObject& object, const nlohmann::json& spec, Reader read);
  sdk::Verdict DemandPools(const char* kind, const PoolNames& names,
                           std::vector<NodeDemand>* demands) const;
  sdk::Verdict DemandKubeOvn(const v1beta1::Pod& pod, std::vector<NodeDemand>* demands) const;
  sdk::Verdict DemandSpiderpool(const sdk::PodView& pod, bool has_kept_ip,
                                std::vector<NodeDemand>* demands) const;

  const Cni cni_;
  const sdk::ClusterView cluster_;
  std::map<std::string, Pool> pools_;  // By name; of Kube-OVN by VLAN.
  // Of Kube-OVN: the VLAN of a subnet, empty for overlays; the subnet of an IPPool.
  std::map<std::string, std::string> vlan_of_subnet_, subnet_of_pool_;
  // Of Spiderpool: pools of the IPs that it keeps, by namespace/name of the pod.
  absl::flat_hash_map<std::string, std::vector<PoolNames>> kept_;
  sdk::MalformedValues malformed_{"StaticIP"};
};

}  // namespace outboard::static_ip

#endif  // OUTBOARD_PLUGINS_STATIC_IP_CNI_POOLS_H_
