# shellcheck shell=bash disable=SC2154
# The tiers of `./dev test`, and how their cases are counted. Sourced by dev, whose functions it uses.
#
# Every tier appends lines `TIER PASSED FAILED SKIPPED WHAT` to $summary. A step that fails without a failed case (a crash, a compile error,
# a program without cases) counts as one failed case.

all_tiers=(unit component go cluster sanitizers)
# These run only when named: upstream's own tests take minutes to build and half an hour to run; the guide needs root and a Docker daemon;
# the examples in Java and TypeScript download packages; older API servers take long to build; the storms (10,000 gangs, 10,000 preemptions) take
# half an hour; the fuzzers (ten seconds each) and the mutants (hours) are rebuilt for it; the long forms of the faults take hours; the publishers
# of GPU facts take ten minutes to build.
named_tiers=(upstream examples guide older storms fuzz mutants faults publishers numa)
logs=$build/test-logs
summary=$logs/summary

record() { # TIER PASSED FAILED SKIPPED WHAT
  printf '%s %d %d %d %s\n' "$1" "$2" "$3" "$4" "$5" >>"$summary"
  printf -- '--- %s: %d passed, %d failed' "$5" "$2" "$3"
  [[ $4 == 0 ]] || printf ', %d skipped' "$4"
  printf '\n'
}

