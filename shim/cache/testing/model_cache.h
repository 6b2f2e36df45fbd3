// What a plugin host makes of the changes that it receives, as strictly as the contract allows; for
// tests of the change log.
#ifndef OUTBOARD_SHIM_CACHE_TESTING_MODEL_CACHE_H_
#define OUTBOARD_SHIM_CACHE_TESTING_MODEL_CACHE_H_

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "outboard/v1beta1/cluster_state.pb.h"
#include "shim/kube/objects.h"

namespace outboard::cache::testing {

// Applies changes and reports every change that a host may reject. Does as little as possible by
// itself: it does not put pods back on a node that returns.
class ModelCache {
 public:
  enum class Place { kNone, kBound, kAssumed, kWaiting, kNominated };
  struct Pod {
    v1beta1::Pod object;
    Place place = Place::kNone;
    int64_t slot = -1;
    uint64_t attempt = 0;
    std::map<std::string, int64_t> waits;

    bool counts() const {
      return slot >= 0 &&
             (place == Place::kBound || place == Place::kAssumed || place == Place::kWaiting);
    }
  };

  std::map<uint32_t, v1beta1::Node> nodes;
  std::vector<uint32_t> order;
  std::map<std::string, Pod> pods;
  std::map<std::string, v1beta1::Namespace> namespaces;
  // By "Kind/namespace/name".
  std::map<std::string, v1beta1::ClusterObject> objects;
  std::set<uint64_t> ended_attempts;
  int64_t version = 0;
  bool complete = false;
  // The first fault; empty: none.
  std::string fault;
  int snapshots = 0;

  void Apply(const v1beta1::SyncRequest& request) {
    using v1beta1::SyncRequest;
    if (request.version() < 1) Complain("no version");
    if (request.ByteSizeLong() > (2u << 20)) Complain("a message of more than 2 MiB");
    switch (request.phase()) {
      case SyncRequest::PHASE_SNAPSHOT_BEGIN:
        nodes.clear();
        order.clear();
        pods.clear();
        namespaces.clear();
        objects.clear();
        complete = false;
        in_snapshot_ = true;
        ++snapshots;
        snapshot_version_ = request.version();
        break;
      case SyncRequest::PHASE_SNAPSHOT_MORE:
      case SyncRequest::PHASE_SNAPSHOT_END:
        if (!in_snapshot_) Complain("a chunk without a snapshot");
        if (request.version() != snapshot_version_) Complain("a snapshot of two versions");
        break;
      default:
        if (!complete) Complain("a delta before a snapshot");
        if (request.version() < version) Complain("the version falls");
        break;
    }
    for (const v1beta1::Change& change : request.changes()) ApplyChange(change);
    if (request.has_node_order()) ApplyOrder(request.node_order());
    ended_attempts.insert(request.ended_attempts().begin(), request.ended_attempts().end());
    if (request.phase() == SyncRequest::PHASE_SNAPSHOT_END) {
      in_snapshot_ = false;
      complete = true;
    }
    version = request.version();
  }

  static std::string KeyOf(const v1beta1::ClusterObject& object) {
    return kube::KeyOf(kube::ReferenceTo(object));
  }

 private:
  void Complain(const std::string& what) {
    if (fault.empty()) fault = what;
  }

