#include "integration/bench/scheduling_thread.h"

#include <algorithm>
#include <deque>
#include <optional>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "cli/simulate/custom_objects.h"
#include "shim/clock.h"
#include "shim/hosts/host_loop.h"
#include "shim/hosts/host_registry.h"
#include "shim/hosts/plans.h"
#include "shim/scheduler/scheduler.h"

namespace outboard::bench {
namespace {

// Binds succeed; no other action is expected.
class BindAtOnce final : public scheduler::ClusterActions {
 public:
  void Bind(const scheduler::BindOrder& order, absl::Time) override { orders_.push_back(order); }
  void Evict(const scheduler::EvictOrder&, absl::Time) override {}
  void RecordPreempted(const kube::PodObject&, const std::string&, const std::string&,
                       const std::string&, bool, absl::Time) override {}
  void Write(const scheduler::EffectOrder& order, absl::Time) override { writes_.push_back(order); }
  void RecordScheduled(const kube::PodObject&, const std::string&, const std::string&,
                       absl::Time) override {}
  void RecordFailed(const kube::PodObject& pod, const std::string&, const std::string& message,
                    absl::Time) override {
    failure = absl::StrCat(pod.key(), ": ", message);
  }
  void PatchStatus(const kube::PodObject&, const std::optional<scheduler::PodScheduledFalse>&,
                   const std::optional<std::string>&, absl::Time) override {}
  void SetObjects(const std::vector<kube::ClusterObjectPtr>& objects) {
    objects_ = std::make_unique<simulate::CustomObjects>(objects);
  }
  bool has_orders() const { return !writes_.empty() || !orders_.empty(); }
  void CarryOut(scheduler::Scheduler* scheduler, absl::Time now) {
    while (!writes_.empty() && objects_ != nullptr) {
      const scheduler::EffectOrder order = std::move(writes_.front());
      writes_.pop_front();
      const auto outcome = objects_->Write(order.effect);
      scheduler::EffectEnd end = {outcome.status(), ""};
      if (outcome.ok()) end = {absl::OkStatus(), outcome->version, outcome->uid, outcome->written};
      order.ordered_by->OnEffectEnded(order, end, now);
    }
    while (!orders_.empty()) {
      const scheduler::BindOrder order = std::move(orders_.front());
      orders_.pop_front();
      auto bound = std::make_shared<kube::PodObject>(*order.pod);
      bound->pod.set_node_name(order.node_name);
      bound->resource_version = std::string("2");  // GCC 12 warns of an assigned literal here
      order.ordered_by->OnBindEnded(order.attempt_id, scheduler::BindEnd::kBound, "", now);
      scheduler->events()->OnPodUpsert(bound, now);
      ++bound_count;
    }
  }
  int bound_count = 0;
  std::string failure;

 private:
  std::deque<scheduler::BindOrder> orders_;
  std::deque<scheduler::EffectOrder> writes_;
  std::unique_ptr<simulate::CustomObjects> objects_;
};

// How long filter and score of the last attempt took.
class CycleTime final : public scheduler::Observer {
 public:
  void OnAlgorithm(const kube::PodObject&, const framework::AlgorithmProfile&,
                   const framework::AlgorithmResult&, const v1beta1::PlanResponse&,
                   absl::Duration took) override {
    micros = absl::ToDoubleMicroseconds(took);
    sum += micros;
    ++count;
  }
  double micros = 0;
  double sum = 0;
  int count = 0;
};

std::shared_ptr<const config::Config> WithHosts(config::Config config,
                                                const std::vector<std::string>& addresses) {
  config.shim.hosts.assign(addresses.size(), config::HostSpec());
  for (size_t i = 0; i < addresses.size(); ++i) {
    config.shim.hosts[i].name = absl::StrCat("host-", i);
    config.shim.hosts[i].address = addresses[i];
  }
  config.shim.deadlines.cycle = absl::Seconds(10);
  return std::make_shared<const config::Config>(std::move(config));
}

scheduler::SchedulerOptions OptionsOf(const config::Config& config) {
  scheduler::SchedulerOptions options;
  options.cycle_deadline = config.shim.deadlines.cycle;
  options.custom_resources = hosts::AllowedResources(config.shim.custom_resources);
  return options;
}

}  // namespace

class SchedulingThread::Impl {
 public:
  Impl(const config::Config& config, const std::vector<std::string>& addresses)
      : config_(WithHosts(config, addresses)),
        scheduler_(OptionsOf(*config_), queue::QueueOptions(), &effects_, &time_, nullptr,
                   SteadyNow()),
        hosts_(config_, "bench", &loop_, &scheduler_) {
    std::set<std::string> names;
    for (const config::ProfileSpec& profile : config_->scheduler.profiles)
      names.insert(profile.scheduler_name);
    scheduler_.SetProfileNames({names.begin(), names.end()});
  }

