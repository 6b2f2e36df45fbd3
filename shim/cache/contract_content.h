// Whether two versions of an object are equal for a plugin host.
#ifndef OUTBOARD_SHIM_CACHE_CONTRACT_CONTENT_H_
#define OUTBOARD_SHIM_CACHE_CONTRACT_CONTENT_H_

#include <string>

#include "absl/functional/function_ref.h"
#include "absl/strings/string_view.h"
#include "google/protobuf/message_lite.h"
#include "outboard/v1beta1/types.pb.h"

namespace outboard::cache {

// Whether any host requested the annotation; other annotations are ignored.
using AnnotationFilter = absl::FunctionRef<bool(absl::string_view key)>;

// Equal for equal messages of one type, whatever the order of their maps; valid within one process.
std::string CanonicalBytes(const google::protobuf::MessageLite& message);

bool SameMessage(const google::protobuf::MessageLite& a, const google::protobuf::MessageLite& b);

bool SameContent(const v1beta1::Pod& a, const v1beta1::Pod& b, AnnotationFilter wanted);
bool SameContent(const v1beta1::Node& a, const v1beta1::Node& b, AnnotationFilter wanted);

// Equal except for the node that the pod runs on or is bound to, which is all that a bind changes.
bool SameButForNode(const v1beta1::Pod& a, const v1beta1::Pod& b, AnnotationFilter wanted);

// Equal except for the status: no user or controller changed the pod.
bool SameSpec(const v1beta1::Pod& a, const v1beta1::Pod& b);

}  // namespace outboard::cache

#endif  // OUTBOARD_SHIM_CACHE_CONTRACT_CONTENT_H_
