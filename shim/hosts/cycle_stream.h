// The stream of the fast path: one request, one answer.
#ifndef OUTBOARD_SHIM_HOSTS_CYCLE_STREAM_H_
#define OUTBOARD_SHIM_HOSTS_CYCLE_STREAM_H_

#include <memory>
#include <optional>

#include "absl/time/time.h"
#include "outboard/v1beta1/cycle.grpc.pb.h"
#include "outboard/v1beta1/plan.grpc.pb.h"
#include "shim/hosts/host_loop.h"

namespace outboard::hosts {

// A Cycle stream, or a Plan stream. To a Cycle stream only the `cycle` of a request goes.
//
// A stream that missed a deadline is abandoned, because its late answer would be read as the next
// one's.
//
// Threading: scheduling thread.
// Lifetime: owns itself; deletes itself after Abandon, once gRPC has returned its operations.
// `loop` outlives it.
class CycleStream {
 public:
  CycleStream(HostLoop* loop, v1beta1::CycleService::Stub* stub);
  CycleStream(HostLoop* loop, v1beta1::PlanService::Stub* stub);

  // False at `deadline` or if the stream broke; see `broken()`.
  bool Exchange(const v1beta1::PlanRequest& request, absl::Time deadline,
                v1beta1::PlanResponse* response);
  // The same without waiting: Begin, then TryTake until it returns true.
  bool CanBegin() const { return start_done_ && !broken_ && !under_way_; }
  bool under_way() const { return under_way_; }
  void Begin(const v1beta1::PlanRequest& request);
  bool TryTake(v1beta1::PlanResponse* response);
  bool broken() const { return broken_; }
  // Why it broke; nullopt: the host did not say.
  std::optional<grpc::Status> Finish();
  void Abandon();

 private:
  template <void (CycleStream::*method)()>
  struct Step : Completion {
    explicit Step(CycleStream* stream) : stream(stream) {}
    void OnDone(bool ok) override {
      // Deleted with its owner.
      CycleStream* const owner = stream;
      if (!ok) owner->broken_ = true;
      (owner->*method)();
      if (--owner->operations_ == 0 && owner->abandoned_) delete owner;
    }
    CycleStream* const stream;
  };
  explicit CycleStream(HostLoop* loop)
      : loop_(loop), started_(this), read_(this), written_(this), finished_(this) {}
  ~CycleStream() = default;
  void OnStarted() { start_done_ = true; }
  void OnWritten() { write_done_ = true; }
  void OnRead() { answered_ = true; }
  void OnFinished() { finish_done_ = true; }
  void Send(const v1beta1::PlanRequest& request);
  // Moves the answer to `response`, without copying it.
  void Take(v1beta1::PlanResponse* response);

  HostLoop* const loop_;
  grpc::ClientContext context_;
  // One of the two.
  std::unique_ptr<grpc::ClientAsyncReaderWriter<v1beta1::CycleRequest, v1beta1::CycleResponse>>
      cycle_;
  std::unique_ptr<grpc::ClientAsyncReaderWriter<v1beta1::PlanRequest, v1beta1::PlanResponse>> plan_;
  Step<&CycleStream::OnStarted> started_;
  Step<&CycleStream::OnRead> read_;
  Step<&CycleStream::OnWritten> written_;
  Step<&CycleStream::OnFinished> finished_;
  v1beta1::CycleResponse cycle_response_;
  v1beta1::PlanResponse plan_response_;
  grpc::Status status_;
  bool start_done_ = false;
  bool write_done_ = false;
  bool answered_ = false;
  bool finish_done_ = false;
  bool under_way_ = false;
  bool broken_ = false;
  bool abandoned_ = false;
  int operations_ = 0;
};

}  // namespace outboard::hosts

#endif  // OUTBOARD_SHIM_HOSTS_CYCLE_STREAM_H_
