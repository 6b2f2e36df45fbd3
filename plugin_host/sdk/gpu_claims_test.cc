#include "plugin_host/sdk/gpu_claims.h"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"

namespace outboard::sdk::gpu_claims_test {
namespace {

v1beta1::ClusterObject Object(const std::string& resource, const std::string& name,
                              const std::string& json) {
  v1beta1::ClusterObject object;
  v1beta1::GenericObject& generic = *object.mutable_generic_object();
  generic.set_resource(resource);
  generic.set_namespace_(resource == kResourceSlices ? "" : "default");
  generic.set_name(name);
  generic.set_json(json);
  return object;
}

v1beta1::ClusterObject Slice(const std::string& node, int gpus) {
  std::string devices;
  for (int i = 0; i < gpus; ++i) {
    absl::StrAppend(&devices, i == 0 ? "" : ",", R"({"name": "gpu-)", i,
                    R"(", "attributes": {"type": {"string": "gpu"}}})");
  }
  return Object(
      kResourceSlices, node,
      absl::StrCat(R"({"spec": {"driver": "gpu.nvidia.com", "nodeName": ")", node,
                   R"(", "pool": {"name": ")", node, R"("}, "devices": [)", devices, "]}}"));
}

v1beta1::ClusterObject Claim(const std::string& name, const std::string& requests,
                             const std::string& results = "") {
  const std::string status =
      results.empty() ? ""
                      : absl::StrCat(R"(, "status": {"allocation": {"devices": {"results": [)",
                                     results, "]}}}");
  return Object(
      kResourceClaims, name,
      absl::StrCat(R"({"spec": {"devices": {"requests": [)", requests, "]}}", status, "}"));
}

v1beta1::Pod PodWith(const std::vector<std::string>& claims) {
  v1beta1::Pod pod;
  pod.set_namespace_("default");
  pod.set_name("p");
  pod.set_uid("default/p");
  for (const std::string& claim : claims) {
    v1beta1::PodResourceClaim& entry = *pod.add_claims();
    entry.set_name(absl::StrCat("entry-", pod.claims_size()));
    entry.set_claim_name(claim);
  }
  return pod;
}

class GpuClaimsTest : public testing::Test {
 protected:
  void SetUp() override { claims_.Set(Slice("n1", 4)); }
  int64_t GpusOf(const v1beta1::ClusterObject& claim) {
    claims_.Set(claim);
    return claims_.DemandOf(PodWith({claim.generic_object().name()}));
  }
  GpuClaims claims_{{"gpu.nvidia.com"}};
};

TEST_F(GpuClaimsTest, CountsWhatAClaimAsksFor) {
  const struct {
    const char* requests;
    int64_t gpus;
  } cases[] = {
      {R"({"name": "a", "exactly": {"deviceClassName": "gpu.nvidia.com"}})", 1},
      {R"({"name": "a", "exactly": {"deviceClassName": "gpu.nvidia.com", "count": 3,
           "selectors": [{"cel": {"expression": "false"}}]}})",
       3},
      {R"({"name": "a", "exactly": {"deviceClassName": "gpu.nvidia.com", "count": 2}},
          {"name": "b", "exactly": {"deviceClassName": "gpu.nvidia.com"}},
          {"name": "c", "exactly": {"deviceClassName": "nic.example.com", "count": 8}})",
       3},
      // As many as there are: at least one.
      {R"({"name": "a", "exactly": {"deviceClassName": "gpu.nvidia.com",
           "allocationMode": "All"}})",
       1},
      {R"({"name": "a", "exactly": {"deviceClassName": "gpu.nvidia.com", "adminAccess": true}})",
       0},
      {R"({"name": "a", "firstAvailable": [
           {"name": "x", "deviceClassName": "gpu.nvidia.com", "count": 4},
           {"name": "y", "deviceClassName": "gpu.nvidia.com", "count": 2}]})",
       2},
      {R"({"name": "a", "firstAvailable": [
           {"name": "x", "deviceClassName": "gpu.nvidia.com", "count": 4},
           {"name": "y", "deviceClassName": "cpu.example.com"}]})",
       0},
      {R"({"name": "a", "exactly": {"deviceClassName": "gpu.nvidia.com", "count": 1000000}})", 32},
      {R"({"name": "a", "exactly": {"deviceClassName": "gpu.nvidia.com", "count": -4}})", 0},
      {R"({"name": 1, "exactly": [], "firstAvailable": {}}, [], null, "x")", 0}};
  for (const auto& one : cases)
    EXPECT_EQ(GpusOf(Claim("c", one.requests)), one.gpus) << one.requests;
}

TEST_F(GpuClaimsTest, AnAllocatedClaimCountsItsDevices) {
  const std::string all = R"({"name": "a", "exactly": {"deviceClassName": "gpu.nvidia.com",
                              "allocationMode": "All"}},
                             {"name": "n", "exactly": {"deviceClassName": "nic.example.com"}})";
  EXPECT_EQ(GpusOf(Claim("c", all,
                         R"({"request": "a", "driver": "d", "pool": "n1", "device": "gpu-0"},
                            {"request": "a", "driver": "d", "pool": "n1", "device": "gpu-1"},
                            {"request": "a", "driver": "d", "pool": "n1", "device": "gpu-1"},
                            {"request": "n", "driver": "d", "pool": "n1", "device": "nic-0"})")),
            2);
  const std::string either = R"({"name": "a", "firstAvailable": [
      {"name": "x", "deviceClassName": "gpu.nvidia.com", "count": 2},
      {"name": "y", "deviceClassName": "cpu.example.com"}]})";
  EXPECT_EQ(GpusOf(Claim("c", either,
                         R"({"request": "a/x", "driver": "d", "pool": "n1", "device": "gpu-0"},
                            {"request": "a/x", "driver": "d", "pool": "n1", "device": "gpu-1"})")),
            2);
}

