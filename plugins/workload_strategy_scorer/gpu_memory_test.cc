#include "plugins/workload_strategy_scorer/gpu_memory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "plugin_host/sdk/node_facts/node_facts.h"
#include "plugin_host/sdk/testing/builders.h"

namespace outboard::workload_strategy_scorer {
namespace {

using sdk::testing::PodBuilder;
using sdk::testing::Quantities;
using ::testing::FieldsAre;

GpuMemory Read(const std::string& args = "") {
  sdk::ArgsReader reader(args);
  const GpuMemory memory = GpuMemory::Read(reader.root());
  EXPECT_TRUE(reader.Finish().empty());
  return memory;
}

MemoryDemand Of(const Quantities& requests,
                const std::map<std::string, std::string>& annotations = {},
                const std::string& args = "") {
  PodBuilder pod("p");
  pod.Requests(requests);
  for (const auto& [key, value] : annotations) pod.Annotation(key, value);
  return Read(args).DemandOf(pod, nullptr);
}

TEST(GpuMemoryTest, AnnotationsComeFirst) {
  EXPECT_THAT(Of({{"nvidia.com/gpu", "1"}}, {{kMemoryAnnotation, "20"}}), FieldsAre(20480, 0));
  EXPECT_THAT(Of({}, {{kMemoryAnnotation, "0.5"}, {kKaiMemoryAnnotation, "1"}}), FieldsAre(512, 0));
  EXPECT_THAT(Of({}, {{kKaiMemoryAnnotation, "2000"}}), FieldsAre(2000, 0));
  EXPECT_THAT(Of({}, {{kKaiMemoryAnnotation, "2000"}, {kKaiDevicesAnnotation, "2"}}),
              FieldsAre(4000, 0));
}

TEST(GpuMemoryTest, ThenResourcesThatAreMemory) {
  EXPECT_THAT(Of({{"nvidia.com/gpu", "2"}, {"nvidia.com/gpumem", "3000"}}), FieldsAre(6000, 0));
  EXPECT_THAT(Of({{"nvidia.com/gpumem", "3000"}}), FieldsAre(3000, 0));
  EXPECT_THAT(Of({{"volcano.sh/gpu-memory", "1024"}}), FieldsAre(1024, 0));
  EXPECT_THAT(Of({{"aliyun.com/gpu-mem", "8"}}), FieldsAre(8192, 0));
  EXPECT_THAT(Of({{"koordinator.sh/gpu-memory", "16Gi"}}), FieldsAre(16384, 0));
  const std::string args =
      R"({"gpuMemoryResources": [{"name": "example.com/vram", "unit": "GiB", "perGPU": true}]})";
  EXPECT_THAT(Of({{"example.com/vram", "4"}, {"nvidia.com/gpu", "2"}}, {}, args),
              FieldsAre(8192, 0));
  EXPECT_THAT(Of({{"aliyun.com/gpu-mem", "8"}}, {}, args), FieldsAre(0, 0));
}

TEST(GpuMemoryTest, ThenWholeGpus) {
  EXPECT_THAT(Of({{"nvidia.com/gpu", "2"}}), FieldsAre(0, 2));
  EXPECT_THAT(Of({{"cpu", "2"}}), FieldsAre(0, 0));
}

TEST(GpuMemoryTest, WhatCannotBeReadCountsAsAbsent) {
  for (const char* text : {"", "-1", "lots", "1e300", "inf", "nan", "20GB", " 20", "\xff"}) {
    EXPECT_THAT(Of({{"nvidia.com/gpu", "1"}}, {{kMemoryAnnotation, text}}), FieldsAre(0, 1))
        << text;
    EXPECT_THAT(Of({{"nvidia.com/gpu", "1"}}, {{kKaiMemoryAnnotation, text}}), FieldsAre(0, 1))
        << text;
    EXPECT_THAT(Of({}, {{kKaiMemoryAnnotation, "10"}, {kKaiDevicesAnnotation, text}}),
                FieldsAre(10, 0))
        << text;
  }
  sdk::MalformedValues malformed("Test");
  PodBuilder pod("p");
  pod.Annotation(kMemoryAnnotation, "lots").Annotation(kKaiMemoryAnnotation, "more");
  Read().DemandOf(pod, &malformed);
  Read().DemandOf(pod, &malformed);
  EXPECT_EQ(malformed.warned(), 2);
}

TEST(GpuMemoryTest, PlacedPodsHaveWhatTheyWereGiven) {
  PodBuilder pod("p");
  pod.Requests({{"nvidia.com/gpu", "2"}});
  EXPECT_THAT(Read().UseOf(pod, std::nullopt, nullptr), FieldsAre(0, 2));
  EXPECT_THAT(Read().UseOf(pod, sdk::GpuSet{0b100}, nullptr), FieldsAre(0, 1));
  pod.Annotation(kMemoryAnnotation, "1");
  EXPECT_THAT(Read().UseOf(pod, sdk::GpuSet{0b100}, nullptr), FieldsAre(1024, 0));
  pod.Annotation(sdk::kHamiDevicesAnnotation, "GPU-a,NVIDIA,3000,30:;GPU-a,NVIDIA,2000,10:;");
  EXPECT_THAT(Read().UseOf(pod, sdk::GpuSet{0b100}, nullptr), FieldsAre(5000, 0));
  sdk::MalformedValues malformed("Test");
  pod.Annotation(sdk::kHamiDevicesAnnotation, "GPU-a,NVIDIA,many,30:;");
  EXPECT_THAT(Read().UseOf(pod, std::nullopt, &malformed), FieldsAre(1024, 0));
  EXPECT_EQ(malformed.warned(), 1);
}

TEST(GpuMemoryTest, HugeAmountsStayFinite) {
  const MemoryDemand demand = Of({{"nvidia.com/gpumem", "9000000000000000000"},
                                  {"aliyun.com/gpu-mem", "9000000000000000000"},
                                  {"nvidia.com/gpu", "9000000000000000000"}});
  EXPECT_LE(demand.mib, 1e13);
  EXPECT_EQ(Of({{"nvidia.com/gpu", "9000000000000000000"}}).whole_gpus, 4096);
}

TEST(GpuMemoryTest, MemoryOfNodes) {
  std::vector<sdk::MalformedLabel> malformed;
  const auto read = [&](const std::map<std::string, std::string>& labels) {
    malformed.clear();
    v1beta1::Node node;
    node.mutable_labels()->insert(labels.begin(), labels.end());
    (*node.mutable_allocatable()->mutable_scalar())["nvidia.com/gpu"] = 2;
    return NodeMemoryOf(sdk::NodeFactsReader().Of(node, &malformed));
  };
  EXPECT_THAT(read({}), FieldsAre(std::nullopt, std::nullopt));
  EXPECT_THAT(read({{"gpu-memory-gb", "80"}, {"nvidia.com/gpu.count", "8"}}),
              FieldsAre(std::optional<double>(81920), std::optional<int64_t>(8)));
  EXPECT_THAT(read({{"nvidia.com/gpu.memory", "81559"}, {"gpu-generation", "b200"}}),
              FieldsAre(std::optional<double>(81920), std::nullopt));
  EXPECT_TRUE(malformed.empty());
  EXPECT_THAT(read({{"gpu-memory-gb", "0"}, {"nvidia.com/gpu.count", "-1"}}),
              FieldsAre(std::nullopt, std::nullopt));
  EXPECT_EQ(malformed.size(), 1u);
}

}  // namespace
}  // namespace outboard::workload_strategy_scorer