# step TIER WHAT COMMAND...: runs a command as one case; shows its output if it fails.
step() {
  local tier=$1 what=$2 log
  shift 2
  log=$logs/$tier-${what//[^a-zA-Z0-9]/-}.log
  say "$what"
  if ("$@") >"$log" 2>&1 </dev/null; then
    record "$tier" 1 0 0 "$what"
  else
    cat "$log"
    record "$tier" 0 1 0 "$what"
  fi
}

# cpp_tests TIER WHAT PRESET CTEST-ARGS...: runs ctest and counts the GoogleTest cases of every test. With tries=2 a program that failed
# runs once more; see go_tests.
cpp_tests() {
  local tier=$1 what=$2 preset=$3 xml=$logs/$1-$3 status=0
  shift 3
  [[ ${tries:-1} == 1 ]] || set -- --repeat "until-pass:$tries" "$@"
  rm -rf "$xml"
  mkdir -p "$xml/cases"
  say "$what"
  GTEST_OUTPUT="xml:$xml/cases/" ctest --test-dir "$build/$preset" --parallel "$jobs" --no-tests=error \
    --output-junit "$xml/ctest.xml" "$@" 2>&1 </dev/null | tee "$xml/ctest.log" | grep -vE '^ *Start +[0-9]+:' || status=$?
  local passed=0 failed=0 skipped=0 name result tests bad
  while read -r name result; do
    local cases=$xml/cases/$name.xml
    if [[ -f $cases ]]; then
      tests=$(sed -n '/<testsuites /{s/.* tests="\([0-9]*\)".*/\1/p;q}' "$cases")
      bad=$(sed -n '/<testsuites /{s/.* failures="\([0-9]*\)".*/\1/p;q}' "$cases")
      local not_run
      not_run=$(grep -cE '<testcase .*(result="skipped"|status="notrun")' "$cases" || true)
      if [[ $not_run != 0 ]]; then
        printf 'skipped in %s:\n' "$name"
        grep -A 2 -E '<testcase .*(result="skipped"|status="notrun")' "$cases" | sed -n 's/.*testcase name="\([^"]*\)".*/  \1/p; s/.*<skipped message="\([^"]*\)".*/    \1/p'
      fi
      passed=$((passed + tests - bad - not_run))
      failed=$((failed + bad))
      skipped=$((skipped + not_run))
      # A program that fails without a failed case (a leak, a race) or has no cases counts as one more failure.
      if [[ $result != run && $bad == 0 || $tests == 0 ]]; then failed=$((failed + 1)); fi
    elif [[ $result == run ]]; then
      passed=$((passed + 1))
    else
      failed=$((failed + 1))
    fi
  done < <(sed -n 's/.*<testcase name="\([^"]*\)".* status="\([a-z]*\)".*/\1 \2/p' "$xml/ctest.xml" 2>/dev/null)
  if [[ $((passed + failed)) == 0 || $status != 0 && $failed == 0 ]]; then failed=$((failed + 1)); fi
  # ctest does not number the lines of second tries. A second try does not hide that the program crashed.
  while read -r name; do
    if grep -qE "Test +#[0-9]+: $name .*\*\*\*Exception" "$xml/ctest.log"; then
      passed=$((passed - 1)) failed=$((failed + 1))
      printf '\n%s crashed at its first try; its messages are above\n' "$name" >>"$logs/failures"
    else
      printf '\n%s\n  its messages are above\n' "$name" >>"$logs/second_tries"
    fi
  done < <(sed -n 's/^ *Test *#[0-9]*: \([^ ]*\) .* Passed .*/\1/p' "$xml/ctest.log")
  record "$tier" "$passed" "$failed" "$skipped" "$what"
}

gotestsum_version=v1.13.0

# gotestsum runs `go test`, some tests twice.
need_gotestsum() {
  gotestsum=$cache/gotestsum-$gotestsum_version/gotestsum
  [[ -x $gotestsum ]] && return
  say "building gotestsum $gotestsum_version"
  GOBIN=$(dirname "$gotestsum") GOFLAGS='' go install "gotest.tools/gotestsum@$gotestsum_version"
}

# A fault that a second try must not hide: of the checkers of the history of binds, of memory, of a process.
never_by_chance='[1-9][0-9]* (bound twice|overcommitted|unfenced|on unknown nodes)|Check failed|terminate called|SIGSEGV|SIGABRT|panic:|DATA RACE'

# go_tests TIER WHAT PACKAGE...: runs go test and counts its cases. go_module names another module than integration. With tries=2
# tests that failed run once more at the end, each alone, if they are at most five: tests of whole clusters have deadlines, which
# a machine that others use misses now and then. What passed at the second try only is named at the end.
go_tests() {
  local tier=$1 what=$2 module=${go_module:-integration}
  local report=$logs/$1-${module//\//-}-${what//[^a-zA-Z0-9]/-} status=0 again=() packages=() flags=()
  shift 2
  say "$what"
  alone need_gotestsum
  if [[ ${tries:-1} == 2 ]]; then
    while [[ $# -gt 0 ]]; do
      if [[ $1 == ./* ]]; then packages+=("$1"); else flags+=("$1"); fi
      shift
    done
    again=(--rerun-fails=1 --rerun-fails-max-failures=5 --rerun-fails-run-root-test "--packages=${packages[*]}")
    set -- "${flags[@]}"
  fi
  # The second try decides, so what fails at the first is shown in other words.
  (cd "$module" && "$gotestsum" --format testname --hide-summary failed,output --jsonfile "$report.json" "${again[@]}" -- -count=1 "$@") </dev/null |
    sed -u 's/^\( *\)--- FAIL: /\1--- failed: /; s/^FAIL /failed /' || status=$?
  outcomes "$report.json" >"$report.outcomes"
  local total failed skipped
  total=$(wc -l <"$report.outcomes")
  failed=$(grep -c '^failed ' "$report.outcomes" || true)
  skipped=$(grep -c '^skipped ' "$report.outcomes" || true)
  # What failed without a failed case: a package that does not compile, a run that ended early, no cases at all.
  if [[ $total == 0 || $status != 0 && $failed == 0 ]]; then failed=$((failed + 1)) total=$((total + 1)); fi
  record "$tier" "$((total - failed - skipped))" "$failed" "$skipped" "$what"
  why_not_at_once "$report" || true
}

# outcomes REPORT: a line `passed|late|failed|skipped PACKAGE TEST` for each test: a late test passed at the second try only.
outcomes() {
  local result package test
  sed -n 's/^{"Time":"[^"]*","Action":"\(pass\|fail\|skip\)","Package":"\([^"]*\)","Test":"\(.*\)","Elapsed":.*/\1 \2 \3/p' "$1" |
    awk '{
      result = $1; sub(/^[a-z]+ /, "")
      if (!($0 in last)) order[++n] = $0
      if (result == "fail") bad[$0] = 1
      last[$0] = result
    }
    END {
      for (i = 1; i <= n; i++) {
        t = order[i]
        print (last[t] == "fail" ? "failed" : last[t] == "skip" ? "skipped" : t in bad ? "late" : "passed"), t
      }
    }' | while read -r result package test; do
    if [[ $result == late ]] && output_of "$1" "$package" "$test" | grep -qE "$never_by_chance"; then result=failed; fi
    echo "$result $package $test"
  done
}

# output_of REPORT PACKAGE TEST: what a test itself printed, without its subtests.
output_of() {
  grep -F '"Action":"output","Package":"'"$2"'","Test":"'"$3"'",' "$1" | sed 's/.*"Output":"\(.*\)\\n".*}$/\1/' || true
}

# why_not_at_once REPORT: appends, to what is shown at the end, the last lines that each failed test printed itself, without the logs of the
# processes it started, in which its messages are hard to find.
why_not_at_once() {
  local result package test file
  while read -r result package test; do
    case $result in
      failed) file=$logs/failures && printf '\n%s\n--- FAIL: %s\n' "${package#outboard.dev/integration/}" "$test" >>"$file" ;;
      late) file=$logs/second_tries && printf '\n%s %s\n' "${package#outboard.dev/integration/}" "$test" >>"$file" ;;
      *) continue ;;
    esac
    output_of "$1.json" "$package" "$test" | sed 's/--- FAIL: /--- failed: /; /testing\.go:[0-9]*: /,$d' | tail -n 12 | cut -c 1-2000 >>"$file"
  done <"$1.outcomes"
}

tier_unit() {
  build_with_tests
  need_packages "${lint_packages[@]}"
  step unit "clang-format" check_format
  step unit "shellcheck" check_scripts
  tries=2 cpp_tests unit "unit and hygiene" release --label-regex '^(unit|hygiene)$'
}

tier_component() {
  build_with_tests
  tries=2 cpp_tests component "components: the simulator and whole processes" release --label-regex '^component$'
  need_packages python3 python3-venv
  step component "plugins in Python" "$root/sdk/python/plugin_test.sh" "$build/release/bin"
  need_packages curl
  step component "reports of checkpoints" "$root/sdk/checkpoint/checkpoint_test.sh"
  step component "the commands of docs/first-plugin.md" "$root/sdk/python/first_plugin_test.sh" "$build/release/bin"
  step component "the commands of docs/write-a-host.md" "$root/integration/examples/write_a_host_test.sh" "$build/release/bin"
  step component "a host in plain Python from the contract alone" "$root/integration/examples/examples_test.sh" "$build/release/bin" plain_python
  # The kit judges how soon a host answers, so these steps have the machine to themselves, which the tier go does not.
  alone need_go
  step component "a host in Go from the contract alone" "$root/integration/examples/examples_test.sh" "$build/release/bin" go
  claims_host component
  step component "the conformance kit, against the host for claims" "$root/plugins/dynamic_resources/host/conformance_test.sh" "$build/release/bin"
}

# The host for claims is a Go program, built from the contract.
claims_host() { # TIER
  need_packages protobuf-compiler
  step "$1" "the host for claims" alone env BUILD_ONLY=1 "$root/plugins/dynamic_resources/host/run.sh"
}

tier_go() {
  alone need_go
  build_product "${programs[@]}"
  claims_host go
  step go "go vet" bash -c 'cd integration && go vet ./...'
  local packages
  mapfile -t packages < <(cd integration && go list ./... | grep -vE '/(control_plane|scenarios|faults|deploy|operations|guide|images|publishers|test_cluster)(/|$)')
  step go "go vet of the host for claims" bash -c 'cd plugins/dynamic_resources/host && go vet ./...'
  go_module=plugins/dynamic_resources/host go_tests go "the host for claims, called as a shim calls it" -timeout 10m ./...
  go_tests go "parity with kube-scheduler, wire schema, checker" -timeout 40m "${packages[@]}"
}

# Debian's Prometheus, unpacked but not installed, because an installed package starts a service.
need_prometheus() {
  local folder=$cache/prometheus
  export OUTBOARD_PROMETHEUS=$folder/usr/bin/prometheus
  [[ -x $OUTBOARD_PROMETHEUS ]] && return
  if [[ ${OUTBOARD_INSTALL:-1} == 0 ]] || ! command -v apt-get >/dev/null; then
    OUTBOARD_PROMETHEUS=$(command -v prometheus || true)
    return
  fi
  say "fetching Debian's prometheus into $folder"
  rm -rf "$folder"
  mkdir -p "$folder"
  local as_root=()
  [[ $(id -u) == 0 ]] || as_root=(sudo -n)
  (cd "$folder" && { apt-get --quiet --quiet download prometheus || { "${as_root[@]}" apt-get --quiet --quiet update && apt-get --quiet --quiet download prometheus; }; } &&
    dpkg-deb --extract prometheus_*.deb . && rm prometheus_*.deb)
}

# The shim with fail points, for the tests that kill or hold it at a point. All but five libraries come from the compiler cache.
build_fail_points() { alone build_fail_points_alone; }

build_fail_points_alone() {
  need_packages "${build_packages[@]}"
  configure fail_points -DCMAKE_BUILD_TYPE=RelWithDebInfo -DOUTBOARD_FAIL_POINTS=ON -DOUTBOARD_BUILD_HOST=OFF -DOUTBOARD_BUILD_TESTS=OFF
  compile fail_points outboard-shim
  "$root/integration/hygiene/no_fail_points_test.sh" "$build/release/bin/outboard-shim" "$build/fail_points/bin/outboard-shim"
}

tier_cluster() {
  alone need_go
  need_packages "${network_packages[@]}" python3 python3-venv jq openssl
  need_prometheus
  build_product "${programs[@]}"
  build_fail_points
  claims_host cluster
  step cluster "programs of the control plane" bash -c 'cd integration && go run ./control_plane/cmd/build-tools'
  step cluster "cert-manager" bash -c 'cd integration && go test ./cert_manager'
  # Tests wait most of the time, so several share the cores: up to eight control planes, each with 0.5 GB. The package that takes
  # longest comes first.
  tries=2 go_tests cluster "real control plane" -p 3 -parallel 2 -timeout 40m ./faults/... ./control_plane/... ./scenarios/... ./deploy/... ./operations ./publishers/... ./test_cluster/...
  step cluster "./dev cluster --smoke" "$root/dev" cluster --smoke
  step cluster "./dev bench cluster, small" "$root/dev" bench cluster --nodes 100 --pods 300 --runs 1
  step cluster "./dev bench cluster, small, with claims" "$root/dev" bench cluster --workload claims,claims-half --nodes 20 --initial 50 --pods 50 --runs 1 \
    --contenders kube-scheduler,outboard
  step cluster "./dev bench swap, small" "$root/dev" bench swap --busy --swaps 6 --nodes 100 --bound 500 --rate 100
}

tier_upstream() {
  need_go
  build_product "${programs[@]}"
  step upstream "programs of the control plane" bash -c 'cd integration && go run ./control_plane/cmd/build-tools'
  go_tests upstream "upstream's own tests, of plugins and of whole schedulers" -p 1 -timeout 150m ./parity/harvest ./upstream -args -packages all
}

tier_guide() {
  need_go
  need_packages docker.io debootstrap
  verb_package
  step guide "programs of the control plane" bash -c 'cd integration && go run ./control_plane/cmd/build-tools'
  local packages=("$build"/package/outboard-*-linux-*.tar.gz)
  OUTBOARD_PACKAGE=${packages[0]%.tar.gz} go_tests guide "the guide in an empty container, and an author's day" -timeout 30m \
    -exec "$root/integration/guide/with_docker.sh" ./guide
  # The measured times.
  sed -n 's/.*"Output":" *[a-z_]*\.go:[0-9]*: \(from .*\)\\n.*/  \1/p' "$logs"/guide-integration-*.json
}

tier_examples() {
  need_go
  need_packages protobuf-compiler openjdk-17-jdk-headless maven
  # Node that does not come from Debian has npm with it.
  command -v npm >/dev/null || need_packages nodejs npm
  build_product "${programs[@]}"
  step examples "hosts in Go, Java and TypeScript from the contract alone" "$root/integration/examples/examples_test.sh" "$build/release/bin" \
    go java typescript
  step examples "go vet of the host in Go" bash -c 'cd integration/examples/go && go vet ./...'
}

tier_older() {
  need_go
  need_packages "${network_packages[@]}" python3 python3-venv
  need_prometheus
  build_product "${programs[@]}"
  build_fail_points
  local release
  for release in integration/control_plane/older/*; do
    release=$(basename "$release")
    step older "programs of the control plane, $release" env "OUTBOARD_KUBERNETES=$release" bash -c 'cd integration && go run ./control_plane/cmd/build-tools'
    OUTBOARD_KUBERNETES=$release go_tests older "real control plane, $release" -p 1 -timeout 40m ./scenarios/... ./faults/...
  done
}

tier_storms() {
  need_go
  need_packages "${build_packages[@]}" "${test_packages[@]}"
  configure release -DCMAKE_BUILD_TYPE=RelWithDebInfo -DOUTBOARD_BUILD_TESTS=ON
  compile release gang_storm_test preemption_storms "${programs[@]}"
  step storms "10,000 storms of preemptions" "$build/release/bin/preemption_storms" --storms 10000
  step storms "10,000 gangs on virtual time" env OUTBOARD_STORM_GANGS=10000 "$build/release/tests/gang_storm_test"
  step storms "programs of the control plane" bash -c 'cd integration && go run ./control_plane/cmd/build-tools'
  go_tests storms "300 gangs on a real control plane" -timeout 40m ./scenarios/gangs -args -gangs 300
}

# Runs every libFuzzer program for OUTBOARD_FUZZ_SECONDS (10) over its seeds and what earlier runs found, which stays in build/fuzz/corpus.
# An input that broke a promise is in build/fuzz/crashes: add it to the target's seeds, so that the unit tier repeats it.
tier_fuzz() {
  need_packages "${build_packages[@]}" "${sanitizer_packages[@]}"
  configure fuzz -DCMAKE_CXX_COMPILER=clang++-14 -DCMAKE_BUILD_TYPE=None "-DCMAKE_CXX_FLAGS=-O1 -g1" -DOUTBOARD_SANITIZE=address,fuzzer-no-link \
    -DOUTBOARD_BUILD_FUZZERS=ON -DOUTBOARD_BUILD_TESTS=OFF
  compile fuzz outboard_fuzzers
  local seconds=${OUTBOARD_FUZZ_SECONDS:-10} name seeds log
  mkdir -p "$build/fuzz/crashes"
  while read -r name seeds; do
    [[ -z ${OUTBOARD_FUZZ_TARGETS:-} || " $OUTBOARD_FUZZ_TARGETS " == *" ${name%_fuzzer} "* ]] || continue
    log=$logs/fuzz-$name.log
    mkdir -p "$build/fuzz/corpus/$name"
    say "$name, $seconds s"
    if "$build/fuzz/fuzzers/$name" -max_total_time="$seconds" -timeout=20 -rss_limit_mb=2048 -print_final_stats=1 \
      -artifact_prefix="$build/fuzz/crashes/$name-" "$build/fuzz/corpus/$name" "$seeds" >"$log" 2>&1 </dev/null; then
      record fuzz 1 0 0 "$name: $(sed -n 's/^stat::number_of_executed_units: *//p' "$log") executions"
    else
      tail -n 40 "$log"
      record fuzz 0 1 0 "$name; its input: $build/fuzz/crashes"
    fi
  done <"$build/fuzz/fuzzers.txt"
}

# GPUModelMatch beside scheduler-plugins' NodeResourceTopologyMatch, which compiles a thousand packages.
tier_numa() {
  need_go
  need_packages "${build_packages[@]}" "${test_packages[@]}"
  configure release -DCMAKE_BUILD_TYPE=RelWithDebInfo -DOUTBOARD_BUILD_TESTS=ON
  compile release numa_answers
  go_module=integration/numa go_tests numa "NUMA zones as NodeResourceTopologyMatch decides" -timeout 20m ./...
}

# Real publishers of GPU facts, against what is recorded of them.
tier_publishers() {
  need_go
  need_prometheus
  go_module=integration/publishers/gpu_feature_discovery go_tests publishers "GPU Feature Discovery, as recorded" -timeout 10m ./...
  go_module=integration/publishers/node_feature_discovery go_tests publishers "Node Feature Discovery's topology updater, as recorded" -timeout 15m ./...
  go_tests publishers "metrics of GPUs in a real Prometheus" ./publishers/metrics
}

# The suites of integration/faults in their long forms.
tier_faults() {
  need_go
  need_packages "${network_packages[@]}"
  build_product "${programs[@]}"
  build_fail_points
  claims_host faults
  step faults "programs of the control plane" bash -c 'cd integration && go run ./control_plane/cmd/build-tools'
  go_tests faults "faults, for long" -p 1 -parallel 2 -timeout 10h ./faults -args -points.each=50 -points.stops=12 -claims.kills=30 -failover.handovers=50 \
    -failover.kills=50 -failover.stops=40 -failover.hangs=5 -two-schedulers.rounds=4 -machines.starved=60s \
    -networks.all -networks.load=10s -networks.leader=5 -hostile.all
}

tier_mutants() {
  build_with_tests
  step mutants "seeded faults are caught" integration/mutants/mutants.py --build "$build/release"
  cat "$logs/mutants-seeded-faults-are-caught.log"
}

# Names of a preset's tests whose label matches the regular expression.
test_names() { # PRESET REGEX
  ctest --test-dir "$build/$1" --label-regex "$2" --show-only 2>/dev/null | sed -n 's/^ *Test *#[0-9]*: *//p'
}

tier_sanitizers() {
  need_packages "${build_packages[@]}" "${test_packages[@]}" "${sanitizer_packages[@]}"

  # GCC ignores the lock annotations; clang reports violations as errors.
  configure clang -DCMAKE_CXX_COMPILER=clang++-14 -DCMAKE_BUILD_TYPE=None -DCMAKE_CXX_FLAGS=-O0 -DOUTBOARD_BUILD_TESTS=OFF
  step sanitizers "clang's thread-safety analysis" compile clang all

  configure asan -DCMAKE_BUILD_TYPE=None "-DCMAKE_CXX_FLAGS=-O1 -g1" -DOUTBOARD_SANITIZE=address,undefined -DOUTBOARD_BUILD_TESTS=ON
  step sanitizers "build with address and undefined-behaviour sanitizers" compile asan all
  ASAN_OPTIONS=detect_leaks=1:detect_stack_use_after_return=1 UBSAN_OPTIONS=print_stacktrace=1 \
    cpp_tests sanitizers "address and undefined-behaviour sanitizers" asan --label-regex '^(unit|component)$' --exclude-regex '_script$'

  # Debian's gRPC is not instrumented, so only programs that do not link it. Debian's Protocol Buffers are not instrumented either: their
  # headers must not see the sanitizer, or they would lay out map fields differently from the library.
  configure tsan -DCMAKE_BUILD_TYPE=None "-DCMAKE_CXX_FLAGS=-O1 -g1 -U__SANITIZE_THREAD__" -DOUTBOARD_SANITIZE=thread -DOUTBOARD_BUILD_TESTS=ON
  local program programs=() tests=()
  while read -r program; do
    ninja -C "$build/tsan" -t commands "tests/$program" 2>/dev/null | tail -n 1 | grep -q 'grpc' && continue
    programs+=("$program")
    mapfile -t -O "${#tests[@]}" tests < <(awk -v program="$program" '$2 == program { print $1 }' "$build/tsan/tests.txt")
  done < <(awk 'NR == FNR { unit[$1]; next } $1 in unit { print $2 }' <(test_names tsan '^unit$') "$build/tsan/tests.txt" | sort -u)
  step sanitizers "build with the thread sanitizer" compile tsan "${programs[@]}"
  # Its shadow memory needs fixed addresses, which newer kernels may give to other mappings (address randomization).
  cpp_tests sanitizers "thread sanitizer" tsan --label-regex '^unit$' --tests-regex "^($(IFS='|' && echo "${tests[*]}"))\$"
}

run_tier() { # TIER
  local start=$SECONDS status
  say "tier $1"
  # A tier that aborts must not stop the other tiers. (As a condition it would not even stop at its first error.)
  set +e
  (set -euo pipefail && "tier_$1")
  status=$?
  set -e
  if [[ $status != 0 ]] || ! grep -q "^$1 " "$summary"; then record "$1" 0 1 0 "$1 aborted"; fi
  echo "$1 $((SECONDS - start))" >>"$logs/times"
}

# The tier go computes and the tier cluster waits, so they run at once. Tests of the cluster have deadlines and come first; the output of
# the other tier follows theirs.
run_go_and_cluster() {
  local log=$logs/go.log
  # With a process group of its own, so that Ctrl-C ends it.
  set -m
  (renice --priority 15 --pid "$BASHPID" >/dev/null || true; run_tier go) >"$log" 2>&1 &
  beside=$!
  set +m
  trap 'kill -- "-$beside" 2>/dev/null || true' EXIT
  run_tier cluster
  tail --pid="$beside" --follow --lines=+1 "$log"
  wait "$beside"
  trap - EXIT
}

run_tiers() {
  local tiers=("$@") tier began=$SECONDS
  [[ ${#tiers[@]} -gt 0 ]] || tiers=("${all_tiers[@]}")
  for tier in "${tiers[@]}"; do
    [[ " ${all_tiers[*]} ${named_tiers[*]} " == *" $tier "* ]] ||
      usage "test: unknown tier \"$tier\"; known: ${all_tiers[*]} ${named_tiers[*]}"
  done
  rm -rf "$logs"
  mkdir -p "$logs"
  : >"$summary"
  local at_once=0
  if [[ " ${tiers[*]} " == *" go "* && " ${tiers[*]} " == *" cluster "* ]]; then at_once=1; fi
  for tier in "${tiers[@]}"; do
    case $at_once:$tier in
      1:go) ;; # Runs beside the tier cluster.
      1:cluster) run_go_and_cluster ;;
      *) run_tier "$tier" ;;
    esac
  done
  if [[ -s $logs/second_tries ]]; then
    printf '\nPassed at the second try only, so either the test or what it tests is to be mended:\n'
    cat "$logs/second_tries"
  fi
  [[ ! -e $logs/failures ]] || cat "$logs/failures"
  echo
  awk -v total_seconds=$((SECONDS - began)) '
    FNR == NR { seconds[$1] = $2; next }
    { if (!($1 in passed)) order[++n] = $1; passed[$1] += $2; failed[$1] += $3; skipped[$1] += $4 }
    END {
      for (i = 1; i <= n; i++) {
        t = order[i]; p += passed[t]; f += failed[t]
        printf "%-11s %5d passed %4d failed %4d skipped %5d s\n", t, passed[t], failed[t], skipped[t], seconds[t]
      }
      printf "%d passed, %d failed\n", p, f
      exit f > 0
    }' "$logs/times" "$summary"
}
