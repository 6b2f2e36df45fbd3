// Fills a wire message from a document, by reflection: field names are Kubernetes' JSON names.
//
// Special cases: Quantity (a string or number, validated), Time and MicroTime (RFC 3339),
// IntOrString, maps, base64 for bytes, and Volume and PersistentVolumeSpec, where the source's
// fields are siblings of the others. Names that the message reserves are Kubernetes fields that are
// not read here: they are skipped silently. All other names are reported as unknown.
//
// Threading: thread-compatible.
// Lifetime: for one Fill.
// Errors: the first Fault.
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
  using OnUnknown = std::function<void(const FieldPath&, const DocNode&)>;

  // `on_unknown` may be null: unknown fields are then ignored.
  explicit ObjectFiller(OnUnknown on_unknown) : on_unknown_(std::move(on_unknown)) {}

  // `out` must be empty. Skips apiVersion and kind at the top level.
  std::optional<Fault> Fill(const DocNode& doc, google::protobuf::Message* out);

 private:
  using Result = std::optional<Fault>;

  Result Fail(absl::string_view message) const;
  Result FailKind(absl::string_view wanted, const DocNode& got) const;
  Result FillMessage(const DocNode& node, google::protobuf::Message* out);
  Result FillMember(const std::string& name, const DocNode& node, google::protobuf::Message* out);
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
  FieldPath path_;
};

}  // namespace outboard::kube

#endif  // OUTBOARD_SHIM_KUBE_WIRE_OBJECT_FILLER_H_
