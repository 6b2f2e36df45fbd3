#include "plugins/gpu_packing/gpu_demand.h"

#include <gtest/gtest.h>

#include <random>

#include "plugin_host/sdk/testing/builders.h"

namespace outboard::gpu_packing {
namespace {

using sdk::testing::PodBuilder;

PodGpus DemandOf(const v1beta1::Pod& pod, int64_t* warned = nullptr) {
  sdk::ArgsReader args("{}");
  const GpuDemandReader reader = GpuDemandReader::Read(args.root());
  sdk::MalformedValues malformed("test");
  const PodGpus demand = reader.Demand(pod, sdk::ComputePodRequests(pod), &malformed);
  if (warned != nullptr) *warned = malformed.warned();
  return demand;
}

TEST(GpuDemandTest, Fractions) {
  EXPECT_EQ(ParseFraction("0.5"), 500);
  EXPECT_EQ(ParseFraction("0.29"), 290);
  EXPECT_EQ(ParseFraction("0.001"), 1);
  EXPECT_EQ(ParseFraction("0.0001"), 1) << "rounded up";
  EXPECT_EQ(ParseFraction("0.9991"), 1000);
  EXPECT_EQ(ParseFraction("1"), 1000);
  for (const char* text : {"", "0", "0.0", "1.001", "-0.5", "nan", "inf", "0x1", " 0.5", "0.5 ",
                           "half", "½", "1e400", "0,5"}) {
    EXPECT_EQ(ParseFraction(text), std::nullopt) << text;
  }
  for (int32_t milli = 1; milli <= 1000; ++milli)
    EXPECT_EQ(ParseFraction(std::to_string(milli / 1000.0)), milli);
}

TEST(GpuDemandTest, AllocatedDevices) {
  using Names = std::vector<std::string>;
  EXPECT_EQ(ParseAllocatedDevices("GPU-1,NVIDIA,3000,30:;"), Names{"GPU-1"});
  EXPECT_EQ(ParseAllocatedDevices("GPU-1,NVIDIA,1,2:GPU-2,NVIDIA,1,2:;"),
            (Names{"GPU-1", "GPU-2"}));
  EXPECT_EQ(ParseAllocatedDevices("GPU-1,NVIDIA,1,2:;GPU-1,NVIDIA,1,2:;"), Names{"GPU-1"});
  for (const char* text : {"", ";", ":;", "GPU-1", "GPU-1,NVIDIA,1", ",NVIDIA,1,2:;"})
    EXPECT_EQ(ParseAllocatedDevices(text), std::nullopt) << text;
  EXPECT_EQ(ParseAllocatedDevices(std::string(20000, 'x')), std::nullopt);
  std::string many;
  for (int i = 0; i < 129; ++i) many += "G" + std::to_string(i) + ",,,:";
  EXPECT_EQ(ParseAllocatedDevices(many), std::nullopt);
}

TEST(GpuDemandTest, ResourcesAndAnnotations) {
  EXPECT_EQ(DemandOf(PodBuilder("p").Requests({{"cpu", "1"}})).gpus, 0);
  PodGpus gpus = DemandOf(PodBuilder("p").Requests({{"nvidia.com/gpu", "2"}}));
  EXPECT_EQ(gpus.gpus, 2);
  EXPECT_EQ(gpus.milli, 1000);
  EXPECT_FALSE(gpus.annotated);
  gpus = DemandOf(PodBuilder("p").Annotation("gpu-fraction", "0.25"));
  EXPECT_EQ(gpus.gpus, 1);
  EXPECT_EQ(gpus.milli, 250);
  EXPECT_TRUE(gpus.annotated);
  gpus = DemandOf(
      PodBuilder("p").Annotation("gpu-memory", "4096").Annotation("gpu-fraction-num-devices", "2"));
  EXPECT_EQ(gpus.gpus, 2);
  EXPECT_EQ(gpus.MilliOn(16384), 250);
  EXPECT_EQ(gpus.MilliOn(16383), 251) << "rounded up";
  EXPECT_EQ(gpus.MilliOn(4096), 1000);
  EXPECT_EQ(gpus.MilliOn(4095), 1001) << "too small";
  EXPECT_EQ(gpus.MilliOn(0), 1000) << "unknown memory: the whole GPU";
  gpus = DemandOf(PodBuilder("p").Requests(
      {{"nvidia.com/gpu", "2"}, {"nvidia.com/gpumem", "4096"}, {"nvidia.com/gpucores", "30"}}));
  EXPECT_EQ(gpus.gpus, 2);
  EXPECT_EQ(gpus.MilliOn(16384), 300) << "the larger of memory and cores";
  EXPECT_EQ(DemandOf(PodBuilder("p").Requests({{"nvidia.com/gpumem-percentage", "40"}})).milli,
            400);
  EXPECT_EQ(DemandOf(PodBuilder("p").Requests({{"nvidia.com/gpu", "1000000000000"}})).gpus,
            kMaxGpus + 1);
}

TEST(GpuDemandTest, WhatCannotBeReadIsAbsent) {
  int64_t warned = 0;
  EXPECT_EQ(DemandOf(PodBuilder("p").Annotation("gpu-fraction", "2"), &warned).gpus, 0);
  EXPECT_EQ(warned, 1);
  EXPECT_EQ(DemandOf(PodBuilder("p").Annotation("gpu-memory", "0"), &warned).gpus, 0);
  EXPECT_EQ(warned, 1);
  EXPECT_EQ(DemandOf(PodBuilder("p")
                         .Annotation("gpu-fraction", "0.5")
                         .Annotation("gpu-fraction-num-devices", "129"),
                     &warned)
                .gpus,
            1);
  EXPECT_EQ(warned, 1);
}

// No annotation makes a demand outside of its bounds.
TEST(GpuDemandTest, AbsurdAnnotations) {
  std::mt19937 random(3);
  const std::string alphabet = "0123456789.eE+-,:;GxGPU \xc3\xa9\n";
  for (int round = 0; round < 20000; ++round) {
    std::string texts[4];
    for (std::string& text : texts) {
      for (size_t n = random() % 12; n > 0; --n) text += alphabet[random() % alphabet.size()];
    }
    const PodGpus gpus = DemandOf(PodBuilder("p")
                                      .Annotation("gpu-fraction", texts[0])
                                      .Annotation("gpu-memory", texts[1])
                                      .Annotation("gpu-fraction-num-devices", texts[2]));
    ASSERT_TRUE(gpus.gpus >= 0 && gpus.gpus <= kMaxGpus);
    ASSERT_TRUE(gpus.gpus == 0 || gpus.milli > 0 || gpus.memory_mib > 0);
    for (const int64_t memory : {int64_t{0}, int64_t{1}, int64_t{16384}, int64_t{1} << 40}) {
      const int32_t milli = gpus.MilliOn(memory);
      ASSERT_TRUE(milli >= (gpus.gpus > 0 ? 1 : 0) && milli <= kWholeGpu + 1);
    }
    const auto devices = ParseAllocatedDevices(texts[3]);
    ASSERT_TRUE(!devices || (!devices->empty() && devices->size() <= 128));
  }
}

}  // namespace
}  // namespace outboard::gpu_packing
