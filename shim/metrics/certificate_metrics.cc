#include "shim/metrics/certificate_metrics.h"

#include <openssl/asn1.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <prometheus/client_metric.h>
#include <prometheus/metric_family.h>

#include <algorithm>
#include <cstdio>
#include <ctime>
#include <memory>
#include <optional>
#include <utility>

#include "shim/metrics/names.h"

namespace outboard::metrics {
namespace {

std::optional<double> ExpirationOf(const std::string& file) {
  const std::unique_ptr<FILE, int (*)(FILE*)> in(std::fopen(file.c_str(), "re"), &std::fclose);
  if (in == nullptr) return std::nullopt;
  const std::unique_ptr<X509, void (*)(X509*)> certificate(
      PEM_read_X509(in.get(), nullptr, nullptr, nullptr), &X509_free);
  ERR_clear_error();
  std::tm end = {};
  if (certificate == nullptr || ASN1_TIME_to_tm(X509_get0_notAfter(certificate.get()), &end) != 1)
    return std::nullopt;
  return static_cast<double>(timegm(&end));
}

}  // namespace

void CertificateMetrics::SetFiles(std::vector<std::string> files) {
  std::sort(files.begin(), files.end());
  files.erase(std::unique(files.begin(), files.end()), files.end());
  std::erase(files, "");
  absl::MutexLock lock(&mutex_);
  files_ = std::move(files);
}

std::vector<prometheus::MetricFamily> CertificateMetrics::Collect() const {
  std::vector<std::string> files;
  {
    absl::MutexLock lock(&mutex_);
    files = files_;
  }
  prometheus::MetricFamily family;
  family.name = kCertificateExpiration.name;
  family.help = kCertificateExpiration.help;
  family.type = prometheus::MetricType::Gauge;
  for (const std::string& file : files) {
    const std::optional<double> expiration = ExpirationOf(file);
    if (!expiration.has_value()) continue;
    prometheus::ClientMetric metric;
    metric.label.push_back({kCertificateExpiration.labels[0], file});
    metric.gauge.value = *expiration;
    family.metric.push_back(std::move(metric));
  }
  return {std::move(family)};
}

}  // namespace outboard::metrics
