#include "node_probe/pod_resources.h"

#include <grpcpp/grpcpp.h>

#include <chrono>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "node_probe/pod_resources.grpc.pb.h"
#include "shim/kube/wire/name_rules.h"

namespace outboard::node_probe {
namespace {

std::shared_ptr<grpc::Channel> NewChannel(const std::string& socket) {
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(kMaxPodResourcesBytes);
  // A new connection for each call does not wait for an earlier one's backoff.
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  // A server in Go rejects the path of a socket as the name of a host.
  arguments.SetString(GRPC_ARG_DEFAULT_AUTHORITY, "localhost");
  return grpc::CreateCustomChannel(absl::StrCat("unix:", socket),
                                   grpc::InsecureChannelCredentials(), arguments);
}

bool IsNamedLikeAGpu(absl::string_view device_id) {
  return absl::StartsWith(device_id, "GPU-") || absl::StartsWith(device_id, "MIG-");
}

}  // namespace

PodDevices GpusOfPods(const v1::ListPodResourcesResponse& pods, const GpuInventory& inventory) {
  PodDevices result;
  for (const v1::PodResources& pod : pods.pod_resources()) {
    sdk::GpuSet gpus = 0;
    for (const v1::ContainerResources& container : pod.containers()) {
      for (const v1::ContainerDevices& devices : container.devices()) {
        for (const std::string& id : devices.device_ids()) {
          const std::optional<int64_t> index = inventory.IndexOf(id);
          if (index) gpus |= sdk::GpuSet{1} << *index;
          if (!index && IsNamedLikeAGpu(id)) ++result.unknown_devices;
        }
      }
    }
    if (gpus == 0) continue;
    if (!kube::CheckDnsLabel(pod.namespace_()).empty() ||
        !kube::CheckSubdomain(pod.name()).empty()) {
      ++result.unnamed_pods;
      continue;
    }
    result.gpus[absl::StrCat(pod.namespace_(), "/", pod.name())] |= gpus;
  }
  return result;
}

PodResourcesClient::PodResourcesClient(std::string socket, absl::Duration timeout)
    : socket_(std::move(socket)), timeout_(timeout) {}

absl::StatusOr<PodDevices> PodResourcesClient::List(const GpuInventory& inventory,
                                                    const kube::CancelToken& cancel) const {
  const auto stub = v1::PodResourcesLister::NewStub(NewChannel(socket_));
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + absl::ToChronoMilliseconds(timeout_));
  v1::ListPodResourcesResponse pods;
  grpc::Status status;
  {
    const kube::CancelToken::Listener listener(cancel, [&context] { context.TryCancel(); });
    status = stub->List(&context, {}, &pods);
  }
  if (!status.ok()) {
    return absl::Status(static_cast<absl::StatusCode>(status.error_code()),
                        absl::StrCat("kubelet at ", socket_, ": ", status.error_message()));
  }
  return GpusOfPods(pods, inventory);
}

}  // namespace outboard::node_probe
