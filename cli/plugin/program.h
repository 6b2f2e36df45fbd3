// Runs other programs, and finds files of this package.
#ifndef OUTBOARD_CLI_PLUGIN_PROGRAM_H_
#define OUTBOARD_CLI_PLUGIN_PROGRAM_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace outboard::plugin_command {

// The folder of this program; empty if unknown.
std::string OwnFolder();

// `name` beside this program, else `name` for a search on PATH.
std::string ProgramBeside(const std::string& name);

// Runs a program and waits for its end. Returns its standard output if it exits with 0. Its
// standard error is ours.
//
// Threading: blocks.
// Errors: UNAVAILABLE if it cannot be started; FAILED_PRECONDITION for another exit, after the
// program has printed why.
absl::StatusOr<std::string> RunProgram(const std::vector<std::string>& arguments);

}  // namespace outboard::plugin_command

#endif  // OUTBOARD_CLI_PLUGIN_PROGRAM_H_
