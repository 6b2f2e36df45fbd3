#include "plugins/static_ip/calico_selector.h"

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/strip.h"

namespace outboard::static_ip {

// Recursive descent. Each method returns nullopt if the text does not continue as it expects.
class CalicoSelectorParser {
 public:
  using Expression = CalicoSelector::Expression;
  using Op = CalicoSelector::Op;

  explicit CalicoSelectorParser(absl::string_view text) : rest_(text) {}

  std::optional<Expression> Whole() {
    SkipSpace();
    if (rest_.empty()) return Expression();
    std::optional<Expression> whole = Chain(Op::kOr);
    if (!whole || !rest_.empty()) return std::nullopt;
    return whole;
  }

 private:
  static constexpr int kMaxDepth = 32;

  void SkipSpace() {
    while (!rest_.empty() && absl::ascii_isspace(rest_.front())) rest_.remove_prefix(1);
  }
  bool Take(absl::string_view token) {
    if (!absl::ConsumePrefix(&rest_, token)) return false;
    SkipSpace();
    return true;
  }
  // `a || b || c`, where each is `d && e && f`.
  std::optional<Expression> Chain(Op op) {
    Expression chain;
    chain.op = op;
    do {
      std::optional<Expression> part = op == Op::kOr ? Chain(Op::kAnd) : Operand();
      if (!part) return std::nullopt;
      chain.operands.push_back(*std::move(part));
    } while (Take(op == Op::kOr ? "||" : "&&"));
    return chain;
  }
  std::optional<Expression> Operand() {
    if (++depth_ > kMaxDepth) return std::nullopt;
    std::optional<Expression> operand = Take("!") ? Negated() : Term();
    --depth_;
    return operand;
  }
  std::optional<Expression> Negated() {
    std::optional<Expression> operand = Operand();
    if (!operand) return std::nullopt;
    return Not(*std::move(operand));
  }
  std::optional<Expression> Term() {
    if (Take("(")) {
      std::optional<Expression> inside = Chain(Op::kOr);
      if (!inside || !Take(")")) return std::nullopt;
      return inside;
    }
    const std::string word = Word();
    if (word.empty()) return std::nullopt;
    if (Take("(")) {
      Expression call;
      if (word == "has") {
        call.op = Op::kHas;
        call.label = Word();
        if (call.label.empty()) return std::nullopt;
      } else if (word != "all" && word != "global") {
        return std::nullopt;
      }
      return Take(")") ? std::optional(call) : std::nullopt;
    }
    return Comparison(word);
  }
  std::optional<Expression> Comparison(const std::string& label) {
    Expression comparison;
    comparison.label = label;
    const auto with_value = [&](Op op) -> std::optional<Expression> {
      comparison.op = op;
      const std::optional<std::string> value = Quoted();
      if (!value) return std::nullopt;
      comparison.values = {*value};
      return comparison;
    };
    if (Take("==")) return with_value(Op::kIn);
    if (Take("!=")) return Negation(with_value(Op::kIn));
    const std::string word = Word();
    if (word == "contains") return with_value(Op::kContains);
    if (word == "in") return InSet(comparison);
    const std::string second = Word();
    if (word == "starts" && second == "with") return with_value(Op::kStartsWith);
    if (word == "ends" && second == "with") return with_value(Op::kEndsWith);
    if (word == "not" && second == "in") return Negation(InSet(comparison));
    return std::nullopt;
  }
  std::optional<Expression> InSet(Expression comparison) {
    comparison.op = Op::kIn;
    if (!Take("{")) return std::nullopt;
    if (Take("}")) return comparison;
    do {
      const std::optional<std::string> value = Quoted();
      if (!value) return std::nullopt;
      comparison.values.push_back(*value);
    } while (Take(","));
    if (!Take("}")) return std::nullopt;
    return comparison;
  }
  static std::optional<Expression> Negation(std::optional<Expression> operand) {
    if (!operand) return std::nullopt;
    return Not(*std::move(operand));
  }
  static Expression Not(Expression operand) {
    Expression negated;
    negated.op = Op::kNot;
    negated.operands.push_back(std::move(operand));
    return negated;
  }
  // A label's name or an operator.
  std::string Word() {
    const auto is_part = [](char c) {
      return absl::ascii_isalnum(c) || absl::StrContains("_./-", absl::string_view(&c, 1));
    };
    const auto end = std::find_if_not(rest_.begin(), rest_.end(), is_part);
    const std::string word(rest_.begin(), end);
    rest_.remove_prefix(word.size());
    SkipSpace();
    return word;
  }
  std::optional<std::string> Quoted() {
    if (rest_.empty() || (rest_.front() != '\'' && rest_.front() != '"')) return std::nullopt;
    const size_t end = rest_.find(rest_.front(), 1);
    if (end == absl::string_view::npos) return std::nullopt;
    const std::string value(rest_.substr(1, end - 1));
    rest_.remove_prefix(end + 1);
    SkipSpace();
    return value;
  }

  absl::string_view rest_;
  int depth_ = 0;
};

std::optional<CalicoSelector> CalicoSelector::Parse(absl::string_view text) {
  std::optional<Expression> root = CalicoSelectorParser(text).Whole();
  if (!root) return std::nullopt;
  CalicoSelector selector;
  selector.root_ = *std::move(root);
  return selector;
}

bool CalicoSelector::MatchesLabel(const Expression& expression, absl::string_view value) {
  return std::any_of(expression.values.begin(), expression.values.end(),
                     [&](const std::string& operand) {
                       switch (expression.op) {
                         case Op::kContains:
                           return absl::StrContains(value, operand);
                         case Op::kStartsWith:
                           return absl::StartsWith(value, operand);
                         case Op::kEndsWith:
                           return absl::EndsWith(value, operand);
                         default:
                           return value == operand;
                       }
                     });
}

bool CalicoSelector::Matches(const Expression& expression, const Labels& labels) {
  const auto matches = [&](const Expression& operand) { return Matches(operand, labels); };
  const std::vector<Expression>& operands = expression.operands;
  switch (expression.op) {
    case Op::kAll:
      return true;
    case Op::kNot:
      return !matches(operands[0]);
    case Op::kAnd:
      return std::all_of(operands.begin(), operands.end(), matches);
    case Op::kOr:
      return std::any_of(operands.begin(), operands.end(), matches);
    default:
      break;
  }
  const std::optional<absl::string_view> value = labels(expression.label);
  return value && (expression.op == Op::kHas || MatchesLabel(expression, *value));
}

}  // namespace outboard::static_ip
