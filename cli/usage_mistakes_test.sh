#!/usr/bin/env bash
# Runs every command line of testdata/usage_mistakes.txt, and compares exit code and standard error. None may succeed, be
# silent, write to standard output, or fail to name what is wrong; every command of `outboard` and verb of `./dev` has one.
# Usage: usage_mistakes_test.sh FOLDER-OF-PROGRAMS [--write]
set -euo pipefail
bin=$(cd "$1" && pwd)
write=${2:-}
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
table=$root/cli/testdata/usage_mistakes.txt
dir=$(mktemp -d)
hosts=()
trap 'kill "${hosts[@]}" 2>/dev/null || true; rm -rf "$dir"' EXIT
mkdir "$dir/run"
cd "$dir/run"
failed=0
fail() {
  echo "FAILED: $*"
  failed=1
}

# What the command lines name.
mkdir folder
touch empty.yaml
echo secret >token
echo text >plugin.so
cat >nodes.yaml <<'YAML'
apiVersion: v1
kind: Node
metadata: {name: n1}
status: {allocatable: {cpu: "4", memory: 8Gi, pods: "110"}}
YAML
cat >pod.yaml <<'YAML'
apiVersion: v1
kind: Pod
metadata: {name: web}
spec: {containers: [{name: main, image: registry.example/web}]}
YAML
cat >config.yaml <<'YAML'
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles: [{schedulerName: outboard-scheduler}]
---
apiVersion: config.outboard.dev/v1alpha1
kind: ShimConfiguration
hosts: [{name: main, address: "unix:live.sock"}]
YAML
sed 's/profiles: .*/profiles: [{plugins: {filter: {enabled: [{name: NodeNames}]}}}]/' config.yaml >plugin.yaml
echo '{"name": "a"}' >trace.jsonl
cp config.yaml secret.yaml
chmod 000 secret.yaml
cat >dev <<SH
#!/usr/bin/env bash
exec "$root/dev" "\$@"
SH
chmod +x dev
# A mistake that ./dev overlooks must not build or format anything.
mkdir ../stubs
for program in ninja cmake ctest go gofmt clang-format-14; do
  printf '#!/bin/sh\necho "%s was started" >&2\nexit 99\n' "$program" >"../stubs/$program"
  chmod +x "../stubs/$program"
done
# A host that serves, whose metrics are a server that is not a shim; and the socket of a host that was killed.
"$bin/outboard-host" --listen unix:stale.sock 2>stale.log &
hosts+=($!)
"$bin/outboard-host" --listen unix:live.sock --metrics-address 127.0.0.1:0 2>live.log &
hosts+=($!)
for name in stale live; do
  until [[ -S $name.sock ]]; do
    kill -0 "${hosts[@]}" || { cat ./*.log; exit 1; }
    sleep 0.02
  done
done
kill -KILL "${hosts[0]}"
wait "${hosts[0]}" 2>/dev/null || true
hosts=("${hosts[1]}")
port=$(sed -n 's,.*http://127.0.0.1:\([0-9]*\)/metrics.*,\1,p' live.log)

# Root may read every file, unless it gives that right up.
as_user=()
[[ $(id -u) != 0 ]] || as_user=(setpriv '--bounding-set=-dac_override,-dac_read_search')

# run COMMAND-LINE: sets $code and $said; checks what is true of every mistake.
run() {
  code=0
  env -i PATH="$dir/stubs:$bin:$PATH" HOME="$dir" PORT="$port" OUTBOARD_INSTALL=0 timeout 30 "${as_user[@]}" bash -c "$1" >../out 2>../err </dev/null || code=$?
  # A log line begins with its level, time, thread and place.
  said=$(sed -E "s#$dir/run#DIR#g; s#$bin#BIN#g; s#127\.0\.0\.1:$port#127.0.0.1:PORT#g; s#^([IWEF])[0-9]{4} [0-9:.]+ +[0-9]+ [^]]*\] #\1 #" ../err)
  [[ $code == 1 || $code == 2 ]] || fail "$1: exit code $code"
  [[ ! -s ../out ]] || fail "$1: writes to standard output: $(head -n 1 ../out)"
  names_something "$1" "$(grep -v '^Try: ' <<<"$said" || true)" || fail "$1: names neither a flag, a file nor an argument: $said"
}

# names_something COMMAND-LINE TEXT: whether the text has a word of the command line, a flag, or an argument's name.
names_something() {
  local word
  grep -qE -- '(^|[^a-z-])--?[a-z]|\b(FILE|NAME|HOST|SHELL|SUITE)\b' <<<"$2" && return
  for word in ${1//[^a-zA-Z0-9._-]/ }; do
    [[ $word != outboard* && ${#word} -gt 2 && $2 == *"$word"* ]] && return
  done
  return 1
}

commands=()
title='' command='' wanted_code='' wanted='' head='' in_message=0
: >../written
finish() {
  [[ -n $title ]] || return 0
  commands+=("$command")
  run "$command"
  if [[ $write != --write && "$code
$said" != "$wanted_code
$wanted" ]]; then
    fail "$title: $command"
    diff -u --label wanted --label got <(printf '%s\n' "$wanted_code" "$wanted") <(printf '%s\n' "$code" "$said") || true
  fi
  printf '== %s\n%s\n-- %s\n%s\n' "$title" "$command" "$code" "$said" >>../written
}
while IFS= read -r line; do
  case $line in
    '== '*)
      finish
      title=${line#== } command='' wanted='' in_message=0
      ;;
    '-- '*) wanted_code=${line#-- } in_message=1 ;;
    *)
      if [[ -z $title ]]; then
        head+=$line$'\n'
      elif [[ $in_message == 0 ]]; then
        command=$line
      else
        wanted+=${wanted:+$'\n'}$line
      fi
      ;;
  esac
done <"$table"
finish

has() { # PREFIX
  local one
  for one in "${commands[@]}"; do [[ $one == "$1"* ]] && return; done
  fail "no mistake begins with: $1"
}
for verb in $("$bin/outboard" --help | awk '/^Commands:/ { on = 1; next } /^$/ { on = 0 } on && /^  [a-z]/ { print $1 }'); do
  has "outboard $verb"
done
# The flags of `./dev cluster` are known to a Go program, which the first call builds.
for verb in $(./dev help | awk '/^  [a-z]/ && $1 != "cluster" { print $1 }' | sort -u); do has "./dev $verb"; done
has outboard-shim
has outboard-host
has outboard-node-probe

if [[ $write == --write ]]; then
  { printf '%s' "$head"; cat ../written; } >"$table"
  echo "wrote $table"
fi
echo "${#commands[@]} mistakes"
exit $failed
