// The only list of all plugins: one include and one line each. CMakeLists.txt has the same list.
#include "plugins/builtin_plugins.h"

#include "plugins/atomic_replica_coordinator/atomic_replica_coordinator.h"
#include "plugins/backfill/backfill.h"
#include "plugins/coscheduling/coscheduling.h"
#include "plugins/cost_aware_preemptor/cost_aware_preemptor.h"
#include "plugins/cost_optimized/cost_optimized.h"
#include "plugins/default_binder/default_binder.h"
#include "plugins/default_preemption/default_preemption.h"
#include "plugins/dynamic_resources/dynamic_resources.h"
#include "plugins/gpu_aware/gpu_aware.h"
#include "plugins/gpu_load/gpu_load.h"
#include "plugins/gpu_model_match/gpu_model_match.h"
#include "plugins/gpu_packing/gpu_packing.h"
#include "plugins/image_locality/image_locality.h"
#include "plugins/inter_pod_affinity/inter_pod_affinity.h"
#include "plugins/latest_start_sort/latest_start_sort.h"
#include "plugins/metric_score/metric_score.h"
#include "plugins/node_affinity/node_affinity.h"
#include "plugins/node_declared_features/node_declared_features.h"
#include "plugins/node_name/node_name.h"
#include "plugins/node_ports/node_ports.h"
#include "plugins/node_resources_balanced_allocation/node_resources_balanced_allocation.h"
#include "plugins/node_resources_fit/node_resources_fit.h"
#include "plugins/node_unschedulable/node_unschedulable.h"
#include "plugins/node_volume_limits/node_volume_limits.h"
#include "plugins/not_served/not_served.h"
#include "plugins/objectives/objectives.h"
#include "plugins/pod_topology_spread/pod_topology_spread.h"
#include "plugins/priority_sort/priority_sort.h"
#include "plugins/scheduling_gates/scheduling_gates.h"
#include "plugins/static_ip/static_ip.h"
#include "plugins/taint_toleration/taint_toleration.h"
#include "plugins/topology_aware_gpu_gate/topology_aware_gpu_gate.h"
#include "plugins/training_job_placement/training_job_placement.h"
#include "plugins/volume_binding/volume_binding.h"
#include "plugins/volume_restrictions/volume_restrictions.h"
#include "plugins/volume_zone/volume_zone.h"
#include "plugins/workload_strategy_scorer/workload_strategy_scorer.h"
#include "plugins/workload_type_filter/workload_type_filter.h"

namespace outboard {

absl::Status RegisterBuiltinPlugins(sdk::PluginRegistry* registry) {
  absl::Status status;
  for (sdk::PluginDescriptor (*descriptor)() : {
           &atomic_replica_coordinator::Descriptor,
           &coscheduling::Descriptor,
           &backfill::Descriptor,
           &cost_aware_preemptor::Descriptor,
           &cost_optimized::Descriptor,
           &default_binder::Descriptor,
           &default_preemption::Descriptor,
           &dynamic_resources::Descriptor,
           &gpu_aware::Descriptor,
           &gpu_load::Descriptor,
           &gpu_model_match::Descriptor,
           &gpu_packing::Descriptor,
           &image_locality::Descriptor,
           &inter_pod_affinity::Descriptor,
           &latest_start_sort::Descriptor,
           &metric_score::Descriptor,
           &node_affinity::Descriptor,
           &node_declared_features::Descriptor,
           &node_name::Descriptor,
           &node_ports::Descriptor,
           &node_resources_balanced_allocation::Descriptor,
           &node_resources_fit::Descriptor,
           &node_unschedulable::Descriptor,
           &node_volume_limits::Descriptor,
           &not_served::Descriptor,
           &objectives::Descriptor,
           &pod_topology_spread::Descriptor,
           &priority_sort::Descriptor,
           &scheduling_gates::Descriptor,
           &static_ip::Descriptor,
           &taint_toleration::Descriptor,
           &topology_aware_gpu_gate::Descriptor,
           &training_job_placement::Descriptor,
           &volume_binding::Descriptor,
           &volume_restrictions::Descriptor,
           &volume_zone::Descriptor,
           &workload_strategy_scorer::Descriptor,
           &workload_type_filter::Descriptor,
       }) {
    status.Update(registry->Add(descriptor()));
  }
  return status;
}

}  // namespace outboard
