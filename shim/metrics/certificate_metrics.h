// When the certificates of the configuration expire, read from their files when scraped.
#ifndef OUTBOARD_SHIM_METRICS_CERTIFICATE_METRICS_H_
#define OUTBOARD_SHIM_METRICS_CERTIFICATE_METRICS_H_

#include <prometheus/collectable.h>

#include <string>
#include <vector>

#include "absl/synchronization/mutex.h"

namespace outboard::metrics {

// Files instead of what is in use: an alarm has to come also if a renewed file was not loaded, and
// before the connections that use the old one end.
//
// Threading: thread-safe. Collect reads files, on the thread of the scrape.
// Lifetime: the caller's.
// Errors: files without a readable PEM certificate are omitted; what loads them reports that.
class CertificateMetrics : public prometheus::Collectable {
 public:
  // The files from now on; empty names are ignored.
  void SetFiles(std::vector<std::string> files);
  std::vector<prometheus::MetricFamily> Collect() const override;

 private:
  mutable absl::Mutex mutex_;
  std::vector<std::string> files_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace outboard::metrics

#endif  // OUTBOARD_SHIM_METRICS_CERTIFICATE_METRICS_H_
