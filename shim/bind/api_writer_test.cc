#include "shim/bind/api_writer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <vector>

#include "absl/strings/str_cat.h"
#include "shim/kube/testing/scripted_api_client.h"

namespace outboard::bind {
namespace {

using kube::Delivery;
using kube::Method;
using ::testing::HasSubstr;

const BindRequest kRequest{"ns", "p", "uid-1", "n1"};

std::string PodJson(const std::string& uid, const std::string& node) {
  return absl::StrCat(R"({"metadata":{"uid":")", uid, R"("},"spec":{)",
                      node.empty() ? "" : absl::StrCat(R"("nodeName":")", node, "\""), "}}");
}
std::string StatusJson(const std::string& message) {
  return absl::StrCat(R"({"kind":"Status","apiVersion":"v1","message":")", message, "\"}");
}
absl::Status Lost() {
  return kube::WithDelivery(absl::UnavailableError("connection reset"), Delivery::kUnknown);
}
absl::Status Refused() {
  return kube::WithDelivery(absl::UnavailableError("connection refused"), Delivery::kNotSent);
}

class ApiWriterTest : public ::testing::Test {
 protected:
  ApiWriterTest() { Make(ApiWriterOptions()); }

  void Make(ApiWriterOptions options) {
    Make(std::move(options), [this] { return fence_; });
  }
  void Make(ApiWriterOptions options, std::function<absl::Time()> fence) {
    options.fence.deadline = std::move(fence);
    options.fence.clock = [this] { return now_; };
    MakeWith(std::move(options));
  }
  void MakeWith(ApiWriterOptions options) {
    options.wall = [this] { return now_ - kUptime; };
    writer_ = std::make_unique<ApiWriter>(
        &client_,
        [this](std::function<void(absl::Time)> closure) {
          executor_.push_back(std::move(closure));
        },
        options);
  }
  void Bind(BindRequest request = kRequest) {
    writer_->Bind(std::move(request), now_,
                  [this](const BindResult& r, absl::Time) { results_.push_back(r); });
    writer_->Tick(now_);
  }
  void Drain() {
    while (!executor_.empty()) {
      std::vector<std::function<void(absl::Time)>> closures;
      closures.swap(executor_);
      for (auto& closure : closures) closure(now_);
    }
  }
  void Answer(int status, const std::string& body = "{}") {
    client_.Answer(status, body);
    Drain();
  }
  void Fail(absl::Status status) {
    client_.Fail(std::move(status));
    Drain();
  }
  // Advances to the time at which the writer requests a Tick.
  void Wait() {
    ASSERT_NE(writer_->NextTick(), absl::InfiniteFuture());
    now_ = std::max(now_, writer_->NextTick());
    writer_->Tick(now_);
  }
  void ExpectEnd(BindOutcome outcome, const std::string& message) {
    ASSERT_EQ(results_.size(), 1u);
    EXPECT_EQ(results_[0].outcome, outcome);
    EXPECT_THAT(results_[0].message, HasSubstr(message));
    EXPECT_EQ(client_.waiting(), 0u);
    EXPECT_EQ(writer_->binds_in_flight(), 0u);
    EXPECT_EQ(writer_->NextTick(), absl::InfiniteFuture());
  }

  // From the wall clock to that of waits.
  static constexpr absl::Duration kUptime = absl::Hours(500000);
  absl::Time now_ = absl::FromUnixSeconds(1700000000) + kUptime;
  absl::Time fence_ = absl::InfiniteFuture();
  // Declared before the client, whose destructor posts answers.
  std::vector<std::function<void(absl::Time)>> executor_;
  kube::ScriptedApiClient client_;
  std::vector<BindResult> results_;
  std::unique_ptr<ApiWriter> writer_;
};

TEST_F(ApiWriterTest, Binds) {
  Bind();
  ASSERT_EQ(client_.waiting(), 1u);
  EXPECT_EQ(client_.request().method, Method::kPost);
  EXPECT_EQ(client_.request().path, "/api/v1/namespaces/ns/pods/p/binding");
  EXPECT_EQ(client_.request().body, BindingBody(kRequest));
  EXPECT_EQ(writer_->binds_in_flight(), 1u);
  client_.Answer(201, "{}");
  EXPECT_TRUE(results_.empty());  // not on the client's thread
  now_ += absl::Milliseconds(7);
  Drain();
  ExpectEnd(BindOutcome::kBound, "");
  EXPECT_EQ(results_[0].attempts, 1);
  EXPECT_FALSE(results_[0].settled_by_read);
  EXPECT_EQ(results_[0].elapsed, absl::Milliseconds(7));
}

