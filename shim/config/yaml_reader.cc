#include "shim/config/yaml_reader.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <limits>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"

namespace outboard::config {
namespace {

constexpr size_t kMaxProblems = 30;
constexpr int kMaxDepth = 64;
constexpr size_t kMaxJson = 256 << 10;

enum class ScalarType { kNull, kBool, kInt, kUint, kFloat, kString, kBadFloat };

// A scalar as kube-scheduler's YAML reader interprets it (YAML 1.1: `yes` is a bool, 010 is eight).
struct Scalar {
  ScalarType type = ScalarType::kString;
  bool boolean = false;
  int64_t integer = 0;
  uint64_t unsigned_integer = 0;
  double number = 0;
};

std::optional<bool> AsBool(const std::string& text) {
  static const auto& yes = *new std::set<std::string>{"y",    "Y",    "yes", "Yes", "YES", "true",
                                                      "True", "TRUE", "on",  "On",  "ON"};
  static const auto& no = *new std::set<std::string>{"n",     "N",     "no",  "No",  "NO", "false",
                                                     "False", "FALSE", "off", "Off", "OFF"};
  if (yes.count(text) > 0) return true;
  if (no.count(text) > 0) return false;
  return std::nullopt;
}

// Digits with an optional sign and the prefixes 0x, 0o, 0b and 0.
bool AsInteger(const std::string& original, Scalar* out) {
  std::string text = absl::StrReplaceAll(original, {{"_", ""}});
  bool negative = false;
  size_t at = 0;
  if (!text.empty() && (text[0] == '-' || text[0] == '+')) {
    negative = text[0] == '-';
    at = 1;
  }
  int base = 10;
  if (text.size() > at + 1 && text[at] == '0') {
    const char kind = absl::ascii_tolower(text[at + 1]);
    base = kind == 'x' ? 16 : kind == 'b' ? 2 : 8;
    at += (kind == 'x' || kind == 'b' || kind == 'o') ? 2 : 1;
  }
  if (at >= text.size()) return false;
  uint64_t value = 0;
  const char* end = text.data() + text.size();
  auto [stop, error] = std::from_chars(text.data() + at, end, value, base);
  if (stop != end || error != std::errc()) return false;
  if (negative) {
    if (value > uint64_t{1} << 63) return false;
    out->type = ScalarType::kInt;
    out->integer = static_cast<int64_t>(~value + 1);
  } else if (value <= static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) {
    out->type = ScalarType::kInt;
    out->integer = static_cast<int64_t>(value);
  } else {
    out->type = ScalarType::kUint;
    out->unsigned_integer = value;
  }
  return true;
}

bool AsFloat(const std::string& text, Scalar* out) {
  const std::string lower = absl::AsciiStrToLower(text);
  if (lower == ".nan" || lower == ".inf" || lower == "-.inf" || lower == "+.inf") {
    out->type = ScalarType::kBadFloat;
    return true;
  }
  bool digit = false;
  for (char c : text) {
    if (absl::ascii_isdigit(c)) {
      digit = true;
    } else if (c != '.' && c != '-' && c != '+' && c != 'e' && c != 'E') {
      return false;
    }
  }
  if (!digit || !absl::SimpleAtod(text, &out->number)) return false;
  out->type = std::isfinite(out->number) ? ScalarType::kFloat : ScalarType::kBadFloat;
  return true;
}

Scalar Resolve(const YAML::Node& node) {
  Scalar out;
  if (node.IsNull()) {
    out.type = ScalarType::kNull;
    return out;
  }
  if (node.Tag() != "?" && !node.Tag().empty()) return out;  // quoted or tagged: a string
  const std::string& text = node.Scalar();
  if (text.empty() || text == "~" || text == "null" || text == "Null" || text == "NULL") {
    out.type = ScalarType::kNull;
  } else if (std::optional<bool> boolean = AsBool(text)) {
    out.type = ScalarType::kBool;
    out.boolean = *boolean;
  } else if (!AsInteger(text, &out)) {
    AsFloat(text, &out);
  }
  return out;
}

std::string Describe(const YAML::Node& node) {
  if (node.IsMap()) return "a mapping";
  if (node.IsSequence()) return "a list";
  std::string text = node.Scalar().substr(0, 64);
  for (char& c : text) {
    if (absl::ascii_iscntrl(c)) c = '?';
  }
  return absl::StrCat("\"", text, "\"");
}

bool AppendString(absl::string_view text, std::string* out) {
  out->push_back('"');
  for (char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out->push_back('\\');
      out->push_back(c);
    } else if (byte < 0x20) {
      constexpr char kHex[] = "0123456789abcdef";
      absl::StrAppend(out, "\\u00");
      out->push_back(kHex[byte >> 4]);
      out->push_back(kHex[byte & 15]);
    } else {
      out->push_back(c);
    }
  }
  out->push_back('"');
  return out->size() <= kMaxJson;
}

absl::Status AppendJson(const YAML::Node& node, int depth, std::string* out);

absl::Status AppendJsonScalar(const YAML::Node& node, std::string* out) {
  const Scalar scalar = Resolve(node);
  switch (scalar.type) {
    case ScalarType::kNull:
      absl::StrAppend(out, "null");
      break;
    case ScalarType::kBool:
      absl::StrAppend(out, scalar.boolean ? "true" : "false");
      break;
    case ScalarType::kInt:
      absl::StrAppend(out, scalar.integer);
      break;
    case ScalarType::kUint:
      absl::StrAppend(out, scalar.unsigned_integer);
      break;
    case ScalarType::kFloat: {
      char buffer[40];
      auto [end, error] = std::to_chars(buffer, buffer + sizeof(buffer), scalar.number);
      out->append(buffer, static_cast<size_t>(end - buffer));
      break;
    }
    case ScalarType::kBadFloat:
      return absl::InvalidArgumentError(absl::StrCat(Describe(node), " is not a finite number"));
    case ScalarType::kString:
      AppendString(node.Scalar(), out);
      break;
  }
  return absl::OkStatus();
}

absl::Status AppendJsonMap(const YAML::Node& node, int depth, std::string* out) {
  std::set<std::string> seen;
  out->push_back('{');
  for (const auto& entry : node) {
    if (!entry.first.IsScalar()) return absl::InvalidArgumentError("a key is not a scalar");
    if (!seen.insert(entry.first.Scalar()).second) {
      return absl::InvalidArgumentError(absl::StrCat("duplicate field ", Describe(entry.first)));
    }
    if (seen.size() > 1) out->push_back(',');
    AppendString(entry.first.Scalar(), out);
    out->push_back(':');
    absl::Status status = AppendJson(entry.second, depth + 1, out);
    if (!status.ok()) return status;
  }
  out->push_back('}');
  return absl::OkStatus();
}

absl::Status AppendJson(const YAML::Node& node, int depth, std::string* out) {
  if (depth > kMaxDepth) return absl::InvalidArgumentError("nested more than 64 levels deep");
  if (out->size() > kMaxJson) return absl::InvalidArgumentError("larger than 256 KiB");
  if (node.IsMap()) return AppendJsonMap(node, depth, out);
  if (!node.IsSequence()) return AppendJsonScalar(node, out);
  out->push_back('[');
  bool first = true;
  for (const YAML::Node& element : node) {
    if (!first) out->push_back(',');
    first = false;
    absl::Status status = AppendJson(element, depth + 1, out);
    if (!status.ok()) return status;
  }
  out->push_back(']');
  return absl::OkStatus();
}

}  // namespace

