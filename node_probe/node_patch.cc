#include "node_probe/node_patch.h"

#include <memory>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "nlohmann/json.hpp"
#include "plugin_host/sdk/gpu_devices.h"
#include "plugin_host/sdk/node_facts/node_labels.h"

namespace outboard::node_probe {
namespace {

constexpr absl::Duration kTimeout = absl::Seconds(15);
constexpr size_t kMaxAnswer = size_t{4} << 20;

// The answer to a request, or that the caller no longer waits for it.
struct Outcome {
  absl::Mutex mutex;
  bool ended ABSL_GUARDED_BY(mutex) = false;
  absl::StatusOr<kube::ApiResponse> answer ABSL_GUARDED_BY(mutex) = absl::CancelledError("stopped");
};

absl::StatusOr<kube::ApiResponse> CallUntilCancelled(kube::ApiClient* api, kube::ApiRequest request,
                                                     const kube::CancelToken& cancel) {
  // Shared: the request may end after this function.
  const auto outcome = std::make_shared<Outcome>();
  const auto end = [outcome](absl::StatusOr<kube::ApiResponse> answer) {
    absl::MutexLock lock(&outcome->mutex);
    if (std::exchange(outcome->ended, true)) return;
    outcome->answer = std::move(answer);
  };
  const kube::CancelToken::Listener listener(cancel,
                                             [&end] { end(absl::CancelledError("stopped")); });
  api->Start(std::move(request), end);
  absl::MutexLock lock(&outcome->mutex);
  outcome->mutex.Await(absl::Condition(&outcome->ended));
  return std::move(outcome->answer);
}

const char* Advice(absl::StatusCode code) {
  switch (code) {
    case absl::StatusCode::kPermissionDenied:
      return "; the account needs the right to patch nodes, and its token must be of a pod on this "
             "node (deploy/kustomize/components/node-probe)";
    case absl::StatusCode::kNotFound:
      return "; --node-name must be the Node's name";
    default:
      return "";
  }
}

}  // namespace

std::string PatchText(const NodeAnnotations& annotations) {
  nlohmann::json values = nlohmann::json::object();
  if (annotations.islands) values[sdk::node_labels::kIslandsAnnotation] = *annotations.islands;
  if (annotations.pod_gpus) values[sdk::kPodGpusAnnotation] = *annotations.pod_gpus;
  return nlohmann::json{{"metadata", {{"annotations", values}}}}.dump();
}

absl::Status PatchNode(kube::ApiClient* api, const std::string& node,
                       const NodeAnnotations& annotations, const kube::CancelToken& cancel) {
  kube::ApiRequest request;
  request.method = kube::Method::kPatch;
  request.path = absl::StrCat("/api/v1/nodes/", node, "?fieldManager=outboard-node-probe");
  request.content_type = std::string(kube::kMergePatch);
  request.accept = std::string(kube::kMetadataOnly);
  request.body = PatchText(annotations);
  request.timeout = kTimeout;
  request.retry = false;  // The probe tries again, with newer values.
  request.max_response_bytes = kMaxAnswer;
  const absl::StatusOr<kube::ApiResponse> answer =
      CallUntilCancelled(api, std::move(request), cancel);
  const absl::Status status = answer.ok() ? kube::ToStatus(*answer) : answer.status();
  if (status.ok()) return status;
  return absl::Status(status.code(), absl::StrCat("patch of node ", node, ": ", status.message(),
                                                  Advice(status.code())));
}

}  // namespace outboard::node_probe
