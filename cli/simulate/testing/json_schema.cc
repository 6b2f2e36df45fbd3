#include "cli/simulate/testing/json_schema.h"

#include <set>

#include "absl/strings/str_cat.h"

namespace outboard::simulate {
namespace {

using Json = nlohmann::json;

bool HasType(const Json& value, const std::string& type) {
  if (type == "integer") return value.is_number_integer();
  if (type == "number") return value.is_number();
  return value.type_name() == type;
}

std::string Joined(const std::string& path, const std::string& name) {
  return path.empty() ? name : absl::StrCat(path, ".", name);
}

void CheckObject(const Json& root, const Json& schema, const Json& value, const std::string& path,
                 std::vector<std::string>* problems) {
  const auto add = [problems](const std::vector<std::string>& found) {
    problems->insert(problems->end(), found.begin(), found.end());
  };
  for (const std::string name : schema.value("required", Json::array())) {
    if (!value.contains(name)) problems->push_back(absl::StrCat(Joined(path, name), ": missing"));
  }
  const Json properties = schema.value("properties", Json::object());
  const Json others = schema.value("additionalProperties", Json(true));
  for (const auto& [name, member] : value.items()) {
    if (properties.contains(name)) {
      add(CheckSchema(root, properties[name], member, Joined(path, name)));
    } else if (others.is_object()) {
      add(CheckSchema(root, others, member, Joined(path, name)));
    } else if (!others.get<bool>()) {
      problems->push_back(absl::StrCat(Joined(path, name), ": unknown"));
    }
  }
}

}  // namespace

std::vector<std::string> CheckSchema(const Json& root, const Json& schema, const Json& value,
                                     const std::string& path) {
  static const auto& known = *new std::set<std::string>(
      {"$schema", "$defs", "$ref", "title", "description", "type", "enum", "minimum", "required",
       "properties", "additionalProperties", "items"});
  std::vector<std::string> problems;
  for (const auto& [keyword, unused] : schema.items()) {
    if (!known.contains(keyword))
      problems.push_back(absl::StrCat(path, ": the schema has the keyword ", keyword));
  }
  if (schema.contains("$ref")) {
    const std::string name = std::string(schema["$ref"]).substr(std::string("#/$defs/").size());
    for (std::string& problem : CheckSchema(root, root["$defs"][name], value, path))
      problems.push_back(std::move(problem));
  }
  if (schema.contains("enum")) {
    bool is_listed = false;
    for (const Json& allowed : schema["enum"]) is_listed = is_listed || allowed == value;
    if (!is_listed) problems.push_back(absl::StrCat(path, ": ", value.dump(), " is not allowed"));
  }
  if (schema.contains("minimum") && value.is_number() && value < schema["minimum"])
    problems.push_back(absl::StrCat(path, ": below ", schema["minimum"].dump()));
  if (schema.contains("type") && !HasType(value, schema["type"])) {
    problems.push_back(absl::StrCat(path, ": not of type ", std::string(schema["type"])));
    return problems;
  }
  if (value.is_object()) CheckObject(root, schema, value, path, &problems);
  if (value.is_array() && schema.contains("items")) {
    for (size_t i = 0; i < value.size(); ++i) {
      for (std::string& problem :
           CheckSchema(root, schema["items"], value[i], absl::StrCat(path, "[", i, "]")))
        problems.push_back(std::move(problem));
    }
  }
  return problems;
}

}  // namespace outboard::simulate
