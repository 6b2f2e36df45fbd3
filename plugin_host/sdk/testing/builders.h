// Nodes and pods for tests, in one line each.
#ifndef OUTBOARD_PLUGIN_HOST_SDK_TESTING_BUILDERS_H_
#define OUTBOARD_PLUGIN_HOST_SDK_TESTING_BUILDERS_H_

#include <map>
#include <string>

#include "outboard/v1beta1/types.pb.h"

namespace outboard::sdk::testing {

// Resources by name with Kubernetes' quantities: {{"cpu", "500m"}, {"memory", "1Gi"},
// {"nvidia.com/gpu", "2"}}.
using Quantities = std::map<std::string, std::string>;
v1beta1::ResourceList MakeResources(const Quantities& quantities);

// A node: NodeBuilder("n1").Allocatable({{"cpu", "2"}}).Label("zone", "a").Build(). Allows 110 pods
// unless Allocatable sets it.
class NodeBuilder {
 public:
  explicit NodeBuilder(std::string name);
  NodeBuilder& Allocatable(const Quantities& quantities);
  NodeBuilder& Label(const std::string& key, const std::string& value);
  NodeBuilder& Annotation(const std::string& key, const std::string& value);
  NodeBuilder& Taint(std::string key, std::string value, v1beta1::TaintEffect effect);
  NodeBuilder& Unschedulable();
  NodeBuilder& Image(std::string name, int64_t size_bytes);
  const v1beta1::Node& Build() const { return node_; }
  operator const v1beta1::Node&() const { return node_; }

 private:
  v1beta1::Node node_;
};

// A pod in namespace `default` with uid `default/<name>` and, unless Container is called, one
// container without requests.
class PodBuilder {
 public:
  explicit PodBuilder(std::string name, std::string namespace_name = "default");
  PodBuilder& Requests(const Quantities& quantities);  // For the first container.
  PodBuilder& Container(std::string image, const Quantities& requests);
  PodBuilder& InitContainer(const Quantities& requests, bool sidecar = false);
  PodBuilder& HostPort(int32_t port, v1beta1::Protocol protocol = v1beta1::PROTOCOL_TCP,
                       std::string host_ip = "");
  PodBuilder& Label(const std::string& key, const std::string& value);
  PodBuilder& Annotation(const std::string& key, const std::string& value);
  PodBuilder& NodeSelector(const std::string& key, const std::string& value);
  PodBuilder& Toleration(std::string key, v1beta1::Toleration::Operator op, std::string value,
                         v1beta1::TaintEffect effect);
  PodBuilder& OnNode(std::string node_name);
  PodBuilder& Priority(int32_t priority);
  PodBuilder& Gate(std::string name);
  v1beta1::Pod& proto() { return pod_; }  // For everything else.
  const v1beta1::Pod& Build() const { return pod_; }
  operator const v1beta1::Pod&() const { return pod_; }

 private:
  v1beta1::Pod pod_;
  bool explicit_containers_ = false;
};

}  // namespace outboard::sdk::testing

#endif  // OUTBOARD_PLUGIN_HOST_SDK_TESTING_BUILDERS_H_
