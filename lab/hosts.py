"""A host of the bench: its files, its root file system, its processes.

A host is an overlay over a cached image. The root is prepared from outside (keys, names, GPU, identity
provider), then booted: by systemd-nspawn in a network namespace, or by QEMU from a disk made of that root
(lab.vm).
"""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import click

from lab import cgroups
from lab.errors import LabError
from lab.network import Network
from lab.spec import HostSpec, host_from
from lab.system import run, write_atomically

SUPERVISE = Path(__file__).with_name("supervise.sh")
# dockerd and podman refuse an overlay as the upper folder of their own overlays: these lie outside of it.
PLAIN_DIRECTORIES = ("/var/lib/docker", "/var/lib/containerd", "/var/lib/containers")
# Sockets, with the id of the bench in front; a short path, as it may have at most 107 bytes (unix(7)).
RUN = Path("/run/gpufarm-lab")
NSPAWN = Path("/run/systemd/nspawn")


def ssh_control(bench: str, address: str) -> Path:
    """Socket of the shared SSH connection to an address of a bench; it goes with the host."""
    return RUN / f"{bench}-ssh-{address}"


@dataclass(frozen=True)
class Bind:
    """A file or folder of this machine that a host sees.

    :param source: absolute path on this machine.
    :param target: absolute path in the host.
    :param read_only: whether the host may only read it.
    """

    source: Path
    target: str
    read_only: bool = True


