// Storms of preemptions: random full clusters on which pods and gangs of random priorities arrive,
// through the shim's own queue and cycle and a real host, on virtual time. Evictions, binds and
// watch events are delayed, and some fail; evicted pods come back. Each storm must come to rest,
// and is checked by code that shares nothing with the plugins.
#include <glog/logging.h>

#include <algorithm>
#include <cstdio>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "cli/simulate/host_process.h"
#include "cli/simulate/simulated_scheduler.h"
#include "integration/simulator/storm_cluster.h"
#include "integration/simulator/storm_figures.h"
#include "shim/clock.h"
#include "shim/config/config.h"

namespace outboard::storms {
namespace {

constexpr absl::Duration kMinute = absl::Minutes(1);
// Two flushes of the queue: a pod still unschedulable then stays unschedulable.
constexpr absl::Duration kRest = absl::Minutes(11);
// From the last external event.
constexpr absl::Duration kPatience = absl::Hours(2);
constexpr int64_t kNodeCpus = 64;

struct PreemptionRecord {
  std::string preemptor;  // uid
  std::string node;
  absl::Time when;
  std::set<std::string> victims;
  uint64_t id = 0;  // 0: no eviction needed, or not yet known
  bool failed = false;
};

struct Nomination {
  std::string uid;
  std::string node;
  absl::Time when;
};

class Storm final : private scheduler::Observer {
 public:
  // Seed 0 is a fixed scenario: a pod waits for a checkpoint.
  Storm(uint64_t seed, Plugin plugin, const config::Config& config, const std::string& address)
      : dice_(seed),
        plugin_(plugin),
        is_story_(seed == 0),
        rough_(!is_story_ && dice_.Percent(50)),
        cluster_(seed ^ 0x9E3779B97F4A7C15, rough_),
        begin_(absl::FromUnixSeconds(1767614400)),
        now_(begin_),
        stage_(config, Patient(simulate::SimulatedOptions(config)), {}, this, begin_, &cluster_),
        address_(address) {
    cluster_.SetScheduler(&stage_.scheduler());
    cluster_.callbacks = {[this](const StormPod& pod, const std::string& node, absl::Time now) {
                            OnBound(pod, node, now);
                          },
                          [this](const std::string& uid) { refused_.insert(uid); },
                          [this](uint64_t id, const std::string&) {
                            ++figures_.evictions;
                            if (!preemptions_.empty() && preemptions_.back().id == 0)
                              preemptions_.back().id = id;
                          },
                          [this](uint64_t id, const std::string& victim, scheduler::EvictEnd end) {
                            Say("eviction of ", victim,
                                end == scheduler::EvictEnd::kFailed ? " failed" : " began");
                            if (end == scheduler::EvictEnd::kFailed) OnEvictionFailed(id);
                          },
                          [this](const std::string& uid, const std::string& node) {
                            nominations_.push_back({uid, node, now_});
                            Say(uid, " is nominated to ", node);
                          },
                          [this](const std::string& uid) { promised_.erase(uid); },
                          [this](const std::string& what) { Wrong(what); }};
  }

  // Returns the faults; empty: none.
  std::vector<std::string> Play() {
    MakeScene();
    if (absl::Status open = stage_.Open(scene_, {address_}, begin_); !open.ok())
      return {absl::StrCat("the host: ", open.message())};
    MakeEvents();
    while (faults_.empty() && !Rests()) {
      cluster_.Run(now_);
      if (absl::Status settled = Settle(); !settled.ok()) {
        Wrong(std::string(settled.message()));
        break;
      }
      if (now_ - last_outside_ > kPatience) {
        Wrong(absl::StrCat("does not come to rest: ", figures_.evictions, " evictions"));
        break;
      }
      const absl::Time next = std::min(cluster_.Next(), NextWakeup());
      now_ = next > now_ ? next : now_ + absl::Milliseconds(1);
    }
    if (faults_.empty()) CheckEnd();
    figures_.pods = static_cast<int64_t>(cluster_.pods().size());
    figures_.minutes = std::max(0.0, absl::ToDoubleMinutes(last_change_ - last_outside_));
    figures_.failed = cluster_.failed_evictions + cluster_.failed_binds;
    return faults_;
  }
  const Figures& figures() const { return figures_; }
  const std::vector<std::string>& story() const { return story_; }

 private:
  struct Room {
    int64_t gpus = 0, cpus = kNodeCpus;
  };