  void ApplyChange(const v1beta1::Change& change) {
    switch (change.change_case()) {
      case v1beta1::Change::kNodeUpsert: {
        const auto& upsert = change.node_upsert();
        for (const auto& [slot, node] : nodes) {
          if (node.name() == upsert.node().name() && slot != upsert.slot())
            Complain("a node in two slots");
        }
        const auto it = nodes.find(upsert.slot());
        if (it != nodes.end() && it->second.uid() != upsert.node().uid())
          Complain("an occupied slot");
        nodes[upsert.slot()] = upsert.node();
        break;
      }
      case v1beta1::Change::kNodeRemove:
        if (nodes.erase(change.node_remove().slot()) == 0) Complain("removal from a free slot");
        for (auto& [uid, pod] : pods) {
          if (pod.slot == change.node_remove().slot()) pod.slot = -1;
        }
        break;
      case v1beta1::Change::kPodUpsert:
        ApplyPod(change.pod_upsert().pod());
        break;
      case v1beta1::Change::kPodRemove:
        if (pods.erase(change.pod_remove().uid()) == 0) Complain("removal of an unknown pod");
        break;
      case v1beta1::Change::kPodPlacement:
        ApplyPlacement(change.pod_placement());
        break;
      case v1beta1::Change::kNamespaceUpsert: {
        const auto& ns = change.namespace_upsert().namespace_();
        namespaces[ns.name()] = ns;
        break;
      }
      case v1beta1::Change::kNamespaceRemove:
        if (namespaces.erase(change.namespace_remove().name()) == 0)
          Complain("removal of an unknown namespace");
        break;
      case v1beta1::Change::kObjectUpsert:
        if (!pods.empty() && in_snapshot_) Complain("an object after pods");
        objects[KeyOf(change.object_upsert())] = change.object_upsert();
        break;
      case v1beta1::Change::kObjectRemove: {
        const v1beta1::ObjectReference& reference = change.object_remove();
        if (reference.kind().empty() || reference.name().empty())
          Complain("an incomplete name of a removed object");
        if (objects.erase(kube::KeyOf(reference)) == 0) Complain("removal of an unknown object");
        break;
      }
      default:
        Complain("an empty change");
    }
  }

  void ApplyPod(const v1beta1::Pod& object) {
    Pod& pod = pods[object.uid()];
    pod.object = object;
    if (object.node_name().empty()) {
      if (pod.place == Place::kBound)
        pod = Pod{.object = object, .place = Place::kNone, .slot = -1, .attempt = 0, .waits = {}};
      return;
    }
    // A placement that the shim assumed is kept until another placement arrives.
    if (pod.place == Place::kAssumed || pod.place == Place::kWaiting) return;
    pod.place = Place::kBound;
    pod.slot = -1;
    for (const auto& [slot, node] : nodes) {
      if (node.name() == object.node_name()) pod.slot = slot;
    }
  }

  void ApplyPlacement(const v1beta1::PodPlacement& placement) {
    const auto it = pods.find(placement.uid());
    if (it == pods.end()) return Complain("a placement for an unknown pod");
    Pod& pod = it->second;
    pod.waits.clear();
    pod.attempt = placement.attempt_id();
    switch (placement.state()) {
      case v1beta1::PLACEMENT_STATE_UNPLACED:
        pod.place = Place::kNone;
        pod.slot = -1;
        return;
      case v1beta1::PLACEMENT_STATE_ASSUMED:
        pod.place = Place::kAssumed;
        break;
      case v1beta1::PLACEMENT_STATE_WAITING:
        pod.place = Place::kWaiting;
        break;
      case v1beta1::PLACEMENT_STATE_BOUND:
        pod.place = Place::kBound;
        if (const auto node = nodes.find(placement.slot()); node != nodes.end())
          pod.object.set_node_name(node->second.name());
        break;
      default:
        pod.place = Place::kNominated;
        break;
    }
    if (nodes.count(placement.slot()) == 0) Complain("a placement in a free slot");
    pod.slot = placement.slot();
    for (const auto& wait : placement.waits()) pod.waits[wait.plugin()] = wait.remaining_micros();
  }

  void ApplyOrder(const v1beta1::NodeOrder& sent) {
    order.assign(sent.slots().begin(), sent.slots().end());
    std::set<uint32_t> slots(order.begin(), order.end());
    if (slots.size() != order.size()) Complain("a slot twice in the order");
    std::set<uint32_t> occupied;
    for (const auto& [slot, node] : nodes) occupied.insert(slot);
    if (slots != occupied) Complain("an order that differs from the occupied slots");
  }

  bool in_snapshot_ = false;
  int64_t snapshot_version_ = 0;
};

}  // namespace outboard::cache::testing

#endif  // OUTBOARD_SHIM_CACHE_TESTING_MODEL_CACHE_H_
