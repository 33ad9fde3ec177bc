#!/bin/sh
# Run a playbook in a root of its own, over other folders, in namespaces of the caller's: nothing has to be unmounted.
# usage: build.sh FOLDER LOWER PLAYBOOK; what the playbook adds to LOWER is in FOLDER/upper then.
set -eu
root=$1/root
mount -t overlay layer -o "lowerdir=$2,upperdir=$1/upper,workdir=$1/work,volatile" "$root"
for name in dev proc sys; do
    mount --rbind "/$name" "$root/$name"
done
# Without a systemd there, packages start no service.
mount -t tmpfs tmpfs "$root/run"
rm -f "$root/etc/resolv.conf"
cp "$1/resolv.conf" "$root/etc/resolv.conf"
ansible-playbook --inventory "$root," --connection community.general.chroot "$3"
chroot "$root" apt-get clean
rm -rf "$root/tmp"/* "$root/etc/resolv.conf" "$root/root/.ansible" "$root/root/.cache" "$root/var/lib/apt/periodic"
# As in an image: they look old, else a role with cache_valid_time would take them for fresh.
touch --date=@0 "$root/var/lib/apt/lists"
umount --recursive "$root"
# Programs there did not wait for the disk, file by file.
sync --file-system "$1/upper"
rm -rf --one-file-system "$1/work" "$1/root" "$1/ansible" "$1/resolv.conf"
