// A message as a map key.
#ifndef OUTBOARD_PLUGIN_HOST_SDK_CANONICAL_BYTES_H_
#define OUTBOARD_PLUGIN_HOST_SDK_CANONICAL_BYTES_H_

#include <string>

#include "google/protobuf/message_lite.h"

namespace outboard::sdk {

// Equal for equal messages of one type, regardless of the order of maps; valid within a process.
// Pure.
std::string CanonicalBytes(const google::protobuf::MessageLite& message);

}  // namespace outboard::sdk

#endif  // OUTBOARD_PLUGIN_HOST_SDK_CANONICAL_BYTES_H_
