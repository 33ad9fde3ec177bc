"""Attacks of a user who may start containers: on the machine, on other users, and on slices of others."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json
import shlex

# With all rights that a user can have over a namespace.
ROOT = "unshare --user --map-root-user --mount"
# Programs of the machine in a container.
MACHINE = "--volume /usr:/usr:ro --volume /usr/lib:/lib:ro --volume /usr/lib64:/lib64:ro"
# Calls the kernel itself, as libraries may go other ways: by numbers of x86-64 (unshare, clone, clone3,
# fsopen) and, by int 0x80, of i386 (unshare).
CALLS = """
import ctypes, json, mmap, os, signal
libc = ctypes.CDLL(None, use_errno=True)
def call(number, *arguments):
    ctypes.set_errno(0)
    done = libc.syscall(number, *map(ctypes.c_long, arguments))
    return done and ctypes.get_errno()
def alone(tried):
    read, write = os.pipe()
    if not os.fork():
        os.write(write, str(tried()).encode())
        os._exit(0)
    os.close(write)
    os.wait()
    return os.read(read, 99).decode()
USER, MOUNT = 0x10000000, 0x20000
others = dict(cgroup=0x2000000, uts=0x4000000, ipc=0x8000000, pid=0x20000000, net=0x40000000)
told = {"mount": alone(lambda: call(272, USER | MOUNT)), "time": alone(lambda: call(272, USER | 0x80))}
for name, flag in others.items():
    told[name] = alone(lambda: call(272, USER | flag))
    told[name + " by clone"] = alone(lambda: call(56, USER | flag | signal.SIGCHLD, 0, 0, 0, 0))
told["clone3"] = alone(lambda: call(435, 0, 0))
told["fsopen"] = alone(lambda: call(430, 0, 0))
code = bytes.fromhex("53 89 fb b8 36 01 00 00 cd 80 5b c3")  # unshare(first argument), 310 on i386
page = mmap.mmap(-1, mmap.PAGESIZE, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
page.write(code)
enter = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(page)))
told["net by i386"] = alone(lambda: -enter(USER | others["net"]))
told["net by x32"] = alone(lambda: call(272 | 0x40000000, USER | others["net"]))
print(json.dumps(told))
"""
ATTEMPTS = [
    "cat /etc/shadow",
    "ls /etc/jupyterhub/secrets",
    "ls /home/bob",
    "ls /root",
    "touch /etc/new",
    "touch /usr/new",
    "sh -c 'echo x > /proc/sys/kernel/core_pattern'",
    "sh -c 'echo 0 > /proc/sys/user/max_user_namespaces'",
    "sh -c 'echo $$ > /sys/fs/cgroup/cgroup.procs'",
    "mknod /tmp/gpu c 195 0",
    "mknod /tmp/disk b 8 0",
    "mount -t devtmpfs devtmpfs /mnt",
    "mount -t sysfs sysfs /mnt",
    "mount -t cgroup2 cgroup2 /mnt",
    "mount -t debugfs debugfs /mnt",
    "mount -t ext4 /dev/vda /mnt",
    "mount -o remount,bind,rw /etc",
    "umount /tmp",
    "nsenter --target 1 --mount true",
    "chown bob /home/alice",
    "setpriv --reuid bob true",
    "setpriv --regid bob --clear-groups true",
    "kill -0 1",
    "modprobe dummy",
    "/usr/sbin/ip link add other type dummy",
    "/usr/sbin/nft list ruleset",
]
NOT_PERMITTED, NOT_THERE = "1", "38"


def test_users_get_namespaces_of_users_and_mounts_and_no_others(nest):
    told = json.loads(nest()(f"python3 -c {shlex.quote(CALLS)}"))
    for name in ("clone3", "fsopen"):
        assert told.pop(name) == NOT_THERE
    assert told.pop("mount") == "0"
    # A kernel that runs no programs of i386 ends the process; x32 is there in few.
    assert told.pop("net by i386") in (NOT_PERMITTED, NOT_THERE, "")
    assert told.pop("net by x32") in (NOT_PERMITTED, NOT_THERE)
    assert set(told.values()) == {NOT_PERMITTED}, told


def test_namespaces_in_a_container_give_no_more(nest):
    run = nest()
    make = f"podman run --rm --privileged {MACHINE} box /usr/bin/unshare --user --map-root-user"
    assert run(f"{make} --mount true && echo 'rc 0'") == "rc 0"
    for kind in ("net", "pid", "ipc", "uts", "cgroup", "time"):
        assert "not permitted" in run(f"{make} --{kind} true"), kind


def test_what_the_sandbox_hides_stays_hidden(nest, host):
    run = nest()
    hidden = [
        "/tmp",
        "/var/tmp",
        "/dev",
        "/dev/shm",
        "/proc",
        "/proc/sys",
        "/run/dbus/system_bus_socket",
        "/etc/subuid",
    ]
    for path in hidden:
        assert run(f"{ROOT} umount {path} && echo gone; true").endswith("gone") is False, path
    # A folder without the mounts in it would show what is behind them.
    for path in ("/", "/dev", "/proc", "/run"):
        assert "shown" not in run(f"{ROOT} sh -c 'mount --bind {path} /mnt && echo shown'"), path
    for path in ("/", "/etc", "/usr", "/sys/fs/cgroup", "/proc/sys"):
        assert "changed" not in run(f"{ROOT} sh -c 'mount -o remount,bind,rw {path} && echo changed'"), path


def test_root_in_a_container_has_no_rights_outside(nest, visit):
    """The container has all files of the machine that its notebook sees, and runs programs of the machine."""
    visit("bob").spawn()
    run = nest()
    machine = "podman run --rm --privileged --volume /:/host box busybox chroot /host"
    assert run(f"{machine} test -r /etc/passwd && echo 'rc 0'") == "rc 0"
    told = {attempt: run(f"{machine} {attempt} && echo 'rc 0'") for attempt in ATTEMPTS}
    assert {attempt: text for attempt, text in told.items() if text.endswith("rc 0")} == {}


def test_a_container_shows_no_process_but_those_of_containers(nest, shell, host):
    """Not even the notebook's own: they are in another namespace of users (proc(5), hidepid)."""
    shell("bob")("nohup sleep 911 > /dev/null 2>&1 & sleep 1")
    assert host.run("pgrep --full 'sleep 911'").stdout
    run = nest()
    assert "jupyterhub-singleuser" in run("ps axww")
    told = run("podman run --rm --privileged box busybox ps")
    assert "busybox ps" in told
    for name in ("sleep 911", "systemd", "jupyterhub-singleuser", "gpufarm_hub"):
        assert name not in told


