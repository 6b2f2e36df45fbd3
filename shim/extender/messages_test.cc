#include "shim/extender/messages.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "integration/fuzz/run_corpus.h"
#include "shim/extender/testing/fuzz_request.h"

namespace outboard::extender {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr char kPod[] = R"("Pod":{"metadata":{"name":"p","namespace":"ns","uid":"u1"},"spec":{}})";

std::string Body(const std::string& rest) { return absl::StrCat("{", kPod, ",", rest, "}"); }

v1beta1::PluginStatus Reason(v1beta1::Code code, const std::vector<std::string>& texts) {
  v1beta1::PluginStatus reason;
  reason.set_code(code);
  reason.mutable_reasons()->Assign(texts.begin(), texts.end());
  return reason;
}

TEST(DecodeNodesQuestion, Names) {
  auto question = DecodeNodesQuestion(Body(R"("Nodes":null,"NodeNames":["a","b"])"));
  ASSERT_TRUE(question.ok()) << question.status();
  EXPECT_TRUE(question->by_name);
  EXPECT_EQ(question->pod.uid, "u1");
  EXPECT_EQ(question->pod.key, "ns/p");
  EXPECT_THAT(question->names, ElementsAre("a", "b"));
  EXPECT_THAT(question->nodes, IsEmpty());
}

TEST(DecodeNodesQuestion, FullNodesKeepTheirBytes) {
  const std::string first = R"({"metadata":{"labels":{"x" : "y"},"name":"a"},"status":{"n":1.50}})";
  const std::string body =
      Body(R"("Nodes":{"metadata":{},"items":[ )" + first + R"(, {"metadata":{"name":"b"}}]})");
  auto question = DecodeNodesQuestion(body);
  ASSERT_TRUE(question.ok()) << question.status();
  EXPECT_FALSE(question->by_name);
  EXPECT_THAT(question->names, ElementsAre("a", "b"));
  EXPECT_THAT(question->nodes, ElementsAre(first, R"({"metadata":{"name":"b"}})"));
}

TEST(DecodeNodesQuestion, ReadsNamesAsGoDoes) {
  auto question =
      DecodeNodesQuestion(R"({"nodenames":[],"pod":{"metadata":{"uid":"u"}},"later":{"a":[1]}})");
  ASSERT_TRUE(question.ok()) << question.status();
  EXPECT_TRUE(question->by_name);
}

TEST(DecodeNodesQuestion, ReportsTheFault) {
  const auto error = [](const std::string& body) {
    return std::string(DecodeNodesQuestion(body).status().message());
  };
  EXPECT_EQ(error("{"), "the request is malformed: byte 1: expected '\"'");
  EXPECT_EQ(error("5"), "the request is malformed: byte 0: expected '{'");
  EXPECT_EQ(error("{}"), "the request has no pod with a uid");
  EXPECT_EQ(error(R"({"Pod":null,"NodeNames":[]})"), "the request has no pod with a uid");
  EXPECT_EQ(error(Body(R"("Nodes":null)")), "the request has neither Nodes nor NodeNames");
  EXPECT_THAT(error(Body(R"("NodeNames":[],"Nodes":{"items":[]})")),
              HasSubstr("nodes are specified twice"));
  EXPECT_THAT(error(Body(R"("Nodes":{"items":[{}]})")), HasSubstr("a node has no name"));
  EXPECT_THAT(error(Body(R"("NodeNames":["a",5])")), HasSubstr("expected a string"));
  EXPECT_THAT(error(Body(R"("NodeNames":["a"]) x)")), HasSubstr("malformed"));
  EXPECT_THAT(error(Body(R"("NodeNames":["a"])") + "x"), HasSubstr("unexpected text"));
}

TEST(DecodePreemption, BothForms) {
  auto meta = DecodePreemption(Body(
      R"("NodeNameToMetaVictims":{"n1":{"Pods":[{"UID":"a"},{"UID":"b"}],"NumPDBViolations":2}},"NodeNameToVictims":null)"));
  ASSERT_TRUE(meta.ok()) << meta.status();
  ASSERT_THAT(meta->nodes, SizeIs(1));
  EXPECT_EQ(meta->nodes[0].node, "n1");
  EXPECT_THAT(meta->nodes[0].uids, ElementsAre("a", "b"));
  EXPECT_EQ(meta->nodes[0].budget_violations, 2);
  auto full = DecodePreemption(Body(
      R"("NodeNameToVictims":{"n1":{"Pods":[{"metadata":{"uid":"a"},"spec":{}}],"NumPDBViolations":0},"n2":{"Pods":null}})"));
  ASSERT_TRUE(full.ok()) << full.status();
  ASSERT_THAT(full->nodes, SizeIs(2));
  EXPECT_THAT(full->nodes[0].uids, ElementsAre("a"));
  EXPECT_THAT(full->nodes[1].uids, IsEmpty());
  EXPECT_FALSE(DecodePreemption(Body(R"("NodeNameToVictims":{"n":{"Pods":[{}]}})")).ok());
}

TEST(DecodeBinding, AllFields) {
  auto order = DecodeBinding(R"({"PodName":"p","PodNamespace":"ns","PodUID":"u","Node":"n"})");
  ASSERT_TRUE(order.ok()) << order.status();
  EXPECT_EQ(order->pod, (PodName{"u", "ns/p"}));
  EXPECT_EQ(order->node, "n");
  EXPECT_FALSE(DecodeBinding(R"({"PodName":"p","PodNamespace":"ns","PodUID":"u"})").ok());
}

TEST(EncodeFilter, NamesAndReasons) {
  NodesQuestion question;
  question.by_name = true;
  question.names = {"a", "b", "c", "d"};
  NodesAnswer answer;
  answer.reasons = {
      Reason(v1beta1::CODE_UNSCHEDULABLE, {"Insufficient cpu", "Insufficient memory"}),
      Reason(v1beta1::CODE_UNSCHEDULABLE_AND_UNRESOLVABLE, {"model \"x\""})};
  answer.verdicts = {NodesAnswer::kFeasible, 0, 1, NodesAnswer::kUnknown};
  EXPECT_EQ(
      EncodeFilter(question, answer),
      R"({"Nodes":null,"NodeNames":["a"],"FailedNodes":{"b":"Insufficient cpu, Insufficient memory","d":"node(s) were not known to the extender"},"FailedAndUnresolvableNodes":{"c":"model \"x\""},"Error":""})");
}

