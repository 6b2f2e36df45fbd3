#include "shim/access/review_guard.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "shim/kube/curl_api_client.h"
#include "shim/kube/testing/fake_api_server.h"

namespace outboard::access {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

class ReviewGuardTest : public ::testing::Test {
 protected:
  ReviewGuardTest() : client_(server_.Config(), {}), guard_(&client_, Options()) {}

  ReviewGuardOptions Options() {
    ReviewGuardOptions options;
    options.max_entries = 4;
    options.timeout = absl::Seconds(2);
    options.clock = [this] { return now_; };
    options.on_verdict = [this](absl::string_view verdict) { verdicts_.emplace_back(verdict); };
    return options;
  }

  // Sets the API server's answer to the next review of either kind.
  void AnswerToken(const json& status) { Answer("tokenreviews", {{"status", status}}); }
  void AnswerAccess(const json& status) { Answer("subjectaccessreviews", {{"status", status}}); }
  void Answer(const std::string& path, const json& body, int code = 201) {
    kube::testing::Fault fault;
    fault.path_part = path;
    fault.http_status = code;
    fault.body = body.is_string() ? body.get<std::string>() : body.dump();
    server_.Inject(fault);
  }
  static json Known(const std::string& name) {
    return {{"authenticated", true},
            {"user",
             {{"username", name},
              {"uid", "u1"},
              {"groups", {"system:serviceaccounts", "system:authenticated"}},
              {"extra", {{"k", {"v"}}}}}}};
  }

  http::Verdict Get(const std::string& token, const std::string& path = "/metrics") {
    http::PageRequest request;
    request.verb = "get";
    request.path = path;
    request.bearer_token = token;
    return guard_.Check(request);
  }
  int Reviews(const std::string& what) const { return server_.Count("POST", what); }
  json LastBody() const { return json::parse(server_.Requests().back().body); }

