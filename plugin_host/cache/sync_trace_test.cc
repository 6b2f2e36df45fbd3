// The contract's example of a Sync stream gives the cache that it says.
#include <google/protobuf/util/json_util.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "plugin_host/cache/cluster_cache.h"

namespace outboard::host_cache {
namespace {

using nlohmann::json;
using v1beta1::SyncRequest;

json Trace() {
  std::ifstream file("proto/testing/sync_trace.json");
  EXPECT_TRUE(file.is_open());
  return json::parse(file);
}

SyncRequest Message(const json& step) {
  SyncRequest request;
  const auto parsed = google::protobuf::util::JsonStringToMessage(step.dump(), &request);
  EXPECT_TRUE(parsed.ok()) << parsed.ToString();
  return request;
}

// `KIND NAMESPACE/NAME` of an object, by the contract's own names.
std::string NameOf(const v1beta1::ClusterObject& object) {
  const auto* const reflection = object.GetReflection();
  const auto* const field =
      reflection->GetOneofFieldDescriptor(object, object.GetDescriptor()->oneof_decl(0));
  const google::protobuf::Message& of_kind = reflection->GetMessage(object, field);
  const auto text = [&](const char* name) {
    const auto* const part = of_kind.GetDescriptor()->FindFieldByName(name);
    return part == nullptr ? "" : of_kind.GetReflection()->GetString(of_kind, part);
  };
  return absl::StrCat(of_kind.GetDescriptor()->name(), " ", text("namespace"), "/", text("name"));
}

// In the trace's form.
json Contents(const ClusterCache& cache) {
  if (cache.version() == 0) return {{"version", 0}};
  const sdk::ClusterView view = cache.view();
  json nodes = json::object(), pods = json::object();
  std::set<std::string> waiting, namespaces, objects;
  for (const sdk::Slot slot : view.nodes().order)
    nodes[absl::StrCat(slot)] = view.nodes().nodes[slot].name();
  for (const auto& [uid, pod] : view.pods()) {
    json& place = pods[uid];
    if (pod->on_node()) place = pod->slot;
    if (pod->place == sdk::Place::kNominated && pod->slot != sdk::kNoSlot)
      place = {{"nominated", pod->slot}};
    if (pod->place == sdk::Place::kWaiting) waiting.insert(uid);
  }
  for (const auto& [name, unused] : view.namespaces()) namespaces.insert(name);
  view.objects().ForEachObject(
      [&](const v1beta1::ClusterObject& object) { objects.insert(NameOf(object)); });
  return {{"version", cache.version()},  {"nodes", nodes},
          {"order", view.nodes().order}, {"pods", pods},
          {"waiting", waiting},          {"namespaces", namespaces},
          {"objects", objects}};
}

TEST(SyncTraceTest, EachStepGivesItsCache) {
  const json trace = Trace();
  ClusterCache cache;
  for (const json& step : trace["steps"]) {
    ASSERT_EQ(cache.Apply(Message(step["request"]), absl::UnixEpoch()), absl::OkStatus())
        << step["what"];
    EXPECT_EQ(Contents(cache), step["cache"]) << step["what"];
  }
}

TEST(SyncTraceTest, MessagesThatContradictTheCacheAreRefused) {
  const json trace = Trace();
  for (const json& refused : trace["refused"]) {
    ClusterCache cache;
    for (const json& step : trace["steps"]) {
      ASSERT_TRUE(cache.Apply(Message(step["request"]), absl::UnixEpoch()).ok());
      if (cache.version() != 0) break;
    }
    absl::Status last;
    for (const json& request : refused["requests"]) {
      EXPECT_TRUE(last.ok()) << refused["what"];
      last = cache.Apply(Message(request), absl::UnixEpoch());
    }
    EXPECT_FALSE(last.ok()) << refused["what"];
  }
}

}  // namespace
}  // namespace outboard::host_cache
