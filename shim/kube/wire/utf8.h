// Contract strings are UTF-8, which a host's parser enforces. The API server accepts other bytes in
// some free texts of objects that were written in protobuf; one such text must not make a whole
// stream unreadable.
//
// Threading: pure functions.
#ifndef OUTBOARD_SHIM_KUBE_WIRE_UTF8_H_
#define OUTBOARD_SHIM_KUBE_WIRE_UTF8_H_

#include <string>

#include "absl/strings/string_view.h"

namespace outboard::kube {

// The length of the longest valid UTF-8 prefix of `text`.
size_t Utf8Prefix(absl::string_view text);

// Returns `text` if it is valid UTF-8; otherwise replaces each invalid byte by U+FFFD.
std::string ToUtf8(absl::string_view text);

}  // namespace outboard::kube

#endif  // OUTBOARD_SHIM_KUBE_WIRE_UTF8_H_
