#include "plugin_host/sdk/known_verdicts.h"

#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"

namespace outboard::sdk {
namespace {

class KnownVerdictsTest : public ::testing::Test {
 protected:
  void Reject(int i, int key) {
    KnownVerdicts<int>::Block(&known_, &sink_).Reject(i, key, [&] { return Make(key); });
  }
  Verdict Make(int key) {
    ++made_;
    return Verdict::Unschedulable(absl::StrCat("available ", key));
  }
  std::string ReasonOf(int i) const { return table_.entries()[ids_[i]].verdict.reasons()[0]; }

  VerdictTable table_;
  BlockVerdicts ids_;
  FilterSink sink_{&table_, 0, ~uint64_t{0}, &ids_};
  KnownVerdicts<int> known_;
  int made_ = 0;
};

TEST_F(KnownVerdictsTest, OnceForEachKey) {
  for (int i = 0; i < 30; ++i) Reject(i, i % 3);
  EXPECT_EQ(made_, 3);
  EXPECT_EQ(sink_.rejected(), (uint64_t{1} << 30) - 1);
  for (int i = 0; i < 30; ++i) EXPECT_EQ(ReasonOf(i), absl::StrCat("available ", i % 3));
}

TEST_F(KnownVerdictsTest, TheFirstOfABlockStays) {
  {
    KnownVerdicts<int>::Block block(&known_, &sink_);
    block.Reject(3, 1, [&] { return Make(1); });
    block.Reject(3, 2, [&] { return Make(2); });
    block.Reject(4, 2, [&] { return Make(2); });
  }
  EXPECT_EQ(ReasonOf(3), "available 1");
  EXPECT_EQ(ReasonOf(4), "available 2");
  EXPECT_EQ(sink_.rejected(), 0b11000u);
  EXPECT_EQ(made_, 2);
}

TEST_F(KnownVerdictsTest, ManyNodesAtOnce) {
  {
    KnownVerdicts<int>::Block block(&known_, &sink_);
    block.Reject(3, 1, [&] { return Make(1); });
    block.RejectAll(0b11110, 2, [&] { return Make(2); });
    block.RejectAll(0, 3, [&] { return Make(3); });
  }
  EXPECT_EQ(ReasonOf(3), "available 1");
  for (const int i : {1, 2, 4}) EXPECT_EQ(ReasonOf(i), "available 2");
  EXPECT_EQ(sink_.rejected(), 0b11110u);
  EXPECT_EQ(made_, 2);
}

TEST_F(KnownVerdictsTest, ManyNodesOfAKeyTooMany) {
  for (int i = 0; i < 60; ++i) Reject(i, 1000 + i);
  KnownVerdicts<int>::Block(&known_, &sink_).RejectAll(uint64_t{0b101} << 60, 7, [&] {
    return Make(7);
  });
  EXPECT_EQ(ReasonOf(60), "available 7");
  EXPECT_EQ(ReasonOf(62), "available 7");
  EXPECT_EQ(sink_.rejected(), ~(uint64_t{0b1010} << 60));
}

TEST_F(KnownVerdictsTest, MoreKeysThanAreKept) {
  for (int i = 0; i < 64; ++i) Reject(i, 1000 + i);
  for (int i = 0; i < 64; ++i) EXPECT_EQ(ReasonOf(i), absl::StrCat("available ", 1000 + i));
}

TEST_F(KnownVerdictsTest, ACopyOutlivesTheOriginal) {
  Reject(0, 7);
  KnownVerdicts<int> copy = known_;
  known_ = KnownVerdicts<int>();
  KnownVerdicts<int>::Block(&copy, &sink_).Reject(1, 7, [&] { return Make(8); });
  EXPECT_EQ(made_, 1);
  EXPECT_EQ(ReasonOf(1), "available 7");
}

}  // namespace
}  // namespace outboard::sdk
