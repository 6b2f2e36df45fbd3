// What CNIs read and keep: which pods' IPs StaticIP reserves, and how it tells the CNI.
//
// Sources, read in 2026: Calico cni-plugin/pkg/k8s/k8s.go; Antrea
// pkg/agent/cniserver/ipam/antrea_ipam{,_controller}.go; Kube-OVN pkg/controller/pod.go;
// Spiderpool pkg/ipam/{allocate,pool_selections}.go; Hybridnet pkg/webhook/mutating/pod.go; Galaxy
// pkg/ipam/schedulerplugin/bind.go.
#ifndef OUTBOARD_PLUGINS_STATIC_IP_CNI_H_
#define OUTBOARD_PLUGINS_STATIC_IP_CNI_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "outboard/v1beta1/objects.pb.h"
#include "plugin_host/sdk/args_reader.h"
#include "plugin_host/sdk/pod_effects.h"
#include "plugins/static_ip/address.h"

namespace outboard::static_ip {

enum class Cni {
  kNone,        // Reservations only; a person or another program gives pods their IP.
  kCalico,      // Gives the IP of an annotation, which it reads when the pod's sandbox is created.
  kAntrea,      // The same, except for StatefulSets, whose IPs it keeps itself.
  kKubeOvn,     // Gives the IP when the pod is created, before it is scheduled.
  kSpiderpool,  // Keeps IPs of StatefulSets; takes others from pools that the pod names.
  kHybridnet,   // Keeps IPs of StatefulSets; its webhook selects the nodes.
};
// Reads the argument `cni`; reports problems in `root`.
Cni ReadCni(const sdk::ArgsObject& root);

// Whether StaticIP reserves the pod's IP. Otherwise the CNI keeps it.
bool IsReservedHere(Cni cni, const v1beta1::Pod& pod);
bool IsOfStatefulSet(const v1beta1::Pod& pod);

// What tells the CNI to give the pod this IP; empty: nothing does.
sdk::PodPatch PatchFor(Cni cni, const v1beta1::Pod& pod, const Address& address,
                       const std::string& pool);

// Annotations of pods that name the CNI's pools.
inline constexpr char kAntreaPools[] = "ipam.antrea.io/ippools";
inline constexpr char kKubeOvnSubnet[] = "ovn.kubernetes.io/logical_switch";
inline constexpr char kKubeOvnPool[] = "ovn.kubernetes.io/ip_pool";
inline constexpr char kSpiderpoolPool[] = "ipam.spidernet.io/ippool";
inline constexpr char kSpiderpoolPools[] = "ipam.spidernet.io/ippools";
inline constexpr char kHybridnetNetwork[] = "networking.alibaba.com/specified-network";
inline constexpr const char* kPoolAnnotations[] = {kAntreaPools,     kKubeOvnSubnet,
                                                   kKubeOvnPool,     kSpiderpoolPool,
                                                   kSpiderpoolPools, kHybridnetNetwork};

// Pools of which each pod needs one. A pod may need several such lists: for IPv4 and IPv6, and for
// each interface.
using PoolNames = std::vector<std::string>;
// `"a", "b"`.
std::string QuotedList(const PoolNames& names);

// Of Spiderpool's two annotations, the one for interfaces first. nullopt if the annotation that
// counts is malformed; empty if there is none.
std::optional<std::vector<PoolNames>> SpiderpoolPoolsOf(const v1beta1::Pod& pod);
// The name of an IPPool of Kube-OVN; empty if the annotation is absent or lists IPs.
std::string KubeOvnPoolOf(const v1beta1::Pod& pod);

}  // namespace outboard::static_ip

#endif  // OUTBOARD_PLUGINS_STATIC_IP_CNI_H_
