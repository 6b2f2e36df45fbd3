// A node and the objects that describe it, from the API server.
#ifndef OUTBOARD_CLI_INSPECT_CLUSTER_NODE_H_
#define OUTBOARD_CLI_INSPECT_CLUSTER_NODE_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "shim/kube/api_client.h"
#include "shim/kube/client_config.h"

namespace outboard::inspect {

struct ClusterFlags {
  std::string kubeconfig;  // empty: as kubectl: the first file in KUBECONFIG, else ~/.kube/config
  std::string context;     // empty: the file's current-context
};

// Errors: INVALID_ARGUMENT, with the file.
absl::StatusOr<kube::ClientConfig> FindCluster(const ClusterFlags& flags);

struct ClusterNode {
  // A List in JSON: the Node, and where they are served its ResourceSlices and its
  // NodeResourceTopology.
  std::string manifest;
  std::vector<std::string> warnings;  // what could not be read, and why
};

// Errors: INVALID_ARGUMENT for a name that no node can have; NOT_FOUND without the node; those of
// the API server and of the connection. An object other than the node that cannot be read is a
// warning.
absl::StatusOr<ClusterNode> ReadClusterNode(kube::ApiClient* client, const std::string& name);

}  // namespace outboard::inspect

#endif  // OUTBOARD_CLI_INSPECT_CLUSTER_NODE_H_
