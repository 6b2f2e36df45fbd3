// Generated clusters for cases: always the same, with objects for every kind of plugin.
#ifndef OUTBOARD_CLI_CONFORMANCE_TEST_CLUSTER_H_
#define OUTBOARD_CLI_CONFORMANCE_TEST_CLUSTER_H_

#include <cstdint>
#include <string>
#include <vector>

#include "proto/outboard/v1alpha1/cluster_state.pb.h"
#include "proto/outboard/v1alpha1/types.pb.h"

namespace outboard::conformance {

// The profile of all cases, and the schedulerName of pending pods.
inline constexpr char kProfile[] = "conformance";

// A cluster as a shim sends it; node i is in slot i.
struct TestCluster {
  std::vector<v1alpha1::Node> nodes;
  std::vector<v1alpha1::Pod> running;
  std::vector<v1alpha1::Pod> pending;
};

v1alpha1::Node MakeNode(int number);
v1alpha1::Pod MakePod(const std::string& name);
// A pod on a node.
v1alpha1::Pod MakeRunningPod(const std::string& name, const v1alpha1::Node& node);

// `nodes` nodes in three zones, some tainted or cordoned, with pods on most of them; and pending
// pods with different requests: `plain`, `selective`, `tolerant`, `spread`, `apart`, `port`,
// `urgent`, `huge`.
TestCluster MakeCluster(int nodes = 23);

// A snapshot in chunks, as in cluster_state.proto.
std::vector<v1alpha1::SyncRequest> MakeSnapshot(const TestCluster& cluster, int64_t version);

v1alpha1::Change UpsertNode(uint32_t slot, const v1alpha1::Node& node);
v1alpha1::Change RemoveNode(uint32_t slot);
v1alpha1::Change UpsertPod(const v1alpha1::Pod& pod);
v1alpha1::Change RemovePod(const std::string& uid);
v1alpha1::Change PlacePod(const std::string& uid, v1alpha1::PlacementState state, uint32_t slot);
v1alpha1::NodeOrder OrderOf(const std::vector<uint32_t>& slots);
// 0, 1, … count − 1.
std::vector<uint32_t> FirstSlots(int count);

}  // namespace outboard::conformance

#endif  // OUTBOARD_CLI_CONFORMANCE_TEST_CLUSTER_H_
