// Contract strings are UTF-8, checked when a host parses them. The API server lets through other
// bytes in some free texts of objects that were written in protobuf; one of those must not make a
// whole stream unreadable.
//
// Threading: pure functions.
#ifndef OUTBOARD_SHIM_KUBE_WIRE_UTF8_H_
#define OUTBOARD_SHIM_KUBE_WIRE_UTF8_H_

#include <string>

#include "absl/strings/string_view.h"

namespace outboard::kube {

// The length of the longest prefix of `text` that is well-formed UTF-8.
size_t Utf8Prefix(absl::string_view text);

// `text` itself where it is UTF-8, else with U+FFFD for each byte that does not fit.
std::string ToUtf8(absl::string_view text);

}  // namespace outboard::kube

#endif  // OUTBOARD_SHIM_KUBE_WIRE_UTF8_H_
