// Storms of gangs on the real queue, cycle and host process. Environment:
// OUTBOARD_STORM_GANGS: number of gangs; OUTBOARD_STORM_FIRST_SEED: first storm;
// OUTBOARD_STORM_SEED: only this storm; OUTBOARD_STORM_KIND: only storms of this kind (0: room for
// all); OUTBOARD_STORM_SORT: the plugin at queueSort; OUTBOARD_STORM_LINES: number of printed lines
// of a failed storm.
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <string>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "integration/simulator/storms/play.h"

namespace outboard::simulate::storms {
namespace {

constexpr int kGangsOfAStorm = 24;
// Unplaced gangs fail the test. With OUTBOARD_STORM_STRICT=0 they are only counted in storms where
// gangs come and go: members that are placed one by one may hold parts of the room in turns for
// ever.
constexpr int64_t kStrict = 1;
// The default; the environment can change it.
#ifndef STORM_GANGS
#define STORM_GANGS 200
#endif

int64_t FromEnvironment(const char* name, int64_t otherwise) {
  const char* text = std::getenv(name);
  int64_t value = otherwise;
  if (text != nullptr && !absl::SimpleAtoi(text, &value)) ADD_FAILURE() << name << "=" << text;
  return value;
}

class GangStorm : public ::testing::Test {
 protected:
  void SetUp() override {
    auto config = StormConfig(Sort());
    ASSERT_TRUE(config.ok()) << config.status();
    config_ = *std::move(config);
  }
  static std::string Sort() {
    const char* sort = std::getenv("OUTBOARD_STORM_SORT");
    if (sort == nullptr) return "Coscheduling";
    return std::string(sort) == "PrioritySort" ? "" : sort;
  }
  // Returns false if it failed.
  bool PlayOne(const Storm& storm) {
    absl::StatusOr<Outcome> outcome = Play(storm, config_, OUTBOARD_HOST_BINARY);
    if (!outcome.ok()) {
      ADD_FAILURE() << storm.Summary() << ": " << outcome.status();
      return false;
    }
    gangs_ += static_cast<int64_t>(storm.gangs.size());
    placed_ += outcome->placed;
    removed_ += outcome->removed;
    binds_ += outcome->binds;
    failed_binds_ += outcome->failed_binds;
    attempts_ += outcome->attempts;
    switches_ += outcome->switches;
    took_ += outcome->took;
    left_ += static_cast<int64_t>(outcome->left.size());
    if (storm.kind == StormKind::kRoomForAll ||
        FromEnvironment("OUTBOARD_STORM_STRICT", kStrict) != 0)
      std::move(outcome->left.begin(), outcome->left.end(),
                std::back_inserter(outcome->complaints));
    if (outcome->complaints.empty()) return true;
    const size_t lines = outcome->story.size();
    outcome->story.erase(
        outcome->story.begin(),
        outcome->story.begin() + static_cast<ptrdiff_t>(lines - std::min(lines, lines_)));
    ADD_FAILURE() << "OUTBOARD_STORM_SEED=" << storm.seed << ": " << storm.Summary() << "\n"
                  << absl::StrJoin(outcome->story, "\n") << "\n"
                  << absl::StrJoin(outcome->complaints, "\n");
    return false;
  }
  void Report() const {
    std::printf(
        "%lld gangs: %lld placed, %lld deleted before, %lld left; %lld binds and %lld failed ones, "
        "%lld "
        "attempts, %lld host processes, %s of virtual time\n",
        static_cast<long long>(gangs_), static_cast<long long>(placed_),
        static_cast<long long>(removed_), static_cast<long long>(left_),
        static_cast<long long>(binds_), static_cast<long long>(failed_binds_),
        static_cast<long long>(attempts_), static_cast<long long>(switches_),
        absl::FormatDuration(took_).c_str());
  }

  config::Config config_;
  size_t lines_ = 60;
  int64_t gangs_ = 0, placed_ = 0, removed_ = 0, left_ = 0, binds_ = 0, failed_binds_ = 0,
          attempts_ = 0, switches_ = 0;
  absl::Duration took_;
};

TEST_F(GangStorm, EveryGangIsPlacedWholeAndInTheEnd) {
  const int64_t only = FromEnvironment("OUTBOARD_STORM_SEED", -1);
  lines_ = static_cast<size_t>(FromEnvironment("OUTBOARD_STORM_LINES", 60));
  if (only >= 0) {
    PlayOne(MakeStorm(static_cast<uint64_t>(only), kGangsOfAStorm));
    return Report();
  }
  const int64_t wanted = FromEnvironment("OUTBOARD_STORM_GANGS", STORM_GANGS);
  const int64_t first = FromEnvironment("OUTBOARD_STORM_FIRST_SEED", 1);
  int failed = 0;
  int storms = 0;
  const int64_t only_kind = FromEnvironment("OUTBOARD_STORM_KIND", -1);
  for (int64_t i = 0; gangs_ < wanted && failed < 200; ++i) {
    const Storm storm = MakeStorm(static_cast<uint64_t>(first + i), kGangsOfAStorm);
    if (only_kind >= 0 && static_cast<int64_t>(storm.kind) != only_kind) continue;
    ++storms;
    failed += PlayOne(storm) ? 0 : 1;
  }
  std::printf("%d storms, %d failed\n", storms, failed);
  Report();
}

// 12 GPUs on nodes with 8: it is first in line by its creation, takes all free GPUs, and fails.
TEST_F(GangStorm, AGangThatNeverFitsDoesNotStandBeforeAllOthers) {
  Storm storm;
  storm.nodes.assign(2, {64000, 4});
  Gang gang;
  gang.name = "huge";
  gang.members.assign(12, {1000, 1});
  gang.min = 12;
  gang.run = absl::Seconds(1);
  storm.gangs.push_back(gang);
  gang.members.resize(8);
  gang.min = 8;
  for (int i = 0; i < 4; ++i) {
    gang.name = absl::StrCat("g", i);
    gang.dialect = static_cast<Dialect>(i);
    gang.arrives = absl::Seconds(5 + i);
    gang.run = absl::Seconds(30);
    storm.gangs.push_back(gang);
  }
  // A user deletes the gang that can never be placed.
  storm.disturbances.push_back({Disturbance::kDeleteGang, absl::Minutes(20), /*dice=*/0xf0000000u});
  storm.calm = absl::Minutes(20);
  const absl::StatusOr<Outcome> outcome = Play(storm, config_, OUTBOARD_HOST_BINARY);
  ASSERT_TRUE(outcome.ok()) << outcome.status();
  EXPECT_TRUE(outcome->complaints.empty()) << absl::StrJoin(outcome->complaints, "\n");
  EXPECT_TRUE(outcome->left.empty()) << absl::StrJoin(outcome->left, "\n");
  EXPECT_EQ(outcome->removed, 1);
  for (int i = 0; i < 4; ++i) {
    const auto placed = outcome->placed_after.find(absl::StrCat("g", i));
    ASSERT_NE(placed, outcome->placed_after.end()) << i;
    std::printf("g%d is placed after %s\n", i, absl::FormatDuration(placed->second).c_str());
    // The wait of a gang that holds places without success, and a run, for each of them.
    EXPECT_LT(placed->second, (i + 1) * absl::Seconds(66)) << i;
  }
}

}  // namespace
}  // namespace outboard::simulate::storms
