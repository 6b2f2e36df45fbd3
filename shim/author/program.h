// Other programs, and files that come with this one.
#ifndef OUTBOARD_SHIM_AUTHOR_PROGRAM_H_
#define OUTBOARD_SHIM_AUTHOR_PROGRAM_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace outboard::author {

// The folder of this program; empty if the system does not tell.
std::string OwnFolder();

// `name` beside this program, else as the shell would find it.
std::string ProgramBeside(const std::string& name);

// Runs a program and waits; what it wrote to its output, if it ended with 0. Its errors go to ours.
//
// Threading: blocks. Errors: UNAVAILABLE if it cannot be started; FAILED_PRECONDITION for another
// end, of which it has told on its own.
absl::StatusOr<std::string> RunProgram(const std::vector<std::string>& arguments);

}  // namespace outboard::author

#endif  // OUTBOARD_SHIM_AUTHOR_PROGRAM_H_
