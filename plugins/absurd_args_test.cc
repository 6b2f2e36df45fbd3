// User-requested plugins with absurd args. Each configuration is either accepted and conforms to
// the plugin's schema, or rejected with the paths of fields of the schema.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <random>
#include <regex>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "nlohmann/json.hpp"
#include "plugin_host/sdk/testing/builders.h"
#include "plugin_host/sdk/testing/plugin_harness.h"
#include "plugins/absurd_input_rules.h"
#include "plugins/builtin_plugins.h"

namespace outboard::absurd {
namespace {

using Json = nlohmann::json;
using sdk::testing::NodeBuilder;
using sdk::testing::PluginHarness;
using sdk::testing::PodBuilder;

#ifdef OUTBOARD_SANITIZED
constexpr int kSeeds = 300;
#else
constexpr int kSeeds = 2000;
#endif

bool HasType(const Json& value, const std::string& type) {
  if (type == "object") return value.is_object();
  if (type == "array") return value.is_array();
  if (type == "string") return value.is_string();
  if (type == "boolean") return value.is_boolean();
  if (type == "integer") return value.is_number_integer();
  if (type == "number") return value.is_number();
  ADD_FAILURE() << "a schema has the type " << type;
  return false;
}

// Why a value violates a schema; empty: it conforms. Supports only the parts of JSON Schema that
// the plugins use; null means absent.
std::string Fault(const Json& value, const Json& schema, const std::string& path) {
  static const std::set<std::string> known = {"type",
                                              "properties",
                                              "additionalProperties",
                                              "required",
                                              "items",
                                              "minItems",
                                              "maxItems",
                                              "enum",
                                              "minimum",
                                              "maximum",
                                              "exclusiveMinimum",
                                              "pattern",
                                              "default",
                                              "description",
                                              "$comment"};
  for (const auto& [keyword, ignored] : schema.items())
    if (!known.contains(keyword)) return absl::StrCat(path, ": unknown schema keyword ", keyword);
  if (value.is_null()) return "";
  if (schema.contains("type") && !HasType(value, schema["type"]))
    return absl::StrCat(path, ": is not of type ", schema["type"].get<std::string>());
  if (schema.contains("enum") &&
      std::find(schema["enum"].begin(), schema["enum"].end(), value) == schema["enum"].end())
    return absl::StrCat(path, ": is not in the enum");
  if (value.is_number()) {
    const double number = value.get<double>();
    if (schema.contains("minimum") && number < schema["minimum"].get<double>())
      return absl::StrCat(path, ": is below the minimum");
    if (schema.contains("exclusiveMinimum") && number <= schema["exclusiveMinimum"].get<double>())
      return absl::StrCat(path, ": is at the exclusive minimum, or below");
    if (schema.contains("maximum") && number > schema["maximum"].get<double>())
      return absl::StrCat(path, ": is above the maximum");
  }
  if (value.is_string() && schema.contains("pattern") &&
      !std::regex_search(value.get<std::string>(),
                         std::regex(schema["pattern"].get<std::string>())))
    return absl::StrCat(path, ": does not match the pattern");
  if (value.is_array()) {
    if (schema.contains("minItems") && value.size() < schema["minItems"].get<size_t>())
      return absl::StrCat(path, ": has too few items");
    if (schema.contains("maxItems") && value.size() > schema["maxItems"].get<size_t>())
      return absl::StrCat(path, ": has too many items");
    for (size_t i = 0; i < value.size() && schema.contains("items"); ++i) {
      // A list cannot have absent items.
      if (value[i].is_null()) return absl::StrCat(path, "[", i, "]: is null");
      const std::string fault = Fault(value[i], schema["items"], absl::StrCat(path, "[", i, "]"));
      if (!fault.empty()) return fault;
    }
  }
  if (!value.is_object()) return "";
  for (const auto& key : schema.value("required", Json::array())) {
    if (!value.contains(key.get<std::string>()) || value[key.get<std::string>()].is_null())
      return absl::StrCat(path, ": lacks ", key.get<std::string>());
  }
  for (const auto& [key, field] : value.items()) {
    const std::string field_path = absl::StrCat(path, ".", key);
    std::string fault;
    if (schema.contains("properties") && schema["properties"].contains(key)) {
      fault = Fault(field, schema["properties"][key], field_path);
    } else if (schema.contains("additionalProperties")) {
      const Json& others = schema["additionalProperties"];
      if (others.is_boolean() && !others.get<bool>())
        fault = absl::StrCat(field_path, ": is unknown");
      if (others.is_object()) fault = Fault(field, others, field_path);
    }
    if (!fault.empty()) return fault;
  }
  return "";
}

// Returns whether a schema has a field: `windows[0].factor`.
bool HasField(const Json* schema, const std::string& path) {
  if (path.empty()) return true;
  for (absl::string_view part : absl::StrSplit(path, '.')) {
    const size_t bracket = std::min(part.find('['), part.size());
    const std::string name(part.substr(0, bracket));
    if (schema->contains("properties") && (*schema)["properties"].contains(name)) {
      schema = &(*schema)["properties"][name];
    } else if (schema->contains("additionalProperties") &&
               (*schema)["additionalProperties"].is_object()) {
      schema = &(*schema)["additionalProperties"];
    } else {
      return false;
    }
    for (part.remove_prefix(bracket); !part.empty(); part.remove_prefix(part.find(']') + 1)) {
      if (!schema->contains("items")) return false;
      schema = &(*schema)["items"];
    }
  }
  return true;
}

class Args {
 public:
  explicit Args(uint64_t seed) : random_(seed) {}

