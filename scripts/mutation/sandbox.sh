#!/bin/sh
# usage: sandbox.sh REPOSITORY CPU_SECONDS COMMAND...   inside of new namespaces for mounts and processes
#
# Shows COMMAND this machine's files, below a layer in memory that takes all that is written and is lost at the
# end: what a mistake in the product removes or overwrites is only gone in there. Of devices there are none but
# those without state, so that nothing can be formatted, and settings of the kernel in /sys can only be read.
set -eu
repository=$1
seconds=$2
shift 2
# Larger than the memory, as some tests ask for the room that is left on the disk.
mount -t tmpfs -o mode=0755,size=1T layers /mnt
mkdir /mnt/changed /mnt/work /mnt/changed-there /mnt/work-there /mnt/root
mount -t overlay -o lowerdir=/,upperdir=/mnt/changed,workdir=/mnt/work root /mnt/root
# Tests would remove the temporary files of others, which do the same.
mount -t tmpfs -o mode=1777,size=1T temporary /mnt/root/tmp
# The repository may be on another file system than the root, or among temporary files.
mkdir -p "/mnt/root$repository"
mount -t overlay -o "lowerdir=$repository,upperdir=/mnt/changed-there,workdir=/mnt/work-there" \
  repository "/mnt/root$repository"
cd /mnt/root
mount -t proc proc proc
mount --bind /sys sys
mount -o remount,bind,ro sys
mount -t tmpfs -o mode=0755 devices dev
for device in null zero full random urandom tty; do
  touch "dev/$device"
  mount --bind "/dev/$device" "dev/$device"
done
mkdir dev/pts dev/shm
mount -t devpts -o newinstance,ptmxmode=0666,mode=0620 terminals dev/pts
mount -t tmpfs -o mode=1777 memory dev/shm
ln -s pts/ptmx dev/ptmx
ln -s /proc/self/fd dev/fd
ln -s fd/0 dev/stdin
ln -s fd/1 dev/stdout
ln -s fd/2 dev/stderr
ulimit -t "$seconds"
# shellcheck disable=SC2016
exec chroot . sh -c 'cd "$0" && exec "$@"' "$repository" "$@"
