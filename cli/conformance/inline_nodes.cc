#include "cli/conformance/inline_nodes.h"

#include <algorithm>
#include <map>

namespace outboard::conformance {

using namespace v1beta1;  // NOLINT: the contract's messages are this file's vocabulary.

namespace {

// Pods on the node, by uid.
using Running = std::map<std::string, const Pod*>;

Running RunningOn(const TestCluster& cluster, const Node& node) {
  Running running;
  for (const Pod& pod : cluster.running) {
    if (pod.node_name() == node.name()) running[pod.uid()] = &pod;
  }
  return running;
}

void FillNode(const Node& node, const Running& running, InlineNode* out) {
  *out->mutable_node() = node;
  ResourceList* requested = out->mutable_requested();
  for (const auto& [uid, pod] : running) {
    *out->add_pods() = *pod;
    for (const Container& container : pod->containers()) {
      requested->set_cpu_millis(requested->cpu_millis() + container.requests().cpu_millis());
      requested->set_memory_bytes(requested->memory_bytes() + container.requests().memory_bytes());
    }
  }
  requested->set_pods(static_cast<int64_t>(running.size()));
}

template <typename Request>
void AddNodes(const TestCluster& cluster, const NodeSet& nodes, Request* request) {
  for (const uint32_t slot : nodes.slots()) {
    if (slot >= cluster.nodes.size()) continue;
    FillNode(cluster.nodes[slot], RunningOn(cluster, cluster.nodes[slot]),
             request->add_inline_nodes());
  }
}

template <typename Request>
void AddPod(const TestCluster& cluster, const std::string& uid, Request* request) {
  if (const Pod* pod = FindPod(cluster, uid)) *request->mutable_pod() = *pod;
}

template <typename Request>
void AddPlace(const TestCluster& cluster, const std::string& uid, Request* request) {
  AddPod(cluster, uid, request);
  for (const Node& node : cluster.nodes) {
    if (node.name() == request->node_name())
      FillNode(node, RunningOn(cluster, node), request->mutable_inline_node());
  }
}

template <typename Request>
void AddPods(const TestCluster& cluster, Request* request) {
  for (const std::string& uid : request->pod_uids()) {
    if (const Pod* pod = FindPod(cluster, uid)) *request->add_pods() = *pod;
  }
}

}  // namespace

const Pod* FindPod(const TestCluster& cluster, const std::string& uid) {
  const auto it = std::find_if(cluster.pending.begin(), cluster.pending.end(),
                               [&](const Pod& pod) { return pod.uid() == uid; });
  return it == cluster.pending.end() ? nullptr : &*it;
}

void AddInline(const TestCluster& cluster, const std::string& uid, PreFilterRequest* request) {
  AddPod(cluster, uid, request);
}

void AddInline(const TestCluster& cluster, const std::string& uid, FilterRequest* request) {
  AddPod(cluster, uid, request);
  AddNodes(cluster, request->search().nodes(), request);
  Running running;
  for (const SimulatedNode& hypothesis : request->simulation().nodes()) {
    if (hypothesis.slot() >= cluster.nodes.size()) continue;
    const Node& node = cluster.nodes[hypothesis.slot()];
    if (!hypothesis.continues()) running = RunningOn(cluster, node);
    for (const std::string& gone : hypothesis.removed_pod_uids()) running.erase(gone);
    for (const std::string& back : hypothesis.added_pod_uids()) {
      const Running all = RunningOn(cluster, node);
      if (const auto it = all.find(back); it != all.end()) running.insert(*it);
    }
    FillNode(node, running, request->add_inline_nodes());
  }
}

void AddInline(const TestCluster& cluster, const std::string& uid, PreScoreRequest* request) {
  AddPod(cluster, uid, request);
  AddNodes(cluster, request->nodes(), request);
}

void AddInline(const TestCluster& cluster, const std::string& uid, ScoreRequest* request) {
  AddPod(cluster, uid, request);
  AddNodes(cluster, request->nodes(), request);
}

void AddInline(const TestCluster& cluster, const std::string& uid, ReserveRequest* request) {
  AddPlace(cluster, uid, request);
}

void AddInline(const TestCluster& cluster, const std::string& uid, UnreserveRequest* request) {
  AddPlace(cluster, uid, request);
}

void AddInline(const TestCluster& cluster, const std::string& uid, PermitRequest* request) {
  AddPlace(cluster, uid, request);
}

void AddInline(const TestCluster& cluster, const std::string& uid, BindRequest* request) {
  AddPlace(cluster, uid, request);
}

void AddInline(const TestCluster& cluster, const std::string& uid, PostBindRequest* request) {
  AddPlace(cluster, uid, request);
}

void AddInline(const TestCluster& cluster, PreEnqueueRequest* request) {
  AddPods(cluster, request);
}

void AddInline(const TestCluster& cluster, SortKeysRequest* request) { AddPods(cluster, request); }

}  // namespace outboard::conformance
