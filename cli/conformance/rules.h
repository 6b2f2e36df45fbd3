// What the contract promises, word for word: a case that fails quotes the rule that the host broke.
#ifndef OUTBOARD_CLI_CONFORMANCE_RULES_H_
#define OUTBOARD_CLI_CONFORMANCE_RULES_H_

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "cli/conformance/rule_list.h"

namespace outboard::conformance {

// A sentence of a comment in proto/outboard/v1beta1, or in handshake.proto. A test holds that it
// stands there.
struct Rule {
  const char* file;
  const char* field;  // message and field, or service and RPC
  const char* text;
};

// A constant of each rule of rule_list.h.
#define OUTBOARD_CONFORMANCE_RULE(name, file, field, text) \
  inline constexpr Rule name{file, field, text};
OUTBOARD_CONFORMANCE_RULES(OUTBOARD_CONFORMANCE_RULE)
#undef OUTBOARD_CONFORMANCE_RULE

// What a host did wrong, and by which rule.
absl::Status Wrong(const Rule& rule, absl::string_view what);
// The same for an answer that cannot be evaluated. It fails only the service's case `well-formed`;
// other cases that meet it are skipped.
absl::Status Malformed(absl::string_view service, absl::Status wrong);
// The service of a malformed answer; empty: something else was wrong.
std::string MalformedService(const absl::Status& status);
// The same of an answer that came too late. A machine that stalls makes a good host late once, so
// the case is run again; a host that is always late is late again.
absl::Status Late(absl::Status wrong);
bool IsLate(const absl::Status& status);
// The case cannot be tried on this host, and why.
absl::Status Skipped(absl::string_view why);
inline bool IsSkipped(const absl::Status& status) { return absl::IsCancelled(status); }

// Returns a status that is not OK.
#define CONFORMANCE_TRY(expression)                                   \
  do {                                                                \
    if (absl::Status tried = (expression); !tried.ok()) return tried; \
  } while (0)

}  // namespace outboard::conformance

#endif  // OUTBOARD_CLI_CONFORMANCE_RULES_H_
