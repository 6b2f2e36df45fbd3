#include "plugin_host/sdk/filter_block.h"

#include <gtest/gtest.h>

namespace outboard::sdk {
namespace {

TEST(FilterBlockTest, EqualVerdictsAreKeptOnce) {
  VerdictTable table;
  BlockVerdicts ids;
  const Verdict small = Verdict::Unschedulable("too small");
  FilterSink sink(&table, 0, 0b1111, &ids);
  sink.Reject(0, small);
  sink.RejectWith(1, Verdict::Unschedulable("too small"));
  sink.RejectWith(2, Verdict::Unresolvable("too small"));
  EXPECT_EQ(sink.rejected(), 0b0111u);
  EXPECT_EQ(ids[0], ids[1]);
  EXPECT_NE(ids[0], ids[2]);
  EXPECT_EQ(table.entries().size(), 2u);
  // The same reason of another plugin is another verdict.
  FilterSink other(&table, 1, 0b1000, &ids);
  other.RejectWith(3, small);
  EXPECT_EQ(table.entries().size(), 3u);
}

TEST(FilterBlockTest, TheFirstVerdictCountsAndOnlyCandidatesGetOne) {
  VerdictTable table;
  BlockVerdicts ids;
  FilterSink sink(&table, 0, 0b0011, &ids);
  sink.RejectWith(0, Verdict::Unschedulable("a"));
  sink.RejectWith(0, Verdict::Unschedulable("b"));
  sink.RejectWith(2, Verdict::Unschedulable("c"));
  EXPECT_EQ(sink.rejected(), 0b0001u);
  EXPECT_EQ(table.entries()[ids[0]].verdict.reasons()[0], "a");
}

TEST(FilterBlockTest, AnythingButARejectionIsAFailure) {
  VerdictTable table;
  BlockVerdicts ids;
  FilterSink sink(&table, 0, ~uint64_t{0}, &ids);
  sink.Fail(5, "broken");
  sink.RejectWith(6, Verdict::Skip());
  sink.RejectWith(63, Verdict(v1beta1::CODE_PENDING, std::string("soon")));
  EXPECT_EQ(sink.failed(), uint64_t{0b11} << 5);
  EXPECT_EQ(sink.rejected(), uint64_t{1} << 63);
}

}  // namespace
}  // namespace outboard::sdk
