#include "plugins/gpu_load/load_query.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "nlohmann/json.hpp"

namespace outboard::gpu_load {
namespace {

// Distinguishes the kinds of rows.
constexpr char kKind[] = "outboard";
constexpr char kUse[] = "use";
constexpr char kMemory[] = "memory";
constexpr char kSampled[] = "sampled";
constexpr char kXid[] = "xid";

constexpr size_t kMaxDepth = 8;
constexpr size_t kMaxLabels = 64;
constexpr size_t kMaxTextBytes = 4096;
// Rounding may raise means of floating point numbers slightly above 1.
constexpr double kMostUse = 1.01;
constexpr int64_t kMostXid = 65535;
// If a clock is further ahead of Prometheus', ages are meaningless.
constexpr double kMostSecondsAhead = 60;

struct Row {
  std::map<std::string, std::string> labels;
  double time = 0;
  std::string value;
  int values = 0;
};

// Builds rows from the tokens of an answer. Returning false ends the parse.
class AnswerHandler : public nlohmann::json_sax<nlohmann::json> {
 public:
  using json = nlohmann::json;
  bool null() override { return Scalar(); }
  bool boolean(bool) override { return Scalar(); }
  bool number_integer(json::number_integer_t value) override {
    return Number(static_cast<double>(value));
  }
  bool number_unsigned(json::number_unsigned_t value) override {
    return Number(static_cast<double>(value));
  }
  bool number_float(json::number_float_t value, const json::string_t&) override {
    return Number(value);
  }
  bool binary(json::binary_t&) override { return false; }
  bool string(json::string_t& value) override {
    if (value.size() > kMaxTextBytes) return Fault("a text is too long");
    if (At({"", "status"})) status_ = value;
    if (At({"", "error"})) error_ = value;
    if (At({"", "data", "resultType"})) result_type_ = value;
    if (InLabels()) {
      if (row_.labels.size() >= kMaxLabels) return Fault("a row has too many labels");
      row_.labels[keys_.back()] = value;
    } else if (InValue()) {
      if (row_.values++ != 1) return Fault("a value is not [time, text]");
      row_.value = value;
    } else if (IsRowsPlace() || IsRowsPart()) {
      return Fault("a row is not an object with metric and value");
    }
    return true;
  }
  bool start_object(size_t) override {
    if (InLabels() || InValue() || IsRowsPlace() || At({"", "data", "result", "[", "value"}))
      return Fault("an object where there should be none");
    if (IsRow()) row_ = Row();
    return Open("");
  }
  bool key(json::string_t& name) override {
    if (name.size() > kMaxTextBytes) return Fault("a name is too long");
    keys_.back() = name;
    return true;
  }
  bool end_object() override {
    keys_.pop_back();
    if (!IsRow()) return true;
    if (row_.values != 2) return Fault("a row has no value");
    if (rows_.size() >= kMaxRows) return Fault("too many rows");
    rows_.push_back(std::move(row_));
    return true;
  }
  bool start_array(size_t) override {
    if (IsRow() || InLabels() || InValue() || At({"", "data", "result", "[", "metric"}))
      return Fault("a list where there should be none");
    if (IsRowsPlace()) has_result_ = true;
    return Open("[");
  }
  bool end_array() override {
    keys_.pop_back();
    return true;
  }
  bool parse_error(size_t position, const std::string&, const json::exception&) override {
    return Fault(absl::StrCat("no JSON from byte ", position, " on"));
  }

  absl::Status Status() const {
    if (!fault_.empty()) return absl::InvalidArgumentError(fault_);
    if (status_ == "error") {
      return absl::AbortedError(absl::StrCat("Prometheus says: ", error_));
    }
    if (status_ != "success" || result_type_ != "vector" || !has_result_)
      return absl::InvalidArgumentError("no answer to an instant query");
    return absl::OkStatus();
  }
  const std::vector<Row>& rows() const { return rows_; }
  bool Fault(std::string what) {
    if (fault_.empty()) fault_ = std::move(what);
    return false;
  }

 private:
  bool Open(const char* what) {
    if (keys_.size() >= kMaxDepth) return Fault("nested too deeply");
    keys_.emplace_back(what);
    return true;
  }
  bool Scalar() {
    if (InLabels() || InValue() || IsRow() || IsRowsPlace() || IsRowsPart())
      return Fault("a row is not an object with metric and value");
    return true;
  }
  bool Number(double value) {
    if (!InValue()) return Scalar();
    if (row_.values++ != 0) return Fault("a value is not [time, text]");
    row_.time = value;
    return true;
  }

  // keys_ has, per open object, the key being read ("" before the first), and "[" per open list.
  // The first entry of `path` stands for the root and is not compared.
  bool At(std::initializer_list<absl::string_view> path) const {
    return keys_.size() == path.size() - 1 &&
           std::equal(path.begin() + 1, path.end(), keys_.begin(),
                      [](absl::string_view a, const std::string& b) { return a == b; });
  }
  bool IsRowsPlace() const { return At({"", "data", "result"}); }
  bool IsRow() const { return At({"", "data", "result", "["}); }
  bool IsRowsPart() const {
    return At({"", "data", "result", "[", "metric"}) || At({"", "data", "result", "[", "value"}) ||
           IsRow();
  }
  bool Within(absl::string_view part) const {
    return keys_.size() == 5 && keys_[0] == "data" && keys_[1] == "result" && keys_[2] == "[" &&
           keys_[3] == part;
  }
  bool InLabels() const { return Within("metric"); }
  bool InValue() const { return Within("value"); }

