#include "plugin_host/sdk/log_name.h"

#include <gtest/gtest.h>

#include <sstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"

namespace outboard::sdk {
namespace {

constexpr char kUid[] = "0af76519-16cd-43dd-8448-eb211c80319c";

class LogNameTest : public ::testing::Test {
 protected:
  LogNameTest() {
    pod_.pod.set_uid(kUid);
    pod_.pod.set_name("web-0");
    pod_.pod.set_namespace_("shop");
  }
  Attempt WithId(uint64_t id) {
    return Attempt(id, PodView(&pod_), ClusterView(nullptr, nullptr, nullptr, nullptr),
                   absl::UnixEpoch(), nullptr);
  }
  template <typename T>
  static std::string Printed(const T& what) {
    std::ostringstream out;
    out << LogName(what);
    return out.str();
  }

  PodRecord pod_;
};

TEST_F(LogNameTest, NamesPodAndAttempt) {
  EXPECT_EQ(Printed(WithId(17)), absl::StrCat("pod shop/web-0, uid ", kUid, ", attempt 17"));
}

TEST_F(LogNameTest, WithoutAnAttemptItNamesThePod) {
  const std::string expected = absl::StrCat("pod shop/web-0, uid ", kUid);
  EXPECT_EQ(Printed(PodView(&pod_)), expected);
  EXPECT_EQ(Printed(WithId(0)), expected);
}

// As the shim's metadata: shim/hosts/attempt_trace_test.cc.
TEST_F(LogNameTest, TheParentOfSpansFollowsTheContract) {
  EXPECT_EQ(TraceParentOf(WithId(17)), "00-0af7651916cd43dd8448eb211c80319c-0000000000000011-01");
  EXPECT_EQ(TraceParentOf(WithId(0)), "");
}

}  // namespace
}  // namespace outboard::sdk
