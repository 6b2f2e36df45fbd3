#include "plugin_host/runtime/benchmark_session.h"

#include "absl/strings/str_cat.h"
#include "plugin_host/sdk/testing/builders.h"

namespace outboard::runtime {

using sdk::testing::NodeBuilder;
using sdk::testing::PodBuilder;

v1beta1::ConfigureRequest DefaultProfile(const sdk::PluginRegistry& registry) {
  v1beta1::ConfigureRequest request;
  request.set_session_id("s");
  auto* profile = request.add_profiles();
  profile->set_name("default-scheduler");
  const char* const order[] = {
      "NodeUnschedulable", "NodeName",         "TaintToleration",
      "NodeAffinity",      "NodePorts",        "NodeResourcesFit",
      "PodTopologySpread", "InterPodAffinity", "NodeResourcesBalancedAllocation",
      "ImageLocality"};
  for (auto point : {v1beta1::EXTENSION_POINT_PRE_FILTER, v1beta1::EXTENSION_POINT_FILTER,
                     v1beta1::EXTENSION_POINT_PRE_SCORE, v1beta1::EXTENSION_POINT_SCORE}) {
    auto* config = profile->add_points();
    config->set_extension_point(point);
    for (const char* name : order) {
      const sdk::PluginDescriptor* descriptor = registry.Find(name);
      if (descriptor == nullptr) continue;
      for (auto implemented : descriptor->extension_points) {
        if (implemented == point) config->add_plugins(name);
      }
    }
  }
  return request;
}

void FillSession(int nodes, Session* session) {
  v1beta1::SyncRequest request;
  request.set_version(1);
  request.set_phase(v1beta1::SyncRequest::PHASE_SNAPSHOT_BEGIN);
  for (int i = 0; i < nodes; ++i) {
    auto* upsert = request.add_changes()->mutable_node_upsert();
    upsert->set_slot(i);
    *upsert->mutable_node() = NodeBuilder(absl::StrCat("node-", i))
                                  .Allocatable({{"cpu", "32"}, {"memory", "128Gi"}})
                                  .Label("kubernetes.io/hostname", absl::StrCat("node-", i))
                                  .Label("topology.kubernetes.io/zone", absl::StrCat("z", i % 3))
                                  .Label("rack", absl::StrCat("r", i / 100))
                                  .Build();
    *request.add_changes()->mutable_pod_upsert()->mutable_pod() =
        PodBuilder(absl::StrCat("running-", i))
            .Requests({{"cpu", absl::StrCat(1 + i % 13)}, {"memory", "4Gi"}})
            .OnNode(absl::StrCat("node-", i));
  }
  *request.add_changes()->mutable_pod_upsert()->mutable_pod() =
      PodBuilder("p").Requests({{"cpu", "500m"}, {"memory", "1Gi"}});
  absl::Status status = session->Apply(request, absl::UnixEpoch());
  request.Clear();
  request.set_version(1);
  request.set_phase(v1beta1::SyncRequest::PHASE_SNAPSHOT_END);
  status.Update(session->Apply(request, absl::UnixEpoch()));
  if (!status.ok()) abort();
}

}  // namespace outboard::runtime
