#include "plugin_host/sdk/prometheus/samples.h"

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "nlohmann/json.hpp"

namespace outboard::prometheus {
namespace {

constexpr size_t kMaxDepth = 8;
constexpr size_t kMaxLabels = 64;
constexpr size_t kMaxTextBytes = 4096;

// Builds samples from the tokens of an answer. Returning false ends the parse.
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
      if (values_++ != 1) return Fault("a value is not [time, text]");
      row_.value = value;
    } else if (IsRowsPlace() || IsRowsPart()) {
      return Fault("a row is not an object with metric and value");
    }
    return true;
  }
  bool start_object(size_t) override {
    if (InLabels() || InValue() || IsRowsPlace() || At({"", "data", "result", "[", "value"}))
      return Fault("an object where there should be none");
    if (IsRow()) {
      row_ = Sample();
      values_ = 0;
    }
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
    if (values_ != 2) return Fault("a row has no value");
    if (rows_.size() >= kMaxSamples) return Fault("too many rows");
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
  std::vector<Sample> TakeRows() { return std::move(rows_); }
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
    if (values_++ != 0) return Fault("a value is not [time, text]");
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
  Sample row_;      // Being read.
  int values_ = 0;  // Parts of its value so far.
  std::vector<Sample> rows_;
};

}  // namespace

const std::string& Sample::Label(absl::string_view name) const {
  static const auto& none = *new std::string();
  const auto it = labels.find(std::string(name));
  return it == labels.end() ? none : it->second;
}

std::vector<std::string> Sample::Values(const std::vector<std::string>& names) const {
  std::vector<std::string> values;
  for (const std::string& name : names) {
    if (const std::string& value = Label(name); !value.empty()) values.push_back(value);
  }
  return values;
}

std::optional<double> Sample::Number() const {
  double number = 0;
  // SimpleAtod also accepts Prometheus' NaN and infinity.
  if (!absl::SimpleAtod(value, &number) || !std::isfinite(number) || !std::isfinite(time))
    return std::nullopt;
  return number;
}

absl::StatusOr<std::vector<Sample>> ParseSamples(absl::string_view json) {
  AnswerHandler handler;
  nlohmann::json::sax_parse(json.begin(), json.end(), &handler);
  if (absl::Status status = handler.Status(); !status.ok()) return status;
  return handler.TakeRows();
}

std::string Quoted(absl::string_view text) {
  return absl::StrCat(
      "\"", absl::StrReplaceAll(text, {{"\\", "\\\\"}, {"\"", "\\\""}, {"\n", "\\n"}}), "\"");
}

}  // namespace outboard::prometheus
