// Goes over JSON once and builds nothing: for bodies of megabytes of which a few strings are read.
#ifndef OUTBOARD_SHIM_EXTENDER_JSON_SCANNER_H_
#define OUTBOARD_SHIM_EXTENDER_JSON_SCANNER_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace outboard::extender {

// Reads values in the order in which they stand. A tree of such a body (kube/wire/document.h) would
// be several times its size, and nodes are to be answered byte for byte.
//
// Every byte is checked: what a scan took as a value is JSON by RFC 8259 in UTF-8, at most
// kMaxDepth deep. Members of a name that came before are no fault.
// Threading: thread-compatible. Lifetime: the text outlives it, and what Since gives.
// Errors:    a method that fails returns false, as does every one after it; status() says what is
// wrong and at which byte.
class JsonScanner {
 public:
  static constexpr int kMaxDepth = 200;

  explicit JsonScanner(absl::string_view text) : text_(text) {}

  // `member` takes the value of the name that it is given, or fails.
  bool Object(absl::FunctionRef<bool(absl::string_view name)> member);
  bool List(absl::FunctionRef<bool()> element);
  bool String(std::string* out);
  bool Int(int64_t* out);
  bool Bool(bool* out);
  // Any value.
  bool Skip();
  // Where the next value begins, and the text from there to here.
  size_t Mark();
  absl::string_view Since(size_t mark) const { return text_.substr(mark, at_ - mark); }
  // True, and takes it, if the next value is null.
  bool TakeNull();
  // Nothing but space is left.
  bool End();

  // Makes the scan fail for a reason of the caller's.
  bool Fail(absl::string_view what);
  absl::Status status() const { return status_; }

 private:
  void SkipSpace();
  // The next byte behind space; 0 at the end.
  char Peek();
  bool Take(char wanted);
  bool TakeWord(absl::string_view word);
  // The text between the quotes; `escaped`: it is not what it means.
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

// `text` between quotes, as JSON has it; bytes that are not UTF-8 become U+FFFD.
void AppendJsonString(absl::string_view text, std::string* out);

}  // namespace outboard::extender

#endif  // OUTBOARD_SHIM_EXTENDER_JSON_SCANNER_H_
