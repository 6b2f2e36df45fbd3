// The fake server's answers as protobuf.
#ifndef OUTBOARD_SHIM_KUBE_TESTING_FAKE_API_ENCODING_H_
#define OUTBOARD_SHIM_KUBE_TESTING_FAKE_API_ENCODING_H_

#include <string>

#include "nlohmann/json.hpp"

namespace outboard::kube::testing {

// An object, list or Status of JSON in its protobuf envelope; empty where the kind is not known.
std::string ToProtobuf(const nlohmann::json& object);
// Whether objects of this resource ("pods") are known as protobuf.
bool HasProtobuf(const std::string& resource);
// One frame of a watch, with its length or its newline.
std::string ProtobufFrame(const std::string& type, const nlohmann::json& object);
std::string JsonFrame(const std::string& type, const nlohmann::json& object);

}  // namespace outboard::kube::testing

#endif  // OUTBOARD_SHIM_KUBE_TESTING_FAKE_API_ENCODING_H_