  template <typename... Parts>
  void Say(const Parts&... parts) {
    story_.push_back(absl::StrCat(absl::ToDoubleSeconds(now_ - begin_), " s: ", parts...));
  }
  template <typename... Parts>
  void Wrong(const Parts&... parts) {
    faults_.push_back(absl::StrCat(absl::ToDoubleSeconds(now_ - begin_), " s: ", parts...));
  }

  // --- The storm

  StormPod NewPod(const std::string& name) { return RandomPod(name, node_gpus_, begin_, &dice_); }
  StormPod InGang(StormPod pod, int gang, int min) {
    pod.gang = gang;
    pod.gang_min = min;
    pod.gang_is_job = gang % 2 == 0;
    return pod;
  }

  static bool Takes(const Room& room, const StormPod& pod) {
    return pod.gpus <= room.gpus && pod.cpus <= room.cpus;
  }
  static void Take(const StormPod& pod, int64_t sign, Room* room) {
    room->gpus -= sign * pod.gpus;
    room->cpus -= sign * pod.cpus;
  }

  // Creates nodes and running pods: mostly until no GPU is left.
  void MakeScene() {
    const int64_t nodes = dice_.Between(1, 5);
    node_gpus_ = dice_.OneOf<int64_t>({4, 8});
    for (int64_t i = 0; i < nodes; ++i) {
      auto node = std::make_shared<kube::NodeObject>();
      const std::string name = absl::StrCat("n", i);
      node->node.set_uid(name);
      node->node.set_name(name);
      v1beta1::ResourceList* allocatable = node->node.mutable_allocatable();
      allocatable->set_cpu_millis(kNodeCpus * 1000);
      allocatable->set_memory_bytes(int64_t{512} << 30);
      allocatable->set_pods(110);
      (*allocatable->mutable_scalar())["nvidia.com/gpu"] = node_gpus_;
      node->resource_version = "1";
      scene_.nodes.push_back(node);
      rooms_[name] = {node_gpus_, kNodeCpus};
    }
    auto ns = std::make_shared<kube::NamespaceObject>();
    ns->ns.set_name("default");
    ns->object_uid = "default";
    ns->resource_version = "1";
    scene_.namespaces.push_back(ns);
  }

