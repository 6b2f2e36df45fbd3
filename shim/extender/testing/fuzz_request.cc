#include "shim/extender/testing/fuzz_request.h"

#include <nlohmann/json.hpp>
#include <string>

#include "integration/fuzz/seeds.h"
#include "shim/extender/json_scanner.h"
#include "shim/extender/messages.h"

namespace outboard::extender {
namespace {

using fuzz::Require;

// Parses without keeping anything. A number beyond a double's range is JSON, but ends the parser.
struct Acceptor final : nlohmann::detail::json_sax_acceptor<nlohmann::json> {
  bool parse_error(size_t, const std::string&,
                   const nlohmann::detail::exception& error) {  // NOLINT: hides the base's
    constexpr int kNumberOverflow = 406;
    overflow = error.id == kNumberOverflow;
    return false;
  }
  bool overflow = false;
};

void RequireJson(absl::string_view text, const char* what) {
  Acceptor acceptor;
  Require(nlohmann::json::sax_parse(text.begin(), text.end(), &acceptor) || acceptor.overflow,
          what);
}

}  // namespace

void FuzzRequest(absl::string_view body) {
  JsonScanner scan(body);
  const bool is_json = scan.Skip() && scan.End();
  // A second parser with the same rules except for the depth limit.
  if (is_json) RequireJson(body, "accepted JSON is valid JSON");
  if (absl::StatusOr<NodesQuestion> question = DecodeNodesQuestion(body); question.ok()) {
    Require(is_json, "a question is JSON");
    Require(question->by_name || question->nodes.size() == question->names.size(),
            "every node has a name");
    for (const absl::string_view node : question->nodes) RequireJson(node, "a node is JSON");
    NodesAnswer answer;
    v1beta1::PluginStatus& reason = answer.reasons.emplace_back();
    reason.set_code(v1beta1::CODE_UNSCHEDULABLE_AND_UNRESOLVABLE);
    reason.add_reasons("no \"room\"");
    for (size_t i = 0; i < question->names.size(); ++i) {
      answer.verdicts.push_back(static_cast<int>(i % 3) - 2);
      answer.scores.push_back(static_cast<int64_t>(i % 11));
    }
    RequireJson(EncodeFilter(*question, answer), "an answer to filter is JSON");
    RequireJson(EncodePriorities(*question, answer), "an answer to prioritize is JSON");
  }
  if (absl::StatusOr<PreemptionQuestion> question = DecodePreemption(body); question.ok()) {
    Require(is_json, "a question is JSON");
    RequireJson(EncodePreemption(*question, std::vector<bool>(question->nodes.size(), true)),
                "an answer to preempt is JSON");
  }
  if (DecodeBinding(body).ok()) Require(is_json, "an order is JSON");
  if (absl::StatusOr<BindReview> review = DecodeBindReview(body); review.ok()) {
    Require(is_json, "a review is JSON");
    RequireJson(EncodeBindReview(*review, review->order.pod.key), "an answer to it is JSON");
  }
}

}  // namespace outboard::extender