TEST_F(ApiWriterTest, DefiniteRefusalsAreNotBound) {
  for (int status : {400, 401, 403, 422}) {
    results_.clear();
    Bind();
    Answer(status, StatusJson("no"));
    ExpectEnd(BindOutcome::kNotBound, "no");
    EXPECT_EQ(results_[0].http_status, status);
  }
  results_.clear();
  Bind();
  Answer(404, StatusJson(R"(pods \"p\" not found)"));
  ExpectEnd(BindOutcome::kGone, "pods \"p\" not found");
}

TEST_F(ApiWriterTest, ConflictIsReadBackBeforeItIsBelieved) {
  struct Case {
    std::string pod;
    BindOutcome outcome;
    const char* message;
  };
  const Case cases[] = {
      {PodJson("uid-1", "n1"), BindOutcome::kBound, ""},
      {PodJson("uid-1", "n2"), BindOutcome::kNotBound, "pod p is already assigned to node \"n2\""},
      {PodJson("uid-1", ""), BindOutcome::kNotBound, "being deleted"},
      {PodJson("uid-2", "n1"), BindOutcome::kGone, "recreated"},
  };
  for (const Case& c : cases) {
    results_.clear();
    Bind();
    Answer(409, StatusJson("pod p is being deleted"));
    ASSERT_EQ(client_.waiting(), 1u);
    EXPECT_EQ(client_.request().method, Method::kGet);
    EXPECT_EQ(client_.request().path,
              "/api/v1/namespaces/ns/pods/p");  // no resourceVersion: consistent
    Answer(200, c.pod);
    ExpectEnd(c.outcome, c.message);
    EXPECT_TRUE(results_[0].settled_by_read);
  }
}

TEST_F(ApiWriterTest, LostAnswerIsSettledByReading) {
  struct Case {
    std::function<void()> lose;
  };
  const Case cases[] = {{[this] { Fail(Lost()); }},
                        {[this] { Answer(500); }},
                        {[this] { Answer(503); }},
                        {[this] { Answer(504); }}};
  for (const Case& c : cases) {
    results_.clear();
    Bind();
    c.lose();
    ASSERT_EQ(client_.waiting(), 1u);
    EXPECT_EQ(client_.request().method, Method::kGet);
    Answer(200, PodJson("uid-1", "n1"));
    ExpectEnd(BindOutcome::kBound, "");
  }
  EXPECT_EQ(writer_->stats().binds_ambiguous, 4u);
}

TEST_F(ApiWriterTest, ReadsUntilThereIsAnAnswerThenSendsAgain) {
  Bind();
  Fail(Lost());
  std::vector<absl::Duration> delays;
  for (int i = 0; i < 8; ++i) {
    ASSERT_EQ(client_.waiting(), 1u);
    EXPECT_EQ(client_.request().method, Method::kGet);
    if (i % 2 == 0) {
      Fail(Refused());
    } else {
      Answer(200, "not a pod");
    }
    EXPECT_TRUE(results_.empty());
    EXPECT_EQ(writer_->binds_in_flight(), 1u);
    const absl::Time before = now_;
    Wait();
    delays.push_back(now_ - before);
  }
  EXPECT_EQ(delays.front(), absl::Milliseconds(100));
  EXPECT_EQ(delays.back(), absl::Seconds(5));
  Answer(200, PodJson("uid-1", ""));
  Wait();
  ASSERT_EQ(client_.waiting(), 1u);
  EXPECT_EQ(client_.request().method, Method::kPost);
  // The first send was executed after the read: now there is a conflict with our own bind.
  Answer(409, StatusJson("already assigned"));
  EXPECT_EQ(client_.request().method, Method::kGet);
  Answer(200, PodJson("uid-1", "n1"));
  ExpectEnd(BindOutcome::kBound, "");
  EXPECT_EQ(results_[0].attempts, 2);
}

TEST_F(ApiWriterTest, GivesUpAfterThreeSendings) {
  Bind();
  for (int i = 0; i < 3; ++i) {
    Fail(Lost());
    Answer(200, PodJson("uid-1", ""));
    if (i < 2) Wait();
  }
  ExpectEnd(BindOutcome::kNotBound, "connection reset");
  EXPECT_EQ(results_[0].attempts, 3);
}

