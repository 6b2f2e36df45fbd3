#include "plugin_host/sdk/gpu_devices.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>

#include "plugin_host/sdk/testing/builders.h"

namespace outboard::sdk {
namespace {

TEST(GpuDevicesTest, IdsAreNumbersAndRanges) {
  EXPECT_EQ(ParseGpuIds("0"), 0b1);
  EXPECT_EQ(ParseGpuIds("0,1"), 0b11);
  EXPECT_EQ(ParseGpuIds("0-3,6"), 0b1001111);
  EXPECT_EQ(ParseGpuIds("2-2,2"), 0b100);
  EXPECT_EQ(ParseGpuIds("0-63"), ~GpuSet{0});
  EXPECT_EQ(ParseGpuIds("63"), GpuSet{1} << 63);
}

TEST(GpuDevicesTest, AnythingElseIsNotAList) {
  for (const char* text :
       {"", ",", "0,", "-1", "1-", "3-1", "0-64", "64", "0 1", " 0", "a", "0-1-2", "GPU-5d0f7a",
        "0x1", "99999999999999999999", "\u0661", "1e1", "[0]"}) {
    EXPECT_EQ(ParseGpuIds(text), std::nullopt) << text;
  }
}

TEST(GpuDevicesTest, WhatIsWrittenIsReadAgain) {
  EXPECT_EQ(FormatGpuIds(0), "");
  EXPECT_EQ(FormatGpuIds(0b11111111), "0-7");
  EXPECT_EQ(FormatGpuIds(0b11), "0,1");
  EXPECT_EQ(FormatGpuIds(0b1001111), "0-3,6");
  for (const GpuSet gpus :
       {GpuSet{1}, ~GpuSet{0}, GpuSet{1} << 63, GpuSet{0x8000000000000001}, GpuSet{0xf0f0}}) {
    EXPECT_EQ(ParseGpuIds(FormatGpuIds(gpus)), gpus) << FormatGpuIds(gpus);
  }
}

TEST(GpuDevicesTest, KoordinatorWritesMinors) {
  EXPECT_EQ(ParseKoordinatorDevices(
                R"({"gpu": [{"minor": 0, "resources": {"koordinator.sh/gpu-core": "100"}},
                            {"minor": 3}], "rdma": [{"minor": 1}]})"),
            0b1001);
  for (const char* text :
       {"", "{}", "[]", "null", "{\"gpu\": {}}", "{\"gpu\": []}", "{\"gpu\": [{}]}",
        "{\"gpu\": [{\"minor\": -1}]}", "{\"gpu\": [{\"minor\": 64}]}",
        "{\"gpu\": [{\"minor\": \"0\"}]}", "{\"gpu\": [{\"minor\": 1e999}]}", "{\"gpu\": [7]}",
        "{\"gpu\": [{\"minor\": 0}", "\xff"}) {
    EXPECT_EQ(ParseKoordinatorDevices(text), std::nullopt) << text;
  }
}

TEST(GpuDevicesTest, DeepJsonIsHarmless) {
  EXPECT_EQ(ParseKoordinatorDevices(std::string(60000, '[')), std::nullopt);
  EXPECT_EQ(ParseKoordinatorDevices(std::string(1000000, ' ')), std::nullopt);
}

TEST(GpuDevicesTest, TheFirstAnnotationThatCanBeReadCounts) {
  MalformedValues malformed("Test");
  testing::PodBuilder pod("p");
  EXPECT_EQ(GpusOfPod(pod, 2, &malformed), std::nullopt);
  pod.Annotation(kVolcanoGpuIdsAnnotation, "4,5");
  EXPECT_EQ(GpusOfPod(pod, 2, &malformed), 0b110000);
  pod.Annotation(kGpuIdsAnnotation, "0,1");
  EXPECT_EQ(GpusOfPod(pod, 2, &malformed), 0b11);
  EXPECT_EQ(malformed.warned(), 0);
  pod.Annotation(kGpuIdsAnnotation, "lots");
  EXPECT_EQ(GpusOfPod(pod, 2, &malformed), 0b110000);
  EXPECT_EQ(GpusOfPod(pod, 2, &malformed), 0b110000);
  EXPECT_EQ(malformed.warned(), 1);
}

TEST(GpuDevicesTest, MoreGpusThanRequestedAreMalformed) {
  testing::PodBuilder pod("p");
  pod.Annotation(kGpuIdsAnnotation, "0-7");
  EXPECT_EQ(GpusOfPod(pod, 8, nullptr), 0xff);
  EXPECT_EQ(GpusOfPod(pod, 2, nullptr), std::nullopt);
  EXPECT_EQ(GpusOfPod(pod, 0, nullptr), 0xff) << "requests shares of GPUs under other names";
}