  // Mostly of the schema's shape: within its bounds, at them, or beyond.
  Json Make(const Json& schema, int depth = 0) {
    if (depth > 0 && Below(8) == 0) return Absurd();
    if (schema.contains("default") && Below(4) == 0) return schema["default"];
    if (schema.contains("enum")) return schema["enum"][Below(schema["enum"].size())];
    const std::string type = schema.value("type", "object");
    if (type == "boolean") return Below(2) == 0;
    if (type == "integer" || type == "number") return Number(schema, type == "integer");
    if (type == "string") return String(schema);
    if (type == "array") {
      Json list = Json::array();
      for (uint64_t i = 0, n = Below(4); i < n; ++i)
        list.push_back(Make(schema.value("items", Json::object()), depth + 1));
      return list;
    }
    Json object = Json::object();
    if (schema.contains("properties")) {
      for (const auto& [key, field] : schema["properties"].items())
        if (Below(2) == 0) object[key] = Make(field, depth + 1);
    }
    if (schema.contains("additionalProperties") && schema["additionalProperties"].is_object()) {
      for (const char* key : {"b200", "example/x", "", "९", "a b"})
        if (Below(4) == 0) object[key] = Make(schema["additionalProperties"], depth + 1);
    }
    if (Below(12) == 0) object["unknown"] = Absurd();
    return object;
  }

 private:
  uint64_t Below(uint64_t n) { return random_() % n; }
  Json Number(const Json& schema, bool whole) {
    std::vector<double> numbers = {0, 1, 2, 10, -1, 1e18};
    for (const char* bound : {"minimum", "maximum", "exclusiveMinimum"}) {
      if (!schema.contains(bound)) continue;
      const double value = schema[bound].get<double>();
      numbers.insert(numbers.end(), {value, value - 1, value + 1});
    }
    if (!whole) numbers.insert(numbers.end(), {0.5, 1e-300, 1e300, -0.0});
    const double number = numbers[Below(numbers.size())];
    if (whole) return static_cast<int64_t>(number);
    return number;
  }
  Json String(const Json& schema) {
    static const std::vector<std::string>& some =
        *new std::vector<std::string>{"nvidia.com/gpu",
                                      "amd.com/gpu",
                                      "example.com/x",
                                      "22:00",
                                      "06:00",
                                      "24:00",
                                      "23:59",
                                      "*",
                                      "Mon-Fri",
                                      "1-5",
                                      "UTC",
                                      "Europe/Berlin",
                                      "50ms",
                                      "-1s",
                                      "1h",
                                      "spot",
                                      "cpu",
                                      "A100",
                                      "Europe/Nowhere",
                                      "25:00",
                                      "Fri-Mon",
                                      "topology.kubernetes.io/zone",
                                      "http://127.0.0.1:9",
                                      "OnDelete"};
    if (Below(4) == 0) return AbsurdText();
    return some[Below(some.size())];
  }
  // As JSON can have it.
  std::string AbsurdText() {
    const std::string& text = AbsurdValues()[Below(AbsurdValues().size())];
    return text;
  }
  Json Absurd() {
    switch (Below(9)) {
      case 0:
        return nullptr;
      case 1:
        return Json::array();
      case 2:
        return Json::object();
      case 3:
        return -1;
      case 4:
        return 18446744073709551615u;
      case 5:
        return 1e308;
      case 6:
        return true;
      case 7:
        return Json::array({Json::array({nullptr})});
      default:
        return AbsurdText();
    }
  }

