// The set-up of a process that logs through a StderrLog.
#ifndef OUTBOARD_LOGGING_LOG_TO_STDERR_H_
#define OUTBOARD_LOGGING_LOG_TO_STDERR_H_

namespace outboard::logging {

// Instead of google::InitGoogleLogging: all lines of glog and gRPC go to stderr through a
// StderrLog.
//
// Threading: once, in main, before other threads.
void LogToStderr(const char* program);

}  // namespace outboard::logging

#endif  // OUTBOARD_LOGGING_LOG_TO_STDERR_H_
