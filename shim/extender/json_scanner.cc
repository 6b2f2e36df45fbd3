#include "shim/extender/json_scanner.h"

#include <nlohmann/json.hpp>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "shim/kube/wire/utf8.h"

namespace outboard::extender {

bool JsonScanner::Fail(absl::string_view what) {
  if (status_.ok()) status_ = absl::InvalidArgumentError(absl::StrCat("byte ", at_, ": ", what));
  return false;
}

void JsonScanner::SkipSpace() {
  while (at_ < text_.size()) {
    const char c = text_[at_];
    if (c != ' ' && c != '\n' && c != '\r' && c != '\t') return;
    ++at_;
  }
}

char JsonScanner::Peek() {
  SkipSpace();
  return at_ < text_.size() ? text_[at_] : '\0';
}

bool JsonScanner::Take(char wanted) {
  if (!status_.ok()) return false;
  if (Peek() != wanted) return Fail(absl::StrCat("expected '", absl::string_view(&wanted, 1), "'"));
  ++at_;
  return true;
}

bool JsonScanner::TakeWord(absl::string_view word) {
  if (text_.substr(at_, word.size()) != word) return Fail("invalid JSON value");
  at_ += word.size();
  return true;
}

bool JsonScanner::TakeNull() {
  if (!status_.ok() || Peek() != 'n') return false;
  return TakeWord("null");
}

bool JsonScanner::Escape() {
  const auto unit = [this](uint32_t* out) {
    if (text_.size() - at_ < 6 || text_[at_] != '\\' || text_[at_ + 1] != 'u') return false;
    *out = 0;
    for (size_t i = at_ + 2; i < at_ + 6; ++i) {
      const char c = text_[i];
      if (!absl::ascii_isxdigit(static_cast<unsigned char>(c))) return false;
      *out = *out * 16 + static_cast<uint32_t>(absl::ascii_isdigit(static_cast<unsigned char>(c))
                                                   ? c - '0'
                                                   : absl::ascii_tolower(c) - 'a' + 10);
    }
    at_ += 6;
    return true;
  };
  if (text_.size() - at_ < 2) return Fail("the text ends in a string");
  if (text_[at_ + 1] != 'u') {
    if (absl::string_view("\"\\/bfnrt").find(text_[at_ + 1]) == absl::string_view::npos)
      return Fail("unknown escape in a string");
    at_ += 2;
    return true;
  }
  uint32_t first = 0;
  uint32_t second = 0;
  if (!unit(&first)) return Fail("\\u is followed by four hexadecimal digits");
  if (first < 0xd800 || first > 0xdfff) return true;
  if (first > 0xdbff || !unit(&second) || second < 0xdc00 || second > 0xdfff)
    return Fail("half a surrogate pair in a string");
  return true;
}

bool JsonScanner::Quoted(absl::string_view* out, bool* escaped) {
  if (!Take('"')) return false;
  const size_t begin = at_;
  *escaped = false;
  unsigned char any = 0;
  while (at_ < text_.size()) {
    const unsigned char c = static_cast<unsigned char>(text_[at_]);
    if (c == '"') {
      *out = text_.substr(begin, at_ - begin);
      ++at_;
      all_ascii_ &= any < 0x80;
      return true;
    }
    if (c < 0x20) return Fail("a control character in a string");
    if (c == '\\') {
      *escaped = true;
      if (!Escape()) return false;
      continue;
    }
    any |= c;
    ++at_;
  }
  return Fail("the text ends in a string");
}

bool JsonScanner::Name(std::string* buffer, absl::string_view* out) {
  bool escaped = false;
  const size_t begin = at_;
  if (!Quoted(out, &escaped)) return false;
  if (!escaped) return true;
  const auto value =
      nlohmann::json::parse(text_.substr(begin, at_ - begin), nullptr, /*allow_exceptions=*/false);
  if (!value.is_string()) return Fail("invalid string");
  *buffer = value.get<std::string>();
  *out = *buffer;
  return true;
}

bool JsonScanner::String(std::string* out) {
  if (!status_.ok()) return false;
  if (Peek() != '"') return Fail("expected a string");
  std::string buffer;
  absl::string_view text;
  if (!Name(&buffer, &text)) return false;
  out->assign(text.data(), text.size());
  return true;
}

bool JsonScanner::Digits() {
  const size_t begin = at_;
  while (at_ < text_.size() && absl::ascii_isdigit(static_cast<unsigned char>(text_[at_]))) ++at_;
  return at_ > begin || Fail("expected a digit");
}

bool JsonScanner::Number(absl::string_view* out) {
  const size_t begin = at_;
  const auto next_is = [this](absl::string_view any) {
    return at_ < text_.size() && any.find(text_[at_]) != absl::string_view::npos;
  };
  if (next_is("-")) ++at_;
  if (next_is("0")) {
    ++at_;
  } else if (!Digits()) {
    return false;
  }
  if (next_is(".")) {
    ++at_;
    if (!Digits()) return false;
  }
  if (next_is("eE")) {
    ++at_;
    if (next_is("+-")) ++at_;
    if (!Digits()) return false;
  }
  *out = text_.substr(begin, at_ - begin);
  return true;
}

bool JsonScanner::Int(int64_t* out) {
  if (!status_.ok()) return false;
  SkipSpace();
  absl::string_view digits;
  if (!Number(&digits)) return false;
  return absl::SimpleAtoi(digits, out) || Fail("expected an integer");
}

bool JsonScanner::Bool(bool* out) {
  if (!status_.ok()) return false;
  *out = Peek() == 't';
  return TakeWord(*out ? "true" : "false");
}

bool JsonScanner::Object(absl::FunctionRef<bool(absl::string_view name)> member) {
  if (!Take('{')) return false;
  if (++depth_ > kMaxDepth) return Fail("nested too deep");
  bool first = true;
  std::string buffer;
  while (Peek() != '}') {
    if (!first && !Take(',')) return false;
    first = false;
    SkipSpace();
    absl::string_view name;
    if (!Name(&buffer, &name) || !Take(':')) return false;
    if (!member(name) || !status_.ok()) return Fail("invalid member");
  }
  --depth_;
  return Take('}');
}

bool JsonScanner::List(absl::FunctionRef<bool()> element) {
  if (!Take('[')) return false;
  if (++depth_ > kMaxDepth) return Fail("nested too deep");
  bool first = true;
  while (Peek() != ']') {
    if (!first && !Take(',')) return false;
    first = false;
    if (!element() || !status_.ok()) return Fail("invalid element");
  }
  --depth_;
  return Take(']');
}

bool JsonScanner::Skip() {
  if (!status_.ok()) return false;
  absl::string_view unused;
  bool escaped = false;
  switch (Peek()) {
    case '{':
      return Object([this](absl::string_view) { return Skip(); });
    case '[':
      return List([this] { return Skip(); });
    case '"':
      return Quoted(&unused, &escaped);
    case 't':
      return TakeWord("true");
    case 'f':
      return TakeWord("false");
    case 'n':
      return TakeWord("null");
    case '-':
    case '0':
    case '1':
    case '2':
    case '3':
    case '4':
    case '5':
    case '6':
    case '7':
    case '8':
    case '9':
      return Number(&unused);
    default:
      return Fail(at_ == text_.size() ? "the text ends before a value" : "invalid JSON value");
  }
}

size_t JsonScanner::Mark() {
  SkipSpace();
  return at_;
}

bool JsonScanner::End() {
  if (!status_.ok()) return false;
  SkipSpace();
  if (at_ != text_.size()) return Fail("unexpected text after the value");
  if (all_ascii_) return true;
  const size_t good = kube::Utf8Prefix(text_);
  if (good == text_.size()) return true;
  at_ = good;
  return Fail("invalid UTF-8");
}

void AppendJsonString(absl::string_view text, std::string* out) {
  bool plain = true;
  for (const char c : text) plain &= c >= 0x20 && c < 0x7f && c != '"' && c != '\\';
  if (plain) {
    absl::StrAppend(out, "\"", text, "\"");
    return;
  }
  out->append(nlohmann::json(kube::ToUtf8(text)).dump());
}

}  // namespace outboard::extender
