#include "cli/conformance/mutation.h"

#include <algorithm>
#include <limits>
#include <vector>

namespace outboard::conformance {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

size_t Below(Random* random, size_t bound) { return bound == 0 ? 0 : (*random)() % bound; }

template <typename T>
T OddNumber(Random* random) {
  const T choices[] = {T{0},
                       T{1},
                       std::numeric_limits<T>::max(),
                       std::numeric_limits<T>::min(),
                       static_cast<T>(-1),
                       static_cast<T>(101),
                       static_cast<T>(65536),
                       static_cast<T>((*random)())};
  return choices[Below(random, std::size(choices))];
}

std::string OddString(Random* random, std::string text, bool is_bytes) {
  switch (Below(random, 7)) {
    case 0:
      return "";
    case 1:
      return text.substr(0, text.size() / 2);
    case 2:
      return text + text + "x";
    case 3:
      return std::string(Below(random, 70000), 'y');
    case 4:
      return "\xe2\x80\xae\xf0\x9f\x9a\x80\n\t\"\\%s";
    case 5:
      return std::string(1, '\0');
    default:
      break;
  }
  if (!is_bytes) return "no-such-thing";
  for (char& byte : text) {
    if (Below(random, 3) == 0) byte = static_cast<char>((*random)());
  }
  return text;
}

// Truncates strings only between characters.
bool IsUtf8Boundary(const std::string& text, size_t at) {
  return at >= text.size() || (static_cast<unsigned char>(text[at]) & 0xc0) != 0x80;
}

std::string OddText(Random* random, const std::string& text) {
  std::string odd = OddString(random, text, /*is_bytes=*/false);
  if (odd.size() < text.size() && !IsUtf8Boundary(text, odd.size())) return "cut";
  return odd;
}

void MutateSingle(Random* random, Message* message, const FieldDescriptor* field) {
  const Reflection* reflection = message->GetReflection();
  switch (field->cpp_type()) {
    case FieldDescriptor::CPPTYPE_INT32:
      return reflection->SetInt32(message, field, OddNumber<int32_t>(random));
    case FieldDescriptor::CPPTYPE_INT64:
      return reflection->SetInt64(message, field, OddNumber<int64_t>(random));
    case FieldDescriptor::CPPTYPE_UINT32:
      return reflection->SetUInt32(message, field, OddNumber<uint32_t>(random));
    case FieldDescriptor::CPPTYPE_UINT64:
      return reflection->SetUInt64(message, field, OddNumber<uint64_t>(random));
    case FieldDescriptor::CPPTYPE_BOOL:
      return reflection->SetBool(message, field, !reflection->GetBool(*message, field));
    case FieldDescriptor::CPPTYPE_ENUM:
      return reflection->SetEnumValue(message, field, static_cast<int>(Below(random, 20)) - 2);
    case FieldDescriptor::CPPTYPE_STRING: {
      const std::string text = reflection->GetString(*message, field);
      const bool is_bytes = field->type() == FieldDescriptor::TYPE_BYTES;
      return reflection->SetString(
          message, field, is_bytes ? OddString(random, text, true) : OddText(random, text));
    }
    case FieldDescriptor::CPPTYPE_MESSAGE:
      return Mutate(random, reflection->MutableMessage(message, field));
    default:
      return;  // The contract has no floating-point fields.
  }
}

void AddOne(Random* random, Message* message, const FieldDescriptor* field) {
  const Reflection* reflection = message->GetReflection();
  switch (field->cpp_type()) {
    case FieldDescriptor::CPPTYPE_INT32:
      return reflection->AddInt32(message, field, OddNumber<int32_t>(random));
    case FieldDescriptor::CPPTYPE_INT64:
      return reflection->AddInt64(message, field, OddNumber<int64_t>(random));
    case FieldDescriptor::CPPTYPE_UINT32:
      return reflection->AddUInt32(message, field, OddNumber<uint32_t>(random));
    case FieldDescriptor::CPPTYPE_UINT64:
      return reflection->AddUInt64(message, field, OddNumber<uint64_t>(random));
    case FieldDescriptor::CPPTYPE_ENUM:
      return reflection->AddEnumValue(message, field, static_cast<int>(Below(random, 20)));
    case FieldDescriptor::CPPTYPE_STRING:
      return reflection->AddString(message, field, OddString(random, "added", false));
    case FieldDescriptor::CPPTYPE_MESSAGE:
      Mutate(random, reflection->AddMessage(message, field));
      return;
    default:
      return;
  }
}

void MutateRepeated(Random* random, Message* message, const FieldDescriptor* field) {
  const Reflection* reflection = message->GetReflection();
  const int size = reflection->FieldSize(*message, field);
  switch (Below(random, 5)) {
    case 0:
      return reflection->ClearField(message, field);
    case 1:
      if (size > 0) reflection->RemoveLast(message, field);
      return;
    case 2:
      if (size > 1)
        reflection->SwapElements(message, field, 0, static_cast<int>(Below(random, size)));
      return;
    case 3:
      if (size > 0 && field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) {
        return Mutate(random, reflection->MutableRepeatedMessage(
                                  message, field, static_cast<int>(Below(random, size))));
      }
      break;
    default:
      break;
  }
  for (size_t count = Below(random, 8) == 0 ? 300 : 1; count > 0; --count)
    AddOne(random, message, field);
}

}  // namespace

void Mutate(Random* random, Message* message) {
  const auto* descriptor = message->GetDescriptor();
  if (descriptor->field_count() == 0) return;
  // Sets absent parts first: they have nothing to mutate.
  std::vector<const FieldDescriptor*> fields;
  message->GetReflection()->ListFields(*message, &fields);
  if (fields.empty() || Below(random, 4) == 0)
    fields = {descriptor->field(static_cast<int>(Below(random, descriptor->field_count())))};
  const FieldDescriptor* field = fields[Below(random, fields.size())];
  if (field->is_map()) return message->GetReflection()->ClearField(message, field);
  if (field->is_repeated()) return MutateRepeated(random, message, field);
  if (Below(random, 6) == 0) return message->GetReflection()->ClearField(message, field);
  MutateSingle(random, message, field);
}

std::string MutateBytes(Random* random, std::string bytes) {
  switch (Below(random, 4)) {
    case 0:
      bytes.resize(Below(random, bytes.size() + 1));
      break;
    case 1:
      for (size_t i = 0; i < 1 + bytes.size() / 10; ++i) {
        if (!bytes.empty()) bytes[Below(random, bytes.size())] = static_cast<char>((*random)());
      }
      break;
    case 2:
      // A length beyond the end.
      bytes += std::string("\x0a\xff\xff\xff\xff\x07", 6);
      break;
    default:
      for (size_t i = Below(random, 300); i > 0; --i)
        bytes.push_back(static_cast<char>((*random)()));
      break;
  }
  return bytes;
}

}  // namespace outboard::conformance