TEST(EncodeFilter, NodesAsTheyCame) {
  NodesQuestion question;
  question.names = {"a", "b"};
  question.nodes = {"{\"n\": 1}", "{\"n\": 2}"};
  NodesAnswer answer;
  answer.verdicts = {NodesAnswer::kFeasible, NodesAnswer::kFeasible};
  EXPECT_EQ(
      EncodeFilter(question, answer),
      R"({"Nodes":{"metadata":{},"items":[{"n": 1},{"n": 2}]},"NodeNames":null,"FailedNodes":{},"FailedAndUnresolvableNodes":{},"Error":""})");
  answer.verdicts = {NodesAnswer::kUnknown, NodesAnswer::kUnknown};
  EXPECT_THAT(EncodeFilter(question, answer), HasSubstr(R"("items":[]})"));
}

TEST(Encode, TheOthers) {
  NodesQuestion question;
  question.names = {"a", "b"};
  NodesAnswer answer;
  answer.scores = {10, 0};
  EXPECT_EQ(EncodePriorities(question, answer),
            R"([{"Host":"a","Score":10},{"Host":"b","Score":0}])");
  EXPECT_EQ(EncodePriorities(NodesQuestion(), NodesAnswer()), "[]");
  PreemptionQuestion preemption;
  preemption.nodes = {{"n1", {"u1"}, 0}, {"n2", {"u2", "u3"}, 1}};
  EXPECT_EQ(
      EncodePreemption(preemption, {false, true}),
      R"({"NodeNameToMetaVictims":{"n2":{"Pods":[{"UID":"u2"},{"UID":"u3"}],"NumPDBViolations":1}}})");
  EXPECT_EQ(EncodeError(""), R"({"Error":""})");
}

