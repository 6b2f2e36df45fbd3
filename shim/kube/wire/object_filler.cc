#include "shim/kube/wire/object_filler.h"

#include <cstdint>
#include <limits>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "google/protobuf/descriptor.h"
#include "shim/kube/wire/core_v1.pb.h"
#include "shim/kube/wire/core_v1_objects.pb.h"
#include "shim/kube/wire/intstr.pb.h"
#include "shim/kube/wire/meta_v1.pb.h"
#include "shim/kube/wire/quantity.h"
#include "shim/kube/wire/utf8.h"

namespace outboard::kube {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;
using Kind = DocNode::Kind;

// absl accepts more than RFC 3339 (surrounding spaces, "infinite-future").
bool ParseRfc3339(const std::string& text, absl::Time* out) {
  if (text.size() < 20 || text[4] != '-' || text[7] != '-' || text[10] != 'T' || text[13] != ':')
    return false;
  if (!absl::ascii_isdigit(text[0]) || absl::ascii_isspace(text.back())) return false;
  std::string error;
  return absl::ParseTime(absl::RFC3339_full, text, out, &error);
}

template <typename TimeMessage>
void SetTime(absl::Time time, TimeMessage* out) {
  const int64_t seconds = absl::ToUnixSeconds(time);
  out->set_seconds(seconds);
  out->set_nanos(
      static_cast<int32_t>(absl::ToInt64Nanoseconds(time - absl::FromUnixSeconds(seconds))));
}

// The field whose own fields are siblings of the others in JSON, like embedded structs in Go; null
// for most messages.
const FieldDescriptor* InlinedField(const Descriptor* type) {
  static const FieldDescriptor* const volume =
      wire::Volume::descriptor()->FindFieldByName("volumeSource");
  static const FieldDescriptor* const persistent_volume =
      wire::PersistentVolumeSpec::descriptor()->FindFieldByName("persistentVolumeSource");
  if (type == volume->containing_type()) return volume;
  return type == persistent_volume->containing_type() ? persistent_volume : nullptr;
}

// Whether a message is one value in JSON.
bool IsScalar(const Descriptor* type) {
  return type == wire::Quantity::descriptor() || type == wire::Time::descriptor() ||
         type == wire::MicroTime::descriptor() || type == wire::IntOrString::descriptor();
}

bool IsObjectRoot(const Descriptor* type) { return type->FindFieldByName("metadata") != nullptr; }

}  // namespace

ObjectFiller::Result ObjectFiller::Fail(absl::string_view message) const {
  return Fault{path_, std::string(message)};
}

bool ObjectFiller::Reported(const Result& fault) const {
  if (!fault) return true;
  if (!on_fault_) return false;
  on_fault_(*fault);
  return true;
}

ObjectFiller::Result ObjectFiller::FailKind(absl::string_view wanted, const DocNode& got) const {
  std::string message = absl::StrCat("must be ", wanted, ", not ", KindName(got));
  if (wanted == "a string" && (got.kind == Kind::kNumber || got.kind == Kind::kBool)) {
    absl::StrAppend(&message, "; write \"", got.text, "\" in quotes");
  }
  return Fail(message);
}

std::optional<Fault> ObjectFiller::Fill(const DocNode& doc, Message* out) {
  path_ = FieldPath();
  Result fault = FillMessage(doc, out);
  return Reported(fault) ? std::nullopt : fault;
}

ObjectFiller::Result ObjectFiller::FillMessage(const DocNode& node, Message* out) {
  if (node.is_null()) return std::nullopt;
  bool special = false;
  if (Result fault = FillSpecial(node, out, &special); special) return fault;
  if (node.kind != Kind::kMap) return FailKind("an object", node);
  for (const DocMember& member : node.members) {
    FieldPath::Step step(&path_, member.name);
    if (Result fault = FillMember(member, out); !Reported(fault)) return fault;
  }
  return std::nullopt;
}

