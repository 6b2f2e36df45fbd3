// The extension points of the queue: QueueSort and PreEnqueue. Part of plugin.h.
#ifndef OUTBOARD_PLUGIN_HOST_SDK_QUEUE_POINTS_H_
#define OUTBOARD_PLUGIN_HOST_SDK_QUEUE_POINTS_H_

#include <string>

#include "absl/time/time.h"
#include "outboard/v1beta1/queue_sort.pb.h"
#include "plugin_host/sdk/verdict.h"
#include "plugin_host/sdk/views.h"

namespace outboard::sdk {

class QueueSortPlugin {
 public:
  virtual ~QueueSortPlugin() = default;
  // At most 64 bytes, longer keys are cut. The smallest key (compared as unsigned bytes) is popped
  // first, among equal keys the earliest queued.
  virtual std::string SortKey(const PodView& pod, const ClusterView& cluster) const = 0;
  // The same for a plugin whose key depends on what the queue knows of the pod. The plugin declares
  // `QueuedPodInfo.attempts` in its needed_fields; without it `queued` is empty.
  virtual std::string SortKeyOfQueued(const PodView& pod, const v1beta1::QueuedPodInfo& queued,
                                      const ClusterView& cluster) const {
    return SortKey(pod, cluster);
  }
};

class PreEnqueuePlugin {
 public:
  virtual ~PreEnqueuePlugin() = default;
  virtual Verdict PreEnqueue(const PodView& pod, const ClusterView& cluster,
                             absl::Time now) const = 0;
};

}  // namespace outboard::sdk

#endif  // OUTBOARD_PLUGIN_HOST_SDK_QUEUE_POINTS_H_
