// Scans JSON once without building a tree: for bodies of megabytes of which a few strings are
// needed.
#ifndef OUTBOARD_SHIM_EXTENDER_JSON_SCANNER_H_
#define OUTBOARD_SHIM_EXTENDER_JSON_SCANNER_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace outboard::extender {

// Reads values in document order. A tree of such a body (kube/wire/document.h) would be several
// times its size, and nodes must be returned byte for byte.
//
// Every byte is checked: a scanned value is JSON by RFC 8259 in UTF-8, at most kMaxDepth deep.
// Duplicate members are allowed.
//
// Threading: thread-compatible.
// Lifetime: the text outlives the scanner and the results of Since.
// Errors: a failed method returns false, as do all later calls; status() has the fault and its byte
// offset.
class JsonScanner {
 public:
  static constexpr int kMaxDepth = 200;

  explicit JsonScanner(absl::string_view text) : text_(text) {}

  // `member` reads the value of the given name, or fails.
  bool Object(absl::FunctionRef<bool(absl::string_view name)> member);
  bool List(absl::FunctionRef<bool()> element);
  bool String(std::string* out);
  bool Int(int64_t* out);
  bool Bool(bool* out);
  // Skips any value.
  bool Skip();
  // The start of the next value, and the text from there to the current position.
  size_t Mark();
  absl::string_view Since(size_t mark) const { return text_.substr(mark, at_ - mark); }
  // If the next value is null, reads it and returns true.
  bool TakeNull();
  // Whether only whitespace is left.
  bool End();

  // Fails the scan with a reason of the caller.
  bool Fail(absl::string_view what);
  absl::Status status() const { return status_; }

 private:
  void SkipSpace();
  // The next byte after whitespace; 0 at the end.
  char Peek();
  bool Take(char wanted);
  bool TakeWord(absl::string_view word);
  // The text between the quotes; `escaped`: it contains escapes.
  bool Quoted(absl::string_view* out, bool* escaped);
  bool Escape();
  bool Number(absl::string_view* out);
  bool Digits();
  bool Name(std::string* buffer, absl::string_view* out);

  const absl::string_view text_;
  size_t at_ = 0;
  int depth_ = 0;
  bool all_ascii_ = true;
  absl::Status status_;
};

// `text` as a quoted JSON string; invalid UTF-8 becomes U+FFFD.
void AppendJsonString(absl::string_view text, std::string* out);

}  // namespace outboard::extender

#endif  // OUTBOARD_SHIM_EXTENDER_JSON_SCANNER_H_