ObjectFiller::Result ObjectFiller::FillMember(const DocMember& member, Message* out) {
  const std::string& name = member.name;
  const DocNode& node = member.value;
  const Descriptor* type = out->GetDescriptor();
  const FieldDescriptor* inlined = InlinedField(type);
  const FieldDescriptor* field = type->FindFieldByName(name);
  if (field != nullptr && field != inlined) return FillField(field, node, out);
  if (inlined != nullptr) {
    const Descriptor* source = inlined->message_type();
    if (source->FindFieldByName(name) != nullptr)
      return FillMember(member, out->GetReflection()->MutableMessage(out, inlined));
    if (source->IsReservedName(name)) return std::nullopt;
  }
  if (type->IsReservedName(name)) return std::nullopt;
  if ((name == "apiVersion" || name == "kind") && IsObjectRoot(type)) return std::nullopt;
  if (on_unknown_) on_unknown_(path_, member);
  return std::nullopt;
}

ObjectFiller::Result ObjectFiller::FillField(const FieldDescriptor* field, const DocNode& node,
                                             Message* out) {
  if (node.is_null()) return std::nullopt;
  if (field->is_map()) return FillMap(field, node, out);
  if (field->is_repeated()) return FillList(field, node, out);
  return FillValue(field, node, out);
}

// All maps of Kubernetes have string keys.
ObjectFiller::Result ObjectFiller::FillMap(const FieldDescriptor* field, const DocNode& node,
                                           Message* out) {
  if (node.kind != Kind::kMap) return FailKind("an object", node);
  const FieldDescriptor* key = field->message_type()->map_key();
  const FieldDescriptor* mapped = field->message_type()->map_value();
  for (const DocMember& member : node.members) {
    const std::string& name = member.name;
    FieldPath::Step step(&path_, name);
    if (Utf8Prefix(name) != name.size()) {
      if (Result fault = Fail("is not UTF-8"); !Reported(fault)) return fault;
      continue;
    }
    Message* entry = out->GetReflection()->AddMessage(out, field);
    entry->GetReflection()->SetString(entry, key, name);
    if (member.value.is_null()) continue;  // The zero value, as in Go.
    if (Result fault = FillValue(mapped, member.value, entry); !Reported(fault)) return fault;
  }
  return std::nullopt;
}

ObjectFiller::Result ObjectFiller::FillList(const FieldDescriptor* field, const DocNode& node,
                                            Message* out) {
  if (node.kind != Kind::kList) return FailKind("a list", node);
  for (size_t i = 0; i < node.items.size(); ++i) {
    FieldPath::Step step(&path_, static_cast<int>(i));
    if (Result fault = FillValue(field, node.items[i], out); !Reported(fault)) return fault;
  }
  return std::nullopt;
}

ObjectFiller::Result ObjectFiller::FillValue(const FieldDescriptor* field, const DocNode& node,
                                             Message* out) {
  const Reflection* reflection = out->GetReflection();
  const bool add = field->is_repeated();
  int64_t number = 0;
  std::string bytes;
  switch (field->type()) {
    case FieldDescriptor::TYPE_MESSAGE:
      return FillMessage(
          node, add ? reflection->AddMessage(out, field) : reflection->MutableMessage(out, field));
    case FieldDescriptor::TYPE_STRING:
      if (node.kind != Kind::kString) return FailKind("a string", node);
      if (Utf8Prefix(node.text) != node.text.size()) return Fail("is not UTF-8");
      add ? reflection->AddString(out, field, node.text)
          : reflection->SetString(out, field, node.text);
      return std::nullopt;
    case FieldDescriptor::TYPE_BYTES:
      if (node.kind != Kind::kString) return FailKind("a string", node);
      if (!absl::Base64Unescape(node.text, &bytes)) return Fail("must be base64");
      add ? reflection->AddString(out, field, bytes) : reflection->SetString(out, field, bytes);
      return std::nullopt;
    case FieldDescriptor::TYPE_BOOL:
      if (node.kind != Kind::kBool) return FailKind("a boolean", node);
      add ? reflection->AddBool(out, field, node.text == "true")
          : reflection->SetBool(out, field, node.text == "true");
      return std::nullopt;
    case FieldDescriptor::TYPE_INT32:
      if (Result fault = ReadInteger(node, std::numeric_limits<int32_t>::min(),
                                     std::numeric_limits<int32_t>::max(), &number)) {
        return fault;
      }
      add ? reflection->AddInt32(out, field, static_cast<int32_t>(number))
          : reflection->SetInt32(out, field, static_cast<int32_t>(number));
      return std::nullopt;
    case FieldDescriptor::TYPE_INT64:
      if (Result fault = ReadInteger(node, std::numeric_limits<int64_t>::min(),
                                     std::numeric_limits<int64_t>::max(), &number)) {
        return fault;
      }
      add ? reflection->AddInt64(out, field, number) : reflection->SetInt64(out, field, number);
      return std::nullopt;
    default:
      return Fail("has an unsupported type");
  }
}