  // The first pods of the storm already run. The scheduler learns of all running pods within the
  // first second, and counts all room as taken until then.
  void MakeEvents() {
    if (is_story_) return MakeCheckpointStory();
    // DefaultPreemption does not know gangs: it would make room for members of gangs that never
    // complete.
    const bool gangs = plugin_ == Plugin::kCostAware;
    MakeGangs(gangs ? dice_.Between(0, 2) : 0, /*running=*/true);
    for (auto& [node, room] : rooms_) {
      for (int tries = 0; tries < 20 && room.gpus > 0; ++tries)
        Place(NewPod(absl::StrCat("r", ++last_pod_)), node);
    }
    const int64_t arrivals = dice_.Between(3, 15);
    for (int64_t i = 0; i < arrivals; ++i) {
      const StormPod pod = NewPod(absl::StrCat("p", ++last_pod_));
      Later(dice_.Between(2000, 180000), [this, pod](absl::Time now) {
        cluster_.Create(pod, "", now);
        Say(pod.name, " of priority ", pod.priority, " arrives, ", pod.gpus, " GPUs");
      });
    }
    MakeGangs(gangs ? dice_.Between(0, 2) : 0, /*running=*/false);
    for (int64_t i = dice_.Below(6); i > 0; --i) {
      Later(dice_.Between(2000, 600000), [this](absl::Time now) {
        if (const std::string uid = AnyPod(); !uid.empty()) cluster_.WriteCheckpoint(uid, now);
      });
    }
    for (int64_t i = rough_ ? dice_.Below(5) : 0; i > 0; --i) {
      Later(dice_.Between(2000, 300000), [this](absl::Time now) {
        if (const std::string uid = AnyPod(); !uid.empty()) {
          Say(uid, " is deleted");
          cluster_.Delete(uid, now);
        }
      });
    }
  }
  // The pod is retried long before the queue would retry it by itself.
  void MakeCheckpointStory() {
    StormPod pod;
    pod.name = "trains";
    pod.work = Work::kTraining;
    pod.gpus = node_gpus_;
    pod.cpus = 1;
    pod.checkpointing = true;
    pod.checkpoint = begin_ - absl::Hours(1);
    for (auto& [node, room] : rooms_) {
      pod.name += node;
      Place(pod, node);
    }
    pod.work = Work::kOther;
    pod.name = "urgent";
    pod.priority = 500;
    Later(2000, [this, pod](absl::Time now) { cluster_.Create(pod, "", now); });
    Later(90000, [this](absl::Time now) { cluster_.WriteCheckpoint(AnyPod("trains"), now); });
  }
  void Later(int64_t millis, StormCluster::Action action) {
    const absl::Time when = begin_ + absl::Milliseconds(millis);
    last_outside_ = std::max(last_outside_, when);
    cluster_.At(when, std::move(action));
  }
  std::string AnyPod(absl::string_view prefix = "") {
    std::vector<std::string> there;
    for (const auto& [uid, pod] : cluster_.pods()) {
      if (!pod.gone && absl::StartsWith(uid, prefix)) there.push_back(uid);
    }
    return there.empty() ? "" : dice_.OneOf(there);
  }
  bool Place(const StormPod& pod, const std::string& node) {
    Room& room = rooms_[node];
    if (!Takes(room, pod)) return false;
    Take(pod, 1, &room);
    Say(pod.name, " of priority ", pod.priority, " runs on ", node, ", ", pod.gpus, " GPUs",
        pod.gang >= 0 ? absl::StrCat(", of gang ", pod.gang, " of ", pod.gang_min) : "");
    cluster_.Create(pod, node, begin_);
    return true;
  }
  void MakeGangs(int64_t count, bool running) {
    for (; count > 0; --count) {
      const int gang = last_gang_++;
      const int64_t members = dice_.Between(2, 6);
      const int min = static_cast<int>(std::max<int64_t>(1, members - dice_.Below(3)));
      StormPod pod = NewPod("");
      pod.gpus = std::min<int64_t>(pod.gpus, 4);
      int placed = 0;
      for (int64_t m = 0; m < members; ++m) {
        pod.name = absl::StrCat("g", gang, "-", m);
        const StormPod member = InGang(pod, gang, min);
        if (!running) {
          Later(dice_.Between(2000, 120000), [this, member](absl::Time now) {
            cluster_.Create(member, "", now);
            Say(member.name, " of priority ", member.priority, " arrives, ", member.gpus,
                " GPUs, of a gang of ", member.gang_min);
          });
          continue;
        }
        const std::string node =
            absl::StrCat("n", dice_.Below(static_cast<int64_t>(rooms_.size())));
        placed += Place(member, node) ? 1 : 0;
      }
    }
  }

  // --- The simulation

  absl::Status PollHosts() {
    scheduler::Scheduler& scheduler = stage_.scheduler();
    scheduler.AdvanceHostClocks(now_);
    const absl::Time deadline = SteadyNow() + absl::Seconds(30);
    while (!scheduler.HostClocksAdvanced() && !stage_.host_lost()) {
      if (SteadyNow() >= deadline)
        return absl::UnavailableError("the host does not acknowledge the time");
      stage_.loop().Wait(deadline);
      stage_.hosts().Tick(now_);
    }
    return stage_.host_lost() ? absl::UnavailableError("the host is lost") : absl::OkStatus();
  }
  // Runs attempts until none is left at this instant; a pod that fails twice waits a moment.
  absl::Status Settle() {
    tried_.clear();
    tried_again_ = false;
    bool worked = true;
    while (worked && faults_.empty()) {
      if (absl::Status polled = PollHosts(); !polled.ok()) return polled;
      stage_.scheduler().Tick(now_);
      worked = false;
      while (!tried_again_ && stage_.scheduler().ScheduleOne(now_)) worked = true;
    }
    return absl::OkStatus();
  }
  absl::Time NextWakeup() {
    scheduler::Scheduler& scheduler = stage_.scheduler();
    if (scheduler.queue().HasNext()) return now_;
    // Plugins get the time every minute.
    const absl::Time tick =
        absl::UnixEpoch() + absl::Floor(now_ - absl::UnixEpoch(), kMinute) + kMinute;
    return std::min(scheduler.NextWakeup(now_), tick);
  }
  bool Rests() const {
    return cluster_.Next() == absl::InfiniteFuture() &&
           now_ - std::max(last_change_, last_outside_) > kRest;
  }

  void OnAttemptEnd(const kube::PodObject& pod, const std::string&, scheduler::AttemptResult result,
                    const std::string&, const std::string& message, absl::Duration) override {
    ++figures_.attempts;
    if (result == scheduler::AttemptResult::kScheduled) return;
    if (result == scheduler::AttemptResult::kHostUnavailable)
      Wrong("an attempt got no answer: ", message);
    if (!tried_.insert(pod.uid()).second) tried_again_ = true;
    if (last_words_[pod.uid()] != message) Say(pod.uid(), " waits: ", message);
    last_words_[pod.uid()] = message;
  }
  void OnProtocolError(const std::string&, const std::string&,
                       const absl::Status& status) override {
    Wrong("an invalid answer: ", status.message());
  }

