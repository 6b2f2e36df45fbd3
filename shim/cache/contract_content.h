// Whether two versions of an object are equal for a plugin host.
#ifndef OUTBOARD_SHIM_CACHE_CONTRACT_CONTENT_H_
#define OUTBOARD_SHIM_CACHE_CONTRACT_CONTENT_H_

#include <string>

#include "google/protobuf/message_lite.h"
#include "outboard/v1beta1/types.pb.h"
#include "shim/cache/host_fields.h"
#include "shim/kube/objects.h"

namespace outboard::cache {

// Equal for equal messages of one type, whatever the order of their maps; valid within one process.
std::string CanonicalBytes(const google::protobuf::MessageLite& message);

bool SameMessage(const google::protobuf::MessageLite& a, const google::protobuf::MessageLite& b);

// `wanted`: what any host declared; other annotations, and other fields that come only on request,
// are ignored. A heartbeat of a node is not part of its content. A pod's resource version counts
// only while it has no node: later every status update of the kubelet would be a message.
bool SameContent(const kube::PodObject& a, const kube::PodObject& b, const HostFields& wanted);
bool SameContent(const kube::NodeObject& a, const kube::NodeObject& b, const HostFields& wanted);

// Equal except for the node that the pod runs on or is bound to, and for the resource version,
// which is all that a bind changes.
bool SameButForNode(const kube::PodObject& a, const kube::PodObject& b, const HostFields& wanted);

// Equal except for the status: no user or controller changed the pod.
bool SameSpec(const v1beta1::Pod& a, const v1beta1::Pod& b);

}  // namespace outboard::cache

#endif  // OUTBOARD_SHIM_CACHE_CONTRACT_CONTENT_H_
