// Fills a wire message from a document, by reflection: field names are Kubernetes' JSON names.
//
// Special cases: Quantity (a string or number, validated), Time and MicroTime (RFC 3339),
// IntOrString, maps, base64 for bytes, and Volume and PersistentVolumeSpec, where the source's
// fields are siblings of the others. Names that the message reserves are Kubernetes fields that are
// not read here: they are skipped silently, with everything below them. All other names are
// reported as unknown.
//
// Threading: thread-compatible.
// Lifetime: for one Fill.
// Errors: the first Fault, or all of them through `on_fault`.
#ifndef OUTBOARD_SHIM_KUBE_WIRE_OBJECT_FILLER_H_
#define OUTBOARD_SHIM_KUBE_WIRE_OBJECT_FILLER_H_

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "google/protobuf/message.h"
#include "shim/kube/wire/document.h"

namespace outboard::kube {

class ObjectFiller {
 public:
  // `path` ends with the member's name.
  using OnUnknown = std::function<void(const FieldPath& path, const DocMember& member)>;
  using OnFault = std::function<void(Fault fault)>;

  // `on_unknown` may be null: unknown fields are then ignored. With `on_fault`, Fill goes on behind
  // a faulty field, which stays empty, and returns no Fault.
  explicit ObjectFiller(OnUnknown on_unknown, OnFault on_fault = nullptr)
      : on_unknown_(std::move(on_unknown)), on_fault_(std::move(on_fault)) {}

  // `out` must be empty. Skips apiVersion and kind at the top level.
  std::optional<Fault> Fill(const DocNode& doc, google::protobuf::Message* out);

 private:
  using Result = std::optional<Fault>;

  Result Fail(absl::string_view message) const;
  // Whether to go on: reports the fault if there is a listener.
  bool Reported(const Result& fault) const;
  Result FailKind(absl::string_view wanted, const DocNode& got) const;
  Result FillMessage(const DocNode& node, google::protobuf::Message* out);
  Result FillMember(const DocMember& member, google::protobuf::Message* out);
  Result FillField(const google::protobuf::FieldDescriptor* field, const DocNode& node,
                   google::protobuf::Message* out);
  Result FillMap(const google::protobuf::FieldDescriptor* field, const DocNode& node,
                 google::protobuf::Message* out);
  Result FillList(const google::protobuf::FieldDescriptor* field, const DocNode& node,
                  google::protobuf::Message* out);
  // Sets `field`, or appends to it if it is repeated.
  Result FillValue(const google::protobuf::FieldDescriptor* field, const DocNode& node,
                   google::protobuf::Message* out);
  Result FillSpecial(const DocNode& node, google::protobuf::Message* out, bool* special);
  Result ReadInteger(const DocNode& node, int64_t min, int64_t max, int64_t* out) const;

  OnUnknown on_unknown_;
  OnFault on_fault_;
  FieldPath path_;
};

// All fields that Kubernetes has in `type`, read here or not.
std::vector<std::string> FieldNames(const google::protobuf::Descriptor* type);
// The fields of `type` that contain messages with fields of their own.
struct MessageField {
  std::string name;
  const google::protobuf::Descriptor* type;
  bool is_list;
};
std::vector<MessageField> MessageFields(const google::protobuf::Descriptor* type);

}  // namespace outboard::kube

#endif  // OUTBOARD_SHIM_KUBE_WIRE_OBJECT_FILLER_H_
