// Reads the GPUs of this machine and writes them to its Node, again and again.
#ifndef OUTBOARD_NODE_PROBE_NODE_PROBE_H_
#define OUTBOARD_NODE_PROBE_NODE_PROBE_H_

#include <functional>
#include <memory>
#include <random>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "node_probe/command_runner.h"
#include "node_probe/node_patch.h"
#include "node_probe/pod_resources.h"
#include "shim/kube/cancel_token.h"

namespace outboard::node_probe {

struct NodeProbeOptions {
  std::string nvidia_smi = "nvidia-smi";
  // The kubelet's socket; empty: do not read which GPUs pods use.
  std::string pod_resources;
  absl::Duration period = absl::Seconds(30);
  CommandLimits command;
  absl::Duration kubelet_timeout = absl::Seconds(10);
};

// Writes annotations to the Node. Must return soon after `cancel`.
using WriteAnnotations =
    std::function<absl::Status(const NodeAnnotations&, const kube::CancelToken& cancel)>;

// Threading: thread-compatible; one thread calls Run.
// Lifetime: no thread of its own.
// Errors: of one reading or write, logged; what could not be read stays as it is in the cluster.
class NodeProbe {
 public:
  NodeProbe(NodeProbeOptions options, WriteAnnotations write);

  // One round: reads, and writes if something has changed since the last write, or if that is 10
  // minutes ago: the Node may be another one of the same name.
  //
  // Errors: of the readings and the write, joined; what could be read is written nevertheless.
  absl::Status RunOnce(absl::Time now, const kube::CancelToken& cancel);

  // Rounds until cancelled, a period apart; after failed rounds twice the time each, at most 5
  // minutes. Each pause differs by up to a tenth, so that the machines of a cluster do not write at
  // the same moment.
  void Run(const kube::CancelToken& cancel);

  // The pause after a round, with `failures` failed rounds in a row. `lot` is from 0 to 1.
  static absl::Duration PauseAfter(int failures, absl::Duration period, double lot);

 private:
  absl::Status Read(const kube::CancelToken& cancel, NodeAnnotations* annotations);
  absl::StatusOr<std::string> ReadPods(const GpuInventory& inventory,
                                       const kube::CancelToken& cancel);

  const NodeProbeOptions options_;
  const WriteAnnotations write_;
  CommandRunner commands_;
  std::unique_ptr<PodResourcesClient> kubelet_;  // null: not read
  NodeAnnotations written_;
  absl::Time written_at_ = absl::InfinitePast();
  std::string warned_;  // about the last reading of pods, not to log it every round
  std::mt19937 random_{std::random_device{}()};
};

}  // namespace outboard::node_probe

#endif  // OUTBOARD_NODE_PROBE_NODE_PROBE_H_
