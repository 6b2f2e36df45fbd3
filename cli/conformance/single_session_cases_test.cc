// Hosts that keep a single session and are each wrong in one way, as proxies of a correct one.
#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "cli/conformance/kit.h"
#include "cli/conformance/testing/bad_host.h"
#include "cli/conformance/testing/inline_nodes_host.h"

namespace outboard::conformance::single_session_cases_test {
namespace {

using namespace v1beta1;  // NOLINT: the contract's messages are this file's vocabulary.
using google::protobuf::Message;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;
using ::testing::UnorderedElementsAreArray;

const std::string kHost = "PluginHostService/";

// Everything about sessions that a host without a cache answers.
std::vector<Case> CasesOfSessions() {
  std::vector<Case> cases = AllCases();
  std::erase_if(cases, [](const Case& one) {
    const std::string name = absl::StrCat(one.service, "/", one.name);
    return !absl::StartsWith(name, kHost + "single-session") &&
           name != kHost + "sessions-in-turn" && name != kHost + "end-session" &&
           name != "ClusterStateService/fuzzed-calls" && name != "FilterService/errors";
  });
  return cases;
}

std::vector<BadHost> BadSingleHosts() {
  return {
      {"sessions beside each other",
       {kHost + "single-session"},
       [](Wrongness* wrong) {
         // Calls of each session that was ever configured are answered.
         wrong->hooks.on_request = [wrong](Message* message) {
           absl::MutexLock lock(&wrong->mu);
           if (const auto* configure = As<ConfigureRequest>(message))
             wrong->last_session = configure->session_id();
           auto* const filter = As<FilterRequest>(message);
           if (filter != nullptr && !filter->header().session_id().empty())
             filter->mutable_header()->set_session_id(wrong->last_session);
           return grpc::Status::OK;
         };
       }},
      {"no name of its session",
       {kHost + "single-session", kHost + "single-session-stays", kHost + "single-session-ends"},
       Answering<ProbeResponse>(
           [](Wrongness*, ProbeResponse* probe) { probe->clear_current_session_id(); })},
      {"checks that replace the session",
       {kHost + "single-session-stays"},
       Asked<ConfigureRequest>(
           [](Wrongness*, ConfigureRequest* request) { request->clear_validate_only(); })},
      {"refused configurations that replace the session",
       {kHost + "single-session-stays"},
       Asked<ConfigureRequest>([](Wrongness*, ConfigureRequest* request) {
         auto* const plugins = request->mutable_profiles(0)->mutable_points(0)->mutable_plugins();
         if (plugins->size() > 1) plugins->RemoveLast();
       })},
      {"EndSession is ignored",
       {kHost + "single-session-ends"},
       Asked<EndSessionRequest>(
           [](Wrongness*, EndSessionRequest* request) { request->set_session_id("another"); })},
      {"EndSession of any session ends the current one",
       {kHost + "single-session-ends"},
       [](Wrongness* wrong) {
         wrong->hooks.on_request = [wrong](Message* message) {
           absl::MutexLock lock(&wrong->mu);
           if (const auto* configure = As<ConfigureRequest>(message))
             wrong->last_session = configure->session_id();
           if (auto* end = As<EndSessionRequest>(message)) end->set_session_id(wrong->last_session);
           return grpc::Status::OK;
         };
       }},
  };
}

std::string PathOf(int number) {
  return absl::StrCat(::testing::TempDir(), "/single-", getpid(), "-", number, ".sock");
}

TEST(BadSingleSessionHostsTest, EachFailsTheRightCases) {
  int number = 0;
  for (const BadHost& bad : BadSingleHosts()) {
    const auto good = InlineNodesHost::Start(absl::StrCat("unix:", PathOf(++number)),
                                             /*single_session=*/true);
    ASSERT_NE(good, nullptr);
    const auto upstream = grpc::CreateChannel(good->address(), grpc::InsecureChannelCredentials());
    const auto failed = FailuresOf(bad, 3000 + number, upstream, CasesOfSessions());
    EXPECT_THAT(NamesOf(failed), UnorderedElementsAreArray(bad.fails))
        << "a host that keeps a single session, with " << bad.name << "\n"
        << MessagesOf(failed);
  }
}

TEST(GoodSingleSessionHostTest, FailsNothingAndNeedsNoSecondSession) {
  const auto good =
      InlineNodesHost::Start(absl::StrCat("unix:", PathOf(0)), /*single_session=*/true);
  ASSERT_NE(good, nullptr);
  const std::vector<Case> cases = CasesOfSessions();
  const auto failed = ResultsOf(PathOf(0), cases, Result::Outcome::kFailed);
  EXPECT_THAT(failed, IsEmpty()) << MessagesOf(failed);
  EXPECT_THAT(NamesOf(ResultsOf(PathOf(0), cases, Result::Outcome::kSkipped)),
              UnorderedElementsAre(kHost + "sessions-in-turn", kHost + "end-session"));
}

// Cases about the capability are for hosts that have it.
TEST(GoodSingleSessionHostTest, OthersAreNotAsked) {
  const auto good = InlineNodesHost::Start(absl::StrCat("unix:", PathOf(99)));
  ASSERT_NE(good, nullptr);
  const auto skipped = ResultsOf(PathOf(99), CasesOfSessions(), Result::Outcome::kSkipped);
  EXPECT_THAT(NamesOf(skipped),
              UnorderedElementsAre(kHost + "single-session", kHost + "single-session-stays",
                                   kHost + "single-session-ends"));
}

}  // namespace
}  // namespace outboard::conformance::single_session_cases_test