@dataclass(frozen=True)
class Host:
    """A host of a bench, wherever it is in its life.

    :param spec: what was asked for.
    :param address: its IPv4 address.
    :param version: control group version of the guest, "v1" or "v2".
    :param bench: id of the bench.
    :param directory: its folder in the bench's state.
    """

    spec: HostSpec
    address: str
    version: str
    bench: str
    directory: Path

    @property
    def name(self) -> str:
        return self.spec.name

    @property
    def machine(self) -> str:
        """The name nspawn knows it by, unique on this machine."""
        return f"lab-{self.bench}-{self.name}"

    @property
    def root(self) -> Path:
        """Where the root file system is mounted."""
        return self.directory / "root"

    @property
    def log(self) -> Path:
        """Output of the launcher and of the guest's console."""
        return self.directory / "console.log"

    @property
    def notify_socket(self) -> Path:
        """Where the guest's systemd says that it has booted (sd_notify(3))."""
        return RUN / f"{self.bench}-{self.name}.notify"

    @property
    def ssh_control(self) -> Path:
        """Where clients keep their connection to this host (ControlPath of ssh_config(5))."""
        return ssh_control(self.bench, self.address)

    @property
    def record(self) -> Path:
        """Written when the host has booted once: a host without it was never finished."""
        return self.directory / "host.json"

    def save(self, images: Sequence[Path], binds: Sequence[Bind]) -> None:
        """Record a finished host."""
        data = {
            "spec": self.spec.as_dict(),
            "address": self.address,
            "version": self.version,
            "images": [str(image) for image in images],
            "binds": [{**asdict(bind), "source": str(bind.source)} for bind in binds],
        }
        write_atomically(self.record, json.dumps(data, indent=1))

    def groups(self) -> tuple[list[Path], list[Path]]:
        """Control groups of the guest and of the launcher, one per hierarchy, whether they exist or not."""
        benches = cgroups.bench_groups(self.bench, cgroups.layout())
        return [group / self.name for group in benches], [
            group / f"{self.name}.launcher" for group in benches
        ]

    def mount(self, images: Sequence[Path]) -> None:
        """Mount the host's overlay unless it is mounted.

        :param images: what it lies over: an image below its layers, the uppermost first.
        :raises LabError: if the state folder's file system cannot carry an overlay.
        """
        if os.path.ismount(self.root):
            return
        for part in ("upper", "work", "root"):
            (self.directory / part).mkdir(parents=True, exist_ok=True)
        # Nothing on a host is worth a wait for the disk. The kernel marks what was written so, as a crash of
        # this machine may have torn it, and mounts it again only without the mark.
        shutil.rmtree(self.directory / "work" / "work" / "incompat", ignore_errors=True)
        folders = [f"lowerdir={':'.join(map(str, images))}"]
        folders += [f"{part}dir={self.directory}/{part}" for part in ("upper", "work")]
        options = ",".join([*folders, "volatile"])
        try:
            run(["mount", "-t", "overlay", self.machine, "-o", options, self.root])
        except LabError as error:
            raise LabError(
                f"{self.directory} cannot hold a host's overlay: point LAB_STATE_DIR to a local disk that is "
                f"neither an overlay itself nor a network file system ({error})"
            ) from None

    def prepare(self, keys: Path, names: Mapping[str, str]) -> None:
        """Make the root this host's own: name, keys, resolver, folders on the plain file system.

        :param keys: folder with the bench's SSH key and the hosts' host keys.
        :param names: host name -> address of all hosts of the bench.
        """
        etc = self.root / "etc"
        (etc / "hostname").write_text(f"{self.name}\n")
        lines = ["127.0.0.1 localhost", f"127.0.1.1 {self.name}", "::1 localhost ip6-localhost ip6-loopback"]
        lines += [f"{address} {name}" for name, address in names.items() if name != self.name]
        (etc / "hosts").write_text("\n".join(lines) + "\n")
        (etc / "resolv.conf").unlink(missing_ok=True)
        (etc / "resolv.conf").write_text(resolver())
        for suffix, mode in (("", 0o600), (".pub", 0o644)):
            target = etc / f"ssh/ssh_host_ed25519_key{suffix}"
            target.write_bytes((keys / f"host_{self.name}{suffix}").read_bytes())
            target.chmod(mode)
        ssh = self.root / "root/.ssh"
        ssh.mkdir(mode=0o700, exist_ok=True)
        (ssh / "authorized_keys").write_bytes((keys / "id_ed25519.pub").read_bytes())
        (ssh / "authorized_keys").chmod(0o600)
        if self.spec.kind == "nspawn" and self.version == "v1":
            self._open_controllers()

    def _open_controllers(self) -> None:
        """nspawn mounts v1 controllers read-only: open them early in the boot and let systemd look again."""
        units = self.root / "etc/systemd/system"
        mounts = " ".join(cgroups.V1_CONTROLLERS)
        (units / "lab-cgroups.service").write_text(
            "[Unit]\n"
            "Description=Make the control group controllers writable\n"
            "DefaultDependencies=no\n"
            "Before=sysinit.target\n"
            "[Service]\n"
            "Type=oneshot\n"
            "RemainAfterExit=yes\n"
            f"ExecStart=/bin/sh -c 'for m in {mounts}; do "
            "mount -o remount,bind,rw /sys/fs/cgroup/$$m || :; done'\n"
            "ExecStartPost=/bin/systemctl --no-block daemon-reexec\n"
        )
        link = units / "sysinit.target.wants/lab-cgroups.service"
        link.parent.mkdir(exist_ok=True)
        link.unlink(missing_ok=True)
        link.symlink_to("../lab-cgroups.service")

    def launch(self, network: Network, binds: Sequence[Bind]) -> subprocess.Popen[bytes]:
        """Start an nspawn host under its supervisor, which outlives this process."""
        command = [
            "systemd-nspawn",
            "--quiet",
            "--boot",
            f"--directory={self.root}",
            f"--machine={self.machine}",
            f"--hostname={self.name}",
            # No systemd and no machined is needed outside.
            "--keep-unit",
            "--register=no",
            f"--network-namespace-path=/run/netns/{network.namespace(self.name)}",
            "--resolv-conf=off",
            "--timezone=off",
            "--link-journal=no",
            "--notify-ready=yes",
            # Network, mounts and device nodes are the host's own; clock, modules and raw I/O this machine's.
            "--capability=all",
            "--drop-capability=CAP_SYS_TIME,CAP_SYS_MODULE,CAP_SYS_RAWIO",
            # Blocked by default; container engines need keyrings, and bpf for device rules on cgroup v2.
            "--system-call-filter=@keyring bpf perf_event_open",
            "--console=pipe",
        ]
        for device in ("/dev/fuse", "/dev/autofs"):
            if Path(device).exists():
                command.append(f"--bind={device}")
        for target in PLAIN_DIRECTORIES:
            source = self.directory / "plain" / Path(target).name
            source.mkdir(parents=True, exist_ok=True)
            command.append(f"--bind={source}:{target}")
        command += [f"--bind{'-ro' if bind.read_only else ''}={bind.source}:{bind.target}" for bind in binds]
        environment = {
            "PATH": os.environ["PATH"],
            "NOTIFY_SOCKET": str(self.notify_socket),
            # net.* sysctls are the host's own; vm.* and kernel.* stay read-only, they are this machine's.
            "SYSTEMD_NSPAWN_API_VFS_WRITABLE": "network",
        }
        if self.version == "v2":
            # Unset, nspawn gives the layout of this machine: v1 controllers and, where there is one, a v2
            # tree for systemd, which notices there that a unit's last process ended; v1 tells no guest.
            environment["SYSTEMD_NSPAWN_UNIFIED_HIERARCHY"] = "1"
        return self.start(command, environment)

    def start(self, command: Sequence[str], environment: Mapping[str, str]) -> subprocess.Popen[bytes]:
        """Run a command under the supervisor in the host's control groups."""
        guest, launcher = cgroups.create(self.bench, self.name, cgroups.layout())
        with self.log.open("ab") as log:
            return subprocess.Popen(
                [SUPERVISE, ":".join(map(str, launcher)), ":".join(map(str, guest)), *command],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env=dict(environment),
                cwd="/",
                start_new_session=True,
            )

    def processes(self) -> tuple[list[int], list[int]]:
        """Process ids of the guest with its nspawn or QEMU, and of the launcher."""
        guest, launcher = self.groups()
        return cgroups.processes(guest), cgroups.processes(launcher)

    def is_running(self) -> bool:
        """Whether guest and launcher live; without its launcher a guest would not come back from a reboot."""
        guest, launcher = self.processes()
        return bool(guest and launcher)

    def leader(self) -> int:
        """Process id of the guest's init.

        :raises LabError: if the host is not running.
        """
        guest, _ = self.processes()
        monitors = {pid for pid in guest if self._is_monitor(pid)}
        for pid in guest:
            status = _status(pid)
            if int(status.get("PPid", 0)) in monitors and status.get("NSpid", "").split()[-1:] == ["1"]:
                return pid
        raise LabError(f"host {self.name} is not running: start it with lab up, or see {self.log}")

    def _is_monitor(self, pid: int) -> bool:
        with contextlib.suppress(OSError):
            return f"--machine={self.machine}".encode() in Path(f"/proc/{pid}/cmdline").read_bytes().split(
                b"\0"
            )
        return False

    def stop(self) -> None:
        """End the host's processes, at once: nothing of a host is worth an orderly shutdown.

        nspawn gets the chance to clean up behind itself: its second SIGTERM ends the guest immediately.
        """
        guest, launcher = self.groups()
        if self.ssh_control.exists():  # else the next connection to this address would wait for the dead one
            run(["ssh", "-O", "exit", "-S", self.ssh_control, self.address], check=False)
            self.ssh_control.unlink(missing_ok=True)
        cgroups.kill(launcher, f"host {self.name}")
        monitors = [pid for pid in cgroups.processes(guest) if self._is_monitor(pid)]
        deadline = time.monotonic() + 3
        while monitors and cgroups.processes(guest) and time.monotonic() < deadline:
            for pid in monitors:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGTERM)
            time.sleep(0.05)
        cgroups.kill(guest, f"host {self.name}")
        cgroups.remove([*guest, *launcher])
        self._forget_nspawn()

    def _forget_nspawn(self) -> None:
        """Remove what a killed nspawn leaves in /run: propagation folder and lock on the root."""
        for name in ("propagate", "unix-export"):
            shutil.rmtree(NSPAWN / name / self.machine, ignore_errors=True)
        if self.root.exists():
            inode = self.root.stat()
            (NSPAWN / f"locks/inode-{inode.st_dev}:{inode.st_ino}").unlink(missing_ok=True)
        self.notify_socket.unlink(missing_ok=True)

    def remove(self, network: Network) -> None:
        """Take the host down and forget it; works from any state of it."""
        self.stop()
        network.detach(self.name, self.address)
        unmount(self.root)
        if self.directory.exists():
            run(["rm", "-rf", "--one-file-system", self.directory])

    def last_words(self) -> str:
        """The last line of the console that can be seen, for an error message."""
        seen = ""
        with contextlib.suppress(OSError):
            seen = click.unstyle(self.log.read_text(errors="replace"))
        return next((line.strip() for line in reversed(seen.splitlines()) if line.strip()), "no output")