TEST_F(ApiWriterTest, RefusalAfterALostAnswerIsReadBack) {
  Bind();
  Fail(Lost());
  Answer(200, PodJson("uid-1", ""));
  Wait();
  Answer(403, StatusJson("forbidden"));
  ASSERT_EQ(client_.waiting(), 1u);
  EXPECT_EQ(client_.request().method, Method::kGet);
  Answer(200, PodJson("uid-1", "n1"));
  ExpectEnd(BindOutcome::kBound, "");
}

TEST_F(ApiWriterTest, WhatWasNeverSentIsSentAgainAndThenNotBound) {
  Bind();
  Fail(Refused());
  EXPECT_EQ(client_.waiting(), 0u);
  Wait();
  Answer(429);
  Wait();
  Fail(Refused());
  ExpectEnd(BindOutcome::kNotBound, "connection refused");
  EXPECT_EQ(results_[0].attempts, 3);
  EXPECT_FALSE(results_[0].settled_by_read);
  EXPECT_EQ(writer_->stats().binds_ambiguous, 0u);
}

TEST_F(ApiWriterTest, NothingIsSentPastTheFence) {
  fence_ = now_;
  Bind();
  ExpectEnd(BindOutcome::kFenced, "renew deadline");
}

TEST_F(ApiWriterTest, FenceIsAskedAgainWhenTheRequestLeaves) {
  fence_ = now_ + absl::Seconds(1);
  Bind();
  ASSERT_EQ(client_.waiting(), 1u);
  now_ += absl::Seconds(2);  // it was waiting for the rate limit
  Answer(201);
  ExpectEnd(BindOutcome::kFenced, "renew deadline");
}

// If the process is suspended during the check, the fence is compared with the later time.
TEST_F(ApiWriterTest, AStopBetweenFenceAndClockIsNoticed) {
  bool stopped = false;
  ApiWriterOptions options;
  Make(options, [this, &stopped] {
    const absl::Time until = fence_;
    if (stopped) now_ += absl::Seconds(20);
    return until;
  });
  fence_ = now_ + absl::Seconds(1);
  Bind();
  ASSERT_EQ(client_.waiting(), 1u);
  stopped = true;
  Answer(201);
  ExpectEnd(BindOutcome::kFenced, "renew deadline");
}

// Only the lease's clock counts: setting back the clock of `now` does not open the fence again.
TEST_F(ApiWriterTest, AClockThatIsSetBackDoesNotOpenTheFence) {
  const absl::Time lease = SteadyNow() + absl::Seconds(10);
  absl::Time boot = lease - absl::Seconds(1);
  ApiWriterOptions options;
  options.fence.deadline = [&lease] { return lease; };
  options.fence.clock = [&boot] { return boot; };
  MakeWith(options);
  Bind();
  ASSERT_EQ(client_.waiting(), 1u);
  boot = lease;
  now_ -= absl::Hours(1);
  Fail(Refused());  // a retry would be sent too late
  ExpectEnd(BindOutcome::kFenced, "renew deadline");

  results_.clear();
  Bind();
  ExpectEnd(BindOutcome::kFenced, "renew deadline");
}

// Without an answer a bind ends before another replica can lead.
TEST_F(ApiWriterTest, ABindEndsWithinTheLease) {
  ApiWriterOptions options;
  options.fence.grace = absl::Seconds(4);
  Make(options);
  fence_ = now_ + absl::Seconds(1);
  Bind();
  Answer(201);
  EXPECT_EQ(client_.ends_by(), fence_ + absl::Seconds(4));
}

TEST_F(ApiWriterTest, UnsettledAtTheFenceIsUnknown) {
  fence_ = now_ + absl::Seconds(1);
  Bind();
  Fail(Lost());
  now_ += absl::Seconds(2);
  Fail(Lost());  // the read: stopped by the fence
  ExpectEnd(BindOutcome::kUnknown, "connection reset");

  results_.clear();
  fence_ = now_ + absl::Seconds(1);
  Bind();
  now_ += absl::Seconds(2);
  client_.Fail(Lost());  // the scripted client checks the fence first, so this was never sent
  Drain();
  ExpectEnd(BindOutcome::kFenced, "renew deadline");
}

