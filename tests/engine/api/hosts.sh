#!/usr/bin/env bash
# hosts.sh CASE PEER SHIMS: processes of several hosts, as launchers start them.
# SHIMS is the folder of the engine's shared objects for MPI.
#
#   mpirun    under MPICH's and Open MPI's mpirun, each process a host; also of
#             a program that begins and ends MPI itself
#   exits     10 worlds of two hosts that do something small and end, 50 where
#             CALX_TEST_LONG=1 asks
#   failures  a killed process
#   cable     a cable that is pulled
#
# A host is a network namespace with a name, a /dev/shm and a network interface
# of its own. Where those cannot be made (not root, or the kernel says no), the
# hosts are processes here that speak TCP over the loopback, and there is no
# cable to pull: that case is skipped.
set -u

case=$1
peer=$2
shims=$3
work=$(mktemp -d)
hosts=()    # network namespaces
holders=()  # processes that keep the other namespaces of each host

fail() {
  echo "FAILED: $*"
  cat "$work"/out.* 2>/dev/null
  exit 1
}

# ---- hosts -------------------------------------------------------------------

end_hosts() {
  local name
  [ ${#holders[@]} = 0 ] || kill "${holders[@]}" 2>/dev/null
  for name in ${hosts[@]+"${hosts[@]}"}; do ip netns del "$name"; done
  rm -rf "$work"
}
trap end_hosts EXIT

make_hosts() {
  local i name
  for i in 0 1; do
    name=calx-$$-$i
    ip netns add "$name" 2>/dev/null || return 1
    hosts+=("$name")
  done
  ip link add "cx$$a" netns "${hosts[0]}" type veth \
    peer name "cx$$b" netns "${hosts[1]}" 2>/dev/null || return 1
  cables=("cx$$a" "cx$$b")
  for i in 0 1; do
    ip -n "${hosts[i]}" addr add "10.77.0.$((i + 1))/24" dev "${cables[i]}" &&
      ip -n "${hosts[i]}" link set "${cables[i]}" up &&
      ip -n "${hosts[i]}" link set lo up || return 1
  done
  # What every machine with Docker has: the same address on both.
  for i in 0 1; do
    ip -n "${hosts[i]}" link add docker0 type bridge 2>/dev/null &&
      ip -n "${hosts[i]}" addr add 172.17.0.1/16 dev docker0 &&
      ip -n "${hosts[i]}" link set docker0 up
  done
  for i in 0 1; do
    ip netns exec "${hosts[i]}" unshare -u -i -m sh -c \
      'hostname "$0" && mount -t tmpfs tmpfs /dev/shm && touch /dev/shm/ready &&
       exec sleep 1000' "${hosts[i]}" &
    holders+=($!)
    disown
    wait_until test -e "/proc/$!/root/dev/shm/ready" || return 1
    rm "/proc/$!/root/dev/shm/ready"
    # The kernel tells a while later that the cable is in.
    wait_until ip netns exec "${hosts[i]}" sh -c \
      "ip link show ${cables[i]} | grep -q 'state UP'" || return 1
  done
}

wait_until() { # COMMAND...: up to 5 s
  local i
  for ((i = 0; i < 250; i++)); do
    "$@" && return
    sleep 0.02
  done
  return 1
}

on_host() { # HOST COMMAND...
  local i=$1
  shift
  if [ ${#hosts[@]} = 0 ]; then
    exec env UCX_TLS=tcp,self "$@"
  fi
  exec nsenter --target "${holders[i]}" -n -u -i -m "$@"
}

master=10.77.0.1
port=$((20000 + $$ % 20000))

# Starts PER_HOST processes on each of two hosts; their numbers are in `pids`.
start() { # PER_HOST ARGUMENT...
  local each=$1 rank
  shift
  pids=()
  port=$((port + 1))
  for ((rank = 0; rank < 2 * each; rank++)); do
    (
      export RANK=$rank WORLD_SIZE=$((2 * each)) LOCAL_RANK=$((rank % each)) \
        LOCAL_WORLD_SIZE=$each GROUP_RANK=$((rank / each)) GROUP_WORLD_SIZE=2 \
        MASTER_ADDR=$master MASTER_PORT=$port
      on_host $((rank / each)) "$peer" "$@" >"$work/out.$rank" 2>&1
    ) &
    pids+=($!)
  done
}

# All must end with STATUS within 20 s, but one of them with another.
join() { # STATUS [RANK STATUS]
  local rank status wanted deadline=$((SECONDS + 20))
  for rank in "${!pids[@]}"; do
    wanted=$1
    [ "${2:-}" = "$rank" ] && wanted=$3
    while kill -0 "${pids[rank]}" 2>/dev/null && [ $SECONDS -lt $deadline ]; do
      sleep 0.02
    done
    if kill -0 "${pids[rank]}" 2>/dev/null; then
      kill -9 "${pids[@]}" 2>/dev/null
      fail "process $rank has not ended"
    fi
    wait "${pids[rank]}" 2>/dev/null
    status=$?
    [ $status = "$wanted" ] || fail "process $rank: status $status, not $wanted"
  done
}

wait_for() { # WORDS: in the first process's output
  local deadline=$((SECONDS + 20))
  until grep -q "$1" "$work/out.0"; do
    [ $SECONDS -lt $deadline ] || fail "nobody says '$1'"
    sleep 0.02
  done
}

# ---- cases -------------------------------------------------------------------

run_mpirun() {
  local n
  export PEER_APART=1 OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
  for n in 2 3 4; do
    mpirun.mpich -n $n "$peer" all || fail "MPICH, $n processes"
    mpirun.openmpi --oversubscribe --bind-to none -n $n "$peer" all ||
      fail "Open MPI, $n processes"
  done
  PEER_MPI=$shims/libcalx_mpi_mpich.so mpirun.mpich -n 2 "$peer" small ||
    fail "MPICH that the program began"
  PEER_MPI=$shims/libcalx_mpi_openmpi.so mpirun.openmpi --oversubscribe \
    --bind-to none -n 2 "$peer" small || fail "Open MPI that the program began"
}

run_exits() {
  local i n=5
  [ "${CALX_TEST_LONG:-}" = 1 ] && n=25
  for ((i = 0; i < n; i++)); do
    start 1 small && join 0
    start 2 small && join 0
  done
  start 2 all && join 0
  echo "$((2 * n)) ends"
}

run_failures() {
  start 2 loop 3
  join 3 3 137
  grep -q "process 3 was lost" "$work/out.0" || fail "nobody names process 3"
  echo "killed: $(tail -n 1 "$work/out.0")"
}

run_cable() {
  export CALX_HEARTBEAT_S=2
  start 2 loop
  wait_for "five rounds"
  ip -n "${hosts[1]}" link set "${cables[1]}" down
  join 3
  echo "cable: $(tail -n 1 "$work/out.0")"
  echo "cable: $(tail -n 1 "$work/out.3")"
}

# Who is not root may be it where the namespaces are his own.
if [ "$case" = cable ] && [ "$(id -u)" != 0 ]; then
  exec unshare --user --map-root-user --mount --net sh -c \
    'mount -t tmpfs tmpfs /run && exec "$@"' sh "$0" "$@"
fi
if [ "$case" != mpirun ] && ! make_hosts; then
  if [ "$case" = cable ]; then
    echo "not possible here: hosts with a cable between them"
    exit 77
  fi
  echo "no network namespaces: the hosts are processes here"
  for name in ${hosts[@]+"${hosts[@]}"}; do ip netns del "$name"; done
  hosts=() holders=()
  master=127.0.0.1
fi
"run_$case"
