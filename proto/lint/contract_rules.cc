#include "proto/lint/contract_rules.h"

#include <google/protobuf/descriptor.pb.h>

#include <map>
#include <set>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"

namespace outboard::lint {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::EnumDescriptor;
using google::protobuf::EnumValueDescriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::FileDescriptor;
using google::protobuf::MethodDescriptor;
using google::protobuf::ServiceDescriptor;
using google::protobuf::SourceLocation;

// KindOfThing → KIND_OF_THING_.
std::string PrefixOf(absl::string_view enum_name) {
  std::string prefix;
  for (char c : enum_name) {
    if (absl::ascii_isupper(static_cast<unsigned char>(c)) && !prefix.empty()) prefix += '_';
    prefix += absl::ascii_toupper(static_cast<unsigned char>(c));
  }
  return prefix + "_";
}

// Rules on the shape of messages that a comment states and no code checks, in lower case; and what
// says the same in the message itself.
constexpr std::pair<absl::string_view, absl::string_view> kShapesInWords[] = {
    {"no other field is set", "use a oneof"},
    {"instead of all other fields", "use a oneof"},
    {"not together with", "use a oneof"},
    {"only the fields that name it", "use ObjectReference"},
    {"empty: all", "give the other meaning a field of its own"},
    {"empty means all", "give the other meaning a field of its own"},
    {"none: all", "give the other meaning a field of its own"},
};

class Linter {
 public:
  explicit Linter(const FileDescriptor& file) : file_(file) {}

  std::vector<std::string> Run() {
    CheckPackage();
    for (int i = 0; i < file_.service_count(); ++i) CheckService(*file_.service(i));
    for (int i = 0; i < file_.message_type_count(); ++i) CheckMessage(*file_.message_type(i));
    for (int i = 0; i < file_.enum_type_count(); ++i) CheckEnum(*file_.enum_type(i));
    return std::move(complaints_);
  }

 private:
  template <typename Element>
  void Complain(const Element& element, absl::string_view what) {
    SourceLocation location;
    const int line = element.GetSourceLocation(&location) ? location.start_line + 1 : 0;
    complaints_.push_back(
        absl::StrCat(file_.name(), ":", line, ": ", element.full_name(), ": ", what));
  }

  template <typename Element>
  void CheckComment(const Element& element) {
    SourceLocation location;
    const bool found = element.GetSourceLocation(&location);
    absl::string_view comment = absl::StripAsciiWhitespace(
        location.leading_comments.empty() ? location.trailing_comments : location.leading_comments);
    if (!found || comment.empty()) Complain(element, "has no comment");
    if (absl::StrContains(comment, "TODO") || absl::StrContains(comment, "FIXME")) {
      Complain(element, "has an unfinished comment");
    }
    // A comment may be broken anywhere.
    const std::string text =
        absl::StrJoin(absl::StrSplit(comment, absl::ByAnyChar(" \n"), absl::SkipEmpty()), " ");
    for (const auto& [words, better] : kShapesInWords) {
      if (absl::StrContains(absl::AsciiStrToLower(text), words))
        Complain(element, absl::StrCat("says \"", words, "\": ", better));
    }
  }

  void CheckPackage() {
    const std::string::size_type slash = file_.name().rfind('/');
    const std::string folder =
        slash == std::string::npos
            ? ""
            : absl::StrReplaceAll(file_.name().substr(0, slash), {{"/", "."}});
    if (folder != file_.package()) {
      complaints_.push_back(absl::StrCat(file_.name(), ":1: package ", file_.package(),
                                         " is not the folder that the file lies in"));
    }
    const std::vector<std::string> parts = absl::StrSplit(file_.package(), '.');
    if (parts.back().size() < 2 || parts.back()[0] != 'v' ||
        !absl::ascii_isdigit(parts.back()[1])) {
      complaints_.push_back(
          absl::StrCat(file_.name(), ":1: package ", file_.package(), " has no version"));
    }
  }

  void CheckService(const ServiceDescriptor& service) {
    CheckComment(service);
    if (!absl::EndsWith(service.name(), "Service")) Complain(service, "is not named …Service");
    for (int i = 0; i < service.method_count(); ++i) {
      const MethodDescriptor& rpc = *service.method(i);
      CheckComment(rpc);
      if (rpc.input_type()->name() != absl::StrCat(rpc.name(), "Request")) {
        Complain(rpc,
                 absl::StrCat("takes ", rpc.input_type()->name(), ", not ", rpc.name(), "Request"));
      }
      if (rpc.output_type()->name() != absl::StrCat(rpc.name(), "Response")) {
        Complain(rpc, absl::StrCat("returns ", rpc.output_type()->name(), ", not ", rpc.name(),
                                   "Response"));
      }
    }
  }

