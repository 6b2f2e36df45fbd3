#include "plugin_host/sdk/args_reader.h"

#include <cmath>

#include "absl/strings/str_cat.h"
#include "nlohmann/json.hpp"
#include "plugin_host/sdk/validation.h"

namespace outboard::sdk {
namespace {

const char* TypeName(const nlohmann::json& json) {
  switch (json.type()) {
    case nlohmann::json::value_t::object:
      return "an object";
    case nlohmann::json::value_t::array:
      return "a list";
    case nlohmann::json::value_t::string:
      return "a string";
    case nlohmann::json::value_t::boolean:
      return "a boolean";
    default:
      return json.is_number() ? "a number" : "null";
  }
}

std::string Join(const std::string& path, absl::string_view key) {
  return path.empty() ? std::string(key) : absl::StrCat(path, ".", key);
}

// Fits into int64_t.
bool IsInt(const nlohmann::json& json) {
  return json.is_number_unsigned() ? json.get<uint64_t>() <= INT64_MAX : json.is_number_integer();
}

}  // namespace

ArgsReader::ArgsReader(absl::string_view json) : json_(std::make_unique<nlohmann::json>()) {
  *json_ = json.empty() ? nlohmann::json::object()
                        : nlohmann::json::parse(json, nullptr, /*allow_exceptions=*/false);
  if (json_->is_discarded()) {
    AddProblem("", "args are not valid JSON");
    *json_ = nlohmann::json::object();
  } else if (json_->is_null()) {
    *json_ = nlohmann::json::object();
  } else if (!json_->is_object()) {
    AddProblem("", absl::StrCat("args must be an object, not ", TypeName(*json_)));
    *json_ = nlohmann::json::object();
  }
}

ArgsReader::~ArgsReader() = default;

ArgsObject ArgsReader::root() { return ArgsObject(this, json_.get(), ""); }

void ArgsReader::AddProblem(std::string field, std::string message) {
  problems_.push_back({std::move(field), std::move(message)});
  has_errors_ = true;
}

void ArgsReader::AddWarning(std::string field, std::string message) {
  problems_.push_back({std::move(field), std::move(message), /*is_warning=*/true});
}

std::vector<ArgsProblem> ArgsReader::Finish() {
  opened_.insert("");
  CheckUnknown(*json_, "");
  return problems_;
}

void ArgsReader::CheckUnknown(const nlohmann::json& json, const std::string& path) {
  if (json.is_array()) {
    for (size_t i = 0; i < json.size(); ++i) CheckUnknown(json[i], absl::StrCat(path, "[", i, "]"));
    return;
  }
  if (!json.is_object() || !opened_.contains(path)) return;
  for (const auto& [key, value] : json.items()) {
    const std::string child = Join(path, key);
    if (!known_.contains(child)) {
      AddProblem(child, absl::StrCat("unknown field ", Quote(child)));
    } else {
      CheckUnknown(value, child);
    }
  }
}

ArgsObject::ArgsObject(ArgsReader* reader, const nlohmann::json* json, std::string path)
    : reader_(reader), json_(json), path_(std::move(path)) {
  reader_->opened_.insert(path_);
}

std::string ArgsObject::Path(absl::string_view key) const { return Join(path_, key); }

void ArgsObject::Problem(absl::string_view key, std::string message) const {
  reader_->AddProblem(Path(key), std::move(message));
}

void ArgsObject::Warning(absl::string_view key, std::string message) const {
  reader_->AddWarning(Path(key), std::move(message));
}

const nlohmann::json* ArgsObject::Find(absl::string_view key) const {
  reader_->known_.insert(Path(key));
  if (json_ == nullptr) return nullptr;
  auto it = json_->find(std::string(key));
  return it == json_->end() || it->is_null() ? nullptr : &*it;
}

void ArgsObject::WrongType(absl::string_view key, absl::string_view wanted,
                           const nlohmann::json& found) const {
  Problem(key, absl::StrCat("must be ", wanted, ", not ", TypeName(found)));
}

bool ArgsObject::Has(absl::string_view key) const { return Find(key) != nullptr; }

bool ArgsObject::Bool(absl::string_view key, bool default_value) const {
  const nlohmann::json* json = Find(key);
  if (json == nullptr) return default_value;
  if (json->is_boolean()) return json->get<bool>();
  WrongType(key, "a boolean", *json);
  return default_value;
}

int64_t ArgsObject::Int(absl::string_view key, int64_t default_value) const {
  const nlohmann::json* json = Find(key);
  if (json == nullptr) return default_value;
  if (IsInt(*json)) return json->get<int64_t>();
  WrongType(key, "an integer", *json);
  return default_value;
}

std::vector<int64_t> ArgsObject::Ints(absl::string_view key,
                                      std::vector<int64_t> default_value) const {
  const nlohmann::json* json = Find(key);
  if (json == nullptr) return default_value;
  if (!json->is_array()) {
    WrongType(key, "a list of integers", *json);
    return default_value;
  }
  std::vector<int64_t> result;
  for (size_t i = 0; i < json->size(); ++i) {
    if (IsInt((*json)[i])) {
      result.push_back((*json)[i].get<int64_t>());
    } else {
      WrongType(absl::StrCat(key, "[", i, "]"), "an integer", (*json)[i]);
    }
  }
  return result;
}

double ArgsObject::Double(absl::string_view key, double default_value) const {
  const nlohmann::json* json = Find(key);
  if (json == nullptr) return default_value;
  if (json->is_number()) return json->get<double>();
  WrongType(key, "a number", *json);
  return default_value;
}

std::string ArgsObject::String(absl::string_view key, absl::string_view default_value) const {
  const nlohmann::json* json = Find(key);
  if (json == nullptr) return std::string(default_value);
  if (json->is_string()) return json->get<std::string>();
  WrongType(key, "a string", *json);
  return std::string(default_value);
}

absl::Duration ArgsObject::Duration(absl::string_view key, absl::Duration default_value) const {
  const nlohmann::json* json = Find(key);
  if (json == nullptr) return default_value;
  absl::Duration result;
  if (!json->is_string()) {
    WrongType(key, "a duration such as \"30s\"", *json);
  } else if (absl::ParseDuration(json->get<std::string>(), &result)) {
    return result;
  } else {
    Problem(key, InvalidValue(json->get<std::string>(), "must be a duration such as 30s or 1h30m"));
  }
  return default_value;
}

std::vector<std::string> ArgsObject::Strings(absl::string_view key,
                                             std::vector<std::string> default_value) const {
  const nlohmann::json* json = Find(key);
  if (json == nullptr) return default_value;
  if (!json->is_array()) {
    WrongType(key, "a list of strings", *json);
    return default_value;
  }
  std::vector<std::string> result;
  for (size_t i = 0; i < json->size(); ++i) {
    if ((*json)[i].is_string()) {
      result.push_back((*json)[i].get<std::string>());
    } else {
      WrongType(absl::StrCat(key, "[", i, "]"), "a string", (*json)[i]);
    }
  }
  return result;
}

ArgsObject ArgsObject::Object(absl::string_view key) const {
  const nlohmann::json* json = Find(key);
  if (json != nullptr && !json->is_object()) {
    WrongType(key, "an object", *json);
    json = nullptr;
  }
  return ArgsObject(reader_, json, Path(key));
}

std::vector<ArgsObject> ArgsObject::Objects(absl::string_view key) const {
  std::vector<ArgsObject> result;
  const nlohmann::json* json = Find(key);
  if (json == nullptr) return result;
  if (!json->is_array()) {
    WrongType(key, "a list of objects", *json);
    return result;
  }
  for (size_t i = 0; i < json->size(); ++i) {
    const std::string item = absl::StrCat(key, "[", i, "]");
    const bool is_object = (*json)[i].is_object();
    if (!is_object) WrongType(item, "an object", (*json)[i]);
    result.push_back(ArgsObject(reader_, is_object ? &(*json)[i] : nullptr, Path(item)));
  }
  return result;
}

std::vector<std::string> ArgsObject::Keys() const {
  std::vector<std::string> keys;
  if (json_ == nullptr) return keys;
  for (const auto& [key, value] : json_->items()) {
    reader_->known_.insert(Path(key));
    keys.push_back(key);
  }
  return keys;
}

}  // namespace outboard::sdk
