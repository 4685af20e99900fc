#!/usr/bin/env bash
# A sweep on a real SLURM cluster of one node: shards submitted with `hyperfold submit --slurm`, one task killed with SIGKILL and one requeued on the way,
# results merged by the dependent job and compared, byte for byte, with a run in one piece.
#
#   scripts/soak-slurm.sh [path of the hyperfold binary]
#
# munged, slurmctld and slurmd are started here with a configuration of their own in a temporary folder, listen on loopback only, and are ended by their
# process ids. SLURM on this machine, if there is one, is left alone. Run by `scripts/test.sh --soak`.
set -euo pipefail
cd "$(dirname "$0")/.."

bin=$(readlink -f "${1:-${CARGO_TARGET_DIR:-target}/checked/hyperfold}")
say() { printf 'soak-slurm: %s\n' "$*"; }
PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin
[ -x "$bin" ] || { say "$bin: no such program; build it first" >&2; exit 1; }
for program in munged slurmctld slurmd sbatch scontrol; do
    command -v "$program" >/dev/null || { say "$program is missing; run scripts/setup-slurm.sh" >&2; exit 1; }
done
# Daemons listen on the address of the host's name. Where that is no loopback address, the name is another one in a namespace of our own.
case "$(getent ahostsv4 "$(hostname)" | awk 'NR == 1 { print $1 }')" in
    127.*) ;;
    *)
        [ -z "${HYPERFOLD_SOAK_UTS:-}" ] || { say "the name localhost does not resolve to a loopback address" >&2; exit 1; }
        say "this host's name is not a loopback address; going on under the name localhost in a UTS namespace"
        [ "$(id -u)" = 0 ] && user_namespace=() || user_namespace=(--map-root-user)
        HYPERFOLD_SOAK_UTS=1 exec unshare --uts "${user_namespace[@]}" bash -c 'hostname localhost && exec "$0" "$@"' "$PWD/scripts/soak-slurm.sh" "$bin"
        ;;
esac

