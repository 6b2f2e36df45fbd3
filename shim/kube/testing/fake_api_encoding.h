// The fake server's protobuf answers.
#ifndef OUTBOARD_SHIM_KUBE_TESTING_FAKE_API_ENCODING_H_
#define OUTBOARD_SHIM_KUBE_TESTING_FAKE_API_ENCODING_H_

#include <string>

#include "absl/strings/string_view.h"
#include "nlohmann/json.hpp"

namespace outboard::kube::testing {

// A quantity that no decoder accepts, for objects in a format that the shim does not know.
inline constexpr char kNotAQuantityText[] = "not-number";
// With its length, because GCC's sanitizers find the address of the text no constant expression.
inline constexpr absl::string_view kNotAQuantity(kNotAQuantityText, sizeof(kNotAQuantityText) - 1);

// A JSON object, list or Status in its protobuf envelope; empty if the kind is unknown.
std::string ToProtobuf(const nlohmann::json& object);
// Whether objects of this resource ("pods") have a protobuf encoding.
bool HasProtobuf(const std::string& resource);
// One frame of a watch, with its length prefix or newline.
std::string ProtobufFrame(const std::string& type, const nlohmann::json& object);
std::string JsonFrame(const std::string& type, const nlohmann::json& object);

}  // namespace outboard::kube::testing

#endif  // OUTBOARD_SHIM_KUBE_TESTING_FAKE_API_ENCODING_H_
