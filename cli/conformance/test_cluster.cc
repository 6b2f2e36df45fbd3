#include "cli/conformance/test_cluster.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace outboard::conformance {

using namespace v1beta1;  // NOLINT: the contract's messages are this file's vocabulary.

namespace {

constexpr int64_t kGib = int64_t{1} << 30;
constexpr int64_t kCreated = 1750000000;
constexpr size_t kChunkBytes = 1 << 20;

void SetResources(int64_t cpu_millis, int64_t memory, ResourceList* list) {
  list->set_cpu_millis(cpu_millis);
  list->set_memory_bytes(memory);
}

Pod* AddPending(const std::string& name, TestCluster* cluster) {
  cluster->pending.push_back(MakePod(name));
  return &cluster->pending.back();
}

void AddPendingPods(TestCluster* cluster) {
  AddPending("plain", cluster);
  (*AddPending("selective", cluster)->mutable_node_selector())["topology.kubernetes.io/zone"] =
      "zone-1";
  Toleration* toleration = AddPending("tolerant", cluster)->add_tolerations();
  toleration->set_operator_(Toleration::OPERATOR_EXISTS);

  Pod* pod = AddPending("spread", cluster);
  TopologySpreadConstraint* constraint = pod->add_topology_spread_constraints();
  constraint->set_max_skew(1);
  constraint->set_topology_key("topology.kubernetes.io/zone");
  constraint->set_when_unsatisfiable(TopologySpreadConstraint::WHEN_UNSATISFIABLE_DO_NOT_SCHEDULE);
  (*constraint->mutable_label_selector()->mutable_match_labels())["app"] = "running";

  pod = AddPending("apart", cluster);
  PodAffinityTerm* term = pod->mutable_affinity()
                              ->mutable_pod_anti_affinity()
                              ->add_required_during_scheduling_ignored_during_execution();
  term->set_topology_key("kubernetes.io/hostname");
  (*term->mutable_label_selector()->mutable_match_labels())["app"] = "running";

  ContainerPort* port = AddPending("port", cluster)->mutable_containers(0)->add_ports();
  port->set_host_port(8080);
  port->set_container_port(8080);

  pod = AddPending("urgent", cluster);
  pod->set_priority(1000);
  SetResources(7900, 15 * kGib, pod->mutable_containers(0)->mutable_requests());

  pod = AddPending("huge", cluster);
  SetResources(1000000, 10000 * kGib, pod->mutable_containers(0)->mutable_requests());
}

}  // namespace

Node MakeNode(int number) {
  Node node;
  node.set_name(absl::StrCat("node-", number));
  node.set_uid(absl::StrCat("node-uid-", number));
  node.set_creation_unix_seconds(kCreated + number);
  auto& labels = *node.mutable_labels();
  labels["kubernetes.io/hostname"] = node.name();
  labels["topology.kubernetes.io/zone"] = absl::StrCat("zone-", number % 3);
  labels["topology.kubernetes.io/region"] = "region";
  if (number % 4 == 1) labels["disk"] = "ssd";
  SetResources(4000 + 4000 * (number % 2), 16 * kGib, node.mutable_allocatable());
  node.mutable_allocatable()->set_ephemeral_storage_bytes(100 * kGib);
  node.mutable_allocatable()->set_pods(number % 7 == 6 ? 1 : 110);
  if (number % 5 == 2) {
    Taint* taint = node.add_taints();
    taint->set_key("dedicated");
    taint->set_value("batch");
    taint->set_effect(number % 2 == 0 ? TAINT_EFFECT_NO_SCHEDULE : TAINT_EFFECT_PREFER_NO_SCHEDULE);
  }
  node.set_unschedulable(number % 11 == 10);
  ContainerImage* image = node.add_images();
  image->add_names("registry.example/app:1");
  image->set_size_bytes(200 << 20);
  return node;
}

