#!/bin/sh
# precompile.sh LAUNCHER… COMPILER ARGUMENT…: compiles a precompiled header from its headers, not from the one being replaced.
# Before it compiles, a compiler cache preprocesses, and GCC's preprocessor then names an old precompiled header instead of reading
# the headers. So the cache would find what another clone compiled after the same old one, from other headers.
for argument in "$@"; do
  case $argument in *.gch) rm -f "$argument" ;; esac
done
exec "$@"
