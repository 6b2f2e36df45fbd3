// The flags of a program or of one of its commands, as a table.
#ifndef OUTBOARD_SHIM_CONFIG_FLAG_TABLE_H_
#define OUTBOARD_SHIM_CONFIG_FLAG_TABLE_H_

#include <cstddef>
#include <functional>
#include <limits>
#include <string>
#include <type_traits>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/time/time.h"

namespace outboard::config {

// Reads `--flag value` and `--flag=value`. CLI11 splits the arguments. This table stores the values
// in the order of the arguments, and writes the error messages.
//
// `names` of a flag: "--config" or "-o,--output". Errors use the last name. -h and --help are part
// of every table.
//
// Lifetime: what the pointers point to must outlive Parse.
class FlagTable {
 public:
  // Stores a value; false if the value is not valid.
  using Store = std::function<bool(const std::string& value)>;

  FlagTable();

  void Switch(const std::string& names, bool* out);
  void Text(const std::string& names, std::string* out);
  // May be repeated.
  void Texts(const std::string& names, std::vector<std::string>* out);
  // Takes all values that follow, at least one. May be repeated.
  void List(const std::string& names, std::vector<std::string>* out);
  // `what` is the valid value in words, for the error "NAME must be WHAT, not VALUE".
  void Value(const std::string& names, const std::string& what, Store store);
  // As Value. Without a value after the flag, `store` gets "".
  void OptionalValue(const std::string& names, const std::string& what, Store store);
  template <typename T>
  void Number(const std::string& names, const std::string& what, T* out,
              T lowest = std::numeric_limits<T>::lowest(),
              T highest = std::numeric_limits<T>::max());
  // 0 or more.
  void Duration(const std::string& names, absl::Duration* out);
  // One of `choices`. `hint` is appended to the error.
  void Choice(const std::string& names, const std::vector<std::string>& choices, std::string* out,
              const std::string& hint = "");
  // The value is table or json; sets `is_json` accordingly.
  void Output(bool* is_json);
  // Accepts `old_name` for the flag `name` of the table, with a warning on standard error.
  void Renamed(const std::string& old_name, const std::string& name);

  // Errors: INVALID_ARGUMENT naming the flag, and a similar one if it is unknown. With
  // --help it stores nothing.
  absl::Status Parse(const std::vector<std::string>& arguments);

  // After Parse. Errors: INVALID_ARGUMENT naming the first word beyond `at_most`.
  absl::Status CheckWordCount(size_t at_most) const;

  // What Parse found.
  bool help() const { return help_; }
  const std::vector<std::string>& words() const { return words_; }  // arguments without a flag

  // All names, without old ones.
  std::vector<std::string> names() const;

  struct Flag {
    std::vector<std::string> names;
    bool takes_value = false;
    std::vector<std::string> choices;  // all valid values; empty: any
  };
  // All flags, without old names.
  std::vector<Flag> flags() const;

 private:
  enum class Arity { kSwitch, kOne, kOptional, kMany };
  struct Row {
    std::string names;
    Arity arity;
    std::string what;
    Store store;
    std::string renamed_to;
    std::vector<std::string> choices;
  };

  void Add(const std::string& names, Arity arity, const std::string& what, Store store);
  const Row* Find(const std::string& name) const;
  // The error for an argument that no flag has.
  absl::Status UnknownFlag(const std::string& argument) const;
  // Whether the argument is a long name after a single dash.
  bool LacksADash(const std::string& argument) const;

  std::vector<Row> rows_;
  std::vector<std::string> words_;
  bool help_ = false;
};

template <typename T>
void FlagTable::Number(const std::string& names, const std::string& what, T* out, T lowest,
                       T highest) {
  Value(names, what, [=](const std::string& value) {
    T number{};
    if constexpr (std::is_floating_point_v<T>) {
      if (!absl::SimpleAtod(value, &number)) return false;
    } else {
      if (!absl::SimpleAtoi(value, &number)) return false;
    }
    if (!(number >= lowest && number <= highest)) return false;
    *out = number;
    return true;
  });
}

}  // namespace outboard::config

#endif  // OUTBOARD_SHIM_CONFIG_FLAG_TABLE_H_