// kube-apiserver's review for a bind by kube-scheduler, modified by `change`.
absl::StatusOr<BindReview> Reviewed(const std::function<void(nlohmann::json&)>& change) {
  nlohmann::json review =
      nlohmann::json::parse(std::ifstream("shim/extender/testdata/bind_review.json"));
  change(review["request"]);
  return DecodeBindReview(review.dump());
}

TEST(BindReview, NamesThePodAndTheNode) {
  const auto review = Reviewed([](nlohmann::json&) {});
  ASSERT_TRUE(review.ok()) << review.status();
  EXPECT_EQ(review->uid, "0df28fbd-5f5f-11e8-bc74-36e6bb280816");
  EXPECT_EQ(review->order.pod, (PodName{"1", "ns/p"}));
  EXPECT_EQ(review->order.node, "n1");
  EXPECT_FALSE(review->dry_run);
  const auto tried = Reviewed([](nlohmann::json& request) {
    request["dryRun"] = true;
    request["object"]["metadata"].erase("uid");  // optional in a Binding
  });
  ASSERT_TRUE(tried.ok()) << tried.status();
  EXPECT_TRUE(tried->dry_run);
  EXPECT_EQ(tried->order.pod, (PodName{"", "ns/p"}));
}

TEST(BindReview, OfAnythingElseIsRefused) {
  using Json = nlohmann::json;
  const std::pair<std::function<void(Json&)>, const char*> wrong[] = {
      {[](Json& r) { r["subResource"] = "eviction"; }, "is not a review of a CREATE"},
      {[](Json& r) { r["operation"] = "DELETE"; }, "is not a review of a CREATE"},
      {[](Json& r) { r["object"] = nullptr; }, "has no pod or no node"},
      {[](Json& r) { r["object"]["target"]["kind"] = "Pod"; }, "has no pod or no node"},
      {[](Json& r) { r["dryRun"] = "yes"; }, "is malformed"},
      {[](Json& r) { r.erase("uid"); }, "is not an AdmissionReview"}};
  for (const auto& [change, message] : wrong)
    EXPECT_THAT(std::string(Reviewed(change).status().message()), HasSubstr(message));
  EXPECT_FALSE(DecodeBindReview("{}").ok());
}

TEST(BindReview, IsAnsweredByItsUid) {
  BindReview review;
  review.uid = "u\"1";
  EXPECT_EQ(EncodeBindReview(review, ""),
            R"({"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview",)"
            R"("response":{"uid":"u\"1","allowed":true}})");
  EXPECT_EQ(EncodeBindReview(review, "no room"),
            R"({"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview",)"
            R"("response":{"uid":"u\"1","allowed":false,)"
            R"("status":{"code":409,"reason":"Conflict","message":"no room"}}})");
}

// Inputs that once broke a promise.
TEST(FuzzRequest, Findings) { fuzz::RunCorpus("shim/extender/testdata/fuzz", 1, FuzzRequest); }

TEST(FuzzRequest, Seeds) {
  size_t count = 0;
  for (const auto& entry : std::filesystem::directory_iterator("shim/extender/testdata")) {
    if (!entry.is_regular_file()) continue;
    SCOPED_TRACE(entry.path().string());
    std::stringstream text;
    text << std::ifstream(entry.path(), std::ios::binary).rdbuf();
    const std::string seed = text.str();
    FuzzRequest(seed);
    EXPECT_TRUE(DecodeNodesQuestion(seed).ok() || DecodePreemption(seed).ok() ||
                DecodeBinding(seed).ok() || DecodeBindReview(seed).ok());
    // Also truncated and corrupted at every position.
    for (size_t i = 0; i < seed.size(); ++i) {
      FuzzRequest(seed.substr(0, i));
      for (const char broken : {'"', '\\', '{', ']', ',', '\xff', '0'}) {
        std::string changed = seed;
        changed[i] = broken;
        FuzzRequest(changed);
      }
    }
    ++count;
  }
  EXPECT_GE(count, 6);
}

}  // namespace
}  // namespace outboard::extender