def test_programs_with_set_user_id_of_an_image_give_nothing(nest, host):
    run = nest()
    assert run("podman run --rm box ls -l /bin/raised").startswith("-rwsr-xr-x")
    assert run("podman run --rm box grep NoNewPrivs /proc/self/status").split() == ["NoNewPrivs:", "1"]
    assert run("podman run --rm box cat /proc/self/uid_map").split() == [
        "0",
        str(host.user("alice").uid),
        "1",
    ]
    owners = host.check_output("find /home/alice -perm /6000 -type f -printf '%u\\n'").split()
    assert owners and set(owners) == {"alice"}
    assert host.file("/home/alice").mode & 0o077 == 0


def test_device_nodes_of_an_image_open_nothing(nest):
    run = nest()
    assert "rc 0" not in run("podman run --rm box sh -c 'exec 3< /nodes/gpu && echo rc 0'")
    assert "rc 0" not in run("podman run --rm --privileged box sh -c 'exec 3< /nodes/gpu && echo rc 0'")


def test_slices_of_others_stay_closed(nest, visit, host, leases):
    visit("bob").spawn(gpu="1g.10gb")
    run = nest(gpu="1g.10gb")
    names = set(host.check_output("ls /dev/nvidia-caps").split()) - {"nvidia-cap1", "nvidia-cap2"}
    own = set(run("ls /dev/nvidia-caps").split())
    assert len(own) == 2 and len(names) >= 4
    for name in names - own:
        told = run(f"podman run --rm --device /dev/nvidia-caps/{name} box true && echo 'rc 0'")
        assert "rc 0" not in told
    # Also to root of the machine in the control group of the container, with a node outside of it.
    run("podman run --detach --name there box sleep 913")
    pid = host.check_output("pgrep --full '^sleep 913'")
    tree = host.run(f"sed -n 's/.*:devices://p' /proc/{pid}/cgroup").stdout.strip()
    folder = f"/sys/fs/cgroup/devices{tree}"
    if not tree or tree == "/":
        folder = "/sys/fs/cgroup" + host.check_output(f"sed -n 's/^0:://p' /proc/{pid}/cgroup")
    opened = {
        name
        for name in names
        if "denied"
        not in (
            said := host.run(
                f"sh -c 'echo $$ > {folder}/cgroup.procs; exec 3< /dev/nvidia-caps/{name}'"
            ).stderr
        )
        and "not permitted" not in said
    }
    assert opened == own
    run("podman rm --force --time 0 there")


def test_the_walls_hold_in_a_container(nest, visit, host, facts):
    bob = visit("bob")
    bob.spawn()
    path = host.check_output(
        "systemctl show --property=NetworkNamespacePath --value jupyterhub-notebook-bob.service"
    )
    other = f"172.30.{path.rpartition('-')[2]}"
    run = nest()
    assert run("podman run --rm box readlink /proc/self/ns/net") == run("readlink /proc/self/ns/net")
    inside = f"podman run --rm --privileged {MACHINE} box"
    ask = f"{inside} /usr/bin/curl --silent --output /dev/null --max-time 5 http://{{}} && echo reached"
    assert run(ask.format("127.0.0.1:8081/hub/api/")).endswith("reached")
    closed = (
        "127.0.0.1:8001",
        f"{facts['address']}:8888",
        f"{other}:8888",
        "169.254.169.254",
        "172.30.252.1:22",
    )
    for target in closed:
        assert "reached" not in run(ask.format(target)), target
    for network in ("bridge", "private", "slirp4netns", "pasta"):
        assert "rc 0" not in run(f"podman run --rm --network {network} box true && echo rc 0"), network


def test_podman_offers_no_service(host):
    assert not host.socket("unix:///run/podman/podman.sock").is_listening
    assert not host.service("podman.socket").is_enabled


def test_settings_that_a_user_writes_open_nothing(nest):
    run = nest()
    run("mkdir -p ~/own; cp $CONTAINERS_CONF ~/own; sed -i '/ns = /d' ~/own/containers.conf")
    podman = (
        "CONTAINERS_CONF=~/own/containers.conf podman run --rm --net host --pid host --ipc host --uts host"
    )
    assert run(f"{podman} --cgroupns host box echo 'rc 0'") == "rc 0"
    for kind in ("pid", "ipc", "uts", "cgroupns", "network"):
        told = run(f"{podman} --cgroupns host --{kind} private box true && echo 'rc 0'")
        assert "rc 0" not in told, kind
