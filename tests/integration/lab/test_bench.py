"""The bench on this machine: real hosts come up, survive what happens to them, and leave nothing behind."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from lab import bytecode, cgroups
from lab.bench import Bench, cache_dir
from lab.boot import BOOT_SECONDS
from lab.hosts import NSPAWN, RUN, Host
from lab.patience import PATIENCE

pytestmark = [
    pytest.mark.bench,
    pytest.mark.skipif(os.geteuid() != 0, reason="makes mounts and network namespaces: needs root"),
]


class Lab:
    """The command line of one bench."""

    def __init__(self, name: str, state: Path) -> None:
        self.bench = Bench(name, state, cache_dir())
        self.command = ["lab", "--bench", name]
        self.environment = {**os.environ, "LAB_STATE_DIR": str(state)}

    def run(self, *words: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*self.command, *words],
            env=self.environment,
            input=stdin,
            capture_output=True,
            text=True,
            timeout=2 * max(BOOT_SECONDS.values()),
        )

    def start(self, *words: str) -> subprocess.Popen[bytes]:
        return subprocess.Popen([*self.command, *words], env=self.environment, stdout=subprocess.DEVNULL)

    def out(self, *words: str, stdin: str = "") -> str:
        done = self.run(*words, stdin=stdin)
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    def error(self, *words: str, stdin: str = "") -> str:
        done = self.run(*words, stdin=stdin)
        assert done.returncode == 1, done
        assert "Traceback" not in done.stderr
        return done.stderr.strip().splitlines()[-1].removeprefix("Error: ")

    def ssh(self, host: str, command: str) -> str:
        return self.out("ssh", host, "--", command)

    def status(self) -> dict[str, Any]:
        return json.loads(self.out("status", "--json"))

    def states(self) -> dict[str, str]:
        return {host["name"]: host["state"] for host in self.status()["hosts"]}

    def host(self, name: str) -> Host:
        return self.bench.host(name)

    def leftovers(self) -> list[str]:
        """All objects on this machine with the id of the bench."""
        ident = self.bench.id
        found = [str(group) for group in cgroups.bench_groups(ident, cgroups.layout()) if group.exists()]
        found += [line for line in Path("/proc/self/mounts").read_text().splitlines() if ident in line]
        for command in (["ip", "-brief", "link"], ["ip", "netns"], ["nft", "list", "tables"]):
            lines = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
            found += [line for line in lines if ident in line]
        found += [str(path) for path in NSPAWN.rglob("*") if ident in path.name]
        found += [str(path) for path in RUN.glob(f"{ident}*")]
        for process in Path("/proc").glob("[0-9]*/cmdline"):
            try:
                if ident.encode() in process.read_bytes():
                    found.append(str(process))
            except OSError:
                continue
        mine = (self.bench.name, f".{self.bench.name}.lock")
        found += [str(path) for path in self.bench.state.glob("*") if path.name in mine]
        return found


@pytest.fixture
def state(tmp_path: Path) -> Path:
    return tmp_path / "state"


@pytest.fixture
def make_lab(state: Path) -> Iterator[Callable[[str], Lab]]:
    made: list[Lab] = []

    def make(name: str) -> Lab:
        made.append(Lab(name, state))
        return made[-1]

    yield make
    for lab in made:
        lab.run("down")


@pytest.fixture
def lab(make_lab: Callable[[str], Lab]) -> Lab:
    return make_lab("one")


SPEC = json.dumps({"hosts": [{"name": "deb12"}, {"name": "deb13", "suite": "trixie"}]})


def test_the_life_of_a_bench(lab: Lab):
    assert lab.out("up", "--spec", "-", stdin=SPEC) == "bench one: started deb12, deb13"
    assert lab.states() == {"deb12": "running", "deb13": "running"}
    assert lab.out("up", "--spec", "-", stdin=SPEC) == "bench one: nothing to do"
    for host, version in (("deb12", "12"), ("deb13", "13")):
        assert f'VERSION_ID="{version}"' in lab.ssh(host, "cat /etc/os-release")
        assert lab.ssh(host, "systemctl is-system-running") == "running"
        assert lab.ssh(host, "hostname") == host
        assert lab.out("exec", host, "--", "cat", "/proc/1/comm") == "systemd"
    assert lab.ssh("deb12", "ping -c 1 -W 2 deb13 >/dev/null && echo answered") == "answered"

    assert_modules_are_compiled_once(lab, "deb12", "deb13")

    changed = json.dumps({"hosts": [{"name": "deb12", "suite": "trixie"}]})
    assert "suite 'bookworm' -> 'trixie'" in lab.error("up", "--spec", "-", stdin=changed)
    assert lab.error("exec", "deb11", "true") == "bench one has no host deb11; it has deb12, deb13"

    lab.ssh("deb12", "touch /root/mark")
    gateway = "ip -4 route show default | cut -d' ' -f3 | xargs ip neigh get dev eth0 to | cut -d' ' -f5"
    neighbours = [lab.ssh("deb12", "cat /sys/class/net/eth0/address"), lab.ssh("deb13", gateway)]
    assert lab.out("reset", "deb12") == "bench one: deb12 is fresh"
    assert [lab.ssh("deb12", "cat /sys/class/net/eth0/address"), lab.ssh("deb13", gateway)] == neighbours, (
        "a hardware address that changes leaves neighbours talking to the old one"
    )
    assert lab.ssh("deb12", "test -e /root/mark || echo gone") == "gone"

    assert lab.out("up", "--name", "later") == "bench one: started later"
    assert lab.states() == {"deb12": "running", "deb13": "running", "later": "running"}

    roots = [lab.host(name).root.stat() for name in lab.states()]
    locks = [NSPAWN / f"locks/inode-{root.st_dev}:{root.st_ino}" for root in roots]
    assert all(lock.exists() for lock in locks)
    lab.out("down")
    assert lab.leftovers() == []
    assert not any(lock.exists() for lock in locks)
    lab.out("down")  # of nothing is nothing


def test_a_host_has_what_is_in_its_layers_and_changes_none(lab: Lab):
    spec = {"hosts": [{"name": "layered", "layers": ["gpu"]}, {"name": "bare"}]}
    lab.out("up", "--spec", "-", stdin=json.dumps(spec))
    gpu_python = "/opt/gpufarm/gpu/bin/python -c 'import pynvml'"
    assert lab.run("ssh", "layered", "--", gpu_python).returncode == 0, "lab/layers/gpu/layer.yml installs it"
    assert lab.run("ssh", "bare", "--", gpu_python).returncode == 127
    assert lab.ssh("layered", "systemctl is-system-running") == "running"
    lab.ssh("layered", "rm -r /opt/gpufarm")
    lab.out("reset", "layered")
    assert lab.ssh("layered", gpu_python) == ""
    lab.out("down")
    assert lab.leftovers() == []


def assert_modules_are_compiled_once(lab: Lab, *hosts: str):
    """Code that a host's virtual environment compiles from an archive is available to all hosts."""
    mark = uuid.uuid4().hex
    for host in hosts:
        lab.ssh(host, "python3 -m venv --without-pip /root/venv")
        lab.ssh(host, f"cd /root && echo 'mark = \"{mark}\"' >sent.py && python3 -m zipfile -c a.zip sent.py")
        lab.ssh(host, "cd / && PYTHONPATH=/root/a.zip /root/venv/bin/python -c 'import sent'")
    compiled = [path for path in (cache_dir() / "bytecode").iterdir() if mark.encode() in path.read_bytes()]
    assert {path.name.split("-")[1] for path in compiled} == {"311", "313"}
    assert all(path.name in lab.ssh(host, f"ls {bytecode.FOLDER}") for path in compiled for host in hosts)


