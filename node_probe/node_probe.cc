#include "node_probe/node_probe.h"

#include <glog/logging.h>

#include <algorithm>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "node_probe/gpu_inventory.h"
#include "node_probe/topology_matrix.h"
#include "plugin_host/sdk/gpu_devices.h"
#include "plugin_host/sdk/node_facts/gpu_islands.h"
#include "shim/clock.h"

namespace outboard::node_probe {
namespace {

constexpr absl::Duration kRewriteAfter = absl::Minutes(10);
constexpr absl::Duration kLongestPause = absl::Minutes(5);
constexpr size_t kMaxLogged = 1000;  // characters of a patch

absl::Status Join(absl::Status first, const absl::Status& second) {
  if (first.ok()) return second;
  if (second.ok()) return first;
  return absl::Status(first.code(), absl::StrCat(first.message(), "; ", second.message()));
}

// The old value where the new one is unknown.
NodeAnnotations Merge(NodeAnnotations read, const NodeAnnotations& before) {
  if (!read.islands) read.islands = before.islands;
  if (!read.pod_gpus) read.pod_gpus = before.pod_gpus;
  return read;
}

}  // namespace

NodeProbe::NodeProbe(NodeProbeOptions options, WriteAnnotations write)
    : options_(std::move(options)), write_(std::move(write)), commands_(options_.command) {
  if (options_.pod_resources.empty()) return;
  kubelet_ = std::make_unique<PodResourcesClient>(options_.pod_resources, options_.kubelet_timeout);
}

absl::StatusOr<std::string> NodeProbe::ReadPods(const GpuInventory& inventory,
                                                const kube::CancelToken& cancel) {
  const absl::StatusOr<PodDevices> pods = kubelet_->List(inventory, cancel);
  if (!pods.ok()) return pods.status();
  size_t left_out = 0;
  std::string text = sdk::FormatPodGpus(pods->gpus, &left_out);
  std::string warning;
  if (pods->unknown_devices > 0)
    absl::StrAppend(&warning, "; ", pods->unknown_devices, " devices that nvidia-smi -L lacks");
  if (pods->unnamed_pods > 0)
    absl::StrAppend(&warning, "; ", pods->unnamed_pods, " pods without a valid name");
  if (left_out > 0) {
    absl::StrAppend(&warning, "; ", left_out, " pods do not fit into ", sdk::kMaxPodGpusText,
                    " bytes");
  }
  if (!warning.empty() && warning != warned_)
    LOG(WARNING) << "Not every GPU in use is reported" << warning;
  warned_ = std::move(warning);
  return text;
}

namespace {

// A parser's error, with the program where that has another name than the parser says.
absl::Status FromProgram(const std::string& program, const absl::Status& status) {
  if (status.ok() || program == "nvidia-smi") return status;
  return absl::Status(status.code(), absl::StrCat(program, ": ", status.message()));
}

}  // namespace

absl::Status NodeProbe::Read(const kube::CancelToken& cancel, NodeAnnotations* annotations) {
  const absl::StatusOr<std::string> list = commands_.Run({options_.nvidia_smi, "-L"}, cancel);
  if (!list.ok()) return list.status();
  const absl::StatusOr<GpuInventory> inventory = ParseGpuInventory(*list);
  if (!inventory.ok()) return FromProgram(options_.nvidia_smi, inventory.status());
  absl::Status status;
  const absl::StatusOr<std::string> matrix =
      commands_.Run({options_.nvidia_smi, "topo", "-m"}, cancel);
  if (matrix.ok()) {
    const auto islands = ParseTopologyMatrix(*matrix, inventory->partitioned);
    if (islands.ok()) annotations->islands = sdk::FormatIslands(*islands);
    status = FromProgram(options_.nvidia_smi, islands.status());
  } else {
    status = matrix.status();
  }
  if (kubelet_ == nullptr || cancel.cancelled()) return status;
  absl::StatusOr<std::string> pods = ReadPods(*inventory, cancel);
  if (pods.ok()) annotations->pod_gpus = *std::move(pods);
  return Join(std::move(status), pods.status());
}

absl::Status NodeProbe::RunOnce(absl::Time now, const kube::CancelToken& cancel) {
  NodeAnnotations read;
  absl::Status status = Read(cancel, &read);
  if (cancel.cancelled()) return absl::CancelledError("stopped");
  NodeAnnotations wanted = Merge(std::move(read), written_);
  if (wanted.empty() || (wanted == written_ && now - written_at_ < kRewriteAfter)) return status;
  const absl::Status write = write_(wanted, cancel);
  if (write.ok()) {
    if (wanted != written_) LOG(INFO) << "Wrote " << PatchText(wanted).substr(0, kMaxLogged);
    written_ = std::move(wanted);
    written_at_ = now;
  }
  return Join(std::move(status), write);
}

absl::Duration NodeProbe::PauseAfter(int failures, absl::Duration period, double lot) {
  absl::Duration pause = period;
  for (int i = 1; i < failures && pause < kLongestPause; ++i) pause *= 2;
  if (failures > 0) pause = std::min(pause, std::max(kLongestPause, period));
  return pause * (0.9 + 0.2 * lot);
}

void NodeProbe::Run(const kube::CancelToken& cancel) {
  int failures = 0;
  std::string last;
  while (!cancel.cancelled()) {
    const absl::Status status = RunOnce(SteadyNow(), cancel);
    if (cancel.cancelled()) return;
    if (status.ok() && failures > 0) LOG(INFO) << "Reading and writing work again";
    failures = status.ok() ? 0 : failures + 1;
    const absl::Duration pause = PauseAfter(failures, options_.period,
                                            std::uniform_real_distribution<double>(0, 1)(random_));
    if (!status.ok()) {
      LOG(WARNING) << "Round failed: " << status.message() << "; trying again in "
                   << absl::FormatDuration(absl::Trunc(pause, absl::Seconds(1)));
    }
    if (cancel.WaitFor(pause)) return;
  }
}

}  // namespace outboard::node_probe
