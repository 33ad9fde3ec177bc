#!/bin/sh
# supervise.sh LAUNCHER_GROUPS GUEST_GROUPS COMMAND...
# Runs a host: COMMAND in the guest's control groups, itself in the launcher's (both lists separated by colons).
# systemd-nspawn --keep-unit ends with 133 when the guest reboots; the same command then boots it again.
set -u
launcher=$1 guest=$2
shift 2
join() {
  IFS=:
  for group in $1; do echo 0 >"$group/cgroup.procs" || exit; done
}
join "$launcher"
while :; do
  (join "$guest" && exec "$@")
  status=$?
  [ "$status" -eq 133 ] || exit "$status"
done