void Problems::Add(const Location& where, absl::string_view what) { Add(where, where.path, what); }

void Problems::Add(const Location& where, absl::string_view path, absl::string_view what) {
  if (found_.size() >= kMaxProblems) {
    ++left_out_;
    return;
  }
  Problem problem{where.line, where.column, Line(where, path, what)};
  // A fault can occur twice, for example in two profiles that share it.
  if (std::find(found_.begin(), found_.end(), problem) == found_.end())
    found_.push_back(std::move(problem));
}

std::string Problems::Line(const Location& where, absl::string_view path,
                           absl::string_view what) const {
  std::string line = file_;
  if (where.line > 0) absl::StrAppend(&line, ":", where.line, ":", where.column);
  absl::StrAppend(&line, ": ");
  if (!path.empty()) absl::StrAppend(&line, path, ": ");
  absl::StrAppend(&line, what);
  return line;
}

absl::Status Problems::ToStatus() const {
  if (found_.empty()) return absl::OkStatus();
  std::vector<Problem> sorted = found_;
  std::stable_sort(sorted.begin(), sorted.end(), [](const Problem& a, const Problem& b) {
    return std::tie(a.line, a.column) < std::tie(b.line, b.column);
  });
  std::string text =
      absl::StrJoin(sorted, "\n", [](std::string* out, const Problem& one) { *out += one.text; });
  if (left_out_ > 0) absl::StrAppend(&text, "\n… and ", left_out_, " more");
  return absl::InvalidArgumentError(text);
}

