#!/usr/bin/env bash
# valgrind.sh PROGRAM: a program runs under valgrind, whose processor has no
# AVX-512: with nothing on disk, with what a native run left there, and natively
# with what the run under valgrind left.
set -u
cd "$TMPDIR" || exit 1
program=$1
failed=0

run() {  # what, cache folder, command
  local what=$1 folder=$2
  shift 2
  CALX_QUIET=1 CALX_CACHE_DIR=$PWD/$folder "$@" >out.txt 2>err.txt
  local status=$?
  if [ $status = 0 ] && [ "$(cat out.txt)" = "0.9995 0.0172" ]; then
    echo "ok: $what"
  else
    echo "FAILED: $what: exit $status"
    cat out.txt err.txt
    failed=1
  fi
}

mkdir native own
chmod 700 native own
run "a native run" native "$program"
run "valgrind after a native run" native valgrind -q --tool=none "$program"
run "valgrind with an empty cache" own valgrind -q --tool=none "$program"
run "a native run after valgrind" own "$program"
run "memcheck with programs on disk" own valgrind "$program"
# Those of the C library's loader (strncmp in ld.so) are not ours.
if grep -A3 -E 'Invalid (read|write)|uninitialised' err.txt |
  grep -E '(src|plugin)/|[( ]calx_|[( ]cx_' ; then
  echo "FAILED: memcheck finds errors of ours"
  cat err.txt
  failed=1
fi
exit $failed
