#include "shim/kube/testing/fake_api_encoding.h"

#include <glog/logging.h>

#include "shim/kube/wire/decode.h"
#include "shim/kube/wire/json_decode.h"

namespace outboard::kube::testing {
namespace {

using nlohmann::json;

template <typename Message>
std::string Seal(const json& object) {
  auto document = ParseJson("fake", object.dump());
  CHECK(document.ok()) << document.status();
  Message message;
  absl::Status filled = FillFromJson(*document, &message);
  CHECK(filled.ok()) << filled << object.dump();
  return SealEnvelope(object.value("apiVersion", "v1"), object.value("kind", ""), message);
}

}  // namespace

std::string ToProtobuf(const json& object) {
  const std::string kind = object.value("kind", "");
  if (kind == "Pod") return Seal<wire::Pod>(object);
  if (kind == "Node") return Seal<wire::Node>(object);
  if (kind == "Namespace") return Seal<wire::Namespace>(object);
  if (kind == "PodList") return Seal<wire::PodList>(object);
  if (kind == "NodeList") return Seal<wire::NodeList>(object);
  if (kind == "NamespaceList") return Seal<wire::NamespaceList>(object);
  if (kind == "Status") return Seal<wire::Status>(object);
  return "";
}

std::string ProtobufFrame(const std::string& type, const json& object) {
  wire::WatchEvent event;
  event.set_type(type);
  event.mutable_object()->set_raw(ToProtobuf(object));
  const std::string bytes = event.SerializeAsString();
  std::string frame;
  for (int shift = 24; shift >= 0; shift -= 8) {
    frame.push_back(static_cast<char>((bytes.size() >> shift) & 0xff));
  }
  return frame + bytes;
}

std::string JsonFrame(const std::string& type, const json& object) {
  return json({{"type", type}, {"object", object}}).dump() + "\n";
}

}  // namespace outboard::kube::testing
