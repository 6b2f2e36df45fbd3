#include "cli/manifests/yaml_document.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <sstream>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "shim/kube/wire/utf8.h"
#include "yaml-cpp/anchor.h"
#include "yaml-cpp/eventhandler.h"
#include "yaml-cpp/exceptions.h"
#include "yaml-cpp/mark.h"
#include "yaml-cpp/parser.h"

namespace outboard::manifests {

using kube::DocNode;
using kube::kMaxDocumentDepth;
using kube::ToUtf8;

namespace {

using Kind = DocNode::Kind;

bool OneOf(absl::string_view text, std::initializer_list<absl::string_view> words) {
  return std::find(words.begin(), words.end(), text) != words.end();
}

bool AllDigits(absl::string_view text, int base) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [base](char c) {
    if (base == 16) return absl::ascii_isxdigit(c);
    return c >= '0' && c < '0' + base;
  });
}

// Converts integers in YAML 1.1's notations to JSON.
bool ReadWhole(absl::string_view text, std::string* out) {
  const bool negative = absl::StartsWith(text, "-");
  if (negative || absl::StartsWith(text, "+")) text.remove_prefix(1);
  int base = 10;
  absl::string_view digits = text;
  if (text.size() > 1 && text[0] == '0') {
    const char mark = text[1];
    base = mark == 'x' ? 16 : mark == 'b' ? 2 : 8;
    digits.remove_prefix(mark == 'x' || mark == 'b' || mark == 'o' ? 2 : 1);
  }
  if (!AllDigits(digits, base)) return false;
  if (base == 10) {
    *out = absl::StrCat(negative ? "-" : "", digits);
    return true;
  }
  uint64_t value = 0;
  for (char c : digits) {
    const auto digit =
        static_cast<uint64_t>(absl::ascii_isdigit(c) ? c - '0' : absl::ascii_tolower(c) - 'a' + 10);
    if (value > (UINT64_MAX - digit) / static_cast<uint64_t>(base)) return false;
    value = value * static_cast<uint64_t>(base) + digit;
  }
  *out = absl::StrCat(negative ? "-" : "", value);
  return true;
}

// [-+]?(.digits|digits[.digits])[e[+-]digits], converted to JSON: no plus sign, digits on both
// sides of the point.
bool ReadFraction(absl::string_view text, std::string* out) {
  std::string number;
  size_t pos = 0;
  auto digits = [&] {
    const size_t begin = pos;
    while (pos < text.size() && absl::ascii_isdigit(text[pos])) ++pos;
    absl::StrAppend(&number, begin == pos ? "0" : text.substr(begin, pos - begin));
    return pos - begin;
  };
  if (pos < text.size() && (text[pos] == '-' || text[pos] == '+'))
    number = text[pos++] == '-' ? "-" : "";
  // 09 is not octal, so it is decimal.
  while (pos + 1 < text.size() && text[pos] == '0' && absl::ascii_isdigit(text[pos + 1])) ++pos;
  size_t count = digits();
  if (pos < text.size() && text[pos] == '.') {
    ++pos;
    number += '.';
    count += digits();
  }
  if (count == 0) return false;
  if (pos < text.size() && (text[pos] == 'e' || text[pos] == 'E')) {
    ++pos;
    number += 'e';
    if (pos < text.size() && (text[pos] == '-' || text[pos] == '+')) number += text[pos++];
    if (digits() == 0) return false;
  }
  if (pos != text.size()) return false;
  *out = std::move(number);
  return true;
}

void ResolvePlain(const std::string& text, DocNode* node) {
  node->kind = Kind::kString;
  node->text = text;
  if (text.empty() || OneOf(text, {"~", "null", "Null", "NULL"})) {
    node->kind = Kind::kNull;
    node->text.clear();
  } else if (OneOf(text, {"true", "True", "TRUE", "yes", "Yes", "YES", "on", "On", "ON"})) {
    node->kind = Kind::kBool;
    node->text = "true";
  } else if (OneOf(text, {"false", "False", "FALSE", "no", "No", "NO", "off", "Off", "OFF"})) {
    node->kind = Kind::kBool;
    node->text = "false";
  } else if (ReadWhole(text, &node->text) || ReadFraction(text, &node->text)) {
    node->kind = Kind::kNumber;
  }
}

size_t CountNodes(const DocNode& node) {
  size_t count = 1;
  for (const DocNode& item : node.items) count += CountNodes(item);
  for (const kube::DocMember& member : node.members) count += CountNodes(member.value);
  return count;
}

