#include "cli/conformance/report.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace outboard::conformance {
namespace {

using Outcome = Result::Outcome;

const char* Word(Outcome outcome) {
  switch (outcome) {
    case Outcome::kPassed:
      return "passed";
    case Outcome::kFailed:
      return "FAILED";
    case Outcome::kSkipped:
      return "skipped";
  }
  return "";
}

int Count(const std::vector<Result>& results, Outcome outcome) {
  return static_cast<int>(std::count_if(results.begin(), results.end(), [&](const Result& result) {
    return result.outcome == outcome;
  }));
}

// A host's messages may contain any bytes. Terminals and XML 1.0 do not allow all of them.
std::string Printable(const std::string& text) {
  std::string out;
  for (const char c : text) out += static_cast<unsigned char>(c) < 0x20 || c == 0x7f ? ' ' : c;
  return out;
}

std::string Escaped(const std::string& text) {
  std::string out;
  for (const char c : Printable(text)) {
    switch (c) {
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '&':
        out += "&amp;";
        break;
      case '"':
        out += "&quot;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

}  // namespace

std::string TableHeader() {
  return absl::StrFormat("%-20s %-30s %-8s %6s\n", "SERVICE", "CASE", "RESULT", "MS");
}

std::string TableLine(const Result& result) {
  std::string line = absl::StrFormat("%-20s %-30s %-8s %6d\n", result.service, result.name,
                                     Word(result.outcome), absl::ToInt64Milliseconds(result.took));
  if (!result.what.empty()) absl::StrAppend(&line, "    ", Printable(result.what), "\n");
  return line;
}

std::string Summary(const std::vector<Result>& results) {
  return absl::StrFormat("%d passed, %d failed, %d skipped", Count(results, Outcome::kPassed),
                         Count(results, Outcome::kFailed), Count(results, Outcome::kSkipped));
}

std::string JUnit(const std::vector<Result>& results, const std::string& host, uint64_t seed) {
  absl::Duration total;
  for (const Result& result : results) total += result.took;
  std::string xml = absl::StrFormat(
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuite name=\"outboard conformance\" "
      "hostname=\"%s\" tests=\"%d\" "
      "failures=\"%d\" errors=\"0\" skipped=\"%d\" time=\"%.3f\">\n  <properties><property "
      "name=\"seed\" value=\"%d\"/></properties>\n",
      Escaped(host), results.size(), Count(results, Outcome::kFailed),
      Count(results, Outcome::kSkipped), absl::ToDoubleSeconds(total), seed);
  for (const Result& result : results) {
    absl::StrAppendFormat(&xml, "  <testcase classname=\"%s\" name=\"%s\" time=\"%.3f\"",
                          Escaped(result.service), Escaped(result.name),
                          absl::ToDoubleSeconds(result.took));
    if (result.outcome == Outcome::kPassed) {
      xml += "/>\n";
      continue;
    }
    absl::StrAppendFormat(&xml, "><%s message=\"%s\"/></testcase>\n",
                          result.outcome == Outcome::kFailed ? "failure" : "skipped",
                          Escaped(result.what));
  }
  return xml + "</testsuite>\n";
}

}  // namespace outboard::conformance
