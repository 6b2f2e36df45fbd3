// The nodes of a call in columns, for hosts with NODE_COLUMNS.
#ifndef OUTBOARD_CLI_CONFORMANCE_NODE_COLUMNS_H_
#define OUTBOARD_CLI_CONFORMANCE_NODE_COLUMNS_H_

#include <set>
#include <string>

#include "outboard/v1beta1/inline_node.pb.h"
#include "outboard/v1beta1/node_columns.pb.h"
#include "outboard/v1beta1/plugin_host.pb.h"

namespace outboard::conformance {

// What the plugins of a host name: such columns are in every call.
struct NamedColumns {
  std::set<std::string> labels;
  std::set<std::string> annotations;
  std::set<std::string> allocatable;
  std::set<std::string> requested;
};
NamedColumns NamedBy(const v1beta1::GetHostInfoResponse& info);

// The same nodes in columns, with all parts that have a form there. Pure.
v1beta1::NodeColumns ColumnsOf(const google::protobuf::RepeatedPtrField<v1beta1::InlineNode>& nodes,
                               const NamedColumns& named);

template <typename Request>
void ReplaceByColumns(const NamedColumns& named, Request* request) {
  *request->mutable_node_columns() = ColumnsOf(request->inline_nodes(), named);
  request->clear_inline_nodes();
}

// Removes the last entry of each column, or adds the first one again. There is at least one node.
void RemoveLastNode(v1beta1::NodeColumns* columns);
void RepeatFirstNode(v1beta1::NodeColumns* columns);

}  // namespace outboard::conformance

#endif  // OUTBOARD_CLI_CONFORMANCE_NODE_COLUMNS_H_
