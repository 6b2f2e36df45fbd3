// GPUs that pods get by resource claims (dynamic resource allocation), counted.
#ifndef OUTBOARD_PLUGIN_HOST_SDK_GPU_CLAIMS_H_
#define OUTBOARD_PLUGIN_HOST_SDK_GPU_CLAIMS_H_

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/string_view.h"
#include "outboard/v1beta1/objects.pb.h"
#include "outboard/v1beta1/plugin_host.pb.h"
#include "outboard/v1beta1/types.pb.h"
#include "plugin_host/sdk/node_facts/resource_slices.h"
#include "plugin_host/sdk/node_table.h"

namespace outboard::sdk {

// As GenericObject.resource.
inline constexpr char kResourceClaims[] = "resourceclaims.v1.resource.k8s.io";
inline constexpr char kResourceClaimTemplates[] = "resourceclaimtemplates.v1.resource.k8s.io";

// Adds ResourceSlices, claims and templates, read-only and optional, to
// PluginDescriptor::declared_resources.
void DeclareGpuClaims(std::vector<v1beta1::DeclaredResource>* declared);

// Claims, templates, device classes and the devices of nodes. A plugin's ClusterObserver fills it.
//
// It counts devices of some device classes, and does not evaluate their selectors (CEL): which
// device a claim may get is decided by the host that serves DynamicResources. Where a claim leaves
// the number open (allocationMode All, firstAvailable), the least number counts, so that no node is
// rejected wrongly.
//
// Threading: thread-compatible.
// Lifetime:  a value.
// Errors:    none; what cannot be read counts as absent, an unknown claim as no GPUs.
class GpuClaims {
 public:
  // `classes`: names of device classes whose devices are GPUs.
  explicit GpuClaims(std::vector<std::string> classes) : classes_(std::move(classes)) {}

  // True if answers for nodes or pods may have changed. Other objects are ignored.
  bool Set(const v1beta1::ClusterObject& object);
  bool Remove(const v1beta1::ClusterObject& object);
  void Clear();

  // False: no node's devices are known, or nothing claims any. Then nothing counts.
  bool active() const {
    return has_devices() && !(claims_.empty() && templates_.empty() && resources_.empty());
  }
  // GPUs of the pod's claims; a claim that is used twice counts once. With `counted`, which may be
  // null, claims in it do not count again, and the others are added to it.
  int64_t DemandOf(const v1beta1::Pod& pod, std::set<std::string>* counted = nullptr) const;
  // Its allocated claims, for `counted`: their devices are taken already.
  std::set<std::string> AllocatedOf(const v1beta1::Pod& pod) const;
  // GPUs of the claims of these pods, which are on one node: a shared claim counts once; without
  // the claims that `except` uses, too, which may be null.
  int64_t UsedBy(const std::vector<PodRecord*>& pods, const v1beta1::Pod* except) const;
  // The GPUs that the node's driver publishes.
  int64_t DevicesOn(const std::string& node) const;
  // Extended resources that these classes provide (DeviceClass.spec.extendedResourceName, and the
  // one under the class's own name). Claims for these are Kubernetes' own and are not counted: the
  // pod's requests are.
  std::vector<std::string> Resources() const;

 private:
  bool has_devices() const { return !nodes_with_devices_.empty(); }
  bool IsGpu(absl::string_view device_class) const;
  // The GPUs of a claim, and whether it is allocated; or of a template.
  struct Count {
    int64_t gpus = 0;
    bool allocated = false;
  };
  Count CountOf(const v1beta1::GenericObject& object, bool is_template) const;
  // Adds the pod's claims with their GPUs, by key.
  void AddClaims(const v1beta1::Pod& pod, std::map<std::string, int64_t>* claims) const;

  std::vector<std::string> classes_;
  absl::flat_hash_map<std::string, int64_t> claims_;     // GPUs by `namespace/name`; above 0.
  absl::flat_hash_set<std::string> allocated_;           // Of claims_.
  absl::flat_hash_map<std::string, int64_t> templates_;  // The same.
  std::map<std::string, std::string> resources_;         // extendedResourceName by class.
  ResourceSlices slices_;
  std::map<std::string, int64_t> nodes_with_devices_;  // GPUs by node.
};

}  // namespace outboard::sdk

#endif  // OUTBOARD_PLUGIN_HOST_SDK_GPU_CLAIMS_H_
