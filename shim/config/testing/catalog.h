// The plugins of a host, for tests of profiles.
#ifndef OUTBOARD_SHIM_CONFIG_TESTING_CATALOG_H_
#define OUTBOARD_SHIM_CONFIG_TESTING_CATALOG_H_

#include <initializer_list>

#include "outboard/v1beta1/plugin_host.pb.h"
#include "shim/config/profiles.h"

namespace outboard::config::testing {

using v1beta1::ExtensionPoint;

inline void AddPlugin(v1beta1::GetHostInfoResponse* info, const std::string& name,
                      std::initializer_list<ExtensionPoint> points, int default_weight = 0) {
  v1beta1::PluginInfo* plugin = info->add_plugins();
  plugin->set_name(name);
  for (ExtensionPoint point : points) plugin->add_extension_points(point);
  plugin->set_default_weight(default_weight);
}

// The default plugins and a few others.
inline PluginCatalog Catalog() {
  using namespace v1beta1;  // NOLINT: names of points
  GetHostInfoResponse info;
  AddPlugin(&info, "NotServed", {EXTENSION_POINT_PRE_FILTER});
  AddPlugin(&info, "SchedulingGates", {EXTENSION_POINT_PRE_ENQUEUE});
  AddPlugin(&info, "PrioritySort", {EXTENSION_POINT_QUEUE_SORT});
  AddPlugin(&info, "NodeUnschedulable", {EXTENSION_POINT_FILTER});
  AddPlugin(&info, "NodeName", {EXTENSION_POINT_FILTER});
  AddPlugin(&info, "TaintToleration",
            {EXTENSION_POINT_FILTER, EXTENSION_POINT_PRE_SCORE, EXTENSION_POINT_SCORE}, 9);
  AddPlugin(&info, "NodeAffinity",
            {EXTENSION_POINT_PRE_FILTER, EXTENSION_POINT_FILTER, EXTENSION_POINT_PRE_SCORE,
             EXTENSION_POINT_SCORE});
  AddPlugin(&info, "NodePorts", {EXTENSION_POINT_PRE_FILTER, EXTENSION_POINT_FILTER});
  AddPlugin(&info, "NodeResourcesFit",
            {EXTENSION_POINT_PRE_FILTER, EXTENSION_POINT_FILTER, EXTENSION_POINT_PRE_SCORE,
             EXTENSION_POINT_SCORE});
  AddPlugin(&info, "VolumeRestrictions", {EXTENSION_POINT_PRE_FILTER, EXTENSION_POINT_FILTER});
  AddPlugin(&info, "NodeVolumeLimits", {EXTENSION_POINT_PRE_FILTER, EXTENSION_POINT_FILTER});
  AddPlugin(&info, "VolumeBinding",
            {EXTENSION_POINT_PRE_FILTER, EXTENSION_POINT_FILTER, EXTENSION_POINT_RESERVE,
             EXTENSION_POINT_PRE_BIND});
  AddPlugin(&info, "VolumeZone", {EXTENSION_POINT_PRE_FILTER, EXTENSION_POINT_FILTER});
  // Without score points: those of the other plugins are sufficient.
  AddPlugin(&info, "PodTopologySpread", {EXTENSION_POINT_PRE_FILTER, EXTENSION_POINT_FILTER});
  AddPlugin(&info, "InterPodAffinity", {EXTENSION_POINT_PRE_FILTER, EXTENSION_POINT_FILTER});
  AddPlugin(&info, "DynamicResources",
            {EXTENSION_POINT_PRE_ENQUEUE, EXTENSION_POINT_PRE_FILTER, EXTENSION_POINT_FILTER,
             EXTENSION_POINT_POST_FILTER, EXTENSION_POINT_SCORE, EXTENSION_POINT_RESERVE,
             EXTENSION_POINT_PRE_BIND});
  AddPlugin(&info, "DefaultPreemption", {EXTENSION_POINT_POST_FILTER});
  AddPlugin(&info, "NodeResourcesBalancedAllocation",
            {EXTENSION_POINT_PRE_SCORE, EXTENSION_POINT_SCORE});
  AddPlugin(&info, "ImageLocality", {EXTENSION_POINT_SCORE});
  AddPlugin(&info, "DefaultBinder", {EXTENSION_POINT_BIND});
  AddPlugin(&info, "NodeDeclaredFeatures", {EXTENSION_POINT_PRE_FILTER, EXTENSION_POINT_FILTER});
  AddPlugin(&info, "GPUAware", {EXTENSION_POINT_FILTER, EXTENSION_POINT_SCORE}, 4);
  AddPlugin(&info, "OtherSort", {EXTENSION_POINT_QUEUE_SORT});
  AddPlugin(&info, "Gang", {EXTENSION_POINT_PERMIT, static_cast<ExtensionPoint>(99)});
  PluginCatalog catalog;
  catalog.Add(info);
  return catalog;
}

}  // namespace outboard::config::testing

#endif  // OUTBOARD_SHIM_CONFIG_TESTING_CATALOG_H_
