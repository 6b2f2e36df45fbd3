#include "logging/log_to_stderr.h"

#include <glog/logging.h>
#include <grpc/support/log.h>
#include <unistd.h>

#include "logging/stderr_log.h"

namespace outboard::logging {
namespace {

void LogForGrpc(gpr_log_func_args* line) {
  const google::LogSeverity severity =
      line->severity == GPR_LOG_SEVERITY_ERROR ? google::GLOG_ERROR : google::GLOG_INFO;
  google::LogMessage(line->file, line->line, severity).stream() << line->message;
}

}  // namespace

void LogToStderr(const char* program) {
  google::InitGoogleLogging(program);
  // Neither glog's own stderr, which waits, nor its files.
  FLAGS_logtostderr = false;
  google::SetStderrLogging(google::NUM_SEVERITIES);
  for (int severity = 0; severity < google::NUM_SEVERITIES; ++severity)
    google::SetLogDestination(severity, "");
  google::AddLogSink(new StderrLog(STDERR_FILENO));  // glog uses it until the process ends
  gpr_set_log_function(LogForGrpc);
}

}  // namespace outboard::logging