def test_a_reboot_keeps_disk_addresses_and_host_key(lab: Lab):
    spec = {"hosts": [{"name": name, "nics": 2} for name in ("deb12", "beside")]}
    lab.out("up", "--spec", "-", stdin=json.dumps(spec))
    before = lab.ssh("deb12", "touch /root/mark; cat /proc/sys/kernel/random/boot_id")
    lab.run("ssh", "deb12", "--", "systemctl reboot")
    after = wait_for(lambda: other_boot(lab, before))
    assert after != before
    assert lab.ssh("deb12", "ls /root/mark") == "/root/mark"
    second = lab.ssh("deb12", "ip -4 -br address show eth1").split()[2].split("/")[0]
    counted = "cat /sys/class/net/eth1/statistics/rx_bytes"
    received = int(lab.ssh("deb12", counted))
    assert lab.ssh("beside", f"ping -c 1 -s 60000 -W 5 {second} >/dev/null && echo answered") == "answered"
    assert int(lab.ssh("deb12", counted)) > received + 60000
    assert not lab.out("exec", "beside", "--", "ip", "route", "get", second).count("eth0")
    lab.out("down")
    assert lab.leftovers() == []


def other_boot(lab: Lab, before: str) -> str:
    done = lab.run("ssh", "deb12", "--", "cat /proc/sys/kernel/random/boot_id")
    return "" if done.returncode or done.stdout.strip() == before else done.stdout.strip()