// The decision is checked against the newest state, right before the send.
TEST_F(ApiWriterTest, ABindWithoutRoomAnyMoreIsNotSent) {
  absl::Status fits = absl::OkStatus();
  ApiWriterOptions options;
  options.max_binds_in_flight = 1;
  options.still_fits = [&fits](const BindRequest& bind) {
    EXPECT_EQ(bind.profile, "profile");
    return fits;
  };
  Make(options);
  BindRequest request = kRequest;
  request.profile = "profile";
  const auto ended = [this](const BindResult& r, absl::Time) { results_.push_back(r); };
  writer_->Bind(request, now_, ended);
  EXPECT_EQ(client_.waiting(), 0u);  // events may arrive until the next Tick
  EXPECT_LE(writer_->NextTick(), now_);
  writer_->Tick(now_);
  ASSERT_EQ(client_.waiting(), 1u);
  writer_->Bind(request, now_, ended);  // waits in the queue
  EXPECT_EQ(writer_->NextTick(), absl::InfiniteFuture());
  fits = absl::ResourceExhaustedError("node n1 can no longer take the pod");
  writer_->Tick(now_);
  EXPECT_TRUE(results_.empty());
  Answer(201);
  ASSERT_EQ(results_.size(), 2u);
  EXPECT_EQ(results_[0].outcome, BindOutcome::kBound);
  EXPECT_EQ(results_[1].outcome, BindOutcome::kNoRoom);
  EXPECT_EQ(results_[1].message, "node n1 can no longer take the pod");
  EXPECT_EQ(results_[1].attempts, 0);
  EXPECT_EQ(client_.waiting(), 0u);
}

// A send that may have been executed keeps its room and is tracked to its outcome.
TEST_F(ApiWriterTest, AnAmbiguousBindIsNotGivenUpForWantOfRoom) {
  absl::Status fits = absl::OkStatus();
  ApiWriterOptions options;
  options.still_fits = [&fits](const BindRequest&) { return fits; };
  Make(options);
  Bind();
  fits = absl::ResourceExhaustedError("full");
  Fail(Lost());
  Answer(200, PodJson("uid-1", ""));  // not bound yet
  Wait();
  ASSERT_EQ(client_.waiting(), 1u);
  EXPECT_EQ(client_.request().method, Method::kPost);
  Answer(201);
  ExpectEnd(BindOutcome::kBound, "");
}

TEST_F(ApiWriterTest, LimitsRequestsInFlight) {
  ApiWriterOptions options;
  options.max_binds_in_flight = 2;
  Make(options);
  for (int i = 0; i < 5; ++i) Bind(BindRequest{"ns", absl::StrCat("p", i), "u", "n"});
  EXPECT_EQ(client_.waiting(), 2u);
  EXPECT_EQ(writer_->binds_in_flight(), 5u);
  Answer(201);
  EXPECT_EQ(client_.waiting(), 2u);
  EXPECT_EQ(client_.request(1).path, "/api/v1/namespaces/ns/pods/p2/binding");
  // A read takes precedence over new binds.
  client_.Answer(500, "{}");
  Drain();
  EXPECT_EQ(client_.request(1).method, Method::kGet);
}

TEST_F(ApiWriterTest, AnswersAfterItsEndAreDropped) {
  Bind();
  client_.Answer(201, "{}");
  Bind();
  writer_.reset();
  Drain();
  client_.Answer(201, "{}");
  Drain();
  EXPECT_TRUE(results_.empty());
}

TEST_F(ApiWriterTest, MayBindFromWithinDone) {
  int bound = 0;
  std::function<void(const BindResult&, absl::Time)> again = [&](const BindResult&,
                                                                 absl::Time now) {
    if (++bound < 3) writer_->Bind(kRequest, now, again);
  };
  writer_->Bind(kRequest, now_, again);
  for (int i = 0; i < 3; ++i) {
    writer_->Tick(now_);
    Answer(201);
  }
  EXPECT_EQ(bound, 3);
}

class StatusTest : public ApiWriterTest {
 protected:
  static kube::PodObject Pod(const std::string& uid = "uid-1") {
    kube::PodObject pod;
    pod.pod.set_uid(uid);
    pod.pod.set_namespace_("ns");
    pod.pod.set_name("p");
    pod.pod.set_generation(1);
    return pod;
  }
  void Patch(const std::string& message, std::optional<std::string> node = std::nullopt,
             const std::string& uid = "uid-1") {
    writer_->PatchStatus(
        Pod(uid), StatusChange{message.empty() ? "" : "Unschedulable", message, std::move(node)},
        now_);
  }
};

