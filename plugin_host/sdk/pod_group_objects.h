// PodGroup objects of four APIs.
#ifndef OUTBOARD_PLUGIN_HOST_SDK_POD_GROUP_OBJECTS_H_
#define OUTBOARD_PLUGIN_HOST_SDK_POD_GROUP_OBJECTS_H_

#include <vector>

#include "outboard/v1beta1/objects.pb.h"
#include "outboard/v1beta1/plugin_host.pb.h"
#include "plugin_host/sdk/pod_groups.h"

namespace outboard::sdk {

struct PodGroupObject {
  GroupKey key;
  GroupSpec spec;
  std::vector<MalformedValue> malformed;  // absent in `spec`
};

// None: not a known PodGroup resource. Pure. Malformed values that determine the group's number set
// `spec.fault`.
std::optional<PodGroupObject> ReadPodGroup(const v1beta1::GenericObject& object);

// For PluginDescriptor::declared_resources: all of them, read-only and optional, because no cluster
// has all.
std::vector<v1beta1::DeclaredResource> PodGroupResources();

}  // namespace outboard::sdk

#endif  // OUTBOARD_PLUGIN_HOST_SDK_POD_GROUP_OBJECTS_H_
