#include "shim/config/nearest.h"

#include <gtest/gtest.h>

namespace outboard::config {
namespace {

TEST(Nearest, FindsSlipsAndNothingElse) {
  const std::vector<std::string> known = {"NodeName", "NodePorts", "NodeResourcesFit",
                                          "TaintToleration"};
  EXPECT_EQ(Nearest("NodeResourceFit", known), "NodeResourcesFit");
  EXPECT_EQ(Nearest("nodename", known), "NodeName");
  EXPECT_EQ(Nearest("TaintTolerations", known), "TaintToleration");
  EXPECT_EQ(Nearest("Coscheduling", known), "");
  EXPECT_EQ(Nearest("x", known), "");
  EXPECT_EQ(Nearest("", known), "");
}

TEST(Nearest, CompletesTheOnlyNameThatBeginsSo) {
  const std::vector<std::string> known = {"simulate", "swap",        "queue",
                                          "new",      "conformance", "config"};
  EXPECT_EQ(Nearest("sim", known), "simulate");
  EXPECT_EQ(Nearest("si", known), "");
  EXPECT_EQ(Nearest("con", known), "");
  EXPECT_EQ(Nearest("conformances", known), "conformance");
  EXPECT_EQ(Nearest("get", known), "");
}

TEST(DidYouMean, AsksOrSaysNothing) {
  EXPECT_EQ(DidYouMean("swp", {"swap"}), "; did you mean swap?");
  EXPECT_EQ(DidYouMean("roll", {"swap"}), "");
}

}  // namespace
}  // namespace outboard::config