def load(record: Path, bench: str) -> tuple[Host, list[Path], list[Bind]]:
    """A recorded host, its images and its binds."""
    data = json.loads(record.read_text())
    host = Host(host_from(data["spec"]), data["address"], data["version"], bench, record.parent)
    binds = [Bind(Path(bind["source"]), bind["target"], bind["read_only"]) for bind in data["binds"]]
    return host, [Path(image) for image in data["images"]], binds


def unmount(root: Path) -> None:
    """Unmount a host's root if it is mounted; lazily if something still looks into it."""
    while os.path.ismount(root):
        try:
            run(["umount", root])
        except LabError:
            run(["umount", "--lazy", root])


def unmount_all(bench: str) -> None:
    """Unmount the roots of a bench, which carry its id as the name of their source."""
    for line in Path("/proc/self/mounts").read_text().splitlines():
        source, target, *_ = line.split(" ")
        if source.startswith(f"lab-{bench}-"):
            unmount(Path(target))


def _status(pid: int) -> dict[str, str]:
    with contextlib.suppress(OSError):
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
        return dict(line.split(":\t", 1) for line in lines if ":\t" in line)
    return {}


def resolver() -> str:
    """This machine's resolver configuration, as a host can use it.

    systemd-resolved listens on this machine's loopback only; its upstream servers are in a file of its own
    (systemd-resolved.service(8), "/etc/resolv.conf").
    """
    text = Path("/etc/resolv.conf").read_text()
    upstream = Path("/run/systemd/resolve/resolv.conf")
    return upstream.read_text() if "nameserver 127." in text and upstream.exists() else text
