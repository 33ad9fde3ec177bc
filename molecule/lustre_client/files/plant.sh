#!/bin/sh
# Plant files of others, and have them remembered.
set -eu
umask 022
data=/var/lib/lustre-fake/data

mine() {
    mkdir -p "$(dirname "$1")"
    echo mine > "$1"
}

mine /srv/data/results
mine /lustre/beside
mine $data/home/thesis
mine $data/scratch/sample
mine $data/unmounted/rest
printf '# mine\n' > /etc/modprobe.d/other.conf
mkdir -p /etc/lustre
echo osc.*.max_dirty_mb=64 > /etc/lustre/mount.client.params
mine /srv/other/note
mkdir -p /mnt/other
cat > /etc/systemd/system/mnt-other.mount << 'END'
# mine
[Mount]
What=/srv/other
Where=/mnt/other
Options=bind
[Install]
WantedBy=multi-user.target
END
systemctl daemon-reload
systemctl enable --now mnt-other.mount

chmod 700 /var/lib/lustre-fake
chown 1501:1600 $data/home/thesis /srv/data
chmod 600 $data/home/thesis
chmod 2770 /srv/data
mkdir /scratch
chown 1502:1600 /scratch
chmod 1750 /scratch

planted /srv/data /srv/data/results /lustre/beside /mnt/other/note /etc/modprobe.d/other.conf /etc/lustre/mount.client.params \
    /etc/systemd/system/mnt-other.mount $data/home $data/home/thesis $data/scratch/sample $data/unmounted/rest