ObjectFiller::Result ObjectFiller::FillSpecial(const DocNode& node, Message* out, bool* special) {
  const Descriptor* type = out->GetDescriptor();
  *special = true;
  if (type == wire::Quantity::descriptor()) {
    if (node.kind != Kind::kString && node.kind != Kind::kNumber)
      return FailKind("a quantity", node);
    const absl::string_view text = absl::StripAsciiWhitespace(node.text);
    if (absl::StatusOr<int64_t> value = QuantityValue(text); !value.ok()) {
      return Fail(
          absl::StrCat("\"", ToUtf8(text), "\" is not a quantity: ", value.status().message()));
    }
    static_cast<wire::Quantity*>(out)->set_string(std::string(text));
    return std::nullopt;
  }
  if (type == wire::Time::descriptor() || type == wire::MicroTime::descriptor()) {
    absl::Time time;
    if (node.kind != Kind::kString) return FailKind("a time", node);
    if (!ParseRfc3339(node.text, &time)) {
      return Fail("must be a time such as \"2026-01-31T09:30:00Z\" (RFC 3339)");
    }
    if (type == wire::Time::descriptor()) {
      SetTime(time, static_cast<wire::Time*>(out));
    } else {
      SetTime(time, static_cast<wire::MicroTime*>(out));
    }
    return std::nullopt;
  }
  if (type == wire::IntOrString::descriptor()) {
    auto* value = static_cast<wire::IntOrString*>(out);
    int64_t number = 0;
    if (node.kind == Kind::kString) {
      value->set_type(1);
      value->set_strval(node.text);
      return std::nullopt;
    }
    if (Result fault = ReadInteger(node, std::numeric_limits<int32_t>::min(),
                                   std::numeric_limits<int32_t>::max(), &number)) {
      return fault;
    }
    value->set_type(0);
    value->set_intval(static_cast<int32_t>(number));
    return std::nullopt;
  }
  *special = false;
  return std::nullopt;
}

ObjectFiller::Result ObjectFiller::ReadInteger(const DocNode& node, int64_t min, int64_t max,
                                               int64_t* out) const {
  if (node.kind != Kind::kNumber) return FailKind("an integer", node);
  if (!absl::SimpleAtoi(node.text, out))
    return Fail(absl::StrCat("must be an integer, not ", node.text));
  if (*out < min || *out > max) return Fail(absl::StrCat(node.text, " is out of range"));
  return std::nullopt;
}

std::vector<std::string> FieldNames(const Descriptor* type) {
  const FieldDescriptor* inlined = InlinedField(type);
  std::vector<std::string> names;
  for (int i = 0; i < type->field_count(); ++i) {
    if (type->field(i) != inlined) names.push_back(type->field(i)->name());
  }
  for (int i = 0; i < type->reserved_name_count(); ++i) names.push_back(type->reserved_name(i));
  if (inlined != nullptr) {
    for (std::string& name : FieldNames(inlined->message_type())) names.push_back(std::move(name));
  }
  if (IsObjectRoot(type)) names.insert(names.end(), {"apiVersion", "kind"});
  return names;
}

std::vector<MessageField> MessageFields(const Descriptor* type) {
  const FieldDescriptor* inlined = InlinedField(type);
  std::vector<MessageField> fields;
  for (int i = 0; i < type->field_count(); ++i) {
    const FieldDescriptor* field = type->field(i);
    if (field->type() != FieldDescriptor::TYPE_MESSAGE || field->is_map() ||
        IsScalar(field->message_type()))
      continue;
    if (field == inlined) {
      for (MessageField& inner : MessageFields(field->message_type()))
        fields.push_back(std::move(inner));
    } else {
      fields.push_back({field->name(), field->message_type(), field->is_repeated()});
    }
  }
  return fields;
}

}  // namespace outboard::kube
