// The contract's version v1beta1 as a host of v1alpha1 speaks it.
#ifndef OUTBOARD_SHIM_HOSTS_ADAPTER_TRANSLATION_H_
#define OUTBOARD_SHIM_HOSTS_ADAPTER_TRANSLATION_H_

#include <grpcpp/support/status.h>

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace outboard::hosts::adapter {

// All functions are pure. Methods are those of v1beta1 and of the handshake, as gRPC paths:
// `/outboard.v1beta1.FilterService/Filter`. Messages are serialized.

// The path of the method that answers this one in v1alpha1; empty: there is none.
std::string OldMethod(absl::string_view method);

// How many nodes the host has after this request; nullopt: as many as before.
std::optional<uint32_t> NumNodesAfter(absl::string_view method, absl::string_view bytes);

// The instance that this request names for all later calls; nullopt: the same as before.
std::optional<std::string> InstanceAfter(absl::string_view method, absl::string_view bytes);

// `num_nodes`: how many nodes the host has; Filter of v1alpha1 has a percentage of them.
// Errors: INVALID_ARGUMENT for bytes that are not the method's request; UNIMPLEMENTED for what old
// hosts cannot do: ConfigureRequest.validate_only.
absl::StatusOr<std::string> RequestToOld(absl::string_view method, absl::string_view bytes,
                                         uint32_t num_nodes);

// Names the intended instance in what RequestToOld returned: v1alpha1 has it in the header of every
// call. No effect on requests without a header.
void AddInstance(absl::string_view method, const std::string& instance, std::string* old_request);

// Errors: INVALID_ARGUMENT for bytes that are not the method's answer in v1alpha1.
absl::StatusOr<std::string> ResponseFromOld(absl::string_view method, absl::string_view bytes);

// The status of a call, with its CallError in the form of v1beta1.
grpc::Status StatusFromOld(const grpc::Status& status);

}  // namespace outboard::hosts::adapter

#endif  // OUTBOARD_SHIM_HOSTS_ADAPTER_TRANSLATION_H_
