// Fills a wire message from a document, by reflection: field names are Kubernetes' JSON names.
//
// Special are Quantity (a string or number, checked), Time and MicroTime (RFC 3339), IntOrString,
// maps, base64 for bytes, and Volume and PersistentVolumeSpec, where the source's fields stand
// beside the others. A name that the message reserves is a field of Kubernetes' that nobody here
// reads: it is passed over in silence. Any other name is unknown and reported.
//
// Threading: thread-compatible. Lifetime: for one Fill. Errors: the first Fault.
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

  // `out` should be empty. At the top, apiVersion and kind are passed over.
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
  // Sets `field`, or adds to it if it is repeated.
  Result FillValue(const google::protobuf::FieldDescriptor* field, const DocNode& node,
                   google::protobuf::Message* out);
  Result FillSpecial(const DocNode& node, google::protobuf::Message* out, bool* special);
  Result ReadInteger(const DocNode& node, int64_t min, int64_t max, int64_t* out) const;

  OnUnknown on_unknown_;
  FieldPath path_;
};

}  // namespace outboard::kube

#endif  // OUTBOARD_SHIM_KUBE_WIRE_OBJECT_FILLER_H_