  std::vector<std::string> keys_;
  std::string status_, error_, result_type_, fault_;
  bool has_result_ = false;
  Row row_;
  std::vector<Row> rows_;
};

std::string Quoted(absl::string_view text) {
  return absl::StrCat(
      "\"", absl::StrReplaceAll(text, {{"\\", "\\\\"}, {"\"", "\\\""}, {"\n", "\\n"}}), "\"");
}

std::vector<std::string> NamesOf(const Row& row, const QueryOptions& options) {
  std::vector<std::string> names;
  for (const std::string& label : options.node_labels) {
    const auto it = row.labels.find(label);
    if (it != row.labels.end() && !it->second.empty()) names.push_back(it->second);
  }
  return names;
}

std::string LabelOf(const Row& row, const char* label) {
  const auto it = row.labels.find(label);
  return it == row.labels.end() ? "" : it->second;
}

// A host's figures from its rows.
struct Parts {
  std::optional<double> use, memory, age_seconds;
};

}  // namespace

std::string QueryText(const QueryOptions& options) {
  std::vector<std::string> matchers;
  for (const auto& [label, value] : options.matchers)
    matchers.push_back(absl::StrCat(label, "=", Quoted(value)));
  const std::string where = absl::StrCat("{", absl::StrJoin(matchers, ","), "}");
  const std::string host = absl::StrJoin(options.node_labels, ",");
  const std::string limit =
      absl::StrCat("(time() - ", absl::ToInt64Milliseconds(options.max_sample_age) / 1000.0, ")");
  const auto sampled = [&](absl::string_view metric) {
    return absl::StrCat("timestamp(", metric, where, ") >= ", limit);
  };
  const auto fresh = [&](absl::string_view metric) {
    return absl::StrCat("(", metric, where, " and (", sampled(metric), "))");
  };
  // One figure per GPU, or per instance of it (MIG). Several series may report it: one per pod that
  // shares it, or per replica of Prometheus.
  const auto of_gpu = [&](absl::string_view expression) {
    return absl::StrCat("max by (", host, ",gpu,GPU_I_ID) (", expression, ")");
  };
  const auto sum = [&](absl::string_view metric) {
    return absl::StrCat("sum by (", host, ") (", of_gpu(fresh(metric)), ")");
  };
  const auto row = [](const char* kind, absl::string_view expression) {
    return absl::StrCat("label_replace(", expression, ", \"", kKind, "\", \"", kind,
                        "\", \"\", \"\")");
  };
  constexpr char kActive[] = "DCGM_FI_PROF_GR_ENGINE_ACTIVE";  // 0..1
  constexpr char kUtil[] = "DCGM_FI_DEV_GPU_UTIL";             // 0..100
  constexpr char kUsed[] = "DCGM_FI_DEV_FB_USED";
  // The second metric for GPUs without the first.
  const std::string otherwise = absl::StrCat(" or on (", host, ",gpu) ");
  const std::string rows[] = {
      row(kUse, absl::StrCat("avg by (", host, ") (", of_gpu(fresh(kActive)), otherwise,
                             of_gpu(fresh(kUtil)), " / 100)")),
      row(kSampled, absl::StrCat("min by (", host, ") (", of_gpu(sampled(kActive)), otherwise,
                                 of_gpu(sampled(kUtil)), ")")),
      row(kMemory,
          absl::StrCat(sum(kUsed), " / (", sum(kUsed), " + ", sum("DCGM_FI_DEV_FB_FREE"), ")")),
      row(kXid,
          absl::StrCat("max by (", host, ",gpu) (", fresh("DCGM_FI_DEV_XID_ERRORS"), ") > 0")),
  };
  return absl::StrJoin(rows, " or ");
}

absl::StatusOr<Reading> ParseAnswer(absl::string_view json, const QueryOptions& options) {
  AnswerHandler handler;
  nlohmann::json::sax_parse(json.begin(), json.end(), &handler);
  if (absl::Status status = handler.Status(); !status.ok()) return status;
  Reading reading;
  std::map<std::vector<std::string>, Parts> hosts;
  for (const Row& row : handler.rows()) {
    std::vector<std::string> names = NamesOf(row, options);
    const std::string kind = LabelOf(row, kKind);
    double value = 0;
    // SimpleAtod also accepts Prometheus' NaN and infinity.
    if (names.empty() || !absl::SimpleAtod(row.value, &value) || !std::isfinite(value) ||
        !std::isfinite(row.time)) {
      ++reading.ignored;
    } else if (kind == kXid) {
      if (value < 1 || value > kMostXid || value != std::floor(value)) {
        ++reading.ignored;
      } else {
        reading.xids.push_back(
            {std::move(names), LabelOf(row, "gpu"), static_cast<int64_t>(value)});
      }
    } else if (kind == kSampled && value <= row.time + kMostSecondsAhead) {
      hosts[std::move(names)].age_seconds = std::max(0.0, row.time - value);
    } else if ((kind == kUse || kind == kMemory) && value >= 0 && value <= kMostUse) {
      Parts& parts = hosts[std::move(names)];
      (kind == kUse ? parts.use : parts.memory) = std::min(value, 1.0);
    } else {
      ++reading.ignored;
    }
  }
  for (const auto& [names, parts] : hosts) {
    // Memory alone does not indicate load.
    if (!parts.use || !parts.age_seconds) continue;
    reading.hosts.push_back({names, *parts.use, parts.memory, absl::Seconds(*parts.age_seconds)});
  }
  return reading;
}

}  // namespace outboard::gpu_load
