#include "shim/framework/selectors.h"

#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

namespace outboard::framework {
namespace {

template <typename Message>
Message Parsed(const std::string& text) {
  Message message;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &message)) << text;
  return message;
}

const v1alpha1::Node& Node() {
  static const auto* node = new v1alpha1::Node(Parsed<v1alpha1::Node>(R"pb(
    name: "n1"
    labels { key: "zone" value: "a" }
    labels { key: "size" value: "8" }
  )pb"));
  return *node;
}

bool Fulfils(const std::string& requirement) {
  return Matches(Parsed<v1alpha1::LabelSelector>("match_expressions {" + requirement + "}"),
                 Node().labels());
}

TEST(Selectors, EachOperator) {
  EXPECT_TRUE(Fulfils(R"pb(key: "zone" operator: IN values: "b" values: "a")pb"));
  EXPECT_FALSE(Fulfils(R"pb(key: "zone" operator: IN values: "b")pb"));
  EXPECT_FALSE(Fulfils(R"pb(key: "rack" operator: IN values: "a")pb"));
  EXPECT_TRUE(Fulfils(R"pb(key: "zone" operator: NOT_IN values: "b")pb"));
  EXPECT_TRUE(Fulfils(R"pb(key: "rack" operator: NOT_IN values: "b")pb"));
  EXPECT_FALSE(Fulfils(R"pb(key: "zone" operator: NOT_IN values: "a")pb"));
  EXPECT_TRUE(Fulfils(R"pb(key: "zone" operator: EXISTS)pb"));
  EXPECT_FALSE(Fulfils(R"pb(key: "rack" operator: EXISTS)pb"));
  EXPECT_TRUE(Fulfils(R"pb(key: "rack" operator: DOES_NOT_EXIST)pb"));
  EXPECT_FALSE(Fulfils(R"pb(key: "zone" operator: DOES_NOT_EXIST)pb"));
  EXPECT_TRUE(Fulfils(R"pb(key: "size" operator: GT values: "7")pb"));
  EXPECT_FALSE(Fulfils(R"pb(key: "size" operator: GT values: "8")pb"));
  EXPECT_TRUE(Fulfils(R"pb(key: "size" operator: LT values: "9")pb"));
  EXPECT_FALSE(Fulfils(R"pb(key: "size" operator: LT values: "8")pb"));
}

TEST(Selectors, WhatKubernetesWouldNotAcceptMatchesNothing) {
  EXPECT_FALSE(Fulfils(R"pb(key: "zone")pb"));
  EXPECT_FALSE(Fulfils(R"pb(key: "rack" operator: NOT_IN)pb"));
  EXPECT_FALSE(Fulfils(R"pb(key: "zone" operator: GT values: "1")pb"));
  EXPECT_FALSE(Fulfils(R"pb(key: "size" operator: GT values: "x")pb"));
  EXPECT_FALSE(Fulfils(R"pb(key: "size" operator: GT values: "1" values: "2")pb"));
}

TEST(Selectors, LabelsMustFulfilEverything) {
  EXPECT_TRUE(Matches(v1alpha1::LabelSelector(), Node().labels()));
  const auto selects = [](const char* text) {
    return Matches(Parsed<v1alpha1::LabelSelector>(text), Node().labels());
  };
  EXPECT_TRUE(selects(R"pb(match_labels { key: "zone" value: "a" })pb"));
  EXPECT_FALSE(selects(R"pb(match_labels { key: "zone" value: "b" })pb"));
  EXPECT_FALSE(selects(R"pb(match_labels { key: "zone" value: "a" }
                            match_expressions { key: "rack" operator: EXISTS })pb"));
}

TEST(Selectors, ANodeMustFulfilOneTerm) {
  const auto selects = [](const char* text) {
    return Matches(Parsed<v1alpha1::NodeSelector>(text), Node());
  };
  EXPECT_FALSE(selects("")) << "no term";
  EXPECT_FALSE(selects("node_selector_terms {}")) << "an empty term matches no node";
  EXPECT_TRUE(selects(R"pb(
    node_selector_terms { match_expressions { key: "rack" operator: EXISTS } }
    node_selector_terms { match_expressions { key: "zone" operator: EXISTS } })pb"));
  EXPECT_FALSE(selects(R"pb(
    node_selector_terms {
      match_expressions { key: "zone" operator: EXISTS }
      match_fields { key: "metadata.name" operator: IN values: "n2" }
    })pb"));
  EXPECT_TRUE(selects(R"pb(
    node_selector_terms { match_fields { key: "metadata.name" operator: IN values: "n1" } })pb"));
  EXPECT_FALSE(
      selects(
          R"pb(
            node_selector_terms {
              match_fields { key: "metadata.uid" operator: NOT_IN values: "x" }
            })pb"));
}

}  // namespace
}  // namespace outboard::framework