  // --- The checks

  bool Running(const std::string& uid) const {
    const StormPod& pod = cluster_.pod(uid);
    const kube::PodPtr seen = const_cast<Storm*>(this)->stage_.scheduler().cluster()->FindPod(uid);
    return seen != nullptr && seen->pod.deletion_unix_seconds() == 0 && pod.object != nullptr &&
           !const_cast<Storm*>(this)->stage_.scheduler().cluster()->NodeOf(uid).empty();
  }
  // Why the pod must not be evicted for the other; empty: it may be.
  std::string Forbidden(const kube::PodObject& victim, const StormPod& truth,
                        const StormPod& preemptor) const {
    if (truth.priority >= preemptor.priority) return "its priority is not lower";
    if (plugin_ != Plugin::kCostAware || truth.work != Work::kTraining) return "";
    if (truth.priority >= 1000) return "it is training of priority 1000";
    if (!truth.checkpointing) return "it writes no checkpoints";
    // As the scheduler knows it.
    const auto written = victim.pod.annotations().find("outboard/last-checkpoint-time");
    absl::Time checkpoint;
    std::string error;
    if (written == victim.pod.annotations().end() ||
        !absl::ParseTime("%Y-%m-%dT%H:%M:%SZ", written->second, &checkpoint, &error))
      return "it has no checkpoint";
    if (now_ - checkpoint > absl::Minutes(30)) return "its checkpoint is old";
    if (truth.end && absl::AbsDuration(*truth.end - now_) <= absl::Hours(2))
      return "it is near its end";
    return "";
  }

  void OnPreemption(const kube::PodObject& pod, const std::string& node,
                    const std::vector<kube::PodPtr>& victims, size_t to_evict) override {
    const StormPod& preemptor = cluster_.pod(pod.uid());
    PreemptionRecord record = {pod.uid(), node, now_, {}, 0, false};
    std::set<int> gangs;
    std::vector<std::string> names;
    for (const kube::PodPtr& victim : victims) {
      const StormPod& truth = cluster_.pod(victim->uid());
      record.victims.insert(victim->uid());
      names.push_back(victim->uid());
      if (const std::string why = Forbidden(*victim, truth, preemptor); !why.empty())
        Wrong(victim->uid(), " is evicted for ", pod.uid(), ", but ", why);
      if (truth.gang >= 0 && truth.gang == preemptor.gang) Wrong(pod.uid(), " evicts its own gang");
      if (truth.gang >= 0 && victim->pod.deletion_unix_seconds() == 0) gangs.insert(truth.gang);
      figures_.companions += stage_.scheduler().cluster()->NodeOf(victim->uid()) == node ? 0 : 1;
    }
    Say(pod.uid(), " evicts ", absl::StrJoin(names, ", "), " on ", node);
    if (preemptor.never_preempts) Wrong(pod.uid(), " may not preempt");
    if (plugin_ == Plugin::kCostAware) {
      for (const int gang : gangs) CheckGang(gang, record);
    }
    if (to_evict > 0) ++figures_.preemptions;
    if (++preempted_for_[pod.uid()] > 1) ++figures_.again;
    for (const std::string& uid : record.victims) promised_.insert(uid);
    preemptions_.push_back(std::move(record));
    last_change_ = now_;
  }
  void CheckGang(int gang, const PreemptionRecord& record) {
    int64_t stay = 0;
    int min = 1;
    for (const auto& [uid, pod] : cluster_.pods()) {
      if (pod.gang != gang || !Running(uid)) continue;
      min = pod.gang_min;
      stay += !record.victims.contains(uid) && !promised_.contains(uid) ? 1 : 0;
    }
    if (stay > 0 && stay < min)
      Wrong("gang ", gang, " is left with ", stay, " of ", min, " members for ", record.preemptor);
    if (stay == 0 && min > 1) ++figures_.whole_gangs;
  }
  // The other victims of that preemption may stay.
  void OnEvictionFailed(uint64_t id) {
    for (PreemptionRecord& record : preemptions_) {
      if (record.id != id) continue;
      record.failed = true;
      for (const std::string& uid : record.victims) {
        const StormPod& pod = cluster_.pod(uid);
        if (!pod.gone && !pod.leaving()) promised_.erase(uid);
      }
    }
  }

