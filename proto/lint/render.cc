#include "proto/lint/render.h"

#include <google/protobuf/descriptor.pb.h>

#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"

namespace outboard::lint {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::EnumDescriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::FileDescriptor;
using google::protobuf::MethodDescriptor;
using google::protobuf::ServiceDescriptor;

std::string TypeName(const FieldDescriptor& field) {
  if (field.is_map()) {
    const Descriptor& entry = *field.message_type();
    return absl::StrCat("map<", TypeName(*entry.FindFieldByNumber(1)), ",",
                        TypeName(*entry.FindFieldByNumber(2)), ">");
  }
  if (field.message_type() != nullptr) return field.message_type()->full_name();
  if (field.enum_type() != nullptr) return field.enum_type()->full_name();
  return field.type_name();
}

void RenderEnum(const EnumDescriptor& type, std::string* out) {
  absl::StrAppend(out, "enum ", type.full_name(), "\n");
  for (int i = 0; i < type.value_count(); ++i) {
    absl::StrAppend(out, "value ", type.full_name(), " ", type.value(i)->name(), " ",
                    type.value(i)->number(), "\n");
  }
  for (int i = 0; i < type.reserved_range_count(); ++i) {
    // Enums' ranges include their end, messages' do not.
    absl::StrAppend(out, "reserved ", type.full_name(), " ", type.reserved_range(i)->start, "-",
                    type.reserved_range(i)->end, "\n");
  }
  for (int i = 0; i < type.reserved_name_count(); ++i) {
    absl::StrAppend(out, "reserved ", type.full_name(), " \"", type.reserved_name(i), "\"\n");
  }
}

void RenderMessage(const Descriptor& type, std::string* out) {
  if (type.options().map_entry()) return;
  absl::StrAppend(out, "message ", type.full_name(), "\n");
  for (int i = 0; i < type.field_count(); ++i) {
    const FieldDescriptor& field = *type.field(i);
    absl::StrAppend(out, "field ", type.full_name(), " ", field.name(), " ", field.number(), " ",
                    field.is_repeated() && !field.is_map() ? "repeated " : "",
                    field.has_optional_keyword() ? "optional " : "", TypeName(field));
    if (field.real_containing_oneof() != nullptr)
      absl::StrAppend(out, " oneof ", field.containing_oneof()->name());
    absl::StrAppend(out, "\n");
  }
  for (int i = 0; i < type.reserved_range_count(); ++i) {
    absl::StrAppend(out, "reserved ", type.full_name(), " ", type.reserved_range(i)->start, "-",
                    type.reserved_range(i)->end - 1, "\n");
  }
  for (int i = 0; i < type.reserved_name_count(); ++i) {
    absl::StrAppend(out, "reserved ", type.full_name(), " \"", type.reserved_name(i), "\"\n");
  }
  for (int i = 0; i < type.nested_type_count(); ++i) RenderMessage(*type.nested_type(i), out);
  for (int i = 0; i < type.enum_type_count(); ++i) RenderEnum(*type.enum_type(i), out);
}

void RenderService(const ServiceDescriptor& service, std::string* out) {
  absl::StrAppend(out, "service ", service.full_name(), "\n");
  for (int i = 0; i < service.method_count(); ++i) {
    const MethodDescriptor& rpc = *service.method(i);
    absl::StrAppend(out, "rpc ", service.full_name(), " ", rpc.name(), " ",
                    rpc.client_streaming() ? "stream " : "", rpc.input_type()->full_name(), " -> ",
                    rpc.server_streaming() ? "stream " : "", rpc.output_type()->full_name(), "\n");
  }
}

}  // namespace

std::string Render(const std::vector<const FileDescriptor*>& files) {
  std::string out;
  for (const FileDescriptor* file : files) {
    absl::StrAppend(&out, "file ", file->name(), " ",
                    google::protobuf::FileDescriptor::SyntaxName(file->syntax()), "\n");
    for (int i = 0; i < file->service_count(); ++i) RenderService(*file->service(i), &out);
    for (int i = 0; i < file->message_type_count(); ++i)
      RenderMessage(*file->message_type(i), &out);
    for (int i = 0; i < file->enum_type_count(); ++i) RenderEnum(*file->enum_type(i), &out);
  }
  return out;
}

std::string Difference(const std::string& before, const std::string& after) {
  if (before == after) return "";
  const std::vector<std::string> old_lines = absl::StrSplit(before, '\n', absl::SkipEmpty());
  const std::vector<std::string> new_lines = absl::StrSplit(after, '\n', absl::SkipEmpty());
  const std::set<std::string> old_set(old_lines.begin(), old_lines.end());
  const std::set<std::string> new_set(new_lines.begin(), new_lines.end());
  std::string out;
  for (const std::string& line : old_lines) {
    if (new_set.count(line) == 0) absl::StrAppend(&out, "- ", line, "\n");
  }
  for (const std::string& line : new_lines) {
    if (old_set.count(line) == 0) absl::StrAppend(&out, "+ ", line, "\n");
  }
  return out.empty() ? "only the order of elements differs\n" : out;
}

}  // namespace outboard::lint
