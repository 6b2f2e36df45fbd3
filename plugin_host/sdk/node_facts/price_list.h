// A list of prices that an administrator writes: a file of lines, by instance type.
#ifndef OUTBOARD_PLUGIN_HOST_SDK_NODE_FACTS_PRICE_LIST_H_
#define OUTBOARD_PLUGIN_HOST_SDK_NODE_FACTS_PRICE_LIST_H_

#include <cstddef>
#include <map>
#include <string>
#include <tuple>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "plugin_host/sdk/label_values.h"
#include "plugin_host/sdk/node_facts/facts.h"

namespace outboard::sdk {

// The most that a label or a list may say, as of any amount (ParseAmount).
inline constexpr double kMaxPrice = 1e15;

// Comma-separated values. The first line names the columns, in any order: `instanceType` and
// `price` (per hour, in any currency), and optionally `capacityType`, `zone` and `region`. Blank
// lines and lines that begin with # are comments. An empty value matches every node:
//
//   instanceType,capacityType,zone,price
//   p5.48xlarge,on-demand,,98.32
//   p5.48xlarge,spot,us-east-1a,41.7
//
// Threading: a value.
// Lifetime:  a value.
// Errors:    Parse: INVALID_ARGUMENT `FILE:LINE: COLUMN: what is wrong`, for the first fault.
class PriceList {
 public:
  static constexpr size_t kMaxBytes = size_t{4} << 20;

  // An entry that applies to a node.
  struct Entry {
    double price = 0;
    int line = 0;
  };

  // `file`: its name in errors and in origins of facts.
  static absl::StatusOr<PriceList> Parse(absl::string_view text, std::string file);
  // The text of a file. Errors: NOT_FOUND; INVALID_ARGUMENT for more than kMaxBytes.
  static absl::StatusOr<std::string> ReadText(const std::string& path);

  // The entry that names the most about the node: its zone rather than its region rather than
  // neither, then its capacity type. Null: none. Clouds leave labels of the capacity type away from
  // on-demand nodes, so callers pass kOnDemand where it is unknown.
  const Entry* Find(const StringMap& labels, CapacityType capacity_type) const;

  const std::string& file() const { return file_; }
  size_t size() const { return entries_.size(); }

 private:
  // Instance type, capacity type, zone, region; empty: any.
  using Key = std::tuple<std::string, std::string, std::string, std::string>;

  std::string file_;
  std::map<Key, Entry> entries_;
};

}  // namespace outboard::sdk

#endif  // OUTBOARD_PLUGIN_HOST_SDK_NODE_FACTS_PRICE_LIST_H_
