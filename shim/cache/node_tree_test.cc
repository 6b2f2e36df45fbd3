#include "shim/cache/node_tree.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace outboard::cache {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

v1beta1::Node NodeWith(std::initializer_list<std::pair<const char*, const char*>> labels) {
  v1beta1::Node node;
  for (const auto& [key, value] : labels) (*node.mutable_labels())[key] = value;
  return node;
}

TEST(ZoneKeyTest, BetaLabelsWinAndEmptyValuesAreNotAZone) {
  const std::string joint(":\0:", 3);
  EXPECT_EQ(ZoneKey(NodeWith({})), "");
  EXPECT_EQ(ZoneKey(NodeWith({{"topology.kubernetes.io/zone", "z"}})), joint + "z");
  EXPECT_EQ(ZoneKey(NodeWith({{"topology.kubernetes.io/region", "r"}})), "r" + joint);
  EXPECT_EQ(ZoneKey(NodeWith({{"topology.kubernetes.io/region", "r"},
                              {"topology.kubernetes.io/zone", "z"},
                              {"failure-domain.beta.kubernetes.io/zone", "b"}})),
            "r" + joint + "b");
  EXPECT_EQ(ZoneKey(NodeWith({{"topology.kubernetes.io/zone", "z"},
                              {"failure-domain.beta.kubernetes.io/zone", ""}})),
            "")
      << "an empty beta label still hides the other";
}

TEST(NodeTreeTest, TakesOneFromEachZoneInTurn) {
  NodeTree tree;
  EXPECT_THAT(tree.Order(), IsEmpty());
  tree.Add("b", 0);
  tree.Add("a", 1);
  tree.Add("a", 2);
  tree.Add("b", 3);
  tree.Add("a", 4);
  tree.Add("c", 5);
  EXPECT_THAT(tree.Order(), ElementsAre(0, 1, 5, 3, 2, 4));
}

TEST(NodeTreeTest, AnEmptiedZoneLosesItsPlace) {
  NodeTree tree;
  tree.Add("a", 0);
  tree.Add("b", 1);
  tree.Remove("a", 0);
  tree.Add("a", 2);
  EXPECT_THAT(tree.Order(), ElementsAre(1, 2));
  tree.Remove("a", 7);
  tree.Remove("x", 1);
  EXPECT_EQ(tree.size(), 2u);
}

}  // namespace
}  // namespace outboard::cache
