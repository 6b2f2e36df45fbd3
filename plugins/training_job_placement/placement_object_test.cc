#include "plugins/training_job_placement/placement_object.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <regex>
#include <set>

namespace outboard::training_job_placement {
namespace {

using nlohmann::json;
using ::testing::IsEmpty;

const std::vector<std::string> kLevels = {"fabric", "rack"};

TEST(NameOfJob, IsReadableValidAndUnique) {
  EXPECT_EQ(NameOfJob("llama-70b"), "llama-70b");
  EXPECT_EQ(NameOfJob("Llama_1"), "llama-1.4c6c616d615f31");
  EXPECT_EQ(NameOfJob("a.b"), "a-b.612e62");
  EXPECT_EQ(NameOfJob("..."), "job.2e2e2e");
  EXPECT_EQ(NameOfJob("_x_"), "x.5f785f");
  const std::regex valid("[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*");
  std::mt19937 random(1);
  const std::string alphabet = "aAbB01-_.";
  std::set<std::string> ids, names;
  for (int i = 0; i < 5000; ++i) {
    std::string id;
    const size_t size = 1 + random() % (i % 10 == 0 ? 63 : 4);
    while (id.size() < size) id += alphabet[random() % alphabet.size()];
    const std::string name = NameOfJob(id);
    EXPECT_TRUE(std::regex_match(name, valid) && name.size() <= 253) << id << " " << name;
    ids.insert(id);
    names.insert(name);
  }
  EXPECT_EQ(ids.size(), names.size());
}

TEST(ReadPlacement, TakesWhatIsWellFormed) {
  const PlacementObject object = ReadPlacement(
      json::parse(R"({"spec":{"jobID":"j","domain":{"level":"rack","value":"r"}}})"), kLevels);
  EXPECT_EQ(object.job_id, "j");
  EXPECT_EQ(object.pinned, (Domain{"rack", "r"}));
  EXPECT_FALSE(object.edited);
  for (const char* domain : {R"({"level":"row","value":"r"})", R"({"level":"rack"})", "3", "[]",
                             R"({"level":3,"value":"r"})", R"({"level":"rack","value":""})"}) {
    const PlacementObject faulty = ReadPlacement(
        json::parse(std::string(R"({"spec":{"jobID":"j","domain":)") + domain + "}}"), kLevels);
    EXPECT_FALSE(faulty.pinned.has_value()) << domain;
    EXPECT_NE(faulty.pin_fault, "") << domain;
  }
  EXPECT_EQ(ReadPlacement(json::parse(R"({"spec":{"domain":null}})"), kLevels).pin_fault, "");
}

json StatusOf(const std::vector<PlacedPod>& placed, const json& whole = json::object()) {
  return MakeStatus(whole, ReadPlacement(whole, kLevels), {placed, true}, json(),
                    absl::FromUnixSeconds(0));
}

TEST(MakeStatus, IsReadBack) {
  const json status = StatusOf({{"w0", "u0", "n1", {{"fabric", "f1"}, {"rack", "r1"}}},
                                {"w1", "u1", "n1", {{"fabric", "f1"}, {"rack", "r1"}}},
                                {"w2", "u2", "n2", {{"fabric", "f2"}}}});
  EXPECT_EQ(status["pods"], 3);
  EXPECT_EQ(status["nodes"], 2);
  EXPECT_EQ(status["summary"], "fabric=f1 and 1 more");
  EXPECT_EQ(status["placements"][2]["node"], "n2");
  const PlacementObject object = ReadPlacement({{"status", status}}, kLevels);
  EXPECT_FALSE(object.edited);
  EXPECT_EQ(object.domains,
            (std::map<Domain, int64_t>{
                {{"fabric", "f1"}, 2}, {{"fabric", "f2"}, 1}, {{"rack", "r1"}, 2}}));
  // The API server returns it as text.
  EXPECT_FALSE(ReadPlacement(json::parse(json{{"status", status}}.dump()), kLevels).edited);
}

TEST(MakeStatus, FitsIntoAnEffect) {
  std::vector<PlacedPod> placed;
  for (int i = 0; i < 3000; ++i) {
    PlacedPod& pod = placed.emplace_back();
    pod = {std::string(253, 'p'), std::string(36, 'u'), std::string(253, 'n'), {}};
    for (int level = 0; level < 4; ++level)
      pod.domains.push_back({std::string(60, 'a' + level), std::string(60, 'v')});
  }
  const json status = StatusOf(placed);
  EXPECT_EQ(status["pods"], 3000);
  EXPECT_EQ(status["podsNotListed"], 2800);
  EXPECT_LT(status.dump().size(), 256u << 10);
}

TEST(ReadPlacement, KnowsForeignEdits) {
  const json good = {{"status", StatusOf({{"w0", "u0", "n1", {{"fabric", "f1"}}}})}};
  for (const char* patch : {R"([{"op":"replace","path":"/status/placements/0/node","value":"n9"}])",
                            R"([{"op":"remove","path":"/status/domains/0"}])",
                            R"([{"op":"replace","path":"/status/pods","value":7}])",
                            R"([{"op":"remove","path":"/status/digest"}])",
                            R"([{"op":"replace","path":"/status/digest","value":3}])"}) {
    const PlacementObject object = ReadPlacement(good.patch(json::parse(patch)), kLevels);
    EXPECT_TRUE(object.edited) << patch;
    EXPECT_THAT(object.domains, IsEmpty()) << patch;
  }
}

// Users write objects: no content causes a crash, and MakeStatus always returns a status that the
// plugin recognises as its own.
TEST(ReadPlacement, SurvivesAnything) {
  std::mt19937 random(7);
  const std::vector<json> absurd = {
      nullptr,
      true,
      -1,
      1e300,
      "",
      "x",
      "\xc3\x28",
      json::array(),
      json::object(),
      json::array({1, "a", nullptr}),
      json::array({json{{"level", "rack"}, {"value", "r"}, {"pods", -5}}}),
      json::array({json{{"type", "Active"}, {"status", 3}}}),
      18446744073709551615u,
      json{{"level", 1}},
      std::string(5000, 'z')};
  const auto pick = [&] { return absurd[random() % absurd.size()]; };
  for (int round = 0; round < 3000; ++round) {
    json whole = json::object();
    for (const char* path :
         {"/metadata/annotations", "/metadata/annotations/accelerator.sched.io~1kept-by",
          "/metadata/ownerReferences", "/metadata/labels", "/spec", "/spec/jobID", "/spec/domain",
          "/spec/domain/level", "/spec/domain/value", "/status", "/status/placements",
          "/status/domains", "/status/digest", "/status/conditions", "/status/pods", "/metadata"}) {
      if (random() % 3 != 0) continue;
      try {
        whole[json::json_pointer(path)] = pick();
      } catch (const json::exception&) {  // The path passes through a value that is not an object.
      }
    }
    const PlacementObject object = ReadPlacement(whole, kLevels);
    for (const auto& [domain, pods] : object.domains) EXPECT_GT(pods, 0);
    v1beta1::ControllerReference owner;
    owner.set_uid("u");
    Own({"profile", {owner}}, &whole);
    EXPECT_FALSE(Own({"profile", {owner}}, &whole));
    const json status = StatusOf({}, whole);
    EXPECT_FALSE(ReadPlacement({{"status", status}}, kLevels).edited);
    EXPECT_EQ(StatusOf({}, {{"status", status}, {"spec", whole.value("spec", json())}}), status)
        << whole.dump(-1, ' ', false, json::error_handler_t::replace);
  }
}

}  // namespace
}  // namespace outboard::training_job_placement
