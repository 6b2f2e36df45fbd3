#include "plugin_host/sdk/node_facts/price_list.h"

#include <algorithm>
#include <fstream>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "plugin_host/sdk/node_facts/node_labels.h"
#include "plugin_host/sdk/validation.h"

namespace outboard::sdk {
namespace {

// Indices of kColumns.
enum Column { kInstanceType, kPrice, kCapacityType, kZone, kRegion, kColumnCount };
constexpr const char* kColumns[kColumnCount] = {"instanceType", "price", "capacityType", "zone",
                                                "region"};
constexpr CapacityType kCapacityTypes[] = {CapacityType::kOnDemand, CapacityType::kSpot,
                                           CapacityType::kReserved};
// Far more than the offerings of any cloud.
constexpr size_t kMaxEntries = 200000;

std::vector<absl::string_view> Values(absl::string_view line) {
  std::vector<absl::string_view> values = absl::StrSplit(line, ',');
  for (absl::string_view& value : values) value = absl::StripAsciiWhitespace(value);
  return values;
}

// The column of each value of a line, from the first line.
absl::StatusOr<std::vector<Column>> ReadColumns(absl::string_view line) {
  std::vector<Column> columns;
  for (const absl::string_view name : Values(line)) {
    const auto* const found = std::find(std::begin(kColumns), std::end(kColumns), name);
    if (found == std::end(kColumns)) {
      return absl::InvalidArgumentError(absl::StrCat(
          "unknown column ", Quote(name), "; the columns are ", absl::StrJoin(kColumns, ", ")));
    }
    const auto column = static_cast<Column>(found - kColumns);
    if (std::count(columns.begin(), columns.end(), column) > 0)
      return absl::InvalidArgumentError(absl::StrCat(name, ": the column is named twice"));
    columns.push_back(column);
  }
  for (const Column needed : {kInstanceType, kPrice}) {
    if (std::count(columns.begin(), columns.end(), needed) == 0)
      return absl::InvalidArgumentError(absl::StrCat("missing column ", kColumns[needed]));
  }
  return columns;
}

absl::Status Fault(Column column, absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat(kColumns[column], ": ", what));
}

// The values of a line by column.
absl::StatusOr<std::vector<std::string>> ReadValues(absl::string_view line,
                                                    const std::vector<Column>& columns) {
  const std::vector<absl::string_view> values = Values(line);
  if (values.size() != columns.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat(values.size(), " values, but the first line names ", columns.size(),
                     " columns; a price has a point, no comma"));
  }
  std::vector<std::string> by_column(kColumnCount);
  for (size_t i = 0; i < values.size(); ++i) {
    // Spreadsheets quote texts with commas; no value has one.
    if (values[i].find('"') != absl::string_view::npos)
      return Fault(columns[i], absl::StrCat(Quote(values[i]), " must not be quoted"));
    by_column[columns[i]] = std::string(values[i]);
  }
  if (by_column[kInstanceType].empty()) return Fault(kInstanceType, "must not be empty");
  absl::AsciiStrToLower(&by_column[kCapacityType]);
  const std::string& type = by_column[kCapacityType];
  const bool is_known =
      type.empty() || std::any_of(std::begin(kCapacityTypes), std::end(kCapacityTypes),
                                  [&](CapacityType t) { return type == CapacityTypeName(t); });
  if (!is_known)
    return Fault(kCapacityType, absl::StrCat(Quote(type), " is not on-demand, spot or reserved"));
  if (!by_column[kZone].empty() && !by_column[kRegion].empty())
    return Fault(kRegion, "must be empty where zone has a value");
  return by_column;
}

std::string LabelOf(const StringMap& labels, const char* key) {
  const std::string* text = FindValue(labels, key);
  return text == nullptr ? "" : *text;
}

}  // namespace

absl::StatusOr<PriceList> PriceList::Parse(absl::string_view text, std::string file) {
  PriceList list;
  list.file_ = std::move(file);
  std::vector<Column> columns;
  int number = 0;
  const auto at = [&](absl::string_view what) {
    return absl::InvalidArgumentError(absl::StrCat(list.file_, ":", number, ": ", what));
  };
  for (const absl::string_view raw : absl::StrSplit(text, '\n')) {
    ++number;
    const absl::string_view line = absl::StripAsciiWhitespace(raw);
    if (line.empty() || line[0] == '#') continue;
    if (columns.empty()) {
      absl::StatusOr<std::vector<Column>> read = ReadColumns(line);
      if (!read.ok()) return at(read.status().message());
      columns = *std::move(read);
      continue;
    }
    absl::StatusOr<std::vector<std::string>> values = ReadValues(line, columns);
    if (!values.ok()) return at(values.status().message());
    const std::optional<double> price = ParseAmount((*values)[kPrice], kMaxPrice);
    if (!price) {
      return at(Fault(kPrice, absl::StrCat(Quote((*values)[kPrice]),
                                           " is not a decimal number up to ", kMaxPrice))
                    .message());
    }
    if (list.entries_.size() >= kMaxEntries)
      return at(absl::StrCat("more than ", kMaxEntries, " prices"));
    Key key((*values)[kInstanceType], (*values)[kCapacityType], (*values)[kZone],
            (*values)[kRegion]);
    const auto [entry, is_new] = list.entries_.try_emplace(std::move(key), Entry{*price, number});
    if (!is_new) {
      return at(Fault(kInstanceType,
                      absl::StrCat(Quote((*values)[kInstanceType]), " has a price on line ",
                                   entry->second.line, " for the same capacity type and place"))
                    .message());
    }
  }
  if (columns.empty()) return at("no line names the columns, such as instanceType,price");
  return list;
}

absl::StatusOr<std::string> PriceList::ReadText(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return absl::NotFoundError(absl::StrCat(path, ": cannot be read"));
  std::string text(kMaxBytes + 1, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (file.bad() || (file.fail() && !file.eof()))
    return absl::NotFoundError(absl::StrCat(path, ": cannot be read"));
  text.resize(static_cast<size_t>(file.gcount()));
  if (text.size() > kMaxBytes)
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": larger than ", kMaxBytes >> 20, " MiB"));
  return text;
}

const PriceList::Entry* PriceList::Find(const StringMap& labels, CapacityType capacity_type) const {
  const std::string type = LabelOf(labels, node_labels::kInstanceType);
  if (type.empty()) return nullptr;
  const std::string zone = LabelOf(labels, node_labels::kZone);
  const std::string region = LabelOf(labels, node_labels::kRegion);
  const std::pair<std::string, std::string> places[] = {{zone, ""}, {"", region}, {"", ""}};
  for (const auto& [in_zone, in_region] : places) {
    for (const char* of_type : {CapacityTypeName(capacity_type), ""}) {
      const auto it = entries_.find(Key(type, of_type, in_zone, in_region));
      if (it != entries_.end()) return &it->second;
    }
  }
  return nullptr;
}

}  // namespace outboard::sdk
