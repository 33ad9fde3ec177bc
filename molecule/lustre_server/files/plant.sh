#!/bin/bash
# Plant devices that are not empty, and files, and have them remembered.
set -eu -o pipefail
umask 022
mkdir -p /srv/planted/tree /lustre/home-ost0003 /etc/lustre
echo mine > /lustre/home-ost0003/results
echo mine > /lustre/beside
echo mine > /etc/lustre/theirs
printf '# mine\n' > /etc/modprobe.d/other.conf

cd /srv/planted
echo mine > tree/thesis
truncate -s 32M ext4 gpt lvm raw swap
mke2fs -q -t ext4 -L theirs -d tree ext4
mkswap --quiet swap
echo ',,L' | sfdisk --quiet --label gpt gpt
printf 'mine\n' | dd of=raw bs=1 seek=4096 conv=notrunc status=none
# The label of a physical volume of LVM as its source has it (lib/label/label.c), with the sum that blkid compares
python3 - > /run/lvm.label << 'END'
import struct, sys, zlib
rest = struct.pack("<I8s", 32, b"LVM2 001").ljust(492, b"\0")
total = zlib.crc32(rest, 0xF597A6CF ^ 0xFFFFFFFF) ^ 0xFFFFFFFF
sys.stdout.buffer.write(struct.pack("<8sQI", b"LABELONE", 1, total) + rest)
END
dd if=/run/lvm.label of=lvm bs=512 seek=1 conv=notrunc status=none
chown 1501:1600 tree tree/thesis ext4 /lustre/home-ost0003
chmod 2770 tree

planted /srv/planted/{tree,tree/thesis,ext4,gpt,lvm,raw,swap} /lustre/beside /lustre/home-ost0003{,/results} \
    /etc/lustre/theirs /etc/modprobe.d/other.conf
