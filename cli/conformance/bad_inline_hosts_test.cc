// Hosts without a cache that are each wrong in one way, as proxies of InlineNodesHost. The kit must
// find each by the right cases, and nothing in the correct host.
#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "cli/conformance/kit.h"
#include "cli/conformance/test_cluster.h"
#include "cli/conformance/testing/bad_host.h"
#include "cli/conformance/testing/inline_nodes_host.h"
#include "proto/call_errors/call_errors.h"
#include "proto/testing/fake_host.h"

namespace outboard::conformance {
namespace {

using namespace v1beta1;  // NOLINT: the contract's messages are this file's vocabulary.
using google::protobuf::Message;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::TempDir;
using ::testing::UnorderedElementsAre;
using ::testing::UnorderedElementsAreArray;

// The header of a call that a host without a cache gets for its plugins at filter and score; null
// for other calls.
CallHeader* InlineHeader(Message* message) {
  if (auto* request = As<FilterRequest>(message)) return request->mutable_header();
  if (auto* request = As<ScoreRequest>(message)) return request->mutable_header();
  return nullptr;
}

// Makes the call name as many nodes as come with it.
void NameWhatCame(Message* message) {
  const auto resize = [](int sent, NodeSet* nodes) {
    nodes->clear_slots();
    for (int slot = 0; slot < sent; ++slot) nodes->add_slots(static_cast<uint32_t>(slot));
  };
  if (auto* request = As<ScoreRequest>(message))
    resize(request->inline_nodes_size(), request->mutable_nodes());
  auto* request = As<FilterRequest>(message);
  if (request == nullptr) return;
  if (request->has_search())
    resize(request->inline_nodes_size(), request->mutable_search()->mutable_nodes());
  if (!request->has_simulation()) return;
  request->mutable_simulation()->clear_nodes();
  for (int i = 0; i < request->inline_nodes_size(); ++i) request->mutable_simulation()->add_nodes();
}

std::vector<BadHost> BadInlineHosts() {
  return {
      {"a session that is not looked at",
       {"PreFilterService/wrong-headers"},
       [](Wrongness* wrong) {
         wrong->hooks.on_request = [wrong](Message* message) {
           absl::MutexLock lock(&wrong->mu);
           if (const auto* configure = As<ConfigureRequest>(message))
             wrong->last_session = configure->session_id();
           CallHeader* const header = InlineHeader(message);
           // A missing header stays a wrong one.
           if (header != nullptr && !header->session_id().empty())
             header->set_session_id(wrong->last_session);
           return grpc::Status::OK;
         };
       }},
      {"INTERNAL instead of SESSION_UNKNOWN",
       {"PreFilterService/wrong-headers", "PreFilterService/missing-fields"},
       [](Wrongness* wrong) {
         wrong->hooks.on_answer = [](const Message&, Message*, grpc::Status* status) {
           const auto error = call_errors::CallErrorOf(*status);
           if (error.has_value() && error->reason() == CallError::REASON_SESSION_UNKNOWN)
             *status = testing::CallFailure(CallError::REASON_INTERNAL, "no such session");
         };
       }},
      {"any profile",
       {"PreFilterService/wrong-headers", "PreFilterService/missing-fields"},
       [](Wrongness* wrong) {
         wrong->hooks.on_request = [](Message* message) {
           CallHeader* const header = InlineHeader(message);
           // A missing header stays a wrong one.
           if (header != nullptr && !header->session_id().empty()) header->set_profile(kProfile);
           return grpc::Status::OK;
         };
       }},
      {"calls without their pod are answered",
       {"PreFilterService/missing-fields"},
       [](Wrongness* wrong) {
         wrong->hooks.on_request = [](Message* message) {
           if (auto* request = As<FilterRequest>(message)) request->mutable_pod();
           if (auto* request = As<ScoreRequest>(message)) request->mutable_pod();
           return grpc::Status::OK;
         };
       }},
      {"other nodes than the call names",
       {"FilterService/errors", "ScoreService/errors"},
       [](Wrongness* wrong) {
         wrong->hooks.on_request = [](Message* message) {
           NameWhatCame(message);
           return grpc::Status::OK;
         };
       }},
      {"an empty search instead of none",
       {"FilterService/errors"},
       Asked<FilterRequest>([](Wrongness*, FilterRequest* request) {
         if (request->what_case() == FilterRequest::WHAT_NOT_SET) request->mutable_search();
       })},
      {"failures in simulations that evictions may resolve",
       {"FilterService/simulated-failure"},
       [](Wrongness* wrong) {
         wrong->hooks.on_answer = [](const Message& request, Message* response, grpc::Status*) {
           const auto* filter = As<FilterRequest>(request);
           if (filter == nullptr || !filter->has_simulation()) return;
           for (PluginStatus& reason : *As<FilterResponse>(response)->mutable_reasons())
             reason.set_code(CODE_UNSCHEDULABLE);
         };
       }},
  };
}

// Of PreFilter, Filter and Score: the only services of InlineNodesHost that the kit judges here.
std::vector<Case> CasesOfAttempts() {
  std::vector<Case> cases = AllCases();
  std::erase_if(cases, [](const Case& one) {
    const std::string service = one.service;
    return service != "PreFilterService" && service != "FilterService" && service != "ScoreService";
  });
  return cases;
}

std::string InlinePath(int number) {
  return absl::StrCat(TempDir(), "/inline-", getpid(), "-", number, ".sock");
}

TEST(BadInlineHostsTest, EachFailsTheRightCases) {
  int number = 0;
  for (const BadHost& bad : BadInlineHosts()) {
    const auto good = InlineNodesHost::Start(absl::StrCat("unix:", InlinePath(++number)));
    ASSERT_NE(good, nullptr);
    const auto upstream = grpc::CreateChannel(good->address(), grpc::InsecureChannelCredentials());
    const auto failed = FailuresOf(bad, 2000 + number, upstream, CasesOfAttempts());
    EXPECT_THAT(NamesOf(failed), UnorderedElementsAreArray(bad.fails))
        << "a host without a cache, with " << bad.name << "\n"
        << MessagesOf(failed);
  }
}

TEST(GoodInlineHostTest, FailsNothingAndGetsNoPreFilter) {
  const auto good = InlineNodesHost::Start(absl::StrCat("unix:", InlinePath(0)));
  ASSERT_NE(good, nullptr);
  const std::vector<Case> cases = CasesOfAttempts();
  const auto failed = ResultsOf(InlinePath(0), cases, Result::Outcome::kFailed);
  EXPECT_THAT(failed, IsEmpty()) << MessagesOf(failed);
  EXPECT_THAT(NamesOf(ResultsOf(InlinePath(0), cases, Result::Outcome::kPassed)),
              UnorderedElementsAre(
                  "PreFilterService/wrong-headers", "PreFilterService/missing-fields",
                  "FilterService/well-formed", "FilterService/again", "FilterService/given-nodes",
                  "FilterService/errors", "FilterService/hypotheses",
                  "FilterService/simulated-failure", "ScoreService/well-formed",
                  "ScoreService/again", "ScoreService/some-nodes", "ScoreService/errors"));
  const auto skipped = ResultsOf(InlinePath(0), cases, Result::Outcome::kSkipped);
  for (const char* name : {"PreFilterService/well-formed", "PreFilterService/again"}) {
    ASSERT_EQ(skipped.count(name), 1u) << name;
    EXPECT_THAT(skipped.at(name), HasSubstr("no plugin at PRE_FILTER"));
  }
}

}  // namespace
}  // namespace outboard::conformance
