// The plugins of a host, for tests of profiles.
#ifndef OUTBOARD_SHIM_CONFIG_TESTING_CATALOG_H_
#define OUTBOARD_SHIM_CONFIG_TESTING_CATALOG_H_

#include <initializer_list>

#include "proto/outboard/v1alpha1/plugin_host.pb.h"
#include "shim/config/profiles.h"

namespace outboard::config::testing {

using v1alpha1::ExtensionPoint;

inline void AddPlugin(v1alpha1::GetHostInfoResponse* info, const std::string& name,
                      std::initializer_list<ExtensionPoint> points, int default_weight = 0) {
  v1alpha1::PluginInfo* plugin = info->add_plugins();
  plugin->set_name(name);
  for (ExtensionPoint point : points) plugin->add_extension_points(point);
  plugin->set_default_weight(default_weight);
}

// The default plugins and a few others.
inline PluginCatalog Catalog() {
  using namespace v1alpha1;  // NOLINT: names of points
  GetHostInfoResponse info;
  AddPlugin(&info, "NotServed", {PRE_FILTER});
  AddPlugin(&info, "SchedulingGates", {PRE_ENQUEUE});
  AddPlugin(&info, "PrioritySort", {QUEUE_SORT});
  AddPlugin(&info, "NodeUnschedulable", {FILTER});
  AddPlugin(&info, "NodeName", {FILTER});
  AddPlugin(&info, "TaintToleration", {FILTER, PRE_SCORE, SCORE}, 9);
  AddPlugin(&info, "NodeAffinity", {PRE_FILTER, FILTER, PRE_SCORE, SCORE});
  AddPlugin(&info, "NodePorts", {PRE_FILTER, FILTER});
  AddPlugin(&info, "NodeResourcesFit", {PRE_FILTER, FILTER, PRE_SCORE, SCORE});
  AddPlugin(&info, "VolumeRestrictions", {PRE_FILTER, FILTER});
  AddPlugin(&info, "NodeVolumeLimits", {PRE_FILTER, FILTER});
  AddPlugin(&info, "VolumeBinding", {PRE_FILTER, FILTER, RESERVE, PRE_BIND});
  AddPlugin(&info, "VolumeZone", {PRE_FILTER, FILTER});
  // Without score points: those of the other plugins are sufficient.
  AddPlugin(&info, "PodTopologySpread", {PRE_FILTER, FILTER});
  AddPlugin(&info, "InterPodAffinity", {PRE_FILTER, FILTER});
  AddPlugin(&info, "DynamicResources",
            {PRE_ENQUEUE, PRE_FILTER, FILTER, POST_FILTER, SCORE, RESERVE, PRE_BIND});
  AddPlugin(&info, "DefaultPreemption", {POST_FILTER});
  AddPlugin(&info, "NodeResourcesBalancedAllocation", {PRE_SCORE, SCORE});
  AddPlugin(&info, "ImageLocality", {SCORE});
  AddPlugin(&info, "DefaultBinder", {BIND});
  AddPlugin(&info, "NodeDeclaredFeatures", {PRE_FILTER, FILTER});
  AddPlugin(&info, "GPUAware", {FILTER, SCORE}, 4);
  AddPlugin(&info, "OtherSort", {QUEUE_SORT});
  AddPlugin(&info, "Gang", {PERMIT, static_cast<ExtensionPoint>(99)});
  PluginCatalog catalog;
  catalog.Add(info);
  return catalog;
}

}  // namespace outboard::config::testing

#endif  // OUTBOARD_SHIM_CONFIG_TESTING_CATALOG_H_
