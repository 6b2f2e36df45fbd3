// Invariants of every decoded object, for any input bytes.
//
// Errors: a violation aborts the process, which a fuzzer reports.
#ifndef OUTBOARD_SHIM_KUBE_WIRE_TESTING_PROMISES_H_
#define OUTBOARD_SHIM_KUBE_WIRE_TESTING_PROMISES_H_

#include "integration/fuzz/seeds.h"
#include "shim/kube/objects.h"

namespace outboard::kube {

using fuzz::Require;

// A host can parse the message: all strings are UTF-8 (protobuf checks that).
template <typename Message>
void RequireSendable(const Message& message) {
  Message copy;
  Require(copy.ParseFromString(message.SerializeAsString()), "a message that can be sent");
}

inline void RequireGood(const PodObject& pod) {
  Require(!pod.uid().empty() && !pod.pod.name().empty(), "a pod has a uid and a name");
  RequireSendable(pod.pod);
}

inline void RequireGood(const NodeObject& node) {
  Require(!node.uid().empty() && !node.key().empty(), "a node has a uid and a name");
  RequireSendable(node.node);
}

inline void RequireGood(const NamespaceObject& ns) {
  Require(!ns.uid().empty() && !ns.key().empty(), "a namespace has a uid and a name");
  RequireSendable(ns.ns);
}

inline void RequireGood(const ClusterObject& object) {
  Require(!object.uid().empty() && !object.key().empty(), "an object has a uid and a name");
  RequireSendable(object.object);
}

}  // namespace outboard::kube

#endif  // OUTBOARD_SHIM_KUBE_WIRE_TESTING_PROMISES_H_
