#!/usr/bin/env bash
# reaches.sh TARGET IMPOSSIBLE PROGRAM [OPTION...]: the example reaches the one
# target, and with the other one ends with 21 and no other way; our engine interprets
# nothing of it. In an option @ is the shared folder and a slash.
set -u
cd "$TMPDIR" || exit 1
target=$1 impossible=$2
shift 2
set -- "${@/#@/${CALX_SHARED:-}/}"
CALX_CPU_STATS=stats.txt "$@" --target "$target" >run.txt 2>&1
code=$?
tail -n 4 run.txt
if [ $code != 0 ]; then echo "FAILED: exit code $code, 0 is wanted"; exit 1; fi
if grep -q recompile run.txt; then
  grep recompile run.txt
  echo "FAILED: programs are compiled unexpectedly"
  exit 1
fi
# A line is "name compiled library interpreted", of a program.
if [ "$CALX_PLUGIN" = calx ] && ! awk '{ n += $(NF - 2); bad += $NF }
    END { exit n == 0 || bad != 0 }' stats.txt; then
  cat stats.txt
  echo "FAILED: the engine interprets"
  exit 1
fi
"$@" --epochs 1 --target "$impossible" >run.txt 2>&1
code=$?
[ $code = 21 ] && exit 0
tail -n 4 run.txt
echo "FAILED: exit code $code with --target $impossible, 21 is wanted"
exit 1
