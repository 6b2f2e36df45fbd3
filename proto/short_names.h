// Names of the contract's enum values for people.
#ifndef OUTBOARD_PROTO_SHORT_NAMES_H_
#define OUTBOARD_PROTO_SHORT_NAMES_H_

#include <google/protobuf/generated_enum_reflection.h>

#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace outboard {

// Without the enum's prefix, as the contract's texts write it: `STALE` for REASON_STALE. A number
// for a value that this build does not know.
template <typename Enum>
std::string ShortName(Enum value) {
  const google::protobuf::EnumDescriptor* type = google::protobuf::GetEnumDescriptor<Enum>();
  const google::protobuf::EnumValueDescriptor* known = type->FindValueByNumber(value);
  if (known == nullptr) return absl::StrCat(static_cast<int>(value));
  // KindOfThing → KIND_OF_THING_
  size_t prefix = 1;
  for (const char c : type->name())
    prefix += absl::ascii_isupper(static_cast<unsigned char>(c)) ? 2 : 1;
  return known->name().substr(prefix - 1);
}

}  // namespace outboard

#endif  // OUTBOARD_PROTO_SHORT_NAMES_H_
