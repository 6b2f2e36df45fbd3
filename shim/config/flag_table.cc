#include "shim/config/flag_table.h"

#include <CLI/CLI.hpp>
#include <cstdio>
#include <map>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "shim/config/nearest.h"

namespace outboard::config {
namespace {

// CLI11 treats a higher limit as a vector of the variable's type.
constexpr int kManyValues = 1 << 20;

std::vector<std::string> SplitNames(const std::string& names) { return absl::StrSplit(names, ','); }

absl::Status WrongFlag(const std::string& flag, const std::string& problem) {
  return absl::InvalidArgumentError(absl::StrCat(flag, " ", problem));
}

}  // namespace

FlagTable::FlagTable() {
  Add("-h,--help", Arity::kSwitch, "", [](const std::string&) { return true; });
}

void FlagTable::Switch(const std::string& names, bool* out) {
  Add(names, Arity::kSwitch, "", [out](const std::string&) { return *out = true; });
}

void FlagTable::Text(const std::string& names, std::string* out) {
  Value(names, "a text", [out](const std::string& value) {
    *out = value;
    return true;
  });
}

void FlagTable::Texts(const std::string& names, std::vector<std::string>* out) {
  Value(names, "a text", [out](const std::string& value) {
    out->push_back(value);
    return true;
  });
}

void FlagTable::List(const std::string& names, std::vector<std::string>* out) {
  Add(names, Arity::kMany, "a text", [out](const std::string& value) {
    out->push_back(value);
    return true;
  });
}

void FlagTable::Value(const std::string& names, const std::string& what, Store store) {
  Add(names, Arity::kOne, what, std::move(store));
}

void FlagTable::OptionalValue(const std::string& names, const std::string& what, Store store) {
  Add(names, Arity::kOptional, what, std::move(store));
}

void FlagTable::Duration(const std::string& names, absl::Duration* out) {
  Value(names, "a duration such as 30s", [out](const std::string& value) {
    absl::Duration duration;
    if (!absl::ParseDuration(value, &duration) || duration < absl::ZeroDuration()) return false;
    *out = duration;
    return true;
  });
}

void FlagTable::Choice(const std::string& names, const std::vector<std::string>& choices,
                       std::string* out, const std::string& hint) {
  Value(names, absl::StrCat(absl::StrJoin(choices, " or "), hint),
        [choices, out](const std::string& value) {
          *out = value;
          return absl::c_linear_search(choices, value);
        });
  rows_.back().choices = choices;
}

void FlagTable::Output(bool* is_json) {
  Value("-o,--output", "table or json", [is_json](const std::string& value) {
    *is_json = value == "json";
    return value == "table" || value == "json";
  });
  rows_.back().choices = {"table", "json"};
}

void FlagTable::Renamed(const std::string& old_name, const std::string& name) {
  if (const Row* const row = Find(name)) {
    Row old = *row;
    old.names = old_name;
    old.renamed_to = name;
    rows_.push_back(std::move(old));
  }
}

void FlagTable::Add(const std::string& names, Arity arity, const std::string& what, Store store) {
  rows_.push_back({names, arity, what, std::move(store), "", {}});
}

const FlagTable::Row* FlagTable::Find(const std::string& name) const {
  for (const Row& row : rows_) {
    if (absl::c_linear_search(SplitNames(row.names), name)) return &row;
  }
  return nullptr;
}

std::vector<std::string> FlagTable::names() const {
  std::vector<std::string> all;
  for (const Row& row : rows_) {
    if (!row.renamed_to.empty()) continue;
    for (std::string& name : SplitNames(row.names)) all.push_back(std::move(name));
  }
  return all;
}

std::vector<FlagTable::Flag> FlagTable::flags() const {
  std::vector<Flag> all;
  for (const Row& row : rows_) {
    if (!row.renamed_to.empty()) continue;
    const bool takes_value = row.arity == Arity::kOne || row.arity == Arity::kMany;
    all.push_back({SplitNames(row.names), takes_value, row.choices});
  }
  return all;
}

absl::Status FlagTable::UnknownFlag(const std::string& argument) const {
  const std::string name = argument.substr(0, argument.find('='));
  // Compared without dashes, which would make short names alike.
  std::vector<std::string> known;
  for (const std::string& one : names()) {
    if (absl::StartsWith(one, "--")) known.push_back(one.substr(2));
  }
  const std::string nearest = Nearest(absl::StripPrefix(absl::StripPrefix(name, "-"), "-"), known);
  return absl::InvalidArgumentError(
      absl::StrCat("unknown flag ", name,
                   nearest.empty() ? "" : absl::StrCat("; did you mean --", nearest, "?")));
}

bool FlagTable::LacksADash(const std::string& argument) const {
  return argument.size() > 2 && argument[0] == '-' && argument[1] != '-' &&
         Find(absl::StrCat("-", argument.substr(0, argument.find('=')))) != nullptr;
}

absl::Status FlagTable::CheckWordCount(size_t at_most) const {
  if (words_.size() <= at_most) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("unexpected argument \"", words_[at_most], "\""));
}

