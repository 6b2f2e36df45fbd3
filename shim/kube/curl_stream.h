// A watch over libcurl, on the calling thread and on a connection of its own. Internal to
// CurlApiClient.
#ifndef OUTBOARD_SHIM_KUBE_CURL_STREAM_H_
#define OUTBOARD_SHIM_KUBE_CURL_STREAM_H_

#include "absl/status/status.h"
#include "shim/kube/api_client.h"
#include "shim/kube/curl_transfer.h"

namespace outboard::kube {

// ApiClient::Stream for one watch; `setup` and `source` are the client's.
absl::Status RunCurlStream(CurlSetup& setup, CredentialSource& source, const ApiRequest& request,
                           StreamSink& sink, const CancelToken& cancel);

}  // namespace outboard::kube

#endif  // OUTBOARD_SHIM_KUBE_CURL_STREAM_H_
