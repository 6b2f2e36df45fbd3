// A watch over libcurl, on the calling thread and its own connection. Internal to CurlApiClient.
#ifndef OUTBOARD_SHIM_KUBE_CURL_STREAM_H_
#define OUTBOARD_SHIM_KUBE_CURL_STREAM_H_

#include "absl/status/status.h"
#include "shim/kube/api_client.h"
#include "shim/kube/curl_transfer.h"
#include "shim/kube/reachability.h"

namespace outboard::kube {

// Implements ApiClient::Stream for one watch. `setup` and `source` belong to the client.
// `reachability` may be null.
absl::Status RunCurlStream(CurlSetup& setup, CredentialSource& source, Reachability* reachability,
                           const ApiRequest& request, StreamSink& sink, const CancelToken& cancel);

}  // namespace outboard::kube

#endif  // OUTBOARD_SHIM_KUBE_CURL_STREAM_H_