  std::mt19937_64 random_;
};

TEST(AbsurdArgsTest, AcceptedAsInTheSchemaOrRejectedByField) {
  sdk::PluginRegistry registry;
  ASSERT_TRUE(RegisterBuiltinPlugins(&registry).ok());
  int taken = 0, refused = 0;
  for (const Requested& plugin : RequestedPlugins()) {
    const sdk::PluginDescriptor& descriptor = *registry.Find(plugin.name);
    if (descriptor.args_schema.empty()) continue;  // It takes none.
    const Json schema = Json::parse(descriptor.args_schema);
    for (int seed = 1; seed <= kSeeds && !HasFailure(); ++seed) {
      const Json args = Args(static_cast<uint64_t>(seed)).Make(schema);
      SCOPED_TRACE(absl::StrCat(plugin.name, ", seed ", seed, ": ", args.dump()));
      const auto harness = PluginHarness::Create(descriptor, args.dump());
      const std::string fault = Fault(args, schema, "args");
      if (harness.ok()) {
        ++taken;
        EXPECT_EQ(fault, "") << "was taken";
        (*harness)->AddNode(NodeBuilder("n").Allocatable({{"cpu", "4"}, {"nvidia.com/gpu", "8"}}));
        const PodBuilder pod = PodBuilder("p").Requests({{"nvidia.com/gpu", "2"}});
        const sdk::Verdict verdict = (*harness)->PreFilter(pod).verdict;
        EXPECT_TRUE(verdict.ok() || verdict.skip());
        (*harness)->Filter(pod);
        if (dynamic_cast<sdk::ScorePlugin*>(&(*harness)->plugin()) != nullptr) {
          EXPECT_TRUE((*harness)->Score(pod).ok());
        }
        (*harness)->Tick();
        continue;
      }
      ++refused;
      for (const absl::string_view line : absl::StrSplit(harness.status().message(), '\n')) {
        // `path: message`, or the message alone where it is about all of them.
        const std::string path(line.substr(0, std::min(line.find(": "), line.size())));
        const bool unknown = absl::StrContains(line, "unknown field");
        const bool known = HasField(&schema, path);
        EXPECT_TRUE(known != unknown) << line;
      }
    }
  }
  EXPECT_GT(taken, refused / 20) << "the args are too absurd to be taken";
  EXPECT_GT(refused, taken / 20);
}

// Text that is not a JSON object.
TEST(AbsurdArgsTest, NoObjectIsRefused) {
  sdk::PluginRegistry registry;
  ASSERT_TRUE(RegisterBuiltinPlugins(&registry).ok());
  for (const Requested& plugin : RequestedPlugins()) {
    for (const char* text : {"[]", "1", "\"x\"", "{", "{}}", "\xff", "nul", "{\"a\":}"}) {
      EXPECT_FALSE(PluginHarness::Create(*registry.Find(plugin.name), text).ok())
          << plugin.name << " takes " << text;
    }
  }
}

}  // namespace
}  // namespace outboard::absurd
