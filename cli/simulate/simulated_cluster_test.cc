#include "cli/simulate/simulated_cluster.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

namespace outboard::simulate {
namespace {

class EndedEffects final : public scheduler::EffectOutcomeHandler {
 public:
  void OnEffectEnded(const scheduler::EffectOrder& order, const scheduler::EffectEnd& end,
                     absl::Time) override {
    EXPECT_TRUE(end.status.ok()) << end.status;
    keys.push_back(order.effect.key());
  }
  std::vector<std::string> keys;
};

TEST(SimulatedCluster, EffectsOnThePodSucceed) {
  SimulatedCluster cluster({});
  EndedEffects ended;
  scheduler::EffectOrder order;
  order.ordered_by = &ended;
  order.attempt_id = 1;
  order.pod = std::make_shared<kube::PodObject>();
  order.effect.set_key("patch");
  order.effect.mutable_patch_pod();
  cluster.Write(order, absl::UnixEpoch());
  order.effect.set_key("condition");
  order.effect.mutable_set_pod_condition();
  cluster.Write(order, absl::UnixEpoch());
  order.effect.set_key("event");
  order.effect.mutable_record_event();
  cluster.Write(order, absl::UnixEpoch());
  // Nothing happens that the scheduler hears of.
  cluster.CarryOut(/*scheduler=*/nullptr, absl::UnixEpoch());
  EXPECT_THAT(ended.keys, ::testing::ElementsAre("patch", "condition", "event"));
}

}  // namespace
}  // namespace outboard::simulate