TEST_F(StatusTest, Patches) {
  Patch("m", "n1");
  ASSERT_EQ(client_.waiting(), 1u);
  EXPECT_EQ(client_.request().method, Method::kPatch);
  EXPECT_EQ(client_.request().path, "/api/v1/namespaces/ns/pods/p/status");
  EXPECT_EQ(client_.request().content_type, kube::kStrategicMergePatch);
  EXPECT_THAT(client_.request().body, HasSubstr(R"("message":"m")"));
  EXPECT_THAT(client_.request().body, HasSubstr(R"("nominatedNodeName":"n1")"));
  Answer(200);
  EXPECT_EQ(writer_->stats().status_written, 1u);
}

TEST_F(StatusTest, ARecreatedPodKeepsItsOwnStatus) {
  Patch("m");
  EXPECT_THAT(client_.request().body, HasSubstr(R"("metadata":{"uid":"uid-1"})"));
  Answer(422, StatusJson(R"(Pod \"p\" is invalid: metadata.uid: Invalid value: \"uid-1\": )"
                         "field is immutable"));
  EXPECT_EQ(client_.waiting(), 0u);
  EXPECT_EQ(writer_->NextTick(), absl::InfiniteFuture());  // not tried again
  EXPECT_EQ(writer_->stats().status_outdated, 1u);
  EXPECT_EQ(writer_->stats().status_failed, 0u);
}

TEST_F(StatusTest, WritesNothingThatIsThereAlready) {
  kube::PodObject pod = Pod();
  pod.scheduled = {"False", "Unschedulable", "m", 1};
  writer_->PatchStatus(pod, StatusChange{"Unschedulable", "m", ""}, now_);
  EXPECT_EQ(client_.waiting(), 0u);
}

TEST_F(StatusTest, RetriesAsKubeSchedulerDoes) {
  Patch("m");
  const std::vector<int> delays_ms = {10, 50, 250};
  const std::vector<int> failures = {500, 503, 409};
  for (size_t i = 0; i < 3; ++i) {
    Answer(failures[i]);
    EXPECT_EQ(client_.waiting(), 0u);
    EXPECT_EQ(writer_->NextTick() - now_, absl::Milliseconds(delays_ms[i]));
    Wait();
    ASSERT_EQ(client_.waiting(), 1u);
  }
  Fail(Refused());
  EXPECT_EQ(writer_->NextTick(), absl::InfiniteFuture());
  EXPECT_EQ(writer_->stats().status_failed, 1u);
  // 404 and lost answers are not retried.
  Patch("m");
  Answer(404);
  Patch("m");
  Fail(Lost());
  EXPECT_EQ(writer_->NextTick(), absl::InfiniteFuture());
  EXPECT_EQ(client_.waiting(), 0u);
  EXPECT_EQ(writer_->stats().status_outdated, 1u);
  EXPECT_EQ(writer_->stats().status_failed, 2u);
}

TEST_F(StatusTest, ANewerPatchOfAPodMergesIntoTheWaitingOne) {
  Patch("first");
  Patch("second", "n1");
  Patch("third");
  EXPECT_EQ(client_.waiting(), 1u);  // one at a time per pod
  Patch("other", std::nullopt, "uid-2");
  EXPECT_EQ(client_.waiting(), 2u);
  Answer(200);
  ASSERT_EQ(client_.waiting(), 2u);
  EXPECT_THAT(client_.request(1).body, HasSubstr(R"("message":"third")"));
  EXPECT_THAT(client_.request(1).body, HasSubstr(R"("nominatedNodeName":"n1")"));
  Answer(200);
  Answer(200);
  EXPECT_EQ(client_.waiting(), 0u);
  EXPECT_EQ(writer_->stats().status_written, 3u);
}

TEST_F(StatusTest, IsBounded) {
  ApiWriterOptions options;
  options.max_status_in_flight = 1;
  options.max_status_queued = 2;
  Make(options);
  for (int i = 0; i < 5; ++i) Patch("m", std::nullopt, absl::StrCat("uid-", i));
  EXPECT_EQ(client_.waiting(), 1u);
  EXPECT_EQ(writer_->stats().status_queued, 2u);
  EXPECT_EQ(writer_->stats().status_dropped, 2u);
}