def test_services_and_users_of_hosts_read_what_a_private_checkout_gave(lab: Lab, tmp_path: Path):
    """Cloned and used under umask 077, below a path with a blank."""
    checkout = tmp_path / "a checkout"
    checkout.mkdir()
    # Files that Python opens are recorded as inputs of this job, and most of the copy is not used.
    subprocess.run(["cp", "--recursive", Path(bytecode.__file__).parents[1], checkout / "lab"], check=True)
    for path in checkout.rglob("*"):
        path.chmod(path.stat().st_mode & 0o700)
    lab.environment["PYTHONPATH"] = str(checkout)
    os.umask(0o077)  # until the end of the test, see own_umask
    lab.out("up", "--name", "gpu", "--gpu", "a100-80gb:1", "--iam")
    assert lab.ssh("gpu", "systemctl is-system-running") == "running"
    wait_for(lambda: lab.run("ssh", "iam", "--", "systemctl is-active iam").returncode == 0)
    as_nobody = "setpriv --reuid=nobody --regid=nogroup --clear-groups"
    assert lab.ssh("gpu", f"{as_nobody} getent hosts iam").split() == [lab.host("iam").address, "iam"]
    initialise = "import ctypes; print(ctypes.CDLL('libnvidia-ml.so.1').nvmlInit_v2())"
    assert lab.ssh("gpu", f'{as_nobody} python3 -c "{initialise}"') == "0"


def wait_for(question: Callable[[], Any], seconds: float = PATIENCE) -> Any:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if answer := question():
            return answer
        time.sleep(0.3)
    raise AssertionError(f"no answer in {seconds} s")


def test_a_command_in_a_host_ends_when_the_host_reboots(lab: Lab):
    lab.out("up", "--name", "deb12")
    held = lab.start("exec", "deb12", "--", "sleep", "600")
    wait_for(lambda: "600" in lab.run("exec", "deb12", "--", "pgrep", "-a", "sleep").stdout)
    lab.run("exec", "deb12", "--", "systemctl", "reboot")
    assert held.wait(PATIENCE) != 0
    wait_for(lambda: lab.run("ssh", "deb12", "--", "true").returncode == 0)


def test_two_benches_at_once(make_lab: Callable[[str], Lab]):
    labs = [make_lab("left"), make_lab("right")]
    starting = [lab.start("up", "--name", "twin") for lab in labs]
    assert [process.wait(PATIENCE) for process in starting] == [0, 0]
    networks = [lab.status()["network"] for lab in labs]
    assert len(set(networks)) == 2
    for lab in labs:
        assert lab.ssh("twin", "hostname") == "twin"
    labs[0].out("down")
    assert labs[0].leftovers() == []
    assert labs[1].ssh("twin", "hostname") == "twin"


def launcher_of(host: Host) -> int:
    return host.processes()[1][0]


def monitor_of(host: Host) -> int:
    status = Path(f"/proc/{host.leader()}/status").read_text()
    return int(status.split("PPid:\t")[1].split()[0])


@pytest.mark.parametrize("victim", [launcher_of, monitor_of, Host.leader], ids=["launcher", "nspawn", "init"])
def test_a_killed_host_is_noticed_and_booted_again(lab: Lab, victim: Callable[[Host], int]):
    lab.out("up", "--name", "deb12")
    lab.ssh("deb12", "touch /root/mark; sync")
    os.kill(victim(lab.host("deb12")), signal.SIGKILL)
    wait_for(lambda: lab.states() == {"deb12": "stopped"})
    assert lab.out("up", "--name", "deb12") == "bench one: started deb12"
    assert lab.ssh("deb12", "ls /root/mark") == "/root/mark"
    os.kill(victim(lab.host("deb12")), signal.SIGKILL)
    lab.out("down")
    assert lab.leftovers() == []


