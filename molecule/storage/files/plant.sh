#!/bin/sh
# Files of others in every place where a role that stores could format, unmount, purge, hide or give away something.
set -eu
umask 022
mkdir -p /srv/full /srv/other /mnt/other /home/cache /lustre/other /srv/disks /etc/modprobe.d /etc/auto.master.d /etc/cvmfs/site \
    /etc/cvmfs/domain.d /etc/cvmfs/keys/site.example /var/lib/cvmfs/shared /opt/gpufarm \
    /var/lib/lustre-fake/data/home/old /var/lib/lustre-fake/data/scratch
chmod 700 /var/lib/lustre-fake

# A mount by a unit of systemd, and one by hand.
cat > /etc/systemd/system/srv-other.mount << 'UNIT'
[Mount]
What=other
Where=/srv/other
Type=tmpfs
Options=mode=755
[Install]
WantedBy=local-fs.target
UNIT
systemctl enable --quiet --now srv-other.mount
mount -t tmpfs -o mode=755 other /mnt/other

for path in /srv/full/results /srv/other/results /mnt/other/results /home/cache/thesis /lustre/other/note /opt/gpufarm/note \
    /etc/cvmfs/site/note /etc/cvmfs/keys/site.example/site.pub /var/lib/cvmfs/shared/kept \
    /var/lib/lustre-fake/data/home/old/thesis /var/lib/lustre-fake/data/scratch/sample; do
    echo mine > $path
done
for path in /etc/auto.master.d/other.autofs /etc/modprobe.d/other.conf /etc/cvmfs/domain.d/other.example.local; do
    echo '# mine' > $path
done
chown --recursive 1500 /home/cache
chown --recursive 4711 /var/lib/lustre-fake/data/home/old

# Files that could be taken for empty disks of a server of Lustre.
truncate --size 32M /srv/disks/ext4 /srv/disks/raw
mke2fs -q -t ext4 -L theirs /srv/disks/ext4
echo mine | dd of=/srv/disks/raw bs=1 seek=4096 conv=notrunc status=none

planted /srv/full /srv/full/results /srv/other /srv/other/results /etc/systemd/system/srv-other.mount /mnt/other /mnt/other/results \
    /home/cache /home/cache/thesis /lustre /lustre/other /lustre/other/note /opt/gpufarm /opt/gpufarm/note \
    /etc/cvmfs/site /etc/cvmfs/site/note /etc/cvmfs/domain.d/other.example.local /etc/cvmfs/keys/site.example/site.pub \
    /var/lib/cvmfs/shared/kept /etc/auto.master.d/other.autofs /etc/modprobe.d/other.conf \
    /var/lib/lustre-fake/data/home/old /var/lib/lustre-fake/data/home/old/thesis /var/lib/lustre-fake/data/scratch/sample \
    /srv/disks/ext4 /srv/disks/raw
touch /srv/planted
