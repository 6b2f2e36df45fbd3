// Whether two versions of an object are the same for a plugin host.
#ifndef OUTBOARD_SHIM_CYCLE_CONTRACT_CONTENT_H_
#define OUTBOARD_SHIM_CYCLE_CONTRACT_CONTENT_H_

#include <string>

#include "absl/functional/function_ref.h"
#include "absl/strings/string_view.h"
#include "google/protobuf/message_lite.h"
#include "proto/outboard/v1alpha1/types.pb.h"

namespace outboard::cycle {

// Whether somebody asked for an annotation; others do not count.
using AnnotationFilter = absl::FunctionRef<bool(absl::string_view key)>;

// Equal for equal messages of one type, maps in whatever order; within a process.
std::string CanonicalBytes(const google::protobuf::MessageLite& message);

bool SameMessage(const google::protobuf::MessageLite& a, const google::protobuf::MessageLite& b);

bool SameContent(const v1alpha1::Pod& a, const v1alpha1::Pod& b, AnnotationFilter wanted);
bool SameContent(const v1alpha1::Node& a, const v1alpha1::Node& b, AnnotationFilter wanted);

// The same but for where it runs, or is to run: a bind changes no more than that.
bool SameButForNode(const v1alpha1::Pod& a, const v1alpha1::Pod& b, AnnotationFilter wanted);

// The same but for its status: nothing that a user or a controller wrote changed.
bool SameSpec(const v1alpha1::Pod& a, const v1alpha1::Pod& b);

}  // namespace outboard::cycle

#endif  // OUTBOARD_SHIM_CYCLE_CONTRACT_CONTENT_H_
