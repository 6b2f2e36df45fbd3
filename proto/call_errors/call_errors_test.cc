#include "proto/call_errors/call_errors.h"

#include <gtest/gtest.h>

#include "proto/call_errors/rpc_status.pb.h"

namespace outboard::call_errors {
namespace {

using v1beta1::CallError;

CallError Stale() {
  CallError error;
  error.set_reason(CallError::REASON_STALE);
  error.set_message("too early");
  error.set_have_version(7);
  return error;
}

TEST(CallErrors, TravelAsTheDetailOfAStatus) {
  const grpc::Status status = ToGrpcStatus(Stale());
  EXPECT_EQ(status.error_code(), grpc::StatusCode::FAILED_PRECONDITION);
  EXPECT_EQ(status.error_message(), "too early");
  // As every gRPC library reads it: grpc-go fails a call whose two codes differ.
  RpcStatus details;
  ASSERT_TRUE(details.ParseFromString(status.error_details()));
  EXPECT_EQ(details.code(), status.error_code());
  EXPECT_EQ(details.message(), "too early");
  ASSERT_EQ(details.details_size(), 1);
  EXPECT_EQ(details.details(0).type_url(), "type.googleapis.com/outboard.v1beta1.CallError");

  const auto error = CallErrorOf(status);
  ASSERT_TRUE(error.has_value());
  EXPECT_EQ(error->SerializeAsString(), Stale().SerializeAsString());
}

TEST(CallErrors, DetailsOfAnotherKindAreNone) {
  EXPECT_FALSE(CallErrorOf(grpc::Status(grpc::StatusCode::INTERNAL, "no details")).has_value());
  EXPECT_FALSE(CallErrorOf(grpc::Status(grpc::StatusCode::INTERNAL, "garbage", "\xff\xff")));
  RpcStatus details;
  details.set_code(grpc::StatusCode::INTERNAL);
  details.add_details()->set_type_url("type.googleapis.com/outboard.v1beta1.PluginStatus");
  details.mutable_details(0)->set_value(Stale().SerializeAsString());
  EXPECT_FALSE(CallErrorOf(
      grpc::Status(grpc::StatusCode::INTERNAL, "another", details.SerializeAsString())));
  // A CallError where the status should be.
  EXPECT_FALSE(CallErrorOf(grpc::Status(grpc::StatusCode::FAILED_PRECONDITION, "too early",
                                        Stale().SerializeAsString())));
}

TEST(CallErrors, EachReasonHasItsCode) {
  EXPECT_EQ(CodeOf(CallError::REASON_ATTEMPT_UNKNOWN), grpc::StatusCode::NOT_FOUND);
  EXPECT_EQ(CodeOf(CallError::REASON_INVALID), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(CodeOf(CallError::REASON_DRAINING), grpc::StatusCode::UNAVAILABLE);
  EXPECT_EQ(CodeOf(static_cast<CallError::Reason>(99)), grpc::StatusCode::INTERNAL);
}

}  // namespace
}  // namespace outboard::call_errors