Location LocationOf(const YAML::Node& node, std::string path) {
  const YAML::Mark mark = node.Mark();
  Location where;
  if (!mark.is_null()) {
    where.line = mark.line + 1;
    where.column = mark.column + 1;
  }
  where.path = std::move(path);
  return where;
}

MapReader::MapReader(const YAML::Node& node, std::string path, Problems* problems)
    : path_(std::move(path)), problems_(problems), where_(LocationOf(node, path_)) {
  if (node.IsNull()) return;
  if (!node.IsMap()) {
    problems_->Add(where_, absl::StrCat("expected a mapping, got ", Describe(node)));
    return;
  }
  std::set<std::string> seen;
  for (const auto& entry : node) {
    const std::string key = entry.first.IsScalar() ? entry.first.Scalar() : std::string();
    const Location where = LocationOf(entry.first, PathOf(key));
    if (!entry.first.IsScalar()) {
      problems_->Add(LocationOf(entry.first, path_), "a key must be a scalar");
    } else if (!seen.insert(key).second) {
      problems_->Add(where, "duplicate field");
    } else {
      fields_.push_back(Field{key, where, entry.second});
    }
  }
}

std::string MapReader::PathOf(absl::string_view key) const {
  return path_.empty() ? std::string(key) : absl::StrCat(path_, ".", key);
}

Location MapReader::where(absl::string_view key) const {
  for (const Field& field : fields_) {
    if (field.key == key) return field.where;
  }
  return Location{where_.line, where_.column, PathOf(key)};
}

const MapReader::Field* MapReader::Find(absl::string_view key) {
  asked_.emplace_back(key);
  for (Field& field : fields_) {
    if (field.key != key) continue;
    field.asked = true;
    if (field.value.IsScalar() && Resolve(field.value).type == ScalarType::kNull) return nullptr;
    return field.value.IsNull() ? nullptr : &field;
  }
  return nullptr;
}

bool MapReader::String(absl::string_view key, std::string* out) {
  const Field* field = Find(key);
  if (field == nullptr) return false;
  if (!field->value.IsScalar() || Resolve(field->value).type != ScalarType::kString) {
    problems_->Add(field->where, absl::StrCat("expected a string, got ", Describe(field->value),
                                              field->value.IsScalar() ? "; put it in quotes" : ""));
    return false;
  }
  *out = field->value.Scalar();
  return true;
}

bool MapReader::Bool(absl::string_view key, bool* out) {
  const Field* field = Find(key);
  if (field == nullptr) return false;
  const Scalar scalar = field->value.IsScalar() ? Resolve(field->value) : Scalar();
  if (scalar.type != ScalarType::kBool) {
    problems_->Add(field->where,
                   absl::StrCat("expected true or false, got ", Describe(field->value)));
    return false;
  }
  *out = scalar.boolean;
  return true;
}

bool MapReader::ReadInteger(absl::string_view key, int64_t low, int64_t high, int64_t* out) {
  const Field* field = Find(key);
  if (field == nullptr) return false;
  const Scalar scalar = field->value.IsScalar() ? Resolve(field->value) : Scalar();
  if (scalar.type != ScalarType::kInt && scalar.type != ScalarType::kUint) {
    problems_->Add(field->where, absl::StrCat("expected an integer, got ", Describe(field->value)));
    return false;
  }
  if (scalar.type == ScalarType::kUint || scalar.integer < low || scalar.integer > high) {
    problems_->Add(field->where, absl::StrCat("expected an integer from ", low, " to ", high,
                                              ", got ", Describe(field->value)));
    return false;
  }
  *out = scalar.integer;
  return true;
}