// Ends the parser from an event handler. ParseYaml catches it, like yaml-cpp's own exceptions.
YAML::ParserException Refuse(const YAML::Mark& mark, const std::string& what) {
  return YAML::ParserException(mark, what);
}

class TreeBuilder : public YAML::EventHandler {
 public:
  TreeBuilder(const std::string& text, size_t budget, int lines_before)
      : text_(text), budget_(budget), lines_before_(lines_before) {}

  std::vector<DocNode> TakeDocuments() { return std::move(documents_); }
  // Those that do not end a document.
  std::vector<YamlError> TakeErrors() { return std::move(errors_); }

  void OnDocumentStart(const YAML::Mark&) override { anchors_.clear(); }
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    Finish(NewNode(mark, Kind::kNull), anchor, mark, true);
  }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    auto found = anchors_.find(anchor);
    if (found == anchors_.end()) throw Refuse(mark, "an alias inside its own anchor");
    Spend(CountNodes(found->second), mark);
    if (open_.size() + static_cast<size_t>(Depth(found->second)) > kMaxDocumentDepth) {
      throw Refuse(mark, "nested too deeply");
    }
    Finish(found->second, YAML::NullAnchor, mark, false);
  }
  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    CheckQuotes(mark);
    DocNode node = NewNode(mark, Kind::kString);
    const bool plain = tag == "?" || tag == "tag:yaml.org,2002:int" ||
                       tag == "tag:yaml.org,2002:float" || tag == "tag:yaml.org,2002:bool" ||
                       tag == "tag:yaml.org,2002:null";
    if (plain) {
      ResolvePlain(value, &node);
    } else {
      node.text = value;
    }
    // A key is always text.
    if (NeedsKey()) {
      node.kind = Kind::kString;
      node.text = value;
    }
    Finish(std::move(node), anchor, mark, plain);
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    Open(mark, Kind::kList, anchor);
  }
  void OnSequenceEnd() override { Close(); }
  void OnMapStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    Open(mark, Kind::kMap, anchor);
  }
  void OnMapEnd() override {
    Merge(&open_.back());
    Close();
  }

 private:
  struct Level {
    DocNode node;
    YAML::anchor_t anchor = YAML::NullAnchor;
    YAML::Mark mark;
    std::set<std::string> keys;
    bool has_key = false;
    bool key_is_duplicate = false;
    std::string key;
    YAML::Mark key_mark;
    // The values of << keys, in order.
    bool merging = false;
    std::vector<DocNode> merged;
  };

  static int Depth(const DocNode& node) {
    int deepest = 0;
    for (const DocNode& item : node.items) deepest = std::max(deepest, Depth(item));
    for (const kube::DocMember& member : node.members)
      deepest = std::max(deepest, Depth(member.value));
    return deepest + 1;
  }

  // yaml-cpp accepts a text without its last quote, which contains the rest of the file.
  void CheckQuotes(const YAML::Mark& mark) {
    const auto begin = static_cast<size_t>(std::max(mark.pos, 0));
    if (begin >= text_.size() || (text_[begin] != '"' && text_[begin] != '\'')) return;
    const char quote = text_[begin];
    size_t at = begin + 1;
    while (at < text_.size() && text_[at] != quote) at += quote == '"' && text_[at] == '\\' ? 2 : 1;
    if (at >= text_.size()) throw Refuse(mark, "this quote is not closed");
  }

  DocNode NewNode(const YAML::Mark& mark, Kind kind) {
    Spend(1, mark);
    DocNode node;
    node.kind = kind;
    node.line = LineOf(mark);
    node.column = mark.column + 1;
    return node;
  }

  void Spend(size_t nodes, const YAML::Mark& mark) {
    if (nodes > budget_) throw Refuse(mark, "aliases make this document too large");
    budget_ -= nodes;
  }

  bool NeedsKey() const {
    return !open_.empty() && open_.back().node.kind == Kind::kMap && !open_.back().has_key;
  }

  void Open(const YAML::Mark& mark, Kind kind, YAML::anchor_t anchor) {
    if (NeedsKey()) throw Refuse(mark, "a key must be a string");
    if (open_.size() >= kMaxDocumentDepth) throw Refuse(mark, "nested too deeply");
    Level level;
    level.node = NewNode(mark, kind);
    level.anchor = anchor;
    level.mark = mark;
    open_.push_back(std::move(level));
  }

  void Close() {
    Level level = std::move(open_.back());
    open_.pop_back();
    Finish(std::move(level.node), level.anchor, level.mark, false);
  }

  void Finish(DocNode node, YAML::anchor_t anchor, const YAML::Mark& mark, bool plain) {
    if (anchor != YAML::NullAnchor) {
      Spend(CountNodes(node), mark);
      anchors_[anchor] = node;
    }
    if (open_.empty()) {
      if (!node.is_null()) documents_.push_back(std::move(node));
      return;
    }
    Level& level = open_.back();
    if (level.node.kind == Kind::kList) {
      level.node.items.push_back(std::move(node));
    } else if (!level.has_key) {
      TakeKey(node, mark, plain, &level);
    } else {
      level.has_key = false;
      if (level.merging) {
        level.merged.push_back(std::move(node));
      } else if (!level.key_is_duplicate) {
        level.node.members.push_back({std::move(level.key), std::move(node), LineOf(level.key_mark),
                                      level.key_mark.column + 1});
      }
    }
  }

  void TakeKey(const DocNode& node, const YAML::Mark& mark, bool plain, Level* level) {
    if (node.kind != Kind::kString) throw Refuse(mark, "a key must be a string");
    level->has_key = true;
    level->merging = plain && node.text == "<<";
    level->key = node.text;
    level->key_mark = mark;
    level->key_is_duplicate = !level->merging && !level->keys.insert(node.text).second;
    if (level->key_is_duplicate) {
      errors_.push_back({LineOf(mark), mark.column + 1,
                         absl::StrCat("duplicate field \"", ToUtf8(node.text), "\"",
                                      open_.size() == 1 && node.text == "apiVersion"
                                          ? "; a line --- separates two objects"
                                          : "")});
    }
  }

  // Adds members of merged maps that the map does not have. The first merged map wins.
  static void Merge(Level* level) {
    std::vector<const DocNode*> sources;
    for (const DocNode& merged : level->merged) {
      if (merged.kind == Kind::kMap) sources.push_back(&merged);
      for (const DocNode& item : merged.items) sources.push_back(&item);
      if (merged.kind != Kind::kMap && merged.kind != Kind::kList) {
        throw Refuse(level->mark, "<< must refer to an object or a list of objects");
      }
    }
    for (const DocNode* source : sources) {
      for (const kube::DocMember& member : source->members) {
        if (level->keys.insert(member.name).second) level->node.members.push_back(member);
      }
    }
  }

  int LineOf(const YAML::Mark& mark) const { return lines_before_ + mark.line + 1; }

  const std::string& text_;
  size_t budget_;
  const int lines_before_;
  std::vector<Level> open_;
  std::map<YAML::anchor_t, DocNode> anchors_;
  std::vector<DocNode> documents_;
  std::vector<YamlError> errors_;
};

}  // namespace