def test_a_host_that_a_boot_of_this_machine_has_unmounted_keeps_its_disk(lab: Lab):
    lab.out("up", "--name", "deb12")
    lab.ssh("deb12", "touch /root/mark")
    host = lab.host("deb12")
    os.kill(host.leader(), signal.SIGKILL)
    wait_for(lambda: lab.states() == {"deb12": "stopped"})
    subprocess.run(["umount", host.root], check=True)
    assert lab.out("up", "--name", "deb12") == "bench one: started deb12"
    assert lab.ssh("deb12", "ls /root/mark") == "/root/mark"
    (mounted,) = [line for line in lab.ssh("deb12", "cat /proc/mounts").splitlines() if " / " in line]
    assert "volatile" in mounted, "hosts wait for the disk"


@pytest.mark.parametrize("seconds", [0.35, 0.6, 0.9, 1.3])
def test_a_killed_up_is_finished_by_the_next_and_removed_by_down(lab: Lab, seconds: float):
    for finish in (True, False):
        starting = lab.start("up", "-n", "3")
        time.sleep(seconds)
        starting.kill()
        starting.wait()
        if finish:
            lab.out("up", "-n", "3")
            assert set(lab.states().values()) == {"running"}
            assert lab.ssh("node3", "hostname") == "node3"
        lab.out("down")
        assert lab.leftovers() == []


def test_a_host_that_cannot_be_made_leaves_the_others_alone(lab: Lab):
    lab.out("up", "--name", "good")
    refusal = lab.error("up", "--name", "bad", "--gpu", "voodoo2:1")
    assert refusal.startswith("host bad: ") and "voodoo2" in refusal
    assert lab.states() == {"good": "running"}
    assert lab.ssh("good", "hostname") == "good"


def test_the_first_host_that_cannot_be_made_leaves_nothing(lab: Lab):
    lab.error("up", "--name", "bad", "--gpu", "voodoo2:1")
    assert lab.leftovers() == []


def test_refusals_name_the_next_step(lab: Lab, tmp_path: Path):
    assert lab.error("up", "--name", "Upper").startswith("host name 'Upper' must be")
    assert "bench one has no host a; it is not up: lab up" in lab.error("ssh", "a")
    lab.environment["PATH"] = f"{Path(sys.executable).parent}"
    missing = lab.error("up")
    assert "systemd-nspawn" in missing and "apt-get install --no-install-recommends" in missing


def test_only_root(lab: Lab):
    # nobody may read everything here, as the checkout may lie in a home that is closed to others
    readable = ("--inh-caps=+dac_read_search", "--ambient-caps=+dac_read_search")
    as_nobody = subprocess.run(
        ["setpriv", "--reuid=65534", "--clear-groups", *readable, *lab.command, "up"],
        capture_output=True,
        text=True,
    )
    assert as_nobody.returncode == 1
    assert "needs root: run it with sudo" in as_nobody.stderr


@pytest.mark.slow
def test_a_virtual_machine_has_a_kernel_of_its_own(lab: Lab):
    refusal = lab.run("up", "--name", "vm", "--kind", "qemu")
    if "missing on this machine: qemu" in refusal.stderr:
        pytest.skip(refusal.stderr.strip())
    assert refusal.returncode == 0, refusal.stderr
    before = lab.ssh(
        "vm", "modprobe dummy && lsmod | grep --count ^dummy; cat /proc/sys/kernel/random/boot_id"
    )
    assert before.startswith("1\n")
    assert lab.ssh("vm", "uname -r") != os.uname().release
    lab.run("ssh", "vm", "--", "systemctl reboot")
    boot = before.splitlines()[1]

    def rebooted() -> bool:
        done = lab.run("ssh", "vm", "--", "cat /proc/sys/kernel/random/boot_id")
        return done.returncode == 0 and done.stdout.strip() != boot

    wait_for(rebooted, PATIENCE + BOOT_SECONDS["qemu"])
    lab.out("down")
    assert lab.leftovers() == []
