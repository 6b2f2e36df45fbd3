// Asks a running shim for one of its pages.
#ifndef OUTBOARD_SHIM_HTTP_CLIENT_H_
#define OUTBOARD_SHIM_HTTP_CLIENT_H_

#include <map>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace outboard::http {

// The body of the page. `server` is HOST:PORT, as in servingAddress, or begins with http://.
// `timeout` is for the answer; connecting may take 5 s.
//
// Threading: blocks. Errors: UNAVAILABLE in words for people: nobody answers, or what a shim says
// in place of the page.
absl::StatusOr<std::string> GetPage(const std::string& server, const std::string& path,
                                    const std::multimap<std::string, std::string>& parameters,
                                    absl::Duration timeout);

// Asks for something to be done: a POST without a body. The body of the answer; otherwise as
// GetPage.
absl::StatusOr<std::string> Command(const std::string& server, const std::string& path,
                                    const std::multimap<std::string, std::string>& parameters,
                                    absl::Duration timeout);

}  // namespace outboard::http

#endif  // OUTBOARD_SHIM_HTTP_CLIENT_H_
