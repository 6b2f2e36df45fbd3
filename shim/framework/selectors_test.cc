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

const v1beta1::Node& Node() {
  static const auto* node = new v1beta1::Node(Parsed<v1beta1::Node>(R"pb(
    name: "n1"
    labels { key: "zone" value: "a" }
    labels { key: "size" value: "8" }
  )pb"));
  return *node;
}

bool Fulfils(const std::string& requirement) {
  return Matches(Parsed<v1beta1::LabelSelector>("match_expressions {" + requirement + "}"),
                 Node().labels());
}

TEST(Selectors, EachOperator) {
  EXPECT_TRUE(Fulfils(R"pb(key: "zone" operator: OPERATOR_IN values: "b" values: "a")pb"));
  EXPECT_FALSE(Fulfils(R"pb(key: "zone" operator: OPERATOR_IN values: "b")pb"));
  EXPECT_FALSE(Fulfils(R"pb(key: "rack" operator: OPERATOR_IN values: "a")pb"));
  EXPECT_TRUE(Fulfils(R"pb(key: "zone" operator: OPERATOR_NOT_IN values: "b")pb"));
  EXPECT_TRUE(Fulfils(R"pb(key: "rack" operator: OPERATOR_NOT_IN values: "b")pb"));
  EXPECT_FALSE(Fulfils(R"pb(key: "zone" operator: OPERATOR_NOT_IN values: "a")pb"));
  EXPECT_TRUE(Fulfils(R"pb(key: "zone" operator: OPERATOR_EXISTS)pb"));
  EXPECT_FALSE(Fulfils(R"pb(key: "rack" operator: OPERATOR_EXISTS)pb"));
  EXPECT_TRUE(Fulfils(R"pb(key: "rack" operator: OPERATOR_DOES_NOT_EXIST)pb"));
  EXPECT_FALSE(Fulfils(R"pb(key: "zone" operator: OPERATOR_DOES_NOT_EXIST)pb"));
  EXPECT_TRUE(Fulfils(R"pb(key: "size" operator: OPERATOR_GT values: "7")pb"));
  EXPECT_FALSE(Fulfils(R"pb(key: "size" operator: OPERATOR_GT values: "8")pb"));
  EXPECT_TRUE(Fulfils(R"pb(key: "size" operator: OPERATOR_LT values: "9")pb"));
  EXPECT_FALSE(Fulfils(R"pb(key: "size" operator: OPERATOR_LT values: "8")pb"));
}

TEST(Selectors, WhatKubernetesWouldNotAcceptMatchesNothing) {
  EXPECT_FALSE(Fulfils(R"pb(key: "zone")pb"));
  EXPECT_FALSE(Fulfils(R"pb(key: "rack" operator: OPERATOR_NOT_IN)pb"));
  EXPECT_FALSE(Fulfils(R"pb(key: "zone" operator: OPERATOR_GT values: "1")pb"));
  EXPECT_FALSE(Fulfils(R"pb(key: "size" operator: OPERATOR_GT values: "x")pb"));
  EXPECT_FALSE(Fulfils(R"pb(key: "size" operator: OPERATOR_GT values: "1" values: "2")pb"));
}

TEST(Selectors, LabelsMustFulfilEverything) {
  EXPECT_TRUE(Matches(v1beta1::LabelSelector(), Node().labels()));
  const auto selects = [](const char* text) {
    return Matches(Parsed<v1beta1::LabelSelector>(text), Node().labels());
  };
  EXPECT_TRUE(selects(R"pb(match_labels { key: "zone" value: "a" })pb"));
  EXPECT_FALSE(selects(R"pb(match_labels { key: "zone" value: "b" })pb"));
  EXPECT_FALSE(selects(R"pb(match_labels { key: "zone" value: "a" }
                            match_expressions { key: "rack" operator: OPERATOR_EXISTS })pb"));
}

TEST(Selectors, ANodeMustFulfilOneTerm) {
  const auto selects = [](const char* text) {
    return Matches(Parsed<v1beta1::NodeSelector>(text), Node());
  };
  EXPECT_FALSE(selects("")) << "no term";
  EXPECT_FALSE(selects("node_selector_terms {}")) << "an empty term matches no node";
  EXPECT_TRUE(selects(R"pb(
    node_selector_terms { match_expressions { key: "rack" operator: OPERATOR_EXISTS } }
    node_selector_terms { match_expressions { key: "zone" operator: OPERATOR_EXISTS } })pb"));
  EXPECT_FALSE(selects(R"pb(
    node_selector_terms {
      match_expressions { key: "zone" operator: OPERATOR_EXISTS }
      match_fields { key: "metadata.name" operator: OPERATOR_IN values: "n2" }
    })pb"));
  EXPECT_TRUE(
      selects(R"pb(
        node_selector_terms {
          match_fields { key: "metadata.name" operator: OPERATOR_IN values: "n1" }
        })pb"));
  EXPECT_FALSE(selects(
      R"pb(
        node_selector_terms {
          match_fields { key: "metadata.uid" operator: OPERATOR_NOT_IN values: "x" }
        })pb"));
}

}  // namespace
}  // namespace outboard::framework
