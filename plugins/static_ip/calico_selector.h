// Calico's selector expressions, as in the nodeSelector of its IPPools: `zone == 'a' && !has(gpu)`.
#ifndef OUTBOARD_PLUGINS_STATIC_IP_CALICO_SELECTOR_H_
#define OUTBOARD_PLUGINS_STATIC_IP_CALICO_SELECTOR_H_

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace outboard::static_ip {

// Operators: `==`, `!=`, `in {'a', 'b'}`, `not in {…}`, `contains`, `starts with`, `ends with`,
// `has(label)`, `all()`, `global()`, `!`, `&&`, `||` and parentheses; `&&` binds closer than `||`.
// `!=` and `not in` hold where the label is absent. Source: libcalico-go/lib/selector/parser of
// projectcalico/calico.
//
// Threading: immutable.
// Lifetime:  a value.
// Errors:    Parse returns nullopt for any other text, and for deep nesting.
class CalicoSelector {
 public:
  // nullopt: the label is absent.
  using Labels = std::function<std::optional<absl::string_view>(absl::string_view key)>;

  // An empty text selects everything.
  static std::optional<CalicoSelector> Parse(absl::string_view text);
  bool Matches(const Labels& labels) const { return Matches(root_, labels); }

 private:
  friend class CalicoSelectorParser;
  enum class Op { kAll, kHas, kIn, kContains, kStartsWith, kEndsWith, kNot, kAnd, kOr };
  struct Expression {
    Op op = Op::kAll;
    std::string label;
    std::vector<std::string> values;
    std::vector<Expression> operands;
  };
  static bool Matches(const Expression& expression, const Labels& labels);
  static bool MatchesLabel(const Expression& expression, absl::string_view value);

  Expression root_;
};

}  // namespace outboard::static_ip

#endif  // OUTBOARD_PLUGINS_STATIC_IP_CALICO_SELECTOR_H_
