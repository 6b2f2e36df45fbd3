#include "proto/trace_context/trace_context.h"

#include <gtest/gtest.h>

#include <sstream>
#include <string>

#include "absl/strings/str_cat.h"

namespace outboard::trace_context {
namespace {

constexpr char kUid[] = "0af76519-16cd-43dd-8448-eb211c80319c";

TEST(TraceContext, OfAUuidItIsTheUuidWithoutDashes) {
  EXPECT_EQ(TraceId(kUid).text(), "0af7651916cd43dd8448eb211c80319c");
  EXPECT_EQ(TraceId("0AF76519-16CD-43DD-8448-EB211C80319C").text(), TraceId(kUid).text());
}

TEST(TraceContext, AnotherUidHasNone) {
  for (const char* uid :
       {"", "abc", "00000000-0000-0000-0000-000000000000", "0af76519-16cd-43dd-8448-eb211c80319",
        "0af76519-16cd-43dd-8448-eb211c80319c0", "0af76519-16cd-43dd-8448-eb211c80319g",
        "0af76519016cd-43dd-8448-eb211c80319c", "0af7651916cd43dd8448eb211c80319c",
        "0af7651-916cd-43dd-8448-eb211c80319c"}) {
    EXPECT_EQ(TraceId(uid).text(), "") << uid;
    EXPECT_EQ(TraceParent(uid, 1).text(), "") << uid;
  }
  EXPECT_EQ(TraceParent(kUid, 0).text(), "");
}

TEST(TraceContext, TheSpanIsTheAttempt) {
  EXPECT_EQ(TraceParent(kUid, 1).text(), "00-0af7651916cd43dd8448eb211c80319c-0000000000000001-01");
  EXPECT_EQ(TraceParent(kUid, 0xfedcba9876543210).text(),
            "00-0af7651916cd43dd8448eb211c80319c-fedcba9876543210-01");
}

TEST(TraceContext, IsPrintedAsItsText) {
  std::ostringstream out;
  out << TraceId(kUid) << " " << TraceParent(kUid, 17);
  EXPECT_EQ(out.str(), absl::StrCat(TraceId(kUid).text(), " ", TraceParent(kUid, 17).text()));
}

}  // namespace
}  // namespace outboard::trace_context
