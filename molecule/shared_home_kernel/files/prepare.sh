#!/bin/sh
# A disk with quotas, exports, and files of others.
set -eu
umask 022
truncate --size 128M /var/disk-homes
# Emulated, loading what mounts NFS would take longer than the role waits for a server.
modprobe --all loop nfsv4
losetup /dev/loop0 /var/disk-homes
mkfs.ext4 -q -O quota -L homes /dev/loop0
udevadm trigger --action=change --settle /dev/loop0

mkdir -p /srv/export/homes /srv/export/open
echo mine > /srv/export/open/results
chown --recursive 1500 /srv/export/open
cat > /etc/exports << EXPORTS
/srv/export/homes 127.0.0.1(rw,sync,no_subtree_check,root_squash)
/srv/export/open 127.0.0.1(rw,sync,no_subtree_check,no_root_squash)
EXPORTS
systemctl restart nfs-server
planted /srv/export/homes /srv/export/open /srv/export/open/results
touch /srv/prepared
