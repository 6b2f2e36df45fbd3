// Compares a session with a history of changes and calls with a session that starts from the
// present cluster: a host that replaces another must decide alike.
#include <gtest/gtest.h>

#include <algorithm>
#include <iostream>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "plugins/plans_dice.h"
#include "plugins/plans_harness.h"

namespace outboard::plans {
namespace {

#ifdef OUTBOARD_SANITIZED
constexpr int kClusters = 6;
#else
constexpr int kClusters = 60;
#endif
constexpr int kSteps = 40;

// The answer for each evaluated node, in order, and the scores.
std::vector<std::string> Said(const v1beta1::PlanResponse& response) {
  std::vector<std::string> said;
  said.push_back(response.evaluation().pre_filter().ShortDebugString());
  const v1beta1::FilterResponse& filter = response.evaluation().filter();
  const auto has = [](const std::string& bits, uint32_t i) {
    return (static_cast<uint8_t>(bits[i / 8]) >> (i % 8) & 1) != 0;
  };
  int listed = 0, rejected = 0;
  for (uint32_t i = 0; i < filter.processed(); ++i) {
    if (has(filter.feasible(), i)) {
      said.push_back("ok");
      continue;
    }
    int reason = 0;
    while (reason < filter.rejected_for_size() && !has(filter.rejected_for(reason), i)) ++reason;
    if (reason == filter.rejected_for_size()) reason = static_cast<int>(filter.rejected(listed++));
    said.push_back(filter.reasons(reason).ShortDebugString());
    const auto& only = filter.only_without_nominated();
    if (std::find(only.begin(), only.end(), rejected) != only.end())
      said.back() += " without nominated";
    ++rejected;
  }
  said.push_back(filter.error().ShortDebugString());
  for (const v1beta1::PluginScores& scores : response.evaluation().score().plugins())
    said.push_back(scores.ShortDebugString());
  return said;
}

// A cluster twice: in the long-lived session, and as the snapshot for a new session.
class Cluster {
 public:
  Cluster(uint64_t seed, std::vector<std::string> plugins)
      : dice_(seed), plugins_(std::move(plugins)), lives_on_(plugins_) {
    const int count = 64 + dice_.Below(60);
    for (int i = 0; i < count; ++i) nodes_.push_back(RandomNode(dice_, absl::StrCat("n", i)));
    for (int i = 0; i < 4; ++i) kinds_.push_back(RandomPod(dice_, "kind"));
    lives_on_.SetCluster(nodes_, {});
  }

  void Step() {
    const int what = dice_.Below(8);
    if (what == 0) {
      const size_t slot = static_cast<size_t>(dice_.Below(static_cast<int>(nodes_.size())));
      nodes_[slot] = RandomNode(dice_, nodes_[slot].name());
      lives_on_.SetNode(slot, nodes_[slot]);
    } else if (what == 1 && !place_of_.empty()) {
      auto gone = place_of_.begin();
      std::advance(gone, dice_.Below(static_cast<int>(place_of_.size())));
      lives_on_.RemovePod(gone->first);
      pods_.erase(gone->first);
      place_of_.erase(gone);
    } else if (what == 2 && nominated_.empty()) {
      nominated_ = AddPod();
      nominated_to_ = Any(nodes_).name();
      lives_on_.Nominate(nominated_, nominated_to_);
    }
    const std::string uid = AddPod();
    const uint32_t offset = static_cast<uint32_t>(dice_.Below(static_cast<int>(nodes_.size())));
    const uint32_t percentage = dice_.Flip() ? 0 : 100;
    lives_on_.percentage = percentage;
    const v1beta1::PlanResponse response = lives_on_.Plan(uid, offset, {}, false);

    PlansHarness begins(plugins_);
    begins.percentage = percentage;
    std::vector<v1beta1::Pod> pods;
    for (const auto& [name, pod] : pods_) pods.push_back(pod);
    begins.SetCluster(nodes_, pods);
    for (const auto& [pod, node] : place_of_) begins.Assume(pod, node);
    if (!nominated_.empty()) begins.Nominate(nominated_, nominated_to_);
    const std::vector<std::string> said = Said(response);
    const std::vector<std::string> fresh = Said(begins.Plan(uid, offset, {}, false));
    ASSERT_EQ(said.size(), fresh.size());
    for (size_t i = 0; i < said.size(); ++i) ASSERT_EQ(said[i], fresh[i]) << "line " << i;
    ++cycles_;
    for (const std::string& one : said) verdicts_ += one == "ok" || one.find("code") != one.npos;
    const Place place = lives_on_.Choose(uid, offset, response);
    if (place.node.empty() || dice_.Flip(4)) {
      lives_on_.RemovePod(uid);
      pods_.erase(uid);
      return;
    }
    lives_on_.Assume(uid, place.node);
    place_of_[uid] = place.node;
  }

  int cycles() const { return cycles_; }
  int verdicts() const { return verdicts_; }

 private:
  template <typename T>
  const T& Any(const std::vector<T>& some) {
    return some[static_cast<size_t>(dice_.Below(static_cast<int>(some.size())))];
  }
  std::string AddPod() {
    v1beta1::Pod pod = Any(kinds_);
    pod.set_name(absl::StrCat("pod-", ++count_));
    pod.set_uid(absl::StrCat("default/", pod.name()));
    lives_on_.UpsertPod(pod);
    pods_[pod.uid()] = pod;
    return pod.uid();
  }

  Dice dice_;
  const std::vector<std::string> plugins_;
  PlansHarness lives_on_;
  std::vector<v1beta1::Node> nodes_;
  std::vector<v1beta1::Pod> kinds_;
  std::map<std::string, v1beta1::Pod> pods_;
  std::map<std::string, std::string> place_of_;
  std::string nominated_, nominated_to_;
  int count_ = 0, cycles_ = 0, verdicts_ = 0;
};

void RunAll(const std::vector<std::string>& plugins) {
  int cycles = 0, verdicts = 0;
  for (int seed = 0; seed < kClusters; ++seed) {
    Cluster cluster(static_cast<uint64_t>(seed), plugins);
    for (int step = 0; step < kSteps; ++step) {
      cluster.Step();
      if (::testing::Test::HasFatalFailure()) FAIL() << "seed " << seed << ", step " << step;
    }
    cycles += cluster.cycles();
    verdicts += cluster.verdicts();
  }
  std::cout << cycles << " cycles, " << verdicts
            << " verdicts on nodes equal those of a new session\n";
  EXPECT_GT(verdicts, cycles * 20);
}

TEST(SessionAgeTest, DefaultPluginsAnswerAsAfterARestart) { RunAll(DefaultPlugins()); }
TEST(SessionAgeTest, OwnPluginsAnswerAsAfterARestart) {
  std::vector<std::string> plugins = AllPlugins();
  // It counts pods' requests periodically, not before each attempt.
  std::erase(plugins, "GPUPacking");
  RunAll(plugins);
}

}  // namespace
}  // namespace outboard::plans
