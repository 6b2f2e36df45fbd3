#include "shim/kube/wire/document.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <memory>
#include <set>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "nlohmann/json.hpp"
#include "shim/kube/wire/utf8.h"

namespace outboard::kube {
namespace {

using Kind = DocNode::Kind;

// An iterator that exposes the lexer's position.
class CountingIterator {
 public:
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = const char&;

  CountingIterator(const char* at, const char** seen) : at_(at), seen_(seen) {}
  reference operator*() const { return *at_; }
  CountingIterator& operator++() {
    *seen_ = ++at_;
    return *this;
  }
  CountingIterator operator++(int) {
    CountingIterator before = *this;
    ++*this;
    return before;
  }
  bool operator==(const CountingIterator& other) const { return at_ == other.at_; }
  bool operator!=(const CountingIterator& other) const { return at_ != other.at_; }

 private:
  const char* at_;
  const char** seen_;
};

// Builds the tree from nlohmann's events.
class TreeBuilder {
 public:
  TreeBuilder(absl::string_view text, const char* const* seen)
      : begin_(text.data()), line_start_(text.data()), counted_(text.data()), seen_(seen) {}

  bool null() { return Scalar(Kind::kNull, "", WordStart()); }
  bool boolean(bool value) { return Scalar(Kind::kBool, value ? "true" : "false", WordStart()); }
  bool number_integer(int64_t value) {
    return Scalar(Kind::kNumber, absl::StrCat(value), WordStart());
  }
  bool number_unsigned(uint64_t value) {
    return Scalar(Kind::kNumber, absl::StrCat(value), WordStart());
  }
  bool number_float(double, const std::string& text) {
    return Scalar(Kind::kNumber, text, WordStart());
  }
  bool string(std::string& value) { return Scalar(Kind::kString, std::move(value), StringStart()); }
  bool binary(nlohmann::json::binary_t&) { return Fail("binary value"); }
  bool start_object(size_t) { return Open(Kind::kMap); }
  bool start_array(size_t) { return Open(Kind::kList); }
  bool end_object() { return Close(); }
  bool end_array() { return Close(); }
  bool key(std::string& name) {
    Level& level = open_.back();
    Place(StringStart(), &level.key_line, &level.key_column);
    if (!level.keys.insert(name).second) {
      error_ = absl::StrCat(level.key_line, ":", level.key_column, ": duplicate field \"",
                            ToUtf8(name), "\"");
      return false;
    }
    level.key = std::move(name);
    return true;
  }
  bool parse_error(size_t, const std::string&, const nlohmann::json::exception& e) {
    // "[json.exception.parse_error.101] parse error at line 1, column 2: syntax error …": drop the
    // position, which is reported separately.
    absl::string_view what = e.what();
    if (const size_t at = what.find(": "); at != absl::string_view::npos)
      what.remove_prefix(at + 2);
    return Fail(what);
  }

  const std::string& error() const { return error_; }
  DocNode TakeRoot() { return std::move(root_); }

 private:
  struct Level {
    DocNode node;
    std::set<std::string> keys;
    std::string key;
    int key_line = 0;
    int key_column = 0;
  };

  bool Fail(absl::string_view what) {
    int line = 0;
    int column = 0;
    Place(std::max(begin_, *seen_ - 1), &line, &column);
    error_ = absl::StrCat(line, ":", column, ": ", ToUtf8(what));
    return false;
  }

  // `at` never decreases between calls, except on the same line.
  void Place(const char* at, int* line, int* column) {
    for (; counted_ < at; ++counted_) {
      if (*counted_ == '\n') {
        ++line_;
        line_start_ = counted_ + 1;
      }
    }
    *line = line_;
    *column = static_cast<int>(at - line_start_) + 1;
  }

  // The lexer has just read the closing quote.
  const char* StringStart() const {
    const char* at = *seen_ - 2;
    while (at > begin_) {
      if (*at == '"') {
        const char* slash = at;
        while (slash > begin_ && slash[-1] == '\\') --slash;
        if ((at - slash) % 2 == 0) break;
      }
      --at;
    }
    return at;
  }

  // The first character of the number or literal that the lexer has just read. The lexer may have
  // read one character more.
  const char* WordStart() const {
    auto in_word = [](char c) {
      return absl::ascii_isalnum(c) || c == '.' || c == '-' || c == '+';
    };
    const char* at = *seen_;
    while (at > begin_ && !in_word(at[-1])) --at;
    while (at > begin_ && in_word(at[-1])) --at;
    return at;
  }

  bool Scalar(Kind kind, std::string text, const char* start) {
    DocNode node;
    node.kind = kind;
    node.text = std::move(text);
    Place(start, &node.line, &node.column);
    Add(std::move(node));
    return true;
  }

  bool Open(Kind kind) {
    if (open_.size() >= kMaxDocumentDepth) return Fail("nested too deeply");
    Level level;
    level.node.kind = kind;
    Place(*seen_ - 1, &level.node.line, &level.node.column);
    open_.push_back(std::move(level));
    return true;
  }

  bool Close() {
    DocNode node = std::move(open_.back().node);
    open_.pop_back();
    Add(std::move(node));
    return true;
  }

  void Add(DocNode node) {
    if (open_.empty()) {
      root_ = std::move(node);
    } else if (Level& level = open_.back(); level.node.kind == Kind::kMap) {
      level.node.members.push_back(
          {std::move(level.key), std::move(node), level.key_line, level.key_column});
    } else {
      level.node.items.push_back(std::move(node));
    }
  }

