// The pods and nodes that a host without a cache gets with each call.
#ifndef OUTBOARD_CLI_CONFORMANCE_INLINE_NODES_H_
#define OUTBOARD_CLI_CONFORMANCE_INLINE_NODES_H_

#include <cstdint>
#include <string>

#include "cli/conformance/test_cluster.h"
#include "outboard/v1beta1/bind.pb.h"
#include "outboard/v1beta1/filter.pb.h"
#include "outboard/v1beta1/inline_node.pb.h"
#include "outboard/v1beta1/permit.pb.h"
#include "outboard/v1beta1/post_bind.pb.h"
#include "outboard/v1beta1/pre_enqueue.pb.h"
#include "outboard/v1beta1/queue_sort.pb.h"
#include "outboard/v1beta1/reserve.pb.h"
#include "outboard/v1beta1/score.pb.h"

namespace outboard::conformance {

// Null for an unknown pod.
const v1beta1::Pod* FindPod(const TestCluster& cluster, const std::string& uid);

// Add the complete pods and nodes that a request names. Unknown names add nothing. `uid`: the pod
// of the request's attempt. Pure.
void AddInline(const TestCluster& cluster, const std::string& uid,
               v1beta1::PreFilterRequest* request);
void AddInline(const TestCluster& cluster, const std::string& uid, v1beta1::FilterRequest* request);
void AddInline(const TestCluster& cluster, const std::string& uid,
               v1beta1::PreScoreRequest* request);
void AddInline(const TestCluster& cluster, const std::string& uid, v1beta1::ScoreRequest* request);
void AddInline(const TestCluster& cluster, const std::string& uid,
               v1beta1::ReserveRequest* request);
void AddInline(const TestCluster& cluster, const std::string& uid,
               v1beta1::UnreserveRequest* request);
void AddInline(const TestCluster& cluster, const std::string& uid, v1beta1::PermitRequest* request);
void AddInline(const TestCluster& cluster, const std::string& uid, v1beta1::BindRequest* request);
void AddInline(const TestCluster& cluster, const std::string& uid,
               v1beta1::PostBindRequest* request);
void AddInline(const TestCluster& cluster, v1beta1::PreEnqueueRequest* request);
void AddInline(const TestCluster& cluster, v1beta1::SortKeysRequest* request);

}  // namespace outboard::conformance

#endif  // OUTBOARD_CLI_CONFORMANCE_INLINE_NODES_H_
