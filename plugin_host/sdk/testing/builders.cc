#include "plugin_host/sdk/testing/builders.h"

#include <gtest/gtest.h>

#include <utility>

#include "plugin_host/sdk/quantity.h"

namespace outboard::sdk::testing {

v1beta1::ResourceList MakeResources(const Quantities& quantities) {
  v1beta1::ResourceList list;
  for (const auto& [name, quantity] : quantities) {
    const absl::Status status = SetResource(name, quantity, &list);
    EXPECT_TRUE(status.ok()) << status;
  }
  return list;
}

NodeBuilder::NodeBuilder(std::string name) {
  node_.set_uid("uid-" + name);
  node_.set_name(std::move(name));
  node_.mutable_allocatable()->set_pods(110);
}

NodeBuilder& NodeBuilder::Allocatable(const Quantities& quantities) {
  node_.mutable_allocatable()->MergeFrom(MakeResources(quantities));
  return *this;
}

NodeBuilder& NodeBuilder::Label(const std::string& key, const std::string& value) {
  (*node_.mutable_labels())[key] = value;
  return *this;
}

NodeBuilder& NodeBuilder::Annotation(const std::string& key, const std::string& value) {
  (*node_.mutable_annotations())[key] = value;
  return *this;
}

NodeBuilder& NodeBuilder::Taint(std::string key, std::string value, v1beta1::TaintEffect effect) {
  v1beta1::Taint* taint = node_.add_taints();
  taint->set_key(std::move(key));
  taint->set_value(std::move(value));
  taint->set_effect(effect);
  return *this;
}

NodeBuilder& NodeBuilder::Unschedulable() {
  node_.set_unschedulable(true);
  return *this;
}

NodeBuilder& NodeBuilder::Image(std::string name, int64_t size_bytes) {
  v1beta1::ContainerImage* image = node_.add_images();
  image->add_names(std::move(name));
  image->set_size_bytes(size_bytes);
  return *this;
}

PodBuilder::PodBuilder(std::string name, std::string namespace_name) {
  pod_.set_uid(namespace_name + "/" + name);
  pod_.set_name(std::move(name));
  pod_.set_namespace_(std::move(namespace_name));
  pod_.set_scheduler_name("default-scheduler");
  pod_.add_containers()->set_name("main");
}

PodBuilder& PodBuilder::Requests(const Quantities& quantities) {
  *pod_.mutable_containers(0)->mutable_requests() = MakeResources(quantities);
  return *this;
}

PodBuilder& PodBuilder::Container(std::string image, const Quantities& requests) {
  if (!std::exchange(explicit_containers_, true)) pod_.clear_containers();
  v1beta1::Container* container = pod_.add_containers();
  container->set_name("c" + std::to_string(pod_.containers_size()));
  container->set_image(std::move(image));
  *container->mutable_requests() = MakeResources(requests);
  return *this;
}

PodBuilder& PodBuilder::InitContainer(const Quantities& requests, bool sidecar) {
  v1beta1::Container* container = pod_.add_init_containers();
  container->set_name("i" + std::to_string(pod_.init_containers_size()));
  *container->mutable_requests() = MakeResources(requests);
  container->set_restart_policy_always(sidecar);
  return *this;
}

PodBuilder& PodBuilder::HostPort(int32_t port, v1beta1::Protocol protocol, std::string host_ip) {
  v1beta1::ContainerPort* out = pod_.mutable_containers(0)->add_ports();
  out->set_host_port(port);
  out->set_container_port(port);
  out->set_protocol(protocol);
  out->set_host_ip(std::move(host_ip));
  return *this;
}

PodBuilder& PodBuilder::Label(const std::string& key, const std::string& value) {
  (*pod_.mutable_labels())[key] = value;
  return *this;
}

PodBuilder& PodBuilder::Annotation(const std::string& key, const std::string& value) {
  (*pod_.mutable_annotations())[key] = value;
  return *this;
}

PodBuilder& PodBuilder::NodeSelector(const std::string& key, const std::string& value) {
  (*pod_.mutable_node_selector())[key] = value;
  return *this;
}

PodBuilder& PodBuilder::Toleration(std::string key, v1beta1::Toleration::Operator op,
                                   std::string value, v1beta1::TaintEffect effect) {
  v1beta1::Toleration* toleration = pod_.add_tolerations();
  toleration->set_key(std::move(key));
  toleration->set_operator_(op);
  toleration->set_value(std::move(value));
  toleration->set_effect(effect);
  return *this;
}

PodBuilder& PodBuilder::OnNode(std::string node_name) {
  pod_.set_node_name(std::move(node_name));
  return *this;
}

PodBuilder& PodBuilder::Priority(int32_t priority) {
  pod_.set_priority(priority);
  return *this;
}

PodBuilder& PodBuilder::Gate(std::string name) {
  pod_.add_scheduling_gates(std::move(name));
  return *this;
}

}  // namespace outboard::sdk::testing
