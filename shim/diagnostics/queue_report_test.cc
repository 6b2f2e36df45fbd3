#include "shim/diagnostics/queue_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "shim/queue/testing/fake_seams.h"

namespace outboard::diagnostics {
namespace {

using ::testing::ElementsAre;
using Json = nlohmann::json;
using queue::kAdd;
using queue::NodeEvent;
using queue::Place;
using queue::testing::MakePod;

class QueueReportTest : public ::testing::Test {
 protected:
  QueueReportTest() { queue_.SetWakeUpEvents("default", {{"Fit", {NodeEvent(kAdd)}}}); }
  void Reject(const std::string& uid) {
    queue_.Add(MakePod(uid), now_);
    ASSERT_EQ(queue_.Pop(now_)->uid(), uid);
    ASSERT_TRUE(queue_.AddUnschedulable(uid, {{"Fit"}, {}}, now_));
  }
  Json Of(const std::string& uid) {
    const Json json =
        Json::parse(ToJson(CollectQueue(queue_, {.pod = "ns/" + uid}, now_, now_ - kUptime)));
    return json["pods"].size() == 1 ? json["pods"][0] : Json();
  }

  // From the wall clock to that of waits.
  static constexpr absl::Duration kUptime = absl::Hours(500000);
  absl::Time now_ = absl::FromUnixSeconds(1000) + kUptime;
  queue::testing::FakeGate gate_;
  queue::SchedulingQueue queue_{queue::QueueOptions{}, now_, &gate_};
};

TEST_F(QueueReportTest, ReportsWhereEachPodIsAndWhy) {
  Reject("rejected");
  gate_.gated_by["gated"] = "SchedulingGates";
  gate_.unavailable_at["parked"] = "main";
  for (const char* uid : {"gated", "parked", "flying"}) queue_.Add(MakePod(uid), now_);
  ASSERT_EQ(queue_.Pop(now_)->uid(), "flying");
  queue_.Add(MakePod("waiting"), now_);

  const Json all = Json::parse(ToJson(CollectQueue(queue_, {}, now_, now_ - kUptime)));
  EXPECT_EQ(all["counts"],
            Json::parse(R"({"active": 1, "backoff": 0, "errorBackoff": 0, "unschedulable": 1,
      "gated": 1, "parked": 1, "inFlight": 1})"));
  EXPECT_EQ(all["omitted"], 0);
  std::vector<std::string> places;
  for (const Json& pod : all["pods"]) places.push_back(pod["where"]);
  EXPECT_THAT(places, ElementsAre("active", "unschedulable", "gated", "parked", "inFlight"));
  EXPECT_EQ(Of("rejected"),
            Json::parse(R"({"namespace": "ns", "name": "rejected", "uid": "rejected",
      "profile": "default", "where": "unschedulable", "attempts": 1, "requeues": 0,
      "lastEvent": "UnschedulablePodAdd", "unschedulablePlugins": ["Fit"], "pendingPlugins": [],
      "queued": "1970-01-01T00:16:40.000Z", "initialAttempt": "1970-01-01T00:16:40.000Z",
      "lastTransition": "1970-01-01T00:16:40.000Z"})"));
  EXPECT_EQ(Of("gated")["gatingPlugin"], "SchedulingGates");
  EXPECT_FALSE(Of("gated").contains("initialAttempt"));
  EXPECT_EQ(Of("parked")["parkedHost"], "main");
  EXPECT_EQ(Of("flying")["attempts"], 1);
  EXPECT_TRUE(Of("unknown").is_null());
}

TEST_F(QueueReportTest, CountsWhatLetAPodTryAgain) {
  Reject("p");
  now_ += absl::Milliseconds(300);
  queue_.MoveAllToActiveOrBackoff(NodeEvent(kAdd), now_);
  EXPECT_EQ(Of("p")["where"], "backoff");
  EXPECT_EQ(Of("p")["requeues"], 1);
  EXPECT_EQ(Of("p")["lastEvent"], "NodeAdd");
  EXPECT_EQ(Of("p")["lastTransition"], "1970-01-01T00:16:40.300Z");
  EXPECT_EQ(Of("p")["backoffUntil"], "1970-01-01T00:16:41.000Z");

  // Neither the end of its backoff nor the attempt is another requeue.
  now_ += absl::Seconds(3);
  queue_.FlushDue(now_);
  EXPECT_EQ(Of("p")["where"], "active");
  ASSERT_NE(queue_.Pop(now_), nullptr);
  ASSERT_TRUE(queue_.AddUnschedulable("p", {{"Fit"}, {}}, now_));
  EXPECT_EQ(Of("p")["requeues"], 1);
  EXPECT_EQ(Of("p")["lastEvent"], "NodeAdd");
  EXPECT_EQ(Of("p")["lastTransition"], "1970-01-01T00:16:43.300Z");
  EXPECT_FALSE(Of("p").contains("backoffUntil"));

  // An event during an attempt counts when the pod returns to the queue.
  now_ += absl::Minutes(1);
  queue_.Activate({"p"}, now_);
  ASSERT_NE(queue_.Pop(now_), nullptr);
  queue_.MoveAllToActiveOrBackoff(NodeEvent(kAdd), now_);
  ASSERT_TRUE(queue_.AddUnschedulable("p", {{"Fit"}, {}}, now_));
  EXPECT_EQ(Of("p")["requeues"], 3);
  EXPECT_EQ(Of("p")["lastEvent"], "ScheduleAttemptFailure");
}

TEST_F(QueueReportTest, ListsAtMostAsManyAsAskedAndCountsAll) {
  for (int i = 0; i < 5; ++i) queue_.Add(MakePod("p" + std::to_string(i)), now_);
  const QueueReport report = CollectQueue(queue_, {.limit = 2, .pod = ""}, now_, now_ - kUptime);
  ASSERT_EQ(report.pods.size(), 2u);
  EXPECT_EQ(report.pods[0].name, "p0");
  EXPECT_EQ(report.pods[1].name, "p1");
  EXPECT_EQ(report.omitted, 3u);
  EXPECT_EQ(report.counts.active, 5u);
}

TEST_F(QueueReportTest, NamesHowFarHostsAre) {
  QueueReport report = CollectQueue(queue_, {}, now_, now_ - kUptime);
  report.hosts.push_back({"main", "i-1", true, 7, 6});
  EXPECT_EQ(Json::parse(ToJson(report))["hosts"],
            Json::parse(R"([{"name": "main", "instance": "i-1",
      "usable": true, "sentVersion": 7, "acknowledgedVersion": 6}])"));
}

TEST_F(QueueReportTest, NamesTheLeaderOnlyOnOtherReplicas) {
  QueueReport report = CollectQueue(queue_, {}, now_, now_ - kUptime);
  EXPECT_FALSE(Json::parse(ToJson(report)).contains("leader"));
  report.leader = "";
  EXPECT_EQ(Json::parse(ToJson(report))["leader"], "");
  report.leader = "shim-b_0a1b";
  EXPECT_EQ(Json::parse(ToJson(report))["leader"], "shim-b_0a1b");
}

}  // namespace
}  // namespace outboard::diagnostics