bool MapReader::Int32(absl::string_view key, int32_t* out) {
  int64_t value = 0;
  if (!ReadInteger(key, std::numeric_limits<int32_t>::min(), std::numeric_limits<int32_t>::max(),
                   &value)) {
    return false;
  }
  *out = static_cast<int32_t>(value);
  return true;
}

bool MapReader::Int64(absl::string_view key, int64_t* out) {
  return ReadInteger(key, std::numeric_limits<int64_t>::min(), std::numeric_limits<int64_t>::max(),
                     out);
}

bool MapReader::Float(absl::string_view key, double* out) {
  const Field* field = Find(key);
  if (field == nullptr) return false;
  const Scalar scalar = field->value.IsScalar() ? Resolve(field->value) : Scalar();
  switch (scalar.type) {
    case ScalarType::kInt:
      *out = static_cast<double>(scalar.integer);
      return true;
    case ScalarType::kUint:
      *out = static_cast<double>(scalar.unsigned_integer);
      return true;
    case ScalarType::kFloat:
      *out = scalar.number;
      return true;
    default:
      break;
  }
  problems_->Add(field->where, absl::StrCat("expected a number, got ", Describe(field->value)));
  return false;
}

bool MapReader::Duration(absl::string_view key, absl::Duration* out) {
  const Field* field = Find(key);
  if (field == nullptr) return false;
  absl::Duration value;
  // absl also accepts "inf", unlike Go.
  if (!field->value.IsScalar() || !absl::ParseDuration(field->value.Scalar(), &value) ||
      value == absl::InfiniteDuration() || value == -absl::InfiniteDuration()) {
    problems_->Add(field->where, absl::StrCat("expected a duration such as 15s or 1m30s, got ",
                                              Describe(field->value)));
    return false;
  }
  *out = value;
  return true;
}

bool MapReader::Map(absl::string_view key, const std::function<void(MapReader&)>& read) {
  const Field* field = Find(key);
  if (field == nullptr) return false;
  MapReader reader(field->value, field->where.path, problems_);
  if (!field->value.IsMap()) return false;
  read(reader);
  reader.Finish();
  return true;
}

bool MapReader::List(absl::string_view key,
                     const std::function<void(const YAML::Node&, const std::string&)>& read) {
  const Field* field = Find(key);
  if (field == nullptr) return false;
  if (!field->value.IsSequence()) {
    problems_->Add(field->where, absl::StrCat("expected a list, got ", Describe(field->value)));
    return false;
  }
  size_t index = 0;
  for (const YAML::Node& element : field->value) {
    read(element, absl::StrCat(field->where.path, "[", index++, "]"));
  }
  return true;
}

bool MapReader::MapList(absl::string_view key, const std::function<void(MapReader&)>& read) {
  return List(key, [&](const YAML::Node& element, const std::string& path) {
    MapReader reader(element, path, problems_);
    if (!element.IsMap()) {
      if (element.IsNull())
        problems_->Add(LocationOf(element, path), "expected a mapping, got nothing");
      return;
    }
    read(reader);
    reader.Finish();
  });
}

bool MapReader::StringList(absl::string_view key, std::vector<std::string>* out) {
  return List(key, [&](const YAML::Node& element, const std::string& path) {
    if (element.IsScalar() && Resolve(element).type == ScalarType::kString) {
      out->push_back(element.Scalar());
    } else {
      problems_->Add(LocationOf(element, path),
                     absl::StrCat("expected a string, got ", Describe(element)));
    }
  });
}

bool MapReader::Any(absl::string_view key, YAML::Node* out, Location* where) {
  const Field* field = Find(key);
  if (field == nullptr) return false;
  out->reset(field->value);
  *where = field->where;
  return true;
}

void MapReader::Finish() {
  for (const Field& field : fields_) {
    if (field.asked) continue;
    std::string hint = DidYouMean(field.key, asked_);
    if (hint.empty() && hint_) hint = hint_(field.key);
    problems_->Add(field.where, absl::StrCat("unknown field", hint));
  }
}

absl::StatusOr<std::string> YamlToJson(const YAML::Node& node) {
  std::string out;
  absl::Status status = AppendJson(node, 0, &out);
  if (!status.ok()) return status;
  if (out.size() > kMaxJson) return absl::InvalidArgumentError("larger than 256 KiB");
  return out;
}

}  // namespace outboard::config