v1beta1::Effect SelectEffect() {
  v1beta1::Effect effect;
  effect.mutable_select_node()->set_namespace_("ns");
  effect.mutable_select_node()->set_name("data");
  return effect;
}

TEST_F(ApiWriterTest, CarriesAnEffectOut) {
  std::vector<WriteResult> results;
  const auto done = [&](const WriteResult& result, absl::Time) { results.push_back(result); };
  writer_->Write(SelectEffect(), nullptr, now_, done);
  EXPECT_EQ(client_.request().method, Method::kPatch);
  EXPECT_EQ(client_.request().content_type, kube::kStrategicMergePatch);
  EXPECT_EQ(client_.request().path, "/api/v1/namespaces/ns/persistentvolumeclaims/data");
  Answer(200, R"({"metadata":{"resourceVersion":"42","uid":"u"}})");
  ASSERT_EQ(results.size(), 1u);
  EXPECT_TRUE(results[0].status.ok());
  EXPECT_EQ(results[0].resource_version, "42");
  EXPECT_EQ(results[0].uid, "u");
  // A conflict fails the pod's attempt.
  writer_->Write(SelectEffect(), nullptr, now_, done);
  Answer(409, StatusJson("the object has been modified"));
  ASSERT_EQ(results.size(), 2u);
  EXPECT_EQ(results[1].status.message(), "the object has been modified");
  // So does a lost answer.
  writer_->Write(SelectEffect(), nullptr, now_, done);
  Fail(Lost());
  ASSERT_EQ(results.size(), 3u);
  EXPECT_FALSE(results[2].status.ok());
  // A request that was certainly not executed is sent again.
  writer_->Write(SelectEffect(), nullptr, now_, done);
  Fail(Refused());
  EXPECT_EQ(results.size(), 3u);
  Wait();
  Answer(200, R"({"metadata":{"resourceVersion":"43"}})");
  ASSERT_EQ(results.size(), 4u);
  EXPECT_EQ(results[3].resource_version, "43");
}

TEST_F(ApiWriterTest, PatchesThePodOfTheAttempt) {
  v1beta1::Pod pod;
  pod.set_namespace_("ns");
  pod.set_name("p");
  pod.set_uid("u");
  v1beta1::Effect effect;
  (*effect.mutable_patch_pod()->mutable_set_annotations())["a"] = "1";
  std::vector<WriteResult> results;
  const auto done = [&](const WriteResult& result, absl::Time) { results.push_back(result); };
  writer_->Write(effect, &pod, now_, done);
  EXPECT_EQ(client_.request().path, "/api/v1/namespaces/ns/pods/p");
  EXPECT_THAT(client_.request().body, HasSubstr(R"("uid":"u")"));
  Answer(200, R"({"metadata":{"resourceVersion":"42","uid":"u"}})");
  ASSERT_EQ(results.size(), 1u);
  EXPECT_TRUE(results[0].status.ok());
  EXPECT_EQ(results[0].resource_version, "42");
  EXPECT_EQ(results[0].object, nullptr) << "hosts have pods as messages";
  // A pod that was recreated under the name.
  writer_->Write(effect, &pod, now_, done);
  Answer(422, StatusJson("metadata.uid: Invalid value"));
  ASSERT_EQ(results.size(), 2u);
  EXPECT_FALSE(results[1].status.ok());
  // The lease has expired: nothing is sent.
  fence_ = now_;
  writer_->Write(effect, &pod, now_, done);
  ASSERT_EQ(results.size(), 3u);
  EXPECT_TRUE(absl::IsFailedPrecondition(results[2].status));
  EXPECT_EQ(client_.waiting(), 0u);
}

