// Checks JSON against a JSON schema, as far as the schemas of this repository go.
#ifndef OUTBOARD_CLI_SIMULATE_TESTING_JSON_SCHEMA_H_
#define OUTBOARD_CLI_SIMULATE_TESTING_JSON_SCHEMA_H_

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace outboard::simulate {

// What is wrong with `value`, one problem an element: `scores.n1.total: not of type integer`. Knows
// $ref to $defs, type, enum, minimum, required, properties, additionalProperties and items. A
// schema with another keyword is wrong.
std::vector<std::string> CheckSchema(const nlohmann::json& root, const nlohmann::json& schema,
                                     const nlohmann::json& value, const std::string& path = "");

}  // namespace outboard::simulate

#endif  // OUTBOARD_CLI_SIMULATE_TESTING_JSON_SCHEMA_H_
