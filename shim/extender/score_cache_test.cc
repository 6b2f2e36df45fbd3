#include "shim/extender/score_cache.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

namespace outboard::extender {
namespace {

using ::testing::ElementsAre;
using ::testing::Eq;
using ::testing::Optional;

class ScoreCacheTest : public ::testing::Test {
 protected:
  static NodesQuestion About(const std::string& pod, std::vector<std::string> names) {
    NodesQuestion question;
    question.pod = {pod, absl::StrCat("ns/", pod)};
    question.names = std::move(names);
    return question;
  }
  void Filter(const std::string& pod, std::vector<std::string> names, std::vector<int64_t> scores) {
    NodesAnswer answer;
    answer.scores = std::move(scores);
    kept_.Keep(About(pod, std::move(names)), answer, now_);
  }
  auto Prioritize(const std::string& pod, std::vector<std::string> names) {
    return kept_.Take(About(pod, std::move(names)), now_);
  }

  absl::Time now_ = absl::FromUnixSeconds(1000);
  ScoreCache kept_;
};

TEST_F(ScoreCacheTest, AreForOnePrioritizeAboutNodesThatPassed) {
  Filter("p", {"a", "b", "c"}, {10, 7, 0});
  EXPECT_THAT(Prioritize("p", {"a", "c"}), Optional(ElementsAre(10, 0)));
  EXPECT_THAT(Prioritize("p", {"a", "c"}), Eq(std::nullopt));
  Filter("p", {"a", "b"}, {1, 2});
  Filter("p", {"b"}, {3});
  EXPECT_THAT(Prioritize("p", {"b"}), Optional(ElementsAre(3)));
}

TEST_F(ScoreCacheTest, OfAnotherPodCycleOrNodeAreNotUsed) {
  Filter("p", {"a", "b"}, {10, 7});
  EXPECT_THAT(Prioritize("q", {"a", "b"}), Eq(std::nullopt));
  EXPECT_THAT(Prioritize("p", {"a", "c"}), Eq(std::nullopt));
  Filter("p", {"a", "b"}, {10, 7});
  EXPECT_THAT(Prioritize("p", {"b", "a"}), Eq(std::nullopt)) << "not kube-scheduler's order";
  Filter("p", {"a", "b"}, {10, 7});
  now_ += absl::Seconds(6);
  EXPECT_THAT(Prioritize("p", {"a", "b"}), Eq(std::nullopt));
}

TEST_F(ScoreCacheTest, AreOfTheLatestPodsOnly) {
  for (int i = 0; i < 65; ++i) Filter(absl::StrCat("p", i), {"a"}, {i});
  EXPECT_THAT(Prioritize("p0", {"a"}), Eq(std::nullopt));
  EXPECT_THAT(Prioritize("p1", {"a"}), Optional(ElementsAre(1)));
  EXPECT_THAT(Prioritize("p64", {"a"}), Optional(ElementsAre(64)));
}

}  // namespace
}  // namespace outboard::extender
