// Messages as the other end of the wire sees them.
#ifndef OUTBOARD_SHIM_HOSTS_TESTING_RECEIVED_H_
#define OUTBOARD_SHIM_HOSTS_TESTING_RECEIVED_H_

#include <gtest/gtest.h>

namespace outboard::testing {

// Parts that were added as bytes are fields here.
template <typename Message>
Message Received(const Message& sent) {
  Message received;
  EXPECT_TRUE(received.ParseFromString(sent.SerializeAsString()));
  return received;
}

}  // namespace outboard::testing

#endif  // OUTBOARD_SHIM_HOSTS_TESTING_RECEIVED_H_