  void CheckMessage(const Descriptor& type) {
    if (type.options().map_entry()) return;
    CheckComment(type);
    for (int i = 0; i < type.field_count(); ++i) {
      const FieldDescriptor& field = *type.field(i);
      CheckComment(field);
      CheckUnit(field);
    }
    for (int i = 0; i < type.real_oneof_decl_count(); ++i) CheckComment(*type.oneof_decl(i));
    for (int i = 0; i < type.nested_type_count(); ++i) CheckMessage(*type.nested_type(i));
    for (int i = 0; i < type.enum_type_count(); ++i) CheckEnum(*type.enum_type(i));
  }

  void CheckUnit(const FieldDescriptor& field) {
    const std::string& name = field.name();
    const bool is_time = absl::EndsWith(name, "_micros") || absl::EndsWith(name, "_seconds");
    if (is_time && field.type() != FieldDescriptor::TYPE_INT64) Complain(field, "is not an int64");
    if (name == "cpu_millis") return;
    static constexpr absl::string_view kOthers[] = {"_ms",     "_us",    "_ns",     "_sec",
                                                    "_secs",   "_min",   "_mins",   "_msec",
                                                    "_millis", "_nanos", "_minutes"};
    for (absl::string_view suffix : kOthers) {
      if (absl::EndsWith(name, suffix))
        Complain(field, "is not in _micros, or in _seconds as in Kubernetes' API");
    }
  }

  void CheckEnum(const EnumDescriptor& type) {
    CheckComment(type);
    for (int i = 0; i < type.value_count(); ++i) {
      const EnumValueDescriptor& value = *type.value(i);
      CheckComment(value);
      const std::string prefix = PrefixOf(type.name());
      if (!absl::StartsWith(value.name(), prefix))
        Complain(value, absl::StrCat("does not begin with ", prefix));
      if (value.number() == 0 && !absl::EndsWith(value.name(), "_UNSPECIFIED"))
        Complain(value, "is zero and is not named …_UNSPECIFIED");
    }
  }

  const FileDescriptor& file_;
  std::vector<std::string> complaints_;
};

struct Known {
  std::map<std::string, const Descriptor*> messages;
  std::map<std::string, const EnumDescriptor*> enums;

  void Add(const Descriptor* type) {
    messages[type->full_name()] = type;
    for (int i = 0; i < type->nested_type_count(); ++i) Add(type->nested_type(i));
    for (int i = 0; i < type->enum_type_count(); ++i)
      enums[type->enum_type(i)->full_name()] = type->enum_type(i);
  }
};

}  // namespace

std::vector<std::string> CheckFile(const FileDescriptor& file) { return Linter(file).Run(); }

std::vector<std::string> CheckRemoved(const std::string& golden,
                                      const std::vector<const FileDescriptor*>& files) {
  Known known;
  for (const FileDescriptor* file : files) {
    for (int i = 0; i < file->message_type_count(); ++i) known.Add(file->message_type(i));
    for (int i = 0; i < file->enum_type_count(); ++i)
      known.enums[file->enum_type(i)->full_name()] = file->enum_type(i);
  }
  std::vector<std::string> complaints;
  // Lines are `field MESSAGE NAME NUMBER …` and `value ENUM NAME NUMBER`.
  for (absl::string_view line : absl::StrSplit(golden, '\n')) {
    const std::vector<std::string> words = absl::StrSplit(line, ' ');
    int number = 0;
    if (words.size() < 4 || !absl::SimpleAtoi(words[3], &number)) continue;
    bool gone = false;
    bool reserved = true;
    if (words[0] == "field" && known.messages.count(words[1]) > 0) {
      const Descriptor* type = known.messages.at(words[1]);
      gone = type->FindFieldByNumber(number) == nullptr;
      reserved = type->IsReservedNumber(number) && type->IsReservedName(words[2]);
    } else if (words[0] == "value" && known.enums.count(words[1]) > 0) {
      const EnumDescriptor* type = known.enums.at(words[1]);
      gone = type->FindValueByNumber(number) == nullptr;
      reserved = type->IsReservedNumber(number) && type->IsReservedName(words[2]);
    }
    if (gone && !reserved) {
      complaints.push_back(absl::StrCat(words[1], ": ", words[2], " = ", number,
                                        " is gone: reserve its number and its name"));
    }
  }
  return complaints;
}

}  // namespace outboard::lint