dir=$(mktemp -d "${TMPDIR:-/tmp}/hyperfold-slurm.XXXXXX")
# munged insists that everybody may reach its socket.
chmod 711 "$dir"
work="$dir/it's 100% #1"
out="$work/out 1"
pids=()
daemons=0
# shellcheck disable=SC2317 # called by the trap
clean_up() {
    local code=$? pid
    trap - EXIT
    if [ "$code" != 0 ]; then
        say "failed; the ends of the logs:" >&2
        tail -n 15 "$dir"/*.log "$out"/logs/*.log >&2 || true
    fi
    # Jobs first, so that no task outlives its daemon; then the daemons, the last first.
    [ "$daemons" = 3 ] && timeout 20 scancel --full --quiet --user="$(id -un)" 2>/dev/null || true
    for _ in 1 2 3 4 5 6 7 8 9 10; do
        [ "$daemons" = 3 ] && [ -n "$(timeout 5 squeue -h 2>/dev/null)" ] || break
        sleep 0.5
    done
    for ((i = ${#pids[@]} - 1; i >= 0; i--)); do
        pid=${pids[i]}
        kill "$pid" 2>/dev/null || true
        for _ in $(seq 50); do kill -0 "$pid" 2>/dev/null || break; sleep 0.1; done
        kill -9 "$pid" 2>/dev/null || true
    done
    wait 2>/dev/null || true
    rm -rf "$dir"
    exit "$code"
}
trap clean_up EXIT
trap 'exit 1' INT TERM

# Waits up to $1 s until a command succeeds.
until_true() {
    local seconds=$1 end=$((SECONDS + $1))
    shift
    until "$@"; do
        if [ $SECONDS -ge $end ]; then say "waited $seconds s in vain: $*" >&2; return 1; fi
        sleep 0.2
    done
}

free_port() {
    local port
    for _ in $(seq 100); do
        port=$((20000 + RANDOM % 12000))
        (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null || { echo "$port"; return; }
    done
    return 1
}

user=$(id -un)
name=$(hostname -s)
mkdir "$dir/state" "$dir/spool" "$dir/bin"
(umask 077 && head -c 1024 /dev/urandom >"$dir/munge.key")
ctl_port=$(free_port)
node_port=$(free_port)
cat >"$dir/slurm.conf" <<END
ClusterName=soak
SlurmctldHost=$name(127.0.0.1)
SlurmUser=$user
SlurmdUser=$user
SlurmctldPort=$ctl_port
SlurmdPort=$node_port
CommunicationParameters=NoInAddrAny,NoCtldInAddrAny
AuthType=auth/munge
AuthInfo=socket=$dir/munge.sock
CredType=cred/munge
StateSaveLocation=$dir/state
SlurmdSpoolDir=$dir/spool
SlurmctldPidFile=$dir/slurmctld.pid
SlurmdPidFile=$dir/slurmd.pid
SlurmctldLogFile=$dir/slurmctld.log
SlurmdLogFile=$dir/slurmd.log
# What a container allows: no cgroups, no accounting.
ProctrackType=proctrack/pgid
TaskPlugin=task/none
MpiDefault=none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SchedulerParameters=sched_interval=1,bf_interval=1,batch_sched_delay=0
SlurmdParameters=config_overrides
ReturnToService=2
KillWait=2
# Two GPUs that are none, so that --gres=gpu:1 holds two of four tasks back.
GresTypes=gpu
NodeName=$name NodeAddr=127.0.0.1 CPUs=4 Gres=gpu:2 State=UNKNOWN
PartitionName=soak Nodes=$name Default=YES MaxTime=INFINITE State=UP
END
printf 'NodeName=%s Name=gpu File=/dev/null\nNodeName=%s Name=gpu File=/dev/zero\n' "$name" "$name" >"$dir/gres.conf"
export SLURM_CONF=$dir/slurm.conf

munged --foreground --key-file="$dir/munge.key" --socket="$dir/munge.sock" --pid-file="$dir/munged.pid" --log-file="$dir/munged.log" \
    --seed-file="$dir/munge.seed" --num-threads=2 >>"$dir/munged.log" 2>&1 &
pids+=($!) daemons=$((daemons + 1))
until_true 10 test -S "$dir/munge.sock"
slurmctld -D -f "$SLURM_CONF" >/dev/null 2>&1 &
pids+=($!) daemons=$((daemons + 1))
slurmd -D -f "$SLURM_CONF" -N "$name" >/dev/null 2>&1 &
pids+=($!) daemons=$((daemons + 1))
# shellcheck disable=SC2317 # called by until_true
idle() { [ "$(sinfo -h -o %T 2>/dev/null)" = idle ]; }
until_true 30 idle
# In /proc/net/tcp addresses are hexadecimal, 127.x.x.x ends in 7F; state 0A listens.
open=$(awk -v a="$(printf %04X "$ctl_port")" -v b="$(printf %04X "$node_port")" \
    '$4 == "0A" { split($2, at, ":"); if ((at[2] == a || at[2] == b) && at[1] !~ /7F$/) print $2 }' /proc/net/tcp)
[ -z "$open" ] || { say "a daemon listens beyond loopback: $open" >&2; exit 1; }
say "$(slurmctld -V): one node is idle, on loopback"

# Sixteen experiments, four a shard: short ones that have ended when a task is killed, and a long one that has not. Names that need quoting all the way.
mkdir "$work"
cat >"$work/rail sweep.toml" <<END
name = "soak: SLURM"
[base.cluster]
gpus = 64
[base.workload]
kind = "traffic"
pattern = "permutation"
[base.output]
flows = true
[axes]
"workload.bytes" = [100_000, 1_000_000, 2_000_000, 24_000_000]
"topology.link_gbps" = [100, 200, 300, 400]
END
"$bin" run "$work/rail sweep.toml" --out "$work/whole" --engine cpu --quiet

"$bin" submit "$work/rail sweep.toml" --slurm --shards 4 --out "$out" --engine cpu --gres gpu:1 --cpus 1 --time 10 --partition soak --wait >"$dir/submit.log" &
submitted=$!
pids=("$submitted" "${pids[@]}")
until_true 30 grep -q '^merge job' "$dir/submit.log"
array=$(sed -n 's/^array job \([0-9]*\):.*/\1/p' "$dir/submit.log")

task() { scontrol --oneliner show job "${array}_$1" | tr ' ' '\n' | sed -n "s/^$2=//p"; }
# shellcheck disable=SC2317 # called by until_true
some_results() { grep -qs '"event":"finished"' "$out/shard-$1/events.jsonl"; }
process_of() { # shard
    local process
    for process in /proc/[0-9]*; do
        if [ "$(readlink "$process/exe")" = "$bin" ] && tr '\0' '\n' <"$process/cmdline" | grep -qxF -- "$out/shard-$1"; then
            echo "${process#/proc/}"
            return
        fi
    done
    return 1
}
# SLURM lets a requeued task wait for two minutes; the soak does not. SLURM sets that time a little after the task is pending, so it is looked for until the
# task runs again; being told too often would keep it from starting.
# shellcheck disable=SC2317 # called by until_true
again_at_once() {
    local restarts eligible
    case "$(task "$1" JobState)" in
        PENDING)
            eligible=$(date -d "$(task "$1" EligibleTime)" +%s 2>/dev/null || echo 0)
            [ "$eligible" -le $(($(date +%s) + 3)) ] || scontrol update "JobId=${array}_$1" StartTime=now
            return 1
            ;;
        RUNNING|COMPLETED) restarts=$(task "$1" Restarts); [ "${restarts:-0}" -ge 1 ] ;;
        # Between the two: still completing, or being requeued.
        *) return 1 ;;
    esac
}

until_true 60 some_results 0
victim=$(process_of 0)
kill -9 "$victim"
say "killed task 0's process $victim"
until_true 60 some_results 1
[ "$(task 1 JobState)" = RUNNING ] || { say "task 1 is no longer running; make the sweep larger" >&2; exit 1; }
scontrol requeue "${array}_1"
say "requeued task 1"
until_true 90 again_at_once 0
until_true 90 again_at_once 1

wait "$submitted"
for i in 0 1; do
    [ "$(task $i Restarts)" -ge 1 ] || { say "task $i was not restarted" >&2; exit 1; }
done
for i in 0 1; do
    grep -q '"from_journal": [1-9]' "$out/shard-$i/manifest.json" || { say "task $i did not carry on, it began anew" >&2; exit 1; }
done
grep -q "shard 0: killed by signal 9; queued again" "$out/logs/shard-0.log"
for file in results.csv results.parquet flows.csv; do
    cmp "$work/whole/$file" "$out/merged/$file"
done
say "4 shards, one task killed and one requeued: merged results equal those of one run ($(wc -l <"$out/merged/results.csv") lines), after $SECONDS s"
# In the form of the other tests, which `.ci/run` counts.
echo "test result: ok. 1 passed; 0 failed"