  const char* const begin_;
  const char* line_start_;
  const char* counted_;
  const char* const* seen_;
  int line_ = 1;
  std::vector<Level> open_;
  DocNode root_;
  std::string error_;
};

void AppendJsonText(const std::string& text, std::string* out) {
  const bool plain = std::all_of(text.begin(), text.end(), [](char c) {
    return c >= ' ' && c <= '~' && c != '"' && c != '\\';
  });
  if (plain) {  // Nearly all strings of objects.
    absl::StrAppend(out, "\"", text, "\"");
    return;
  }
  out->append(nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
}

void AppendJson(const DocNode& node, std::string* out);

// Appends a map without the member `left_out`; null: with all members.
void AppendMembers(const DocNode& node, const char* left_out, std::string* out) {
  absl::string_view separator = "";
  out->push_back('{');
  for (const DocMember& member : node.members) {
    if (left_out != nullptr && member.name == left_out) continue;
    absl::StrAppend(out, separator);
    AppendJsonText(member.name, out);
    out->push_back(':');
    AppendJson(member.value, out);
    separator = ",";
  }
  out->push_back('}');
}

void AppendJson(const DocNode& node, std::string* out) {
  absl::string_view separator = "";
  switch (node.kind) {
    case Kind::kNull:
      out->append("null");
      return;
    case Kind::kBool:
    case Kind::kNumber:
      out->append(node.text);
      return;
    case Kind::kString:
      AppendJsonText(node.text, out);
      return;
    case Kind::kList:
      out->push_back('[');
      for (const DocNode& item : node.items) {
        absl::StrAppend(out, separator);
        AppendJson(item, out);
        separator = ",";
      }
      out->push_back(']');
      return;
    case Kind::kMap:
      AppendMembers(node, nullptr, out);
      return;
  }
}

}  // namespace

const DocNode* DocNode::Find(absl::string_view name) const {
  for (const DocMember& member : members) {
    if (member.name == name) return &member.value;
  }
  return nullptr;
}

absl::string_view DocNode::FindString(absl::string_view name) const {
  const DocNode* value = Find(name);
  return value != nullptr && value->kind == Kind::kString ? absl::string_view(value->text)
                                                          : absl::string_view();
}

absl::string_view KindName(const DocNode& node) {
  switch (node.kind) {
    case Kind::kNull:
      return "null";
    case Kind::kBool:
      return "a boolean";
    case Kind::kNumber:
      return "a number";
    case Kind::kString:
      return "a string";
    case Kind::kList:
      return "a list";
    case Kind::kMap:
      return "an object";
  }
  return "";
}

std::string FieldPath::ToString() const {
  std::string out;
  for (const Element& step : steps_) {
    if (step.index >= 0) {
      absl::StrAppend(&out, "[", step.index, "]");
      continue;
    }
    const bool plain =
        !step.name.empty() && std::all_of(step.name.begin(), step.name.end(), [](char c) {
          return absl::ascii_isalnum(c) || c == '-' || c == '_';
        });
    if (plain) {
      absl::StrAppend(&out, out.empty() ? "" : ".", step.name);
    } else {
      absl::StrAppend(&out, "[", ToUtf8(step.name), "]");
    }
  }
  return out;
}

const DocNode& FieldPath::Resolve(const DocNode& root) const {
  const DocNode* node = &root;
  for (const Element& step : steps_) {
    const DocNode* next = nullptr;
    if (step.index < 0) {
      next = node->Find(step.name);
    } else if (static_cast<size_t>(step.index) < node->items.size()) {
      next = &node->items[static_cast<size_t>(step.index)];
    }
    if (next == nullptr) break;
    node = next;
  }
  return *node;
}

FieldPath FieldPath::Parent() const {
  FieldPath parent = *this;
  parent.steps_.pop_back();
  return parent;
}

std::vector<std::string> FieldPath::Names() const {
  std::vector<std::string> names;
  for (const Element& step : steps_) {
    if (step.index < 0) names.push_back(step.name);
  }
  return names;
}

std::string Fault::ToString() const {
  const std::string where = path.ToString();
  return where.empty() ? message : absl::StrCat(where, ": ", message);
}

absl::StatusOr<DocNode> ParseJson(absl::string_view name, absl::string_view text) {
  const char* seen = text.data();
  TreeBuilder builder(text, &seen);
  const CountingIterator begin(text.data(), &seen);
  const CountingIterator end(text.data() + text.size(), &seen);
  if (!nlohmann::json::sax_parse(begin, end, &builder)) {
    return absl::InvalidArgumentError(absl::StrCat(name, ":", builder.error()));
  }
  return builder.TakeRoot();
}

std::string ToJson(const DocNode& node) {
  std::string out;
  AppendJson(node, &out);
  return out;
}

std::string ObjectJson(const DocNode& object) {
  std::string out = "{";
  for (const DocMember& member : object.members) {
    if (out.size() > 1) out.push_back(',');
    AppendJsonText(member.name, &out);
    out.push_back(':');
    if (member.name == "metadata" && member.value.kind == Kind::kMap) {
      AppendMembers(member.value, "managedFields", &out);
    } else {
      AppendJson(member.value, &out);
    }
  }
  out.push_back('}');
  return out;
}

}  // namespace outboard::kube