TEST_F(ApiWriterTest, ReturnsTheWrittenObject) {
  std::vector<WriteResult> results;
  const auto done = [&](const WriteResult& result, absl::Time) { results.push_back(result); };
  v1beta1::Effect effect;
  effect.mutable_patch_object()->set_resource("widgets.v1.example.com");
  effect.mutable_patch_object()->set_namespace_("ns");
  effect.mutable_patch_object()->set_name("w");
  effect.mutable_patch_object()->set_json("{}");
  writer_->Write(effect, nullptr, now_, done);
  const std::string named = R"({"metadata":{"name":"w","uid":"u","resourceVersion":"42")";
  Answer(200, named + R"(},"spec":{"size":3}})");
  ASSERT_EQ(results.size(), 1u);
  ASSERT_NE(results[0].object, nullptr);
  EXPECT_EQ(results[0].object->resource_version, "42");
  EXPECT_THAT(results[0].object->object.generic_object().json(), HasSubstr("size"));
  // The object may be deleted meanwhile; and a claim for volumes is not an object of this kind.
  writer_->Write(effect, nullptr, now_, done);
  Answer(200, named + R"(,"deletionTimestamp":"2026-01-01T00:00:00Z"}})");
  writer_->Write(SelectEffect(), nullptr, now_, done);
  Answer(200, named + "}}");
  ASSERT_EQ(results.size(), 3u);
  for (size_t i = 1; i < results.size(); ++i) {
    EXPECT_EQ(results[i].object, nullptr);
    EXPECT_EQ(results[i].uid, "u");
  }
}

// It may have been executed: hosts must receive the object before the assumption is dropped.
TEST_F(ApiWriterTest, ReadsBackAnObjectOfWhichAWriteIsOpen) {
  std::vector<WriteResult> results;
  const auto done = [&](const WriteResult& result, absl::Time) { results.push_back(result); };
  v1beta1::Effect effect;
  effect.mutable_patch_object()->set_resource("widgets.v1.example.com");
  effect.mutable_patch_object()->set_namespace_("ns");
  effect.mutable_patch_object()->set_name("w");
  effect.mutable_patch_object()->set_status(true);
  effect.mutable_patch_object()->set_json("{}");
  const auto read_back = [&] {
    ASSERT_EQ(client_.waiting(), 1u);
    EXPECT_EQ(client_.request().method, Method::kGet);
    EXPECT_EQ(client_.request().path, "/apis/example.com/v1/namespaces/ns/widgets/w");
  };
  writer_->Write(effect, nullptr, now_, done);
  Fail(Lost());
  read_back();
  Fail(Refused());  // This does not settle it.
  EXPECT_TRUE(results.empty());
  Wait();
  read_back();
  Answer(200, R"({"metadata":{"name":"w","uid":"u","resourceVersion":"42"}})");
  ASSERT_EQ(results.size(), 1u);
  EXPECT_EQ(results[0].status, Lost());
  ASSERT_NE(results[0].object, nullptr);
  EXPECT_EQ(results[0].object->resource_version, "42");

  writer_->Write(effect, nullptr, now_, done);
  Answer(500, StatusJson("etcdserver: request timed out"));
  read_back();
  Answer(404, StatusJson("not found"));
  ASSERT_EQ(results.size(), 2u);
  EXPECT_FALSE(results[1].status.ok());
  EXPECT_EQ(results[1].object, nullptr);
}

TEST_F(ApiWriterTest, WritesNothingOnceTheLeaseMayBeAnothers) {
  fence_ = now_;
  std::vector<WriteResult> results;
  writer_->Write(SelectEffect(), nullptr, now_,
                 [&](const WriteResult& result, absl::Time) { results.push_back(result); });
  ASSERT_EQ(results.size(), 1u);
  EXPECT_FALSE(results[0].status.ok());
  EXPECT_EQ(client_.waiting(), 0u);
}

// A bind of another process: nothing is sent, whatever the outcome is.
TEST_F(ApiWriterTest, AnothersBindIsOnlyReadBack) {
  BindRequest request = kRequest;
  request.bound_by_other_scheduler = true;
  const std::pair<std::string, BindOutcome> places[] = {
      {"n1", BindOutcome::kBound}, {"n2", BindOutcome::kNotBound}, {"", BindOutcome::kNotBound}};
  for (const auto& [node, outcome] : places) {
    results_.clear();
    Bind(request);
    ASSERT_EQ(client_.waiting(), 1u);
    EXPECT_EQ(client_.request().method, Method::kGet);
    Answer(500);
    EXPECT_TRUE(results_.empty()) << "not an answer";
    Wait();
    Answer(200, PodJson("uid-1", node));
    ASSERT_EQ(results_.size(), 1u);
    EXPECT_EQ(results_[0].outcome, outcome);
    EXPECT_EQ(results_[0].attempts, 0);
    EXPECT_EQ(client_.waiting(), 0u);
  }
}

}  // namespace
}  // namespace outboard::bind
