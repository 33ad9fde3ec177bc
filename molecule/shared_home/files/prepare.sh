#!/bin/sh
# Files of others where a wrong step would hide, empty, unmount or give them away.
set -eu
umask 022
mkdir -p /home/keep /srv/full /srv/other /mnt/other /opt/gpufarm /etc/gpufarm
mkdir -m 1777 /srv/writable
for path in /home/keep/thesis /srv/full/results /srv/file /opt/gpufarm/note /etc/gpufarm/other.json; do
    echo mine > $path
done
chown --recursive 1500 /home/keep
ln -s /srv/full /srv/link
mount -o ro,noload /dev/other /mnt/other
mount -t tmpfs -o mode=755 other /srv/other
echo mine > /srv/other/results
planted /home/keep /home/keep/thesis /srv/full /srv/full/results /srv/file /srv/link /srv/writable /srv/other/results \
    /opt/gpufarm/note /etc/gpufarm/other.json /mnt/other /mnt/other/results

# Like a notebook, it has mounts of its own, and starts before the homes are mounted.
systemd-run --quiet --unit early --property PrivateTmp=yes sleep infinity
touch /srv/prepared
