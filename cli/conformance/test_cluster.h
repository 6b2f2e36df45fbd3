// Generated clusters for cases: always the same, with objects for every kind of plugin.
#ifndef OUTBOARD_CLI_CONFORMANCE_TEST_CLUSTER_H_
#define OUTBOARD_CLI_CONFORMANCE_TEST_CLUSTER_H_

#include <cstdint>
#include <string>
#include <vector>

#include "outboard/v1beta1/cluster_state.pb.h"
#include "outboard/v1beta1/types.pb.h"

namespace outboard::conformance {

// The profile of all cases, and the schedulerName of pending pods.
inline constexpr char kProfile[] = "conformance";

// A cluster as a shim sends it; node i is in slot i.
struct TestCluster {
  std::vector<v1beta1::Node> nodes;
  std::vector<v1beta1::Pod> running;
  std::vector<v1beta1::Pod> pending;
};

v1beta1::Node MakeNode(int number);
v1beta1::Pod MakePod(const std::string& name);
// A pod on a node.
v1beta1::Pod MakeRunningPod(const std::string& name, const v1beta1::Node& node);

// `nodes` nodes in three zones, some tainted or cordoned, with pods on most of them; and pending
// pods with different requests: `plain`, `selective`, `tolerant`, `spread`, `apart`, `port`,
// `urgent`, `huge`.
TestCluster MakeCluster(int nodes = 23);

// A snapshot in chunks, as in cluster_state.proto.
std::vector<v1beta1::SyncRequest> MakeSnapshot(const TestCluster& cluster, int64_t version);

v1beta1::Change UpsertNode(uint32_t slot, const v1beta1::Node& node);
v1beta1::Change RemoveNode(uint32_t slot);
v1beta1::Change UpsertPod(const v1beta1::Pod& pod);
v1beta1::Change RemovePod(const std::string& uid);
v1beta1::Change PlacePod(const std::string& uid, v1beta1::PlacementState state, uint32_t slot);
v1beta1::NodeOrder OrderOf(const std::vector<uint32_t>& slots);
// 0, 1, … count − 1.
std::vector<uint32_t> FirstSlots(int count);

}  // namespace outboard::conformance

#endif  // OUTBOARD_CLI_CONFORMANCE_TEST_CLUSTER_H_