  void OnBound(const StormPod& pod, const std::string& node, absl::Time) {
    Say(pod.uid(), " is bound to ", node);
    ++figures_.bound;
    last_change_ = now_;
    bound_at_[pod.uid()] = now_;
    promised_.erase(pod.uid());  // It had only lost the node that it waited for.
    Room room = RoomOn(node);
    if (room.gpus < 0 || room.cpus < 0) Wrong(node, " is overcommitted");
  }
  // With all pods that the API server has there.
  Room RoomOn(const std::string& node) const {
    Room room = {node_gpus_, kNodeCpus};
    for (const auto& [uid, pod] : cluster_.pods()) {
      if (!pod.gone && pod.node() == node) Take(pod, 1, &room);
    }
    return room;
  }

  void CheckEnd() {
    if (is_story_ &&
        (preemptions_.size() != 1 || preemptions_[0].when - begin_ < absl::Seconds(90) ||
         preemptions_[0].when - begin_ > absl::Seconds(90) + kMinute))
      Wrong("no eviction followed the new checkpoint");
    const int64_t pods = static_cast<int64_t>(cluster_.pods().size());
    if (figures_.evictions > 10 * pods)
      Wrong(figures_.evictions, " evictions with ", pods, " pods");
    if (figures_.attempts > 100 * pods) Wrong(figures_.attempts, " attempts with ", pods, " pods");
    for (const PreemptionRecord& record : preemptions_) CheckPreemptor(record);
    std::map<int, int64_t> waiting_of_gang;
    for (const auto& [uid, pod] : cluster_.pods()) {
      if (pod.gone || pod.leaving() || !pod.node().empty()) continue;
      ++figures_.waiting;
      if (pod.gang >= 0) {
        ++waiting_of_gang[pod.gang];
        continue;
      }
      for (const auto& [node, unused] : rooms_) {
        Room room = RoomOn(node);
        for (const auto& [other_uid, other] : cluster_.pods()) {
          if (!other.gone && other.node().empty() && other_uid != uid &&
              other.priority >= pod.priority && other.object->pod.nominated_node_name() == node)
            Take(other, 1, &room);
        }
        if (Takes(room, pod)) Wrong(uid, " waits, though ", node, " has room for it");
      }
    }
    figures_.gangs_left += static_cast<int64_t>(waiting_of_gang.size());
  }
  // A preemptor has a node by now, unless another event interfered.
  void CheckPreemptor(const PreemptionRecord& record) {
    const StormPod& preemptor = cluster_.pod(record.preemptor);
    const auto bound = bound_at_.find(record.preemptor);
    if (bound != bound_at_.end() && bound->second >= record.when) return;
    std::string excuse;
    if (preemptor.gone || preemptor.leaving()) excuse = "it is deleted";
    if (record.failed) excuse = "an eviction failed";
    // As in kube-scheduler, it then loses its nomination.
    if (refused_.contains(record.preemptor)) excuse = "its bind was rejected";
    const auto is_of_gang = [&](const std::string& uid) {
      return uid == record.preemptor ||
             (preemptor.gang >= 0 && cluster_.pod(uid).gang == preemptor.gang);
    };
    // Room is made for a number of gang members, no matter which members use it.
    int64_t run = 0;
    for (const auto& [uid, pod] : cluster_.pods()) run += is_of_gang(uid) && Running(uid) ? 1 : 0;
    if (preemptor.gang >= 0 && run >= preemptor.gang_min) return;
    // Its gang must get all nodes that it was nominated to then.
    std::set<std::string> nodes = {record.node};
    for (const Nomination& nomination : nominations_) {
      if (nomination.when == record.when && is_of_gang(nomination.uid))
        nodes.insert(nomination.node);
    }
    const auto came = [&](const std::string& uid, const std::string& node, absl::Time when) {
      // Decisions made before the scheduler knew about it count, too.
      if (when >= record.when - absl::Seconds(2) && nodes.contains(node) && !is_of_gang(uid) &&
          cluster_.pod(uid).priority >= preemptor.priority)
        excuse = "a pod of higher priority came, or a pod that waits at Permit";
    };
    for (const auto& [uid, when] : bound_at_) came(uid, cluster_.pod(uid).node(), when);
    for (const Nomination& nomination : nominations_)
      came(nomination.uid, nomination.node, nomination.when);
    // A member is useless without the others.
    for (const auto& [uid, pod] : cluster_.pods()) {
      if (pod.gang >= 0 && pod.gang == preemptor.gang && (pod.gone || pod.leaving()) &&
          pod.object->pod.deletion_unix_seconds() >= absl::ToUnixSeconds(record.when))
        excuse = "another member left";
    }
    if (excuse.empty()) {
      Wrong(record.preemptor, " evicted pods on ", record.node, " at ",
            absl::ToDoubleSeconds(record.when - begin_), " s and has no node");
    } else {
      ++figures_.excused;
    }
  }

