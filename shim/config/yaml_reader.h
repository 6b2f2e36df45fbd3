// Reads YAML strictly: every field must be known, unique and of the right type; otherwise there is
// a problem with its position.
#ifndef OUTBOARD_SHIM_CONFIG_YAML_READER_H_
#define OUTBOARD_SHIM_CONFIG_YAML_READER_H_

#include <yaml-cpp/yaml.h>

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "shim/config/config.h"
#include "shim/config/nearest.h"

namespace outboard::config {

// The problems of a file, in the order of their positions.
class Problems {
 public:
  explicit Problems(std::string file) : file_(std::move(file)) {}

  void Add(const Location& where, absl::string_view what);
  // `path` is the field's path, if it differs from the problem's position.
  void Add(const Location& where, absl::string_view path, absl::string_view what);
  bool empty() const { return found_.empty(); }
  // OK, or INVALID_ARGUMENT with one problem per line.
  absl::Status ToStatus() const;

  // "FILE:LINE:COL: path: what", without unknown parts.
  std::string Line(const Location& where, absl::string_view path, absl::string_view what) const;

 private:
  struct Problem {
    int line, column;
    std::string text;
    bool operator==(const Problem&) const = default;
  };

  std::string file_;
  std::vector<Problem> found_;
  size_t left_out_ = 0;
};

// The position of a node.
Location LocationOf(const YAML::Node& node, std::string path);

// One mapping. The caller gets fields one by one; Finish then reports the remaining ones. A getter
// leaves `out` unchanged if the field is absent or null.
//
// Threading: one thread.
// Lifetime: within the reading function.
class MapReader {
 public:
  MapReader(const YAML::Node& node, std::string path, Problems* problems);

  bool String(absl::string_view key, std::string* out);
  bool Bool(absl::string_view key, bool* out);
  bool Int32(absl::string_view key, int32_t* out);
  bool Int64(absl::string_view key, int64_t* out);
  bool Float(absl::string_view key, double* out);
  bool Duration(absl::string_view key, absl::Duration* out);
  bool Map(absl::string_view key, const std::function<void(MapReader&)>& read);
  // Calls `read` for each element of a list.
  bool List(absl::string_view key,
            const std::function<void(const YAML::Node&, const std::string& path)>& read);
  // Like List, for elements that are mappings; reports their unknown fields too.
  bool MapList(absl::string_view key, const std::function<void(MapReader&)>& read);
  bool StringList(absl::string_view key, std::vector<std::string>* out);
  // The unparsed field; false if absent or null.
  bool Any(absl::string_view key, YAML::Node* out, Location* where);

  // Reports the fields that were not read.
  void Finish();
  // Called for an unknown field without a similar name. The result is appended to the problem.
  void SetHint(std::function<std::string(const std::string& key)> hint) { hint_ = std::move(hint); }
  // The fields that the caller has asked for.
  const std::vector<std::string>& asked() const { return asked_; }

  const std::string& path() const { return path_; }
  std::string PathOf(absl::string_view key) const;
  // The position of the mapping, or of a field if present.
  Location where() const { return where_; }
  Location where(absl::string_view key) const;
  Problems& problems() { return *problems_; }

 private:
  struct Field {
    std::string key;
    Location where;
    YAML::Node value;
    bool asked = false;
  };
  const Field* Find(absl::string_view key);
  bool ReadInteger(absl::string_view key, int64_t low, int64_t high, int64_t* out);

  std::string path_;
  Problems* problems_;
  Location where_;
  std::vector<Field> fields_;
  std::vector<std::string> asked_;
  std::function<std::string(const std::string& key)> hint_;
};

// The value as JSON.
// Errors: a NaN or infinity, nesting over 64, more than 256 KiB (the contract's limit for plugin
// args), or a duplicate key.
absl::StatusOr<std::string> YamlToJson(const YAML::Node& node);

}  // namespace outboard::config

#endif  // OUTBOARD_SHIM_CONFIG_YAML_READER_H_
