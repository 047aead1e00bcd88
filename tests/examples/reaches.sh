#!/usr/bin/env bash
# reaches.sh TARGET IMPOSSIBLE PROGRAM [OPTION...]: the example reaches the one
# target, and with the other one ends with 21 and no other way; our engine interprets
# nothing of it. In an option @ is the shared folder and a slash. The trainer's
# examples have its options; TRAINS_TWICE=1: one that trains two models in turn;
# FEW: more options of the run that misses its target, which is to be short; the
# file short.txt is there for it.
set -u
cd "$TMPDIR" || exit 1
target=$1 impossible=$2
shift 2
set -- "${@/#@/${CALX_SHARED:-}/}"
CALX_CPU_STATS=stats.txt "$@" --target "$target" >run.txt 2>&1
code=$?
tail -n 4 run.txt
if [ $code != 0 ]; then echo "FAILED: exit code $code, 0 is wanted"; exit 1; fi
if [ "${TRAINS_TWICE:-}" = "" ] && grep -q recompile run.txt; then
  grep recompile run.txt
  echo "FAILED: programs are compiled unexpectedly"
  exit 1
fi
# A line is "name compiled library interpreted", of a program. On several ranks the
# broadcast of the first weights has a replica_id, which is interpreted.
if [ "$CALX_PLUGIN" = calx ] && ! awk -v few="${CPU_NUM_DEVICES:+1}" \
    '{ n += $(NF - 2); bad += $NF > few + 0 }
    END { exit n == 0 || bad != 0 }' stats.txt; then
  cat stats.txt
  echo "FAILED: the engine interprets"
  exit 1
fi
few=(--epochs 1)
[[ $* == */trainer_* ]] && few=(--max_epochs 1)
read -ra more <<<"${FEW:-}"
seq 9999 >short.txt
"$@" "${few[@]}" ${more[@]+"${more[@]}"} --target "$impossible" >run.txt 2>&1
code=$?
[ $code = 21 ] && exit 0
tail -n 4 run.txt
echo "FAILED: exit code $code with --target $impossible, 21 is wanted"
exit 1
