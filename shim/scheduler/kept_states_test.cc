// What plugins keep for a pod from Reserve on.
#include "shim/scheduler/testing/several_hosts.h"

namespace outboard::framework::several_hosts {
namespace {

// PLUGIN=BYTES of the placements that the host received.
std::vector<std::string> StatesSentTo(const ScriptedHost& host) {
  std::vector<std::string> states;
  for (const v1beta1::SyncRequest& request : host.changes) {
    for (const v1beta1::Change& change : request.changes()) {
      for (const v1beta1::PluginState& its : change.pod_placement().states())
        states.push_back(absl::StrCat(its.plugin(), "=", its.state()));
    }
  }
  return states;
}

class KeptStatesTest : public SeveralHostsTest {
 protected:
  KeptStatesTest() {
    for (auto& [name, host] : hosts_) Connect(name, &host);
  }
  void Connect(const std::string& name, ScriptedHost* host) {
    cache::ChangeEncoder::Fields fields;
    fields.host_name = name;
    scheduler_.SetHost(name, host, scheduler_.cluster()->AddHost(fields), now_);
  }
  void Keep(const std::string& host, const std::string& plugin, const std::string& bytes) {
    v1beta1::PluginState* const its = reserved_[host].add_states();
    its->set_plugin(plugin);
    its->set_state(bytes);
  }
};

TEST_F(KeptStatesTest, WhatPluginsKeepComesBackToTheirHostAndToItsSuccessor) {
  Keep("a", "Volumes", "disk 3");
  Keep("b", "Gang", "seat 7");
  AddPod("p");
  ASSERT_TRUE(scheduler_.ScheduleOne(now_));
  EXPECT_THAT(effects_.binds, SizeIs(1));
  EXPECT_THAT(StatesSentTo(hosts_["a"]), ElementsAre("Volumes=disk 3"));
  EXPECT_THAT(StatesSentTo(hosts_["b"]), ElementsAre("Gang=seat 7"));
  reserved_.clear();
  ScriptedHost next;
  Program("a", &next);
  Connect("a", &next);
  AddPod("q");
  ASSERT_TRUE(scheduler_.ScheduleOne(now_));
  EXPECT_THAT(StatesSentTo(next), ElementsAre("Volumes=disk 3")) << "before the bind has ended";
  scheduler_.SetHost("a", nullptr, 0, now_);
}

TEST_F(KeptStatesTest, NothingIsKeptOfAPlacementThatAnotherHostRejects) {
  Keep("a", "Volumes", "disk 3");
  *reserved_["b"].mutable_rejection() = Status("Gang", "no seat");
  AddPod("p");
  ASSERT_TRUE(scheduler_.ScheduleOne(now_));
  EXPECT_THAT(effects_.failures, SizeIs(1));
  reserved_["b"].clear_rejection();
  reserved_["a"].clear_states();
  AddPod("q");
  ASSERT_TRUE(scheduler_.ScheduleOne(now_));
  EXPECT_THAT(effects_.binds, SizeIs(1));
  EXPECT_THAT(StatesSentTo(hosts_["a"]), IsEmpty());
}

TEST_F(KeptStatesTest, AStateOfAnotherHostsPluginIsABadAnswer) {
  Keep("a", "Gang", "seat 7");
  AddPod("p");
  ASSERT_TRUE(scheduler_.ScheduleOne(now_));
  EXPECT_THAT(effects_.binds, IsEmpty());
  EXPECT_THAT(errors_.all, ElementsAre(HasSubstr("answers for \"Gang\"")));
  EXPECT_FALSE(scheduler_.cluster()->IsAssumed("uid-p"));
}

}  // namespace
}  // namespace outboard::framework::several_hosts