  absl::Status Start() {
    for (const config::HostSpec& spec : config_->shim.hosts) {
      absl::StatusOr<hosts::HostConnection> host;
      const absl::Time give_up = SteadyNow() + absl::Seconds(30);
      do {
        host = hosts::Handshake(hosts::NewHostChannel(spec.address), absl::Seconds(1));
      } while (!host.ok() && SteadyNow() < give_up);
      if (!host.ok()) return host.status();
      absl::Status taken = hosts_.OnHandshake({spec.name, spec.address, std::nullopt, 0},
                                              *std::move(host), SteadyNow());
      if (!taken.ok()) return taken;
    }
    const absl::Time ready_by = SteadyNow() + absl::Seconds(60);
    while (!hosts_.AllReady()) {
      if (SteadyNow() > ready_by) return absl::UnavailableError("not all hosts are ready in time");
      loop_.Wait(SteadyNow() + absl::Milliseconds(50));
      hosts_.Tick(SteadyNow());
    }
    return absl::OkStatus();
  }

  absl::StatusOr<double> Schedule(const kube::PodPtr& pod) {
    const absl::Time now = SteadyNow();
    const int bound_before = effects_.bound_count;
    scheduler_.events()->OnPodUpsert(pod, now);
    scheduler_.ScheduleOne(now);
    do {  // After the effects, PreBind runs at the next tick.
      effects_.CarryOut(&scheduler_, now);
      loop_.RunReady();
      scheduler_.Tick(now);
      hosts_.Tick(now);
    } while (effects_.has_orders());
    if (!effects_.failure.empty()) return absl::InternalError(effects_.failure);
    if (effects_.bound_count != bound_before + 1)
      return absl::InternalError(absl::StrCat(pod->key(), " was not bound"));
    return time_.micros;
  }

  absl::StatusOr<Took> ScheduleAll(int pods) {
    const int wanted = effects_.bound_count + pods;
    time_.sum = 0;
    time_.count = 0;
    const absl::Time began = SteadyNow();
    while (effects_.bound_count < wanted) {
      const absl::Time now = SteadyNow();
      const bool tried = scheduler_.ScheduleOne(now);
      effects_.CarryOut(&scheduler_, now);
      loop_.RunReady();
      scheduler_.Tick(now);
      hosts_.Tick(now);
      if (!effects_.failure.empty()) return absl::InternalError(effects_.failure);
      if (!tried && scheduler_.waiting_pods() == 0 && effects_.bound_count < wanted)
        return absl::InternalError("pods were not bound, and the queue has no pod left to try");
    }
    return Took{absl::ToDoubleSeconds(SteadyNow() - began), time_.sum, time_.count};
  }

  scheduler::Scheduler& scheduler() { return scheduler_; }
  BindAtOnce& effects() { return effects_; }

 private:
  const std::shared_ptr<const config::Config> config_;
  hosts::HostLoop loop_;
  BindAtOnce effects_;
  CycleTime time_;
  scheduler::Scheduler scheduler_;
  hosts::HostRegistry hosts_;
};

SchedulingThread::SchedulingThread(const config::Config& config,
                                   const std::vector<std::string>& addresses)
    : impl_(std::make_unique<Impl>(config, addresses)) {}
SchedulingThread::~SchedulingThread() = default;

void SchedulingThread::AddNode(const kube::NodePtr& node) {
  impl_->scheduler().events()->OnNodeUpsert(node, SteadyNow());
}
void SchedulingThread::AddPod(const kube::PodPtr& pod) {
  impl_->scheduler().events()->OnPodUpsert(pod, SteadyNow());
}
void SchedulingThread::RemovePod(const std::string& uid) {
  impl_->scheduler().events()->OnPodDelete(uid, SteadyNow());
}
void SchedulingThread::AddObject(const kube::ClusterObjectPtr& object) {
  impl_->scheduler().events()->OnObjectUpsert(object, SteadyNow());
}
void SchedulingThread::AddOwnObjects(const std::vector<kube::ClusterObjectPtr>& objects) {
  for (const kube::ClusterObjectPtr& object : objects) AddObject(object);
  impl_->effects().SetObjects(objects);
}
absl::StatusOr<SchedulingThread::Took> SchedulingThread::ScheduleAll(int pods) {
  return impl_->ScheduleAll(pods);
}
absl::Status SchedulingThread::Start() { return impl_->Start(); }
absl::StatusOr<double> SchedulingThread::Schedule(const kube::PodPtr& pod) {
  return impl_->Schedule(pod);
}

double Quantile(std::vector<double> values, double q) {
  std::sort(values.begin(), values.end());
  return values[static_cast<size_t>(q * static_cast<double>(values.size() - 1))];
}

}  // namespace outboard::bench
