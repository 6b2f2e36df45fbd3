// Tracks the binding of a pod's volumes, until all are bound or one fails.
#ifndef OUTBOARD_PLUGINS_VOLUME_BINDING_BINDING_PROGRESS_H_
#define OUTBOARD_PLUGINS_VOLUME_BINDING_BINDING_PROGRESS_H_

#include "plugin_host/sdk/plugin.h"
#include "plugins/volume_binding/volume_index.h"

namespace outboard::volume_binding {

// SUCCESS: all are bound; WAIT: not yet; ERROR: a binding failed, or `timeout` has passed.
sdk::Verdict CheckProgress(absl::string_view node_name, const sdk::PreBindProgress& progress,
                           const sdk::ClusterView& cluster, const VolumeIndex& index,
                           absl::Duration timeout);

}  // namespace outboard::volume_binding

#endif  // OUTBOARD_PLUGINS_VOLUME_BINDING_BINDING_PROGRESS_H_