  kube::testing::FakeApiServer server_;
  kube::CurlApiClient client_;
  absl::Time now_ = absl::FromUnixSeconds(1000);
  std::vector<std::string> verdicts_;
  ReviewGuard guard_;
};

TEST_F(ReviewGuardTest, LetsInWhomTheServerKnowsAndAllows) {
  AnswerToken(Known("system:serviceaccount:monitoring:prometheus"));
  AnswerAccess({{"allowed", true}});
  EXPECT_EQ(Get("t1").http_status, 200);
  const std::vector<kube::testing::RequestLog> asked = server_.Requests();
  ASSERT_EQ(asked.size(), 2u);
  EXPECT_EQ(asked[0].path, "/apis/authentication.k8s.io/v1/tokenreviews");
  EXPECT_EQ(json::parse(asked[0].body)["spec"], (json{{"token", "t1"}}));
  EXPECT_EQ(asked[1].path, "/apis/authorization.k8s.io/v1/subjectaccessreviews");
  EXPECT_EQ(json::parse(asked[1].body)["spec"],
            (json{{"nonResourceAttributes", {{"path", "/metrics"}, {"verb", "get"}}},
                  {"user", "system:serviceaccount:monitoring:prometheus"},
                  {"uid", "u1"},
                  {"groups", {"system:serviceaccounts", "system:authenticated"}},
                  {"extra", {{"k", {"v"}}}}}));
  EXPECT_THAT(verdicts_, ::testing::ElementsAre("allowed"));
}

TEST_F(ReviewGuardTest, AsksAgainOnlyAfterTenSeconds) {
  AnswerToken(Known("a"));
  AnswerAccess({{"allowed", true}});
  EXPECT_EQ(Get("t").http_status, 200);
  now_ += absl::Milliseconds(9999);
  EXPECT_EQ(Get("t").http_status, 200);
  EXPECT_EQ(Reviews(""), 2);
  // Another page needs another decision about the same user.
  AnswerAccess({{"allowed", false}});
  EXPECT_EQ(Get("t", "/hosts").http_status, 403);
  EXPECT_EQ(Reviews("tokenreviews"), 1);
  now_ += absl::Milliseconds(1);
  AnswerToken({{"error", "the token has expired"}});
  EXPECT_EQ(Get("t").http_status, 401);
  EXPECT_EQ(Reviews("tokenreviews"), 2);
  // Rejections are cached for the same time, for tokens and for pages.
  EXPECT_EQ(Get("t").http_status, 401);
  EXPECT_EQ(Reviews("tokenreviews"), 2);
}

TEST_F(ReviewGuardTest, RejectsWithTheAPIServersTexts) {
  http::Verdict verdict = Get("");
  EXPECT_EQ(verdict.http_status, 401);
  EXPECT_THAT(verdict.message, HasSubstr("Unauthorized"));
  EXPECT_EQ(Reviews(""), 0);

  // As the API server answers: `authenticated: false` is omitted.
  AnswerToken({{"user", json::object()}, {"error", "invalid bearer token"}});
  EXPECT_EQ(Get("wrong").http_status, 401);

  AnswerToken(Known("dev"));
  AnswerAccess({{"allowed", false}, {"reason", "no rule"}});
  verdict = Get("t");
  EXPECT_EQ(verdict.http_status, 403);
  EXPECT_EQ(verdict.message, "forbidden: User \"dev\" cannot get path \"/metrics\": no rule");

  AnswerAccess({{"allowed", true}, {"denied", true}});
  EXPECT_EQ(Get("t", "/hosts").http_status, 403);
}

TEST_F(ReviewGuardTest, AVerifiedCertificateCountsBeforeAToken) {
  http::PageRequest request;
  request.verb = "post";
  request.path = "/hosts/swap";
  request.bearer_token = "t";
  request.certificate_user = "jane";
  request.certificate_groups = {"ops"};
  AnswerAccess({{"allowed", true}});
  EXPECT_EQ(guard_.Check(request).http_status, 200);
  EXPECT_EQ(LastBody()["spec"],
            (json{{"nonResourceAttributes", {{"path", "/hosts/swap"}, {"verb", "post"}}},
                  {"user", "jane"},
                  {"groups", {"ops", "system:authenticated"}}}));
  EXPECT_EQ(Reviews("tokenreviews"), 0);
}

// Errors on the way to the API server are not cached.
TEST_F(ReviewGuardTest, ReportsAnUnavailableServer) {
  Answer("tokenreviews", "it is down", 503);
  http::Verdict verdict = Get("t");
  EXPECT_EQ(verdict.http_status, 503);
  EXPECT_THAT(verdict.message, HasSubstr("the API server failed to answer tokenreviews"));

  kube::testing::Fault dropped;
  dropped.path_part = "tokenreviews";
  dropped.drop_request = true;
  dropped.times = 10;  // libcurl may retry by itself
  server_.Inject(dropped);
  EXPECT_EQ(Get("t").http_status, 503);
  server_.ClearFaults();

  Answer("tokenreviews", "<html>", 200);
  EXPECT_EQ(Get("t").http_status, 500);

  AnswerToken(Known("a"));
  Answer("subjectaccessreviews", "not you", 403);
  verdict = Get("t");
  EXPECT_EQ(verdict.http_status, 500);
  EXPECT_THAT(verdict.message, HasSubstr("system:auth-delegator"));

  AnswerAccess({{"allowed", true}});
  EXPECT_EQ(Get("t").http_status, 200);
  EXPECT_THAT(verdicts_, ::testing::ElementsAre("unavailable", "unavailable", "unavailable",
                                                "unavailable", "allowed"));
}

TEST_F(ReviewGuardTest, TakesBytesOfAnyKind) {
  AnswerToken(Known("a"));
  AnswerAccess({{"allowed", false}});
  EXPECT_EQ(Get("\xff\xfe", "/\xff").http_status, 403);
}

TEST_F(ReviewGuardTest, KeepsABoundedNumber) {
  for (int i = 0; i < 5; ++i) {
    AnswerToken({{"authenticated", false}});
    EXPECT_EQ(Get(absl::StrCat("t", i)).http_status, 401);
  }
  EXPECT_EQ(Reviews("tokenreviews"), 5);
  EXPECT_EQ(Get("t4").http_status, 401);
  EXPECT_EQ(Get("t1").http_status, 401);
  EXPECT_EQ(Reviews("tokenreviews"), 5);
  AnswerToken({{"authenticated", false}});
  EXPECT_EQ(Get("t0").http_status, 401) << "the oldest entry was evicted";
  EXPECT_EQ(Reviews("tokenreviews"), 6);
}

}  // namespace
}  // namespace outboard::access
