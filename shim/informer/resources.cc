#include "shim/informer/resources.h"

namespace outboard::informer {

using kube::Decoder;

const Resource<kube::PodObject>& Pods() {
  static const auto* resource =
      new Resource<kube::PodObject>{"pods",
                                    "/api/v1/pods",
                                    "status.phase!=Succeeded,status.phase!=Failed",
                                    "PodList",
                                    &Decoder::DecodePod,
                                    &Decoder::DecodePodList,
                                    kube::DecodePodJson,
                                    kube::DecodePodListJson};
  return *resource;
}

const Resource<kube::NodeObject>& Nodes() {
  static const auto* resource = new Resource<kube::NodeObject>{"nodes",
                                                               "/api/v1/nodes",
                                                               "",
                                                               "NodeList",
                                                               &Decoder::DecodeNode,
                                                               &Decoder::DecodeNodeList,
                                                               kube::DecodeNodeJson,
                                                               kube::DecodeNodeListJson};
  return *resource;
}

const Resource<kube::NamespaceObject>& Namespaces() {
  static const auto* resource = new Resource<kube::NamespaceObject>{"namespaces",
                                                                    "/api/v1/namespaces",
                                                                    "",
                                                                    "NamespaceList",
                                                                    &Decoder::DecodeNamespace,
                                                                    &Decoder::DecodeNamespaceList,
                                                                    kube::DecodeNamespaceJson,
                                                                    kube::DecodeNamespaceListJson};
  return *resource;
}

}  // namespace outboard::informer