TEST_F(GpuClaimsTest, ClaimsMadeFromTemplates) {
  v1beta1::Pod pod = PodWith({});
  v1beta1::PodResourceClaim& entry = *pod.add_claims();
  entry.set_name("gpu");
  entry.set_template_name("t");
  EXPECT_EQ(claims_.DemandOf(pod), 0) << "the template is unknown";
  claims_.Set(Object(kResourceClaimTemplates, "t",
                     R"({"spec": {"spec": {"devices": {"requests": [{"name": "a",
                         "exactly": {"deviceClassName": "gpu.nvidia.com", "count": 2}}]}}}})"));
  EXPECT_EQ(claims_.DemandOf(pod), 2);
  entry.set_made_claim_name("p-gpu-x7");
  EXPECT_EQ(claims_.DemandOf(pod), 2) << "the claim is not seen yet";
  claims_.Set(
      Claim("p-gpu-x7", R"({"name": "a", "exactly": {"deviceClassName": "gpu.nvidia.com"}})"));
  EXPECT_EQ(claims_.DemandOf(pod), 1);
  entry.set_made_claim_name("");
  EXPECT_EQ(claims_.DemandOf(pod), 0) << "the pod needs none";
}

TEST_F(GpuClaimsTest, ASharedClaimCountsOnce) {
  claims_.Set(Claim("c", R"({"name": "a", "exactly": {"deviceClassName": "gpu.nvidia.com",
                             "count": 2}})"));
  claims_.Set(Claim("d", R"({"name": "a", "exactly": {"deviceClassName": "gpu.nvidia.com"}})"));
  PodRecord a, b, c;
  a.pod = PodWith({"c"});
  b.pod = PodWith({"c", "d"});
  const std::vector<PodRecord*> pods = {&a, &b, &c};
  EXPECT_EQ(claims_.UsedBy(pods, nullptr), 3);
  const v1beta1::Pod pending = PodWith({"c"});
  EXPECT_EQ(claims_.UsedBy(pods, &pending), 1) << "its own claim is free for it";
  EXPECT_EQ(claims_.DemandOf(PodWith({"c", "c"})), 2);
  std::set<std::string> counted;
  EXPECT_EQ(claims_.DemandOf(a.pod, &counted), 2);
  EXPECT_EQ(claims_.DemandOf(b.pod, &counted), 1);
}

TEST_F(GpuClaimsTest, AllocatedClaimsNeedNoFreeDevices) {
  const std::string one = R"({"name": "a", "exactly": {"deviceClassName": "gpu.nvidia.com"}})";
  claims_.Set(
      Claim("done", one, R"({"request": "a", "driver": "d", "pool": "n1", "device": "gpu-0"})"));
  claims_.Set(Claim("open", one));
  const v1beta1::Pod pod = PodWith({"done", "open"});
  std::set<std::string> allocated = claims_.AllocatedOf(pod);
  EXPECT_EQ(allocated, std::set<std::string>{"default/done"});
  EXPECT_EQ(claims_.DemandOf(pod, &allocated), 1);
  claims_.Set(Claim("done", one));
  EXPECT_TRUE(claims_.AllocatedOf(pod).empty());
}

TEST_F(GpuClaimsTest, NothingCountsWithoutDevicesOrClaims) {
  EXPECT_FALSE(claims_.active()) << "no claim";
  const v1beta1::ClusterObject claim =
      Claim("c", R"({"name": "a", "exactly": {"deviceClassName": "gpu.nvidia.com"}})");
  EXPECT_TRUE(claims_.Set(claim));
  EXPECT_FALSE(claims_.Set(claim)) << "it has not changed";
  EXPECT_TRUE(claims_.active());
  EXPECT_EQ(claims_.DevicesOn("n1"), 4);
  EXPECT_EQ(claims_.DevicesOn("n2"), 0);
  EXPECT_TRUE(claims_.Remove(Slice("n1", 4)));
  EXPECT_FALSE(claims_.active()) << "no devices";
  EXPECT_EQ(claims_.DemandOf(PodWith({"c"})), 0);
  claims_.Set(Slice("n1", 4));
  EXPECT_TRUE(claims_.Remove(claim));
  EXPECT_FALSE(claims_.active());
}

TEST_F(GpuClaimsTest, ResourcesOfDeviceClasses) {
  v1beta1::ClusterObject object;
  object.mutable_device_class()->set_name("gpu.nvidia.com");
  object.mutable_device_class()->set_extended_resource_name("example.com/gpu");
  EXPECT_TRUE(claims_.Set(object));
  EXPECT_TRUE(claims_.active());
  EXPECT_EQ(claims_.Resources(),
            (std::vector<std::string>{"deviceclass.resource.kubernetes.io/gpu.nvidia.com",
                                      "example.com/gpu"}));
  object.mutable_device_class()->set_name("nic.example.com");
  EXPECT_FALSE(claims_.Set(object));
  EXPECT_EQ(claims_.Resources().size(), 2u);
}

}  // namespace
}  // namespace outboard::sdk::gpu_claims_test
