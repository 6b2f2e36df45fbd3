#include <algorithm>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "cli/manifests/yaml_document.h"

namespace outboard::manifests {
namespace {

absl::string_view Indentation(absl::string_view line) {
  return line.substr(0, std::min(line.find_first_not_of(" \t"), line.size()));
}

// The column of the colon in "key:value", where a space is missing; 0 if the line is none of these.
int MissingSpace(absl::string_view line) {
  size_t at = Indentation(line).size();
  const size_t begin = at;
  while (at < line.size() && (absl::ascii_isalnum(line[at]) || line[at] == '-' || line[at] == '_'))
    ++at;
  const bool found = at > begin && at + 1 < line.size() && line[at] == ':' &&
                     !absl::ascii_isspace(line[at + 1]) && line[at + 1] != ':';
  // A second colon that separates makes this a key such as a:b.
  return found && !absl::StrContains(line.substr(at + 1), ": ") ? static_cast<int>(at) + 1 : 0;
}

}  // namespace

YamlError ExplainYamlError(absl::string_view text, YamlError error) {
  const std::vector<absl::string_view> lines = absl::StrSplit(text, '\n');
  const size_t last = std::min(static_cast<size_t>(error.line), lines.size());
  // Templates and tabs lead to errors in later lines.
  for (size_t i = 0; i < last; ++i) {
    const absl::string_view indentation = Indentation(lines[i]);
    if (const size_t braces = lines[i].find("{{"); braces != absl::string_view::npos) {
      return {static_cast<int>(i) + 1, static_cast<int>(braces) + 1,
              "{{ begins a template; render it first, for example with `helm template`"};
    }
    if (const size_t tab = indentation.find('\t');
        tab != absl::string_view::npos && indentation.size() < lines[i].size()) {
      return {static_cast<int>(i) + 1, static_cast<int>(tab) + 1,
              "a tab in the indentation; YAML allows only spaces there"};
    }
  }
  // The parser notices a missing space only in the next line.
  for (size_t i = last; i > 0 && i + 2 > last; --i) {
    if (const int colon = MissingSpace(lines[i - 1]); colon > 0)
      return {static_cast<int>(i), colon, "a space is missing after the colon"};
  }
  const absl::string_view what = error.what;
  const absl::string_view here = lines[last - 1];
  const size_t column = std::min(static_cast<size_t>(error.column), here.size());
  if (what == "illegal map value") {
    error.what = absl::StrContains(here.substr(0, column - 1), ": ")
                     ? "a value that contains \": \" must be in quotes"
                     : "this field does not belong here; indent it like its siblings";
  } else if (what == "end of map not found" || what == "end of sequence not found") {
    error.what = "the indentation of this line fits no line above";
  } else if (what == "end of map flow not found") {
    error.what = "a { before this line has no }";
  } else if (what == "end of sequence flow not found") {
    error.what = "a [ before this line has no ]";
  } else if (what == "illegal flow end" && column > 0) {
    error.what = absl::StrCat("this ", here.substr(column - 1, 1), " closes nothing");
  } else if (what == "illegal block entry") {
    error.what = "a list item does not belong here; begin the list in a line of its own";
  } else if (what == "unknown token" && column > 0) {
    error.what = absl::StrCat("a value cannot begin with ", here.substr(column - 1, 1),
                              "; write it in quotes");
  } else if (what == "the referenced anchor is not defined") {
    error.what =
        "* refers to an anchor that is not defined; write a value that begins with * in quotes";
  }
  return error;
}

}  // namespace outboard::manifests
