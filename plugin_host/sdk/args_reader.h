// Reads a plugin's arguments strictly: reports every fault with the path of its field.
#ifndef OUTBOARD_PLUGIN_HOST_SDK_ARGS_READER_H_
#define OUTBOARD_PLUGIN_HOST_SDK_ARGS_READER_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "nlohmann/json_fwd.hpp"

namespace outboard::sdk {

// A fault of the arguments.
struct ArgsProblem {
  std::string field;  // `scoringStrategy.resources[0].weight`; empty: the arguments as a whole.
  std::string message;
  bool is_warning = false;  // the configuration is in force all the same
};

class ArgsReader;

// One object within the arguments. Reading a field marks it as known. An absent or null field
// returns the default; a field of the wrong type returns the default and adds a problem.
//
// Threading: thread-compatible.
// Lifetime: as the reader.
// Errors: collected in the reader.
class ArgsObject {
 public:
  // False also for null.
  bool Has(absl::string_view key) const;
  bool Bool(absl::string_view key, bool default_value) const;
  int64_t Int(absl::string_view key, int64_t default_value) const;
  double Double(absl::string_view key, double default_value) const;
  std::string String(absl::string_view key, absl::string_view default_value) const;
  // Kubernetes' durations: a string such as `1m30s`.
  absl::Duration Duration(absl::string_view key, absl::Duration default_value) const;
  std::vector<std::string> Strings(absl::string_view key,
                                   std::vector<std::string> default_value = {}) const;
  std::vector<int64_t> Ints(absl::string_view key, std::vector<int64_t> default_value = {}) const;
  // Absent: an empty object, in which every field has its default.
  ArgsObject Object(absl::string_view key) const;
  std::vector<ArgsObject> Objects(absl::string_view key) const;
  // Keys of a map with user-defined keys; marks all as known.
  std::vector<std::string> Keys() const;

  // The path of a field of this object.
  std::string Path(absl::string_view key) const;
  const std::string& path() const { return path_; }
  // Reports a fault of a field of this object. Kubernetes' wording: `Invalid value: 0: must be
  // greater than zero`.
  void Problem(absl::string_view key, std::string message) const;
  // Reports that the plugin ignores a field of this object, and why.
  void Warning(absl::string_view key, std::string message) const;

 private:
  friend class ArgsReader;
  ArgsObject(ArgsReader* reader, const nlohmann::json* json, std::string path);
  const nlohmann::json* Find(absl::string_view key) const;
  void WrongType(absl::string_view key, absl::string_view wanted,
                 const nlohmann::json& found) const;

  ArgsReader* reader_;
  const nlohmann::json* json_;  // Null: absent.
  std::string path_;
};

// A plugin's whole arguments.
//
// Use: `ArgsObject args = context.args->root();`, read fields, and return. The host calls Finish
// and rejects the configuration if there are problems that are not warnings, including unknown
// fields.
//
// Threading: thread-compatible.
// Lifetime: objects point into it.
// Errors: as problems.
class ArgsReader {
 public:
  // Never fails: text that is not a JSON object is a problem. Empty text means `{}`.
  explicit ArgsReader(absl::string_view json);
  ~ArgsReader();
  ArgsReader(const ArgsReader&) = delete;
  ArgsReader& operator=(const ArgsReader&) = delete;

  ArgsObject root();
  void AddProblem(std::string field, std::string message);
  void AddWarning(std::string field, std::string message);
  // All problems so far, and one for each field that was not read.
  std::vector<ArgsProblem> Finish();
  // No problems so far but warnings.
  bool ok() const { return !has_errors_; }

 private:
  friend class ArgsObject;
  void CheckUnknown(const nlohmann::json& json, const std::string& path);

  std::unique_ptr<nlohmann::json> json_;
  std::vector<ArgsProblem> problems_;
  bool has_errors_ = false;
  std::set<std::string> known_;   // Paths that were read.
  std::set<std::string> opened_;  // Paths of objects that were opened.
};

}  // namespace outboard::sdk

#endif  // OUTBOARD_PLUGIN_HOST_SDK_ARGS_READER_H_
