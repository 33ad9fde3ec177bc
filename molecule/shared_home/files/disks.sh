#!/bin/sh
# Disks for a container. Loop devices belong to the machine that it runs on: each is held open by a unit here and lets go of its
# file when that ends, at the latest with the host.
set -eu
umask 022
mknod /dev/loop-control c 10 237
for number in $(seq 0 255); do mknod "/dev/loop$number" b 7 "$number"; done
cat > /usr/local/sbin/hold-disk << 'HOLD'
#!/bin/sh
set -eu
loop=$(losetup --find --show "/var/disk-$1")
exec 3< "$loop"
losetup --detach "$loop"
mknod "/dev/$1" b 7 "${loop#/dev/loop}"
exec sleep infinity
HOLD
chmod 755 /usr/local/sbin/hold-disk

disk() { # NAME SIZE
    truncate --size "$2" "/var/disk-$1"
    systemd-run --quiet --unit "disk-$1" /usr/local/sbin/hold-disk "$1"
    timeout 300 sh -c "until test -b /dev/$1; do sleep 0.1; done"
}
plant() { # DISK OWNER FOLDER
    mount "/dev/$1" /mnt
    mkdir -p "/mnt/$3"
    echo mine > "/mnt/$3/results"
    chown --recursive "$2" "/mnt/$3"
    umount /mnt
}
for name in homes other open; do
    disk $name 32M
    mkfs.ext4 -q "/dev/$name"
done
disk xfs 320M # mkfs.xfs makes none below 300 MB
mkfs.xfs -q /dev/xfs
disk swap 1M
mkswap --quiet /dev/swap > /dev/null
disk empty 1M
plant homes 4711 carol
plant other 0 .
plant open 1500 .
plant xfs 1502 bob
