// Reports of the thread sanitizer that are wrong, each with its reason.
extern "C" const char* __tsan_default_suppressions();
extern "C" const char* __tsan_default_suppressions() {
  // glibc guards its time zone with a lock of its own, which the sanitizer does not see. Each line
  // of a log reads it.
  return "race:tzset_internal\n";
}
