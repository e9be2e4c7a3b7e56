#!/bin/bash
# A SLURM of one node on the loopback interface, for tests: munged, slurmctld and slurmd of this user.
#
#   cluster.sh start FOLDER     and then  export SLURM_CONF=FOLDER/slurm.conf
#   cluster.sh stop FOLDER
#
# Needs Debian's slurm-wlm and munge. Everything is kept in FOLDER, whose path is short (it holds a
# socket). A job in the partition `urgent` preempts those in `grace` (they get a SIGTERM and 60
# seconds) and `graceless`, which are then queued again. cred_expire is what a job that was queued
# again waits before it starts: 120 seconds where nothing is said. Ranks meet at a port that is named
# after the job's number, so that clusters which run at once begin with different ones.
set -euo pipefail
PATH=$PATH:/usr/sbin
action=$1 folder=$2
export SLURM_CONF=$folder/slurm.conf

free_ports() {
    python3 - <<'PYTHON'
import socket
sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(2)]
print(*(each.getsockname()[1] for each in sockets))
PYTHON
}

start() {
    local controller daemon user
    read -r controller daemon < <(free_ports)
    user=$(id -un)
    mkdir -p "$folder"/{state,spool}
    chmod 755 "$folder"
    dd if=/dev/urandom of="$folder/munge.key" bs=1024 count=1 status=none
    chmod 600 "$folder/munge.key"
    cat >"$SLURM_CONF" <<CONFIG
ClusterName=tests
SlurmctldHost=localhost(127.0.0.1)
SlurmctldPort=$controller
SlurmUser=$user
SlurmdUser=$user
AuthType=auth/munge
CredType=cred/munge
AuthInfo=socket=$folder/munge.socket,cred_expire=5
StateSaveLocation=$folder/state
SlurmdSpoolDir=$folder/spool
SlurmctldPidFile=$folder/slurmctld.pid
SlurmdPidFile=$folder/slurmd.pid
SlurmctldLogFile=$folder/slurmctld.log
SlurmdLogFile=$folder/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=none
SwitchType=switch/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SlurmdParameters=config_overrides
SchedulerParameters=sched_interval=2,bf_interval=2
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
KillWait=30
ReturnToService=2
MaxArraySize=100
FirstJobId=$((RANDOM % 9000 + 1))
NodeName=localhost NodeHostname=$(hostname -s) NodeAddr=127.0.0.1 Port=$daemon CPUs=4 RealMemory=16000
PartitionName=graceless Nodes=localhost Default=YES PriorityTier=1 GraceTime=0 MaxTime=60
PartitionName=grace Nodes=localhost PriorityTier=1 GraceTime=60 MaxTime=60
PartitionName=urgent Nodes=localhost PriorityTier=10 PreemptMode=OFF MaxTime=60
CONFIG
    munged --force --socket="$folder/munge.socket" --key-file="$folder/munge.key" \
        --pid-file="$folder/munged.pid" --log-file="$folder/munged.log" \
        --seed-file="$folder/munge.seed" --num-threads=2
    slurmctld -i
    slurmd -N localhost
    for _ in $(seq 100); do
        [ "$(sinfo --noheader --format=%t --partition=urgent 2>/dev/null)" = idle ] && return
        sleep 0.2
    done
    echo "cluster.sh: the node is not idle after 20 seconds; see $folder/*.log" >&2
    return 1
}

stop() {
    scancel --quiet --user="$(id -un)" || true
    for name in slurmd slurmctld munged; do
        [ -s "$folder/$name.pid" ] && kill "$(cat "$folder/$name.pid")" || true
    done
}

"$action"
