#include "shim/informer/snapshot.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

namespace outboard::informer {
namespace {

// Counts how often an object is looked at.
struct CountedThing {
  std::string id;
  int64_t* looks;
  const std::string& uid() const {
    ++*looks;
    return id;
  }
};

class SnapshotTest : public ::testing::Test {
 protected:
  std::shared_ptr<const CountedThing> Make(const std::string& uid) {
    return std::make_shared<const CountedThing>(CountedThing{uid, &looks_});
  }
  std::vector<std::string> TakeObjects() {
    std::vector<std::string> uids;
    for (const auto& object : snapshot_.TakeObjects()) uids.push_back(object->id);
    return uids;
  }
  static kube::RejectedObject Bad(const std::string& uid) {
    return {{"ns", uid, uid, "7"}, absl::StrCat("bad ", uid)};
  }

  int64_t looks_ = 0;
  Snapshot<CountedThing> snapshot_;
};

using Uids = std::vector<std::string>;

TEST_F(SnapshotTest, ADeletedObjectStaysDeleted) {
  for (const char* uid : {"a", "b", "a", "c"}) snapshot_.Add(Make(uid));
  snapshot_.Delete("a");
  snapshot_.Add(Make("a"));  // a late event
  EXPECT_EQ(TakeObjects(), (Uids{"b", "c"}));
  snapshot_.Add(Make("a"));
  EXPECT_EQ(TakeObjects(), (Uids{"a"})) << "another snapshot";
}

TEST_F(SnapshotTest, OnlyTheLastVersionDecidesWhetherAnObjectIsRejected) {
  snapshot_.Add(Make("a"));
  snapshot_.Reject(Bad("a"));
  snapshot_.Reject(Bad("b"));
  snapshot_.Add(Make("b"));
  snapshot_.Reject(Bad("c"));
  snapshot_.Delete("c");
  const std::vector<kube::RejectedObject> rejected = snapshot_.TakeRejected();
  ASSERT_EQ(rejected.size(), 1u);
  EXPECT_EQ(rejected[0].identity.key(), "ns/a");
  // The version before is known.
  EXPECT_EQ(TakeObjects(), (Uids{"a", "b"}));
}

// Of 100,000 objects, half are deleted while they arrive: a pass for each deletion would look at
// objects five billion times.
TEST_F(SnapshotTest, DeletionsCostOnePass) {
  constexpr int kObjects = 100000;
  for (int i = 0; i < kObjects; ++i) snapshot_.Add(Make(absl::StrCat("uid-", i)));
  for (int i = 0; i < kObjects; i += 2) snapshot_.Delete(absl::StrCat("uid-", i));
  looks_ = 0;
  EXPECT_EQ(snapshot_.TakeObjects().size(), size_t{kObjects / 2});
  EXPECT_LE(looks_, 2 * kObjects);
}

}  // namespace
}  // namespace outboard::informer
