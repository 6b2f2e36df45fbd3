#include "cli/conformance/calls.h"

#include <grpcpp/completion_queue.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/support/byte_buffer.h>

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "proto/call_errors/call_errors.h"
#include "proto/short_names.h"

namespace outboard::conformance {

using v1beta1::CallError;
using v1beta1::SyncRequest;
using v1beta1::SyncResponse;

namespace {

constexpr size_t kMaxMessageBytes = 1024;

const char* CodeName(grpc::StatusCode code) {
  static constexpr const char* kNames[] = {"OK",
                                           "CANCELLED",
                                           "UNKNOWN",
                                           "INVALID_ARGUMENT",
                                           "DEADLINE_EXCEEDED",
                                           "NOT_FOUND",
                                           "ALREADY_EXISTS",
                                           "PERMISSION_DENIED",
                                           "RESOURCE_EXHAUSTED",
                                           "FAILED_PRECONDITION",
                                           "ABORTED",
                                           "OUT_OF_RANGE",
                                           "UNIMPLEMENTED",
                                           "INTERNAL",
                                           "UNAVAILABLE",
                                           "DATA_LOSS",
                                           "UNAUTHENTICATED"};
  return code >= 0 && code <= 16 ? kNames[code] : "?";
}

std::string Names(std::initializer_list<CallError::Reason> reasons) {
  return absl::StrJoin(reasons, " or ", [](std::string* out, CallError::Reason reason) {
    absl::StrAppend(out, ShortName(reason));
  });
}

}  // namespace

grpc::Status CallRaw(const Channel& channel, const std::string& path, const std::string& bytes,
                     absl::Duration deadline) {
  grpc::GenericStub stub(channel);
  grpc::CompletionQueue queue;
  grpc::ClientContext context;
  context.set_deadline(absl::ToChronoTime(absl::Now() + deadline));
  const grpc::Slice slice(bytes);
  const grpc::ByteBuffer request(&slice, 1);
  grpc::ByteBuffer response;
  grpc::Status status;
  auto call = stub.PrepareUnaryCall(&context, path, request, &queue);
  call->StartCall();
  call->Finish(&response, &status, nullptr);
  void* tag = nullptr;
  bool ok = false;
  queue.Next(&tag, &ok);
  return status;
}

const v1beta1::ConfigProblem* FirstError(const v1beta1::ConfigureResponse& response) {
  for (const v1beta1::ConfigProblem& problem : response.problems()) {
    if (problem.severity() != v1beta1::ConfigProblem::SEVERITY_WARNING) return &problem;
  }
  return nullptr;
}

std::string Describe(const grpc::Status& status) {
  const auto error = call_errors::CallErrorOf(status);
  std::string name = CodeName(status.error_code());
  if (error.has_value()) absl::StrAppend(&name, "/", ShortName(error->reason()));
  return absl::StrCat(name, ": ", status.error_message());
}

absl::Status ExpectOk(const char* method, const grpc::Status& status) {
  if (status.ok()) return absl::OkStatus();
  absl::Status wrong = absl::FailedPreconditionError(
      absl::StrCat(method, " must succeed, but returns ", Describe(status)));
  return status.error_code() == grpc::StatusCode::DEADLINE_EXCEEDED ? Late(std::move(wrong))
                                                                    : wrong;
}

absl::Status ExpectErrorMessage(const char* method, const CallError& error,
                                std::initializer_list<CallError::Reason> reasons,
                                const Rule& rule) {
  if (std::find(reasons.begin(), reasons.end(), error.reason()) == reasons.end()) {
    return Wrong(rule, absl::StrCat(method, " must return ", Names(reasons), ", not ",
                                    ShortName(error.reason()), ": ", error.message()));
  }
  if (error.message().empty() || error.message().size() > kMaxMessageBytes) {
    return Wrong(kErrorMessage, absl::StrCat(method, "'s error has a message of ",
                                             error.message().size(), " bytes"));
  }
  return absl::OkStatus();
}

absl::Status ExpectError(const char* method, const grpc::Status& status,
                         std::initializer_list<CallError::Reason> reasons, const Rule& rule) {
  if (status.ok()) {
    return Wrong(rule, absl::StrCat(method, " must return ", Names(reasons), ", but succeeds"));
  }
  if (status.error_code() == grpc::StatusCode::DEADLINE_EXCEEDED) {
    return Late(Wrong(rule, absl::StrCat(method, " must return ", Names(reasons),
                                         ", but does not answer within the deadline")));
  }
  const auto error = call_errors::CallErrorOf(status);
  if (!error.has_value()) {
    return Wrong(kErrorDetails,
                 absl::StrCat(method, " must return ", Names(reasons), ", but returns ",
                              Describe(status), " without a CallError"));
  }
  CONFORMANCE_TRY(ExpectErrorMessage(method, *error, reasons, rule));
  if (status.error_code() != call_errors::CodeOf(error->reason())) {
    return Wrong(kErrorDetails,
                 absl::StrCat(method, " returns ", ShortName(error->reason()), " with ",
                              CodeName(status.error_code()), " instead of ",
                              CodeName(call_errors::CodeOf(error->reason()))));
  }
  return absl::OkStatus();
}

SyncStream::SyncStream(const Channel& channel)
    : stub_(v1beta1::ClusterStateService::NewStub(channel)), stream_(stub_->Sync(&context_)) {
  receiver_ = std::thread([this] { Receive(); });
}

SyncStream::~SyncStream() {
  context_.TryCancel();
  receiver_.join();
}

void SyncStream::Receive() {
  SyncResponse response;
  while (stream_->Read(&response)) {
    absl::MutexLock lock(&mu_);
    received_.push_back(response);
  }
  const grpc::Status status = stream_->Finish();
  absl::MutexLock lock(&mu_);
  status_ = status;
  ended_ = true;
}

void SyncStream::Send(const SyncRequest& request) {
  if (sending_) sending_ = stream_->Write(request);
}

void SyncStream::CloseSending() {
  if (sending_) stream_->WritesDone();
  sending_ = false;
}

std::vector<SyncResponse> SyncStream::received() const {
  absl::MutexLock lock(&mu_);
  return received_;
}

int64_t SyncStream::acknowledged() const {
  int64_t version = 0;
  for (const SyncResponse& response : received())
    version = std::max(version, response.ack().version());
  return version;
}

bool SyncStream::Await(const std::function<bool(const std::vector<SyncResponse>&)>& condition,
                       absl::Duration timeout) {
  absl::MutexLock lock(&mu_);
  bool holds = false;
  const auto over = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    holds = condition(received_);
    return holds || ended_;
  };
  mu_.AwaitWithTimeout(absl::Condition(&over), timeout);
  return holds;
}

bool SyncStream::AwaitAck(int64_t version, absl::Duration timeout) {
  return Await(
      [version](const std::vector<SyncResponse>& received) {
        return std::any_of(received.begin(), received.end(), [&](const SyncResponse& response) {
          return response.ack().version() >= version;
        });
      },
      timeout);
}

bool SyncStream::AwaitEnd(absl::Duration timeout, grpc::Status* status) {
  absl::MutexLock lock(&mu_);
  if (!mu_.AwaitWithTimeout(absl::Condition(&ended_), timeout)) return false;
  *status = status_;
  return true;
}

}  // namespace outboard::conformance