namespace {

// Parses one stream of documents that begins behind `lines_before`. Returns false after an error
// that ends it.
bool ParseStream(const std::string& text, int lines_before, YamlDocuments* out) {
  // Without aliases, every value has at least one character.
  TreeBuilder builder(text, text.size() * 4 + 1000, lines_before);
  YamlError error;
  try {
    std::istringstream stream(text);
    YAML::Parser parser(stream);
    while (parser.HandleNextDocument(builder)) {
    }
  } catch (const YAML::Exception& e) {
    error = ExplainYamlError(
        text, {std::max(e.mark.line, 0) + 1, std::max(e.mark.column, 0) + 1, ToUtf8(e.msg)});
  } catch (const std::exception& e) {
    error.what = e.what();
  }
  out->documents = builder.TakeDocuments();
  out->errors = builder.TakeErrors();
  if (error.what.empty()) return true;
  error.line += lines_before;
  out->errors.push_back(std::move(error));
  return false;
}

void Append(YamlDocuments more, YamlDocuments* out) {
  std::move(more.documents.begin(), more.documents.end(), std::back_inserter(out->documents));
  std::move(more.errors.begin(), more.errors.end(), std::back_inserter(out->errors));
}

}  // namespace

YamlDocuments ParseYaml(const std::string& text) {
  YamlDocuments whole;
  if (ParseStream(text, 0, &whole)) return whole;
  // Document by document, so that an error in one does not hide those in others. A line that begins
  // with --- always begins a document.
  YamlDocuments all;
  std::string document;
  int line = 0;
  int begin = 0;
  const auto end_document = [&] {
    YamlDocuments one;
    ParseStream(document, begin, &one);
    Append(std::move(one), &all);
    document.clear();
    begin = line;
  };
  for (absl::string_view rest = text; !rest.empty(); ++line) {
    const size_t end = std::min(rest.find('\n'), rest.size() - 1) + 1;
    if (absl::StartsWith(rest, "---") && line > 0) end_document();
    absl::StrAppend(&document, rest.substr(0, end));
    rest.remove_prefix(end);
  }
  end_document();
  return all;
}

}  // namespace outboard::manifests
