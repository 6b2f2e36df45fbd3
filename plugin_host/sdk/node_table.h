// The state of the cluster in columns, kept by the cache and read by plugins.
#ifndef OUTBOARD_PLUGIN_HOST_SDK_NODE_TABLE_H_
#define OUTBOARD_PLUGIN_HOST_SDK_NODE_TABLE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "outboard/v1beta1/cluster_state.pb.h"
#include "outboard/v1beta1/effect.pb.h"
#include "outboard/v1beta1/types.pb.h"
#include "plugin_host/sdk/node_changes.h"
#include "plugin_host/sdk/resources.h"
#include "plugin_host/sdk/string_table.h"

namespace outboard::sdk {

// A node's place in every column. Stable while the node lives.
using Slot = uint32_t;
inline constexpr Slot kNoSlot = 0xffffffff;

// A pod's place as the shim has it.
enum class Place { kNone, kBound, kAssumed, kWaiting, kNominated };

// One plugin's wait for a pod that waits at Permit.
struct PodWait {
  std::string plugin;
  absl::Time deadline;
};

// A host port in use on a node.
struct HostPort {
  std::string ip;  // "0.0.0.0" if the pod names none.
  v1beta1::Protocol protocol = v1beta1::PROTOCOL_TCP;
  int32_t port = 0;
  friend bool operator==(const HostPort&, const HostPort&) = default;
};

// A pod of the cache. Addresses are stable while the pod is known.
struct PodRecord {
  v1beta1::Pod pod;
  PodUsage usage;
  // Extended resources of `usage`, by column of NodeTable::extended; same order as
  // usage.requests.extended.
  std::vector<std::pair<uint32_t, int64_t>> extended;
  std::vector<HostPort> host_ports;
  Place place = Place::kNone;
  // Of `place`; kNoSlot with kNone, and for a pod on a node that the cache does not have.
  Slot slot = kNoSlot;
  uint64_t waiting_attempt = 0;
  std::vector<PodWait> waits;
  // Effects that Reserve wants before the bind; for an assumed or waiting pod.
  std::vector<v1beta1::Effect> effects;
  // What this host's plugins keep for it (ReserveAnswer::state); for an assumed or waiting pod.
  std::vector<v1beta1::PluginState> states;
  // Changes with every upsert of the pod, so that plugins can cache derived data.
  uint64_t generation = 0;

  // What the plugin keeps for the pod; empty: nothing. Valid until the pod's next change.
  absl::string_view StateOf(absl::string_view plugin) const {
    for (const v1beta1::PluginState& its : states) {
      if (its.plugin() == plugin) return its.state();
    }
    return {};
  }
  bool on_node() const {
    return slot != kNoSlot && place != Place::kNone && place != Place::kNominated;
  }
};

// An image on at least one node.
struct ImageState {
  int64_t size_bytes = 0;
  int32_t node_count = 0;
};

// An extended resource over all slots.
struct ExtendedColumn {
  std::string name;
  std::vector<int64_t> allocatable;
  std::vector<int64_t> requested;
};

// All nodes, one entry per slot in every column; entries of free slots are zero. Plugins get it
// read-only from ClusterView.
//
// Threading: thread-compatible; one thread owns it.
// Lifetime:  references into it hold until the next change of the cache, so within one call of a
//            plugin.
// Errors:    none.
struct NodeTable {
  // Columns read in loops over nodes.
  std::vector<int64_t> allocatable_cpu, allocatable_memory, allocatable_ephemeral, allocatable_pods;
  std::vector<int64_t> requested_cpu, requested_memory, requested_ephemeral;
  std::vector<int64_t> nonzero_cpu, nonzero_memory;
  std::vector<int64_t> pod_count;
  std::vector<uint8_t> occupied;
  std::vector<uint8_t> unschedulable;
  std::vector<uint32_t> taint_set;        // Index into taint_sets; 0 is the empty set.
  std::vector<uint32_t> nominated_count;  // Pods nominated to the node.
  std::vector<ExtendedColumn> extended;

  // Per slot, read less often.
  std::vector<v1beta1::Node> nodes;
  // (key id, value id), sorted by key id.
  std::vector<std::vector<std::pair<uint32_t, uint32_t>>> labels;
  std::vector<std::vector<PodRecord*>> pods;  // Bound, assumed and waiting.
  std::vector<std::vector<PodRecord*>> nominated;
  std::vector<std::vector<HostPort>> host_ports;
  std::vector<std::vector<uint32_t>> images;  // Ids in image_names, sorted.
  std::vector<uint64_t> generation;           // Changes with every change of the slot.
  NodeChanges changes;                        // One entry for each change of a generation.

  // Dictionaries.
  StringTable label_keys;
  StringTable label_values;
  StringTable image_names;
  std::vector<ImageState> image_states;  // By image id.
  std::vector<std::vector<v1beta1::Taint>> taint_sets;
  absl::flat_hash_map<std::string, uint32_t> extended_by_name;
  absl::flat_hash_map<std::string, Slot> slot_by_name;

  // Slots in node order.
  std::vector<Slot> order;
  uint64_t order_generation = 0;  // Changes with the order; 0: no nodes.
  // Changes with every change.
  uint64_t version = 0;
};

}  // namespace outboard::sdk

#endif  // OUTBOARD_PLUGIN_HOST_SDK_NODE_TABLE_H_
