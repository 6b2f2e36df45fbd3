#include "shim/informer/store.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

namespace outboard::informer {
namespace {

struct Thing {
  std::string id;
  std::string name;
  std::string resource_version;
  const std::string& uid() const { return id; }
  const std::string& key() const { return name; }
};

std::shared_ptr<const Thing> Make(const std::string& uid, const std::string& name,
                                  const std::string& version) {
  return std::make_shared<const Thing>(Thing{uid, name, version});
}

// Records the handler's calls.
class Story : public InformerHandler<Thing> {
 public:
  void OnAdd(const Ptr& object) override { Tell("+", object); }
  void OnUpdate(const Ptr& old_object, const Ptr& object) override {
    Tell(absl::StrCat("~", old_object->resource_version, ">"), object);
  }
  void OnDelete(const Ptr& object) override { Tell("-", object); }
  void OnSynced() override {}
  std::vector<std::string> Take() { return std::exchange(lines_, {}); }

 private:
  void Tell(const std::string& what, const Ptr& object) {
    lines_.push_back(absl::StrCat(what, object->id, "@", object->resource_version));
  }
  std::vector<std::string> lines_;
};

using Lines = std::vector<std::string>;

class StoreTest : public ::testing::Test {
 protected:
  Story story_;
  Store<Thing> store_{&story_};
};

TEST_F(StoreTest, AddUpdateDelete) {
  EXPECT_TRUE(store_.Put(Make("u1", "a", "5")));
  EXPECT_TRUE(store_.Put(Make("u1", "a", "10")));
  EXPECT_TRUE(store_.Delete(Make("u1", "a", "11")));
  EXPECT_EQ(story_.Take(), (Lines{"+u1@5", "~5>u1@10", "-u1@11"}));
  EXPECT_EQ(store_.size(), 0u);
}

TEST_F(StoreTest, OldAndRepeatedNewsIsIgnored) {
  store_.Put(Make("u1", "a", "10"));
  story_.Take();
  EXPECT_FALSE(store_.Put(Make("u1", "a", "10")));
  EXPECT_FALSE(store_.Put(Make("u1", "a", "9")));
  EXPECT_FALSE(store_.Delete(Make("u1", "a", "8")));
  EXPECT_FALSE(store_.Delete(Make("u2", "b", "11")));
  EXPECT_EQ(story_.Take(), Lines{});
  EXPECT_EQ(store_.Find("u1")->resource_version, "10");
}

TEST_F(StoreTest, ARecreatedNameIsADeleteAndAnAdd) {
  store_.Put(Make("u1", "a", "5"));
  store_.Put(Make("u2", "a", "7"));
  EXPECT_EQ(story_.Take(), (Lines{"+u1@5", "-u1@5", "+u2@7"}));
  // The late deletion of the first object must not affect the second.
  EXPECT_FALSE(store_.Delete(Make("u1", "a", "6")));
  EXPECT_EQ(store_.size(), 1u);
  EXPECT_TRUE(store_.Put(Make("u3", "a", "9")));
  EXPECT_EQ(story_.Take(), (Lines{"-u2@7", "+u3@9"}));
}

TEST_F(StoreTest, ReplaceReportsTheDifferencesDeletesFirst) {
  store_.Put(Make("u1", "a", "1"));
  store_.Put(Make("u2", "b", "2"));
  store_.Put(Make("u3", "c", "3"));
  story_.Take();
  store_.Replace({Make("u2", "b", "2"), Make("u3", "c", "8"), Make("u4", "a", "9")});
  EXPECT_EQ(story_.Take(), (Lines{"-u1@1", "~3>u3@8", "+u4@9"}));
  EXPECT_EQ(store_.size(), 3u);
}

TEST_F(StoreTest, ReplaceKeepsWhatExistsButCouldNotBeDecoded) {
  store_.Put(Make("u1", "a", "10"));
  store_.Put(Make("u2", "b", "11"));
  story_.Take();
  store_.Replace({}, {"u1", "unknown"});
  EXPECT_EQ(story_.Take(), (Lines{"-u2@11"}));
  ASSERT_NE(store_.Find("u1"), nullptr);
  EXPECT_EQ(store_.Find("u1")->resource_version, "10");
}

TEST_F(StoreTest, AnObjectThatCannotBeDecodedCanStillBeDeleted) {
  store_.Put(Make("u1", "a", "10"));
  story_.Take();
  EXPECT_FALSE(store_.DeleteUndecoded("u1", "9")) << "older than what is known";
  EXPECT_FALSE(store_.DeleteUndecoded("u2", "12")) << "unknown";
  EXPECT_TRUE(store_.DeleteUndecoded("u1", "12"));
  EXPECT_EQ(story_.Take(), (Lines{"-u1@10"}));
}

TEST_F(StoreTest, ReplaceIsTrueEvenIfItIsOlder) {
  store_.Put(Make("u1", "a", "50"));
  story_.Take();
  store_.Replace({Make("u1", "a", "20")});
  EXPECT_EQ(story_.Take(), Lines{"~50>u1@20"});
}

TEST_F(StoreTest, OpaqueVersionsAreTakenAsNews) {
  store_.Put(Make("u1", "a", "x"));
  EXPECT_TRUE(store_.Put(Make("u1", "a", "b")));
  EXPECT_EQ(store_.Find("u1")->resource_version, "b");
}

}  // namespace
}  // namespace outboard::informer
