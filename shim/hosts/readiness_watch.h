// Watches whether a host without a change stream is ready and still running.
#ifndef OUTBOARD_SHIM_HOSTS_READINESS_WATCH_H_
#define OUTBOARD_SHIM_HOSTS_READINESS_WATCH_H_

#include <grpcpp/alarm.h>
#include <grpcpp/channel.h>

#include <functional>
#include <memory>
#include <string>

#include "outboard/v1beta1/plugin_host.grpc.pb.h"
#include "shim/hosts/host_loop.h"

namespace outboard::hosts {

// Probes an instance over the channel of its calls: ten times a second until it is ready, then once
// a second. A stream would report a broken connection at once; here the next call or probe detects
// it. A probe without an answer in time is ignored: the deadlines of calls detect a slow host.
//
// Threading: scheduling thread.
// Lifetime: owns itself; deletes itself some time after Abandon, once gRPC has returned its
// operations. `loop` outlives it.
class ReadinessWatch {
 public:
  // `on_lost` is called once: when no process answers any more, or another instance does.
  ReadinessWatch(HostLoop* loop, const std::shared_ptr<grpc::Channel>& channel,
                 v1beta1::ProbeRequest request, std::string instance,
                 std::function<void()> on_lost);
  // No callback after this.
  void Abandon();
  bool ready() const { return ready_; }

 private:
  template <void (ReadinessWatch::*method)(bool)>
  struct Step : Completion {
    explicit Step(ReadinessWatch* watch) : watch(watch) {}
    void OnDone(bool ok) override { (watch->*method)(ok); }
    ReadinessWatch* const watch;
  };
  ~ReadinessWatch() = default;
  void StartProbe();
  void OnProbed(bool ok);
  void OnAlarm(bool ok);

  HostLoop* const loop_;
  const std::unique_ptr<v1beta1::PluginHostService::Stub> stub_;
  const v1beta1::ProbeRequest request_;
  const std::string instance_;
  std::function<void()> on_lost_;
  bool ready_ = false;
  bool under_way_ = false;  // a probe or the alarm, one at a time
  bool abandoned_ = false;
  std::unique_ptr<grpc::ClientContext> context_;
  std::unique_ptr<grpc::ClientAsyncResponseReader<v1beta1::ProbeResponse>> reader_;
  v1beta1::ProbeResponse response_;
  grpc::Status status_;
  grpc::Alarm alarm_;
  Step<&ReadinessWatch::OnProbed> probed_;
  Step<&ReadinessWatch::OnAlarm> woken_;
};

}  // namespace outboard::hosts

#endif  // OUTBOARD_SHIM_HOSTS_READINESS_WATCH_H_