  Dice dice_;
  const Plugin plugin_;
  const bool is_story_;
  const bool rough_;
  StormCluster cluster_;
  const absl::Time begin_;
  absl::Time now_;
  absl::Time last_outside_ = begin_, last_change_ = begin_;
  simulate::SimulatedScheduler stage_;
  const std::string address_;
  simulate::SimulationInput scene_;
  int64_t node_gpus_ = 8;
  std::map<std::string, Room> rooms_;
  int last_pod_ = 0, last_gang_ = 0;
  std::set<std::string> tried_;
  bool tried_again_ = false;
  std::map<std::string, std::string> last_words_;
  std::vector<PreemptionRecord> preemptions_;
  std::set<std::string> promised_;  // Victims that still exist.
  std::set<std::string> refused_;
  std::vector<Nomination> nominations_;
  std::map<std::string, int> preempted_for_;
  std::map<std::string, absl::Time> bound_at_;
  Figures figures_;
  std::vector<std::string> story_, faults_;
};

struct Options {
  int64_t storms = 200;
  int64_t first = 0;
  bool story = false;
};

bool ParseLine(int argc, char** argv, Options* options) {
  for (int i = 1; i < argc; ++i) {
    const absl::string_view flag = argv[i];
    int64_t* const number = flag == "--storms"  ? &options->storms
                            : flag == "--first" ? &options->first
                                                : nullptr;
    if (flag == "--story") {
      options->story = true;
    } else if (number == nullptr || ++i >= argc || !absl::SimpleAtoi(argv[i], number)) {
      std::fprintf(stderr,
                   "usage: preemption_storms [--storms N] [--first SEED] [--story]\n"
                   "Plays N storms from that seed on; exit code 1: a storm had faults.\n");
      return false;
    }
  }
  return true;
}

int Main(const Options& options) {
  auto host = simulate::HostProcess::Start("", 0);
  if (!host.ok()) {
    std::fprintf(stderr, "%s\n", std::string(host.status().message()).c_str());
    return 1;
  }
  config::Config configs[2];
  for (const Plugin plugin : {Plugin::kCostAware, Plugin::kDefault}) {
    auto config = config::ParseConfig(ConfigText(plugin), "storm.yaml");
    if (!config.ok()) {
      std::fprintf(stderr, "%s\n", std::string(config.status().message()).c_str());
      return 1;
    }
    configs[static_cast<int>(plugin)] = *config;
  }
  SumOfFigures figures;
  int64_t bad = 0;
  const absl::Time began = SteadyNow();
  for (int64_t seed = options.first; seed < options.first + options.storms; ++seed) {
    const Plugin plugin = seed % 4 == 3 ? Plugin::kDefault : Plugin::kCostAware;
    Storm storm(static_cast<uint64_t>(seed), plugin, configs[static_cast<int>(plugin)],
                (*host)->address());
    const std::vector<std::string> faults = storm.Play();
    if (!faults.empty() || options.story) {
      std::printf("storm %lld\n  %s\n", static_cast<long long>(seed),
                  absl::StrJoin(storm.story(), "\n  ").c_str());
    }
    for (const std::string& fault : faults)
      std::printf("FAILED: storm %lld: %s\n", static_cast<long long>(seed), fault.c_str());
    bad += faults.empty() ? 0 : 1;
    figures.Add(storm.figures());
  }
  std::printf("%lld storms in %.0f s, %lld with faults\n", static_cast<long long>(options.storms),
              absl::ToDoubleSeconds(SteadyNow() - began), static_cast<long long>(bad));
  figures.Print();
  return bad == 0 ? 0 : 1;
}

}  // namespace
}  // namespace outboard::storms

int main(int argc, char** argv) {
  FLAGS_minloglevel = google::GLOG_FATAL;
  google::InitGoogleLogging(argv[0]);
  outboard::storms::Options options;
  if (!outboard::storms::ParseLine(argc, argv, &options)) return 2;
  return outboard::storms::Main(options);
}