TEST(GpuDevicesTest, PodsOfANodeAreReadAsWritten) {
  const PodGpus pods = {{"a/b", 0b11}, {"a/b.c", 0b100}, {"ns/train-0", 0b11110000}};
  EXPECT_EQ(FormatPodGpus(pods), "a/b=0,1;a/b.c=2;ns/train-0=4-7");
  EXPECT_EQ(ParsePodGpus(FormatPodGpus(pods)), pods);
  EXPECT_EQ(FormatPodGpus({}), "");
  EXPECT_EQ(ParsePodGpus(""), PodGpus());
}

TEST(GpuDevicesTest, AnythingElseIsNotAListOfPods) {
  for (const char* text : {";", "a/b", "a/b=", "=0", "/=0", "a/=0", "/b=0", "a=0", "a/b=0;",
                           ";a/b=0", "a/b=0;a/b=1", "a/b=64", "a/b=x", "a/b=0 ", "a/b=0=1"}) {
    EXPECT_EQ(ParsePodGpus(text), std::nullopt) << text;
  }
  EXPECT_EQ(ParsePodGpus("a/b=0;a/" + std::string(kMaxPodGpusText, 'b') + "=1"), std::nullopt);
}

TEST(GpuDevicesTest, PodsThatDoNotFitAreLeftOut) {
  PodGpus pods;
  for (int i = 10000; i < 14000; ++i) pods["ns/" + std::to_string(i)] = 1;
  size_t left_out = 0;
  const std::string text = FormatPodGpus(pods, &left_out);
  EXPECT_LE(text.size(), kMaxPodGpusText);
  EXPECT_GT(text.size(), kMaxPodGpusText - 20);
  const auto kept = ParsePodGpus(text);
  ASSERT_TRUE(kept);
  EXPECT_EQ(kept->size() + left_out, pods.size());
  EXPECT_TRUE(kept->contains("ns/10000"));
  EXPECT_FALSE(kept->contains("ns/13999"));
}

TEST(GpuDevicesTest, ANodeSaysWhichGpusItsPodsUse) {
  MalformedValues malformed("Test");
  v1beta1::Node node;
  node.set_name("n");
  EXPECT_EQ(PodGpusOfNode(node, &malformed), PodGpus());
  (*node.mutable_annotations())[kPodGpusAnnotation] = "ns/p=0,1";
  const PodGpus pods = PodGpusOfNode(node, &malformed);
  EXPECT_EQ(malformed.warned(), 0);
  v1beta1::Pod pod;
  pod.set_namespace_("ns");
  pod.set_name("p");
  EXPECT_EQ(FindGpusOfPod(pods, pod, 2), 0b11);
  EXPECT_EQ(FindGpusOfPod(pods, pod, 0), 0b11) << "requests shares of GPUs under other names";
  EXPECT_EQ(FindGpusOfPod(pods, pod, 1), std::nullopt) << "another pod of this name";
  pod.set_namespace_("other");
  EXPECT_EQ(FindGpusOfPod(pods, pod, 2), std::nullopt);
  (*node.mutable_annotations())[kPodGpusAnnotation] = "ns/p";
  EXPECT_EQ(PodGpusOfNode(node, &malformed), PodGpus());
  EXPECT_EQ(malformed.warned(), 1);
}

TEST(GpuDevicesTest, DevicesOfHami) {
  const auto devices =
      ParseHamiDevices("GPU-0fc3,NVIDIA,3000,30:GPU-b,NVIDIA,lots,1:;GPU-0fc3,NVIDIA,1,1:;");
  ASSERT_TRUE(devices.has_value());
  ASSERT_EQ(devices->size(), 3u);
  EXPECT_EQ(devices->at(0).uuid, "GPU-0fc3");
  EXPECT_EQ(devices->at(0).mib, 3000);
  EXPECT_EQ(devices->at(1).mib, std::nullopt);
  EXPECT_EQ(devices->at(2).uuid, "GPU-0fc3");
  for (const char* text : {"", ";", ":;", ",NVIDIA,3000,30:;", "GPU-0fc3:;", "GPU-0fc3,NVIDIA:;"})
    EXPECT_FALSE(ParseHamiDevices(text).has_value()) << text;
  EXPECT_FALSE(ParseHamiDevices(std::string(20000, 'x') + ",N,1,1:;").has_value());
}

}  // namespace
}  // namespace outboard::sdk
