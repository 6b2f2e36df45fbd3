#include "integration/bench/csv.h"

#include <algorithm>
#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace outboard::bench {

absl::StatusOr<std::vector<std::vector<std::string>>> ReadCsv(
    const std::string& name, const std::vector<std::string>& required,
    const std::vector<std::string>& optional, std::istream* text) {
  std::string line;
  const auto next = [&] {
    if (!std::getline(*text, line)) return false;
    if (!line.empty() && line.back() == '\r') line.pop_back();
    return true;
  };
  if (!next()) return absl::InvalidArgumentError(absl::StrCat(name, ": empty"));
  const std::vector<std::string> names = absl::StrSplit(line, ',');
  std::vector<std::optional<size_t>> places;  // nullopt: absent
  const auto find = [&](const std::string& column) {
    const auto it = std::find(names.begin(), names.end(), column);
    places.emplace_back();
    if (it != names.end()) places.back() = static_cast<size_t>(it - names.begin());
    return it != names.end();
  };
  for (const std::string& column : required) {
    if (!find(column))
      return absl::InvalidArgumentError(absl::StrCat(name, ": no column ", column));
  }
  for (const std::string& column : optional) find(column);
  std::vector<std::vector<std::string>> rows;
  while (next()) {
    const std::vector<std::string> fields = absl::StrSplit(line, ',');
    if (fields.size() != names.size()) {
      return absl::InvalidArgumentError(absl::StrCat(
          name, ":", rows.size() + 2, ": ", fields.size(), " fields instead of ", names.size()));
    }
    std::vector<std::string>& row = rows.emplace_back();
    for (const std::optional<size_t>& place : places)
      row.push_back(place.has_value() ? fields[*place] : "");
  }
  return rows;
}

}  // namespace outboard::bench