Pod MakePod(const std::string& name) {
  Pod pod;
  pod.set_uid(absl::StrCat("pod-uid-", name));
  pod.set_namespace_("default");
  pod.set_name(name);
  (*pod.mutable_labels())["app"] = name;
  pod.set_creation_unix_seconds(kCreated + 1000);
  pod.set_scheduler_name(kProfile);
  Container* container = pod.add_containers();
  container->set_name("main");
  container->set_image("registry.example/app:1");
  SetResources(500, kGib, container->mutable_requests());
  return pod;
}

Pod MakeRunningPod(const std::string& name, const Node& node) {
  Pod pod = MakePod(name);
  pod.set_node_name(node.name());
  pod.set_start_unix_seconds(kCreated + 1001);
  (*pod.mutable_labels())["app"] = "running";
  SetResources(1000, 2 * kGib, pod.mutable_containers(0)->mutable_requests());
  return pod;
}

TestCluster MakeCluster(int nodes) {
  TestCluster cluster;
  for (int i = 0; i < nodes; ++i) {
    cluster.nodes.push_back(MakeNode(i));
    if (i % 3 == 2) continue;
    cluster.running.push_back(MakeRunningPod(absl::StrCat("running-", i), cluster.nodes.back()));
  }
  AddPendingPods(&cluster);
  return cluster;
}

std::vector<SyncRequest> MakeSnapshot(const TestCluster& cluster, int64_t version) {
  std::vector<SyncRequest> chunks(1);
  chunks[0].set_phase(SyncRequest::PHASE_SNAPSHOT_BEGIN);
  size_t bytes = 0;
  const auto add = [&](Change change) {
    if (bytes > kChunkBytes) {
      chunks.emplace_back().set_phase(SyncRequest::PHASE_SNAPSHOT_MORE);
      bytes = 0;
    }
    bytes += change.ByteSizeLong();
    *chunks.back().add_changes() = std::move(change);
  };
  Change space;
  space.mutable_namespace_upsert()->mutable_namespace_()->set_name("default");
  add(space);
  for (size_t i = 0; i < cluster.nodes.size(); ++i) {
    add(UpsertNode(static_cast<uint32_t>(i), cluster.nodes[i]));
  }
  for (const Pod& pod : cluster.running) add(UpsertPod(pod));
  for (const Pod& pod : cluster.pending) add(UpsertPod(pod));
  SyncRequest& end = chunks.emplace_back();
  end.set_phase(SyncRequest::PHASE_SNAPSHOT_END);
  *end.mutable_node_order() = OrderOf(FirstSlots(static_cast<int>(cluster.nodes.size())));
  for (SyncRequest& chunk : chunks) chunk.set_version(version);
  return chunks;
}

Change UpsertNode(uint32_t slot, const Node& node) {
  Change change;
  change.mutable_node_upsert()->set_slot(slot);
  *change.mutable_node_upsert()->mutable_node() = node;
  return change;
}

Change RemoveNode(uint32_t slot) {
  Change change;
  change.mutable_node_remove()->set_slot(slot);
  return change;
}

Change UpsertPod(const Pod& pod) {
  Change change;
  *change.mutable_pod_upsert()->mutable_pod() = pod;
  return change;
}

Change RemovePod(const std::string& uid) {
  Change change;
  change.mutable_pod_remove()->set_uid(uid);
  return change;
}

Change PlacePod(const std::string& uid, PlacementState state, uint32_t slot) {
  Change change;
  change.mutable_pod_placement()->set_uid(uid);
  change.mutable_pod_placement()->set_state(state);
  change.mutable_pod_placement()->set_slot(slot);
  return change;
}

NodeOrder OrderOf(const std::vector<uint32_t>& slots) {
  NodeOrder order;
  order.mutable_slots()->Add(slots.begin(), slots.end());
  return order;
}

std::vector<uint32_t> FirstSlots(int count) {
  std::vector<uint32_t> slots(count);
  for (int i = 0; i < count; ++i) slots[i] = static_cast<uint32_t>(i);
  return slots;
}

}  // namespace outboard::conformance
