// Hosts of version 0.1, which speak the contract's version v1alpha1.
#ifndef OUTBOARD_SHIM_HOSTS_ADAPTER_ADAPTER_H_
#define OUTBOARD_SHIM_HOSTS_ADAPTER_ADAPTER_H_

#include <grpcpp/channel.h>

#include <memory>

namespace outboard::hosts::adapter {

// The version that an adapter speaks with the host.
inline constexpr char kOldVersion[] = "v1alpha1";

// A channel that speaks v1beta1 and the handshake, to the host behind `host`, which speaks
// v1alpha1.
//
// Threading: any thread.
// Lifetime: the channel and its stubs keep the adapter and `host`. The last of them must not go on
// a thread of gRPC, because it waits until calls in progress were cancelled.
// Errors: those of the host. A message that cannot be translated ends its call with INTERNAL.
std::shared_ptr<grpc::Channel> SpeakOldVersion(std::shared_ptr<grpc::Channel> host);

}  // namespace outboard::hosts::adapter

#endif  // OUTBOARD_SHIM_HOSTS_ADAPTER_ADAPTER_H_