absl::Status FlagTable::Parse(const std::vector<std::string>& arguments) {
  CLI::App app;
  app.set_help_flag();
  app.allow_extras();
  // The row of an option, and the first of its values that is not stored yet.
  std::map<const CLI::Option*, std::pair<const Row*, size_t>> rows;
  for (const Row& row : rows_) {
    CLI::Option* const option =
        row.arity == Arity::kSwitch ? app.add_flag(row.names) : app.add_option(row.names);
    option->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
    if (row.arity == Arity::kOptional) option->expected(0, 1);
    if (row.arity == Arity::kMany) option->expected(0, kManyValues);
    rows[option] = {&row, 0};
  }

  // CLI11 wants the last argument first, and takes `--flag=` for a flag whose value follows.
  std::vector<std::string> reversed;
  bool is_value = false;  // of the flag before it
  bool are_words = false;
  for (const std::string& argument : arguments) {
    are_words |= !is_value && argument == "--";
    if (!is_value && !are_words && LacksADash(argument)) return UnknownFlag(argument);
    const Row* const row = is_value ? nullptr : Find(argument);
    is_value = row != nullptr && row->arity == Arity::kOne;
    const std::string name = argument.substr(0, argument.find('='));
    const bool is_empty = argument.size() == name.size() + 1 && Find(name) != nullptr;
    if (is_empty && Find(name)->arity == Arity::kSwitch) return WrongFlag(name, "takes no value");
    reversed.push_back(is_empty ? name : argument);
    if (is_empty) reversed.emplace_back();
  }
  absl::c_reverse(reversed);
  try {  // CLI11 reports errors as exceptions.
    app.parse(std::move(reversed));
  } catch (const CLI::ArgumentMismatch& error) {
    const std::string text = error.what();  // "--flag: 1 required TEXT missing"
    return WrongFlag(text.substr(0, text.find(':')), "needs a value");
  } catch (const CLI::ParseError& error) {
    return absl::InvalidArgumentError(error.what());
  }

  help_ = app.count("--help") > 0;
  if (help_) return absl::OkStatus();
  bool only_words = false;
  for (const std::string& word : app.remaining()) {
    if (!only_words && word == "--") {
      only_words = true;
    } else if (only_words || word == "-" || !absl::StartsWith(word, "-")) {
      words_.push_back(word);
    } else {
      return UnknownFlag(word);
    }
  }
  for (const CLI::Option* option : app.parse_order()) {
    auto& [row, next] = rows.at(option);
    const std::string& value = option->results().at(next++);
    const std::string flag = SplitNames(row->names).back();
    if (!row->renamed_to.empty()) {
      fprintf(stderr, "warning: %s is deprecated and will be removed; use %s\n", flag.c_str(),
              row->renamed_to.c_str());
    }
    if (row->arity == Arity::kSwitch && value != "true") return WrongFlag(flag, "takes no value");
    if (row->arity == Arity::kMany && value.empty()) return WrongFlag(flag, "needs a value");
    if (!row->store(value))
      return WrongFlag(flag, absl::StrCat("must be ", row->what, ", not \"", value, "\""));
  }
  return absl::OkStatus();
}

}  // namespace outboard::config
