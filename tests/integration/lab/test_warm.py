"""Modules that run in the warm interpreter end as in a host's own Python, and so do those that it refuses."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json
import os
import re
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from lab.bench import Bench, cache_dir
from lab.inventory import inventory
from lab.spec import HostSpec
from lab.warm import PYTHON

pytestmark = [
    pytest.mark.bench,
    pytest.mark.skipif(os.geteuid() != 0, reason="makes mounts and network namespaces: needs root"),
]

ROOT = Path(__file__).resolve().parents[3]
HERE = Path(__file__).parent / "warm"
SUITES = ("bookworm", "trixie")

# Values that differ between two hosts, or between two moments.
VOLATILE = re.compile(
    r"start|end|delta|[acm]time|ino|inode|dev|cache_update_time|ansible_job_id|attempts|src|_original_basename"
    r"|elapsed|date|status|last_modified|SSH_(CLIENT|CONNECTION)|XDG_SESSION_ID|SUDO_COMMAND"
    r"|ansible_(date_time|uptime_seconds|loadavg|memory_mb|memfree_mb|swapfree_mb|mounts|machine_id|env|eth0|lvm"
    r"|ssh_host_key_\w+|(all|default)_ipv[46]\w*|locally_reachable_ips|devices|device_links)"
)
# Sets, whose order is another in each Python.
UNORDERED = re.compile(r"ansible_(interfaces|virtualization_tech_\w+)")
REPLACED = (
    (re.compile(r"\d+\.\d+\.\d+\.\d+"), "ADDRESS"),
    (
        re.compile(r"(ansible_\w+_payload_|ansible-tmp-|ansible-moduletmp-|BECOME-SUCCESS-)[\w.-]+"),
        "TEMPORARY",
    ),
    (re.compile(r"(session-|XDG_SESSION_ID=)c?\d+"), "SESSION"),
    (re.compile(r"\b[0-9a-f]{32}\b"), "INVOCATION"),
    (re.compile(r"Fetched .* in .*B/s\)"), "DOWNLOAD"),
    (re.compile(r"j?\d+\.\d+"), "NUMBER"),
    (re.compile(r"\w+:\[\d+\]"), "SPACE"),
    (re.compile(re.escape(PYTHON)), "/usr/bin/python3"),
)


def plain(value: Any, host: str) -> Any:
    """Return a result without what differs from host to host and from moment to moment."""
    if isinstance(value, dict):
        kept = {key: plain(entry, host) for key, entry in value.items() if not VOLATILE.fullmatch(str(key))}
        return {key: sorted(kept[key]) if UNORDERED.fullmatch(str(key)) else kept[key] for key in kept}
    if isinstance(value, list):
        return [plain(entry, host) for entry in value]
    if isinstance(value, str):
        value = value.replace(host, "HOST")
        for pattern, word in REPLACED:
            value = pattern.sub(word, value)
    return value


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    """Return a bench with two hosts of each release."""
    found = Bench("warm", tmp_path_factory.mktemp("state"), cache_dir())
    try:
        found.up([HostSpec(f"{kind}-{suite}", suite=suite) for kind in ("warm", "cold") for suite in SUITES])
        yield found
    finally:
        found.down()


@pytest.fixture(scope="module")
def results(bench: Bench, tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[tuple[str, Any]]]:
    """Return what the calls of calls.yml returned: host -> names of tasks with results."""
    hosts = inventory(bench.status())
    for name, variables in hosts["_meta"]["hostvars"].items():
        if name.startswith("warm"):
            variables["ansible_python_interpreter"] = PYTHON
    folder = tmp_path_factory.mktemp("calls")
    (folder / "hosts").write_text(f"#!/bin/sh\ncat {folder}/hosts.json\n")
    (folder / "hosts").chmod(0o755)
    (folder / "hosts.json").write_text(json.dumps(hosts))
    environment = {
        **os.environ,
        "ANSIBLE_CONFIG": str(ROOT / "ansible.cfg"),
        "ANSIBLE_HOME": str(folder / "ansible"),
        "ANSIBLE_LIBRARY": str(HERE / "library"),
        "ANSIBLE_TIMEOUT": "300",  # seconds that sudo may take to begin, beside all other tests
        "ANSIBLE_STDOUT_CALLBACK": "ansible.posix.json",
        "ANSIBLE_JSON_INDENT": "0",
    }
    done = subprocess.run(
        ["ansible-playbook", "-i", folder / "hosts", HERE / "calls.yml"],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr
    tasks = json.loads(done.stdout)["plays"][0]["tasks"]
    return {
        host: [(task["task"]["name"], task["hosts"][host]) for task in tasks]
        for host in hosts["_meta"]["hostvars"]
    }


@pytest.mark.parametrize("suite", SUITES)
def test_calls_return_the_same(results: dict[str, list[tuple[str, Any]]], suite: str):
    warm, own = results[f"warm-{suite}"], results[f"cold-{suite}"]
    assert "daemon.py" in dict(warm)["Tell what serves calls"]["stdout"]
    assert "daemon.py" not in dict(own)["Tell what serves calls"]["stdout"]
    pairs = [
        (task, plain(result, f"warm-{suite}"), plain(expected, f"cold-{suite}"))
        for (task, result), (_, expected) in zip(warm, own, strict=True)
        if task != "Tell what serves calls"
    ]
    assert len(pairs) > 60
    different = {
        task: differences(result, expected) for task, result, expected in pairs if result != expected
    }
    assert different == {}


def differences(one: Any, other: Any) -> Any:
    """Return only what differs."""
    if isinstance(one, dict) and isinstance(other, dict):
        keys = [key for key in {**one, **other} if one.get(key) != other.get(key)]
        return {key: differences(one.get(key), other.get(key)) for key in keys}
    return one, other


# How every module that Ansible packs begins.
MODULE = "# the wrapper of a module\n_ANSIBALLZ_WRAPPER = True\n"
WHERE = """
with open("/proc/self/cmdline") as stream:
    print("warm" if "daemon.py" in stream.read() else "plain", flush=True)
"""


class Machine:
    """A host, and what runs there as Ansible runs it: over SSH, with the source on standard input."""

    def __init__(self, bench: Bench, name: str) -> None:
        self.command = ["ssh", "-F", str(bench.ssh_config), name]

    def run(self, command: str = PYTHON, source: str = "") -> str:
        """Return what a command writes, standard error included, and at last its exit status."""
        done = subprocess.run(
            [*self.command, f"{{ {command}\n}} 2>&1; echo $?"],
            input=source,
            capture_output=True,
            text=True,
            check=True,
            timeout=300,
        )
        return re.sub(
            r"^bash: line \d+: .*\n", "", done.stdout, flags=re.MULTILINE
        )  # of jobs that are killed

    def warm(self) -> None:
        """Wait until calls are served."""
        for _ in range(100):
            if self.run(source=MODULE + WHERE) == "warm\n0\n":
                return
            time.sleep(0.2)
        raise AssertionError("no daemon listens")


@pytest.fixture(scope="module", params=SUITES)
def machine(request: pytest.FixtureRequest, bench: Bench) -> Machine:
    return Machine(bench, f"warm-{request.param}")


@pytest.fixture(autouse=True)
def warm_machine(request: pytest.FixtureRequest) -> None:
    if "machine" in request.fixturenames:
        request.getfixturevalue("machine").warm()


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("import sys; sys.exit(3)", "3\n"),
        ("import sys; sys.exit(257)", "1\n"),
        ("import sys; sys.exit('the reason')", "the reason\n1\n"),
        ("import sys; sys.stdout.write('no line'); sys.exit()", "no line0\n"),
        ("import atexit; atexit.register(print, 'at exit'); raise SystemExit(4)", "at exit\n4\n"),
        ("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", "137\n"),
        ("import os; os.abort()", "134\n"),
        ("import os; os.execv('/bin/echo', ['echo', 'another program'])", "another program\n0\n"),
        (
            "import threading, time, sys\n"
            "threading.Thread(target=lambda: time.sleep(0.3) or print('late')).start()\n"
            "sys.exit(5)",
            "late\n5\n",
        ),
        ("import random; print(len({random.random()}))", "1\n0\n"),
    ],
)
def test_an_end_is_passed_on(machine: Machine, source: str, said: str):
    assert machine.run(source=f"{MODULE}{WHERE}{source}\n") == f"warm\n{said}"


def test_an_error_ends_as_pythons_own(machine: Machine):
    said = machine.run(source=MODULE + "1 / 0\n").splitlines()
    assert said[-2:] == ["ZeroDivisionError: division by zero", "1"]


def test_calls_differ_in_what_is_random(machine: Machine):
    source = MODULE + "import random, uuid, tempfile\nprint(random.random(), uuid.uuid4(), tempfile.mktemp())"
    assert len({word for _ in range(3) for word in machine.run(source=source).split()}) == 3 * 3 + 1


@pytest.mark.parametrize(
    ("command", "source"),
    [
        (PYTHON, WHERE),
        (f"cat >/root/source.py; {PYTHON} /root/source.py", MODULE + WHERE),
        (f"{PYTHON} -", MODULE + WHERE),
        (f"runuser -u games -- {PYTHON}", MODULE + WHERE),
        (f"setpriv --reuid=games --clear-groups {PYTHON}", MODULE + WHERE),
    ],
    ids=["no module", "a file", "an argument", "another user", "another user id"],
)
def test_what_is_not_served_runs_plain_and_leaves_the_daemon(machine: Machine, command: str, source: str):
    assert "plain" in machine.run(command, source).splitlines()
    assert machine.run(source=MODULE + WHERE) == "warm\n0\n"


@pytest.mark.parametrize(
    ("command", "source", "said"),
    [
        ("ulimit -n 512", "import resource; print(resource.getrlimit(resource.RLIMIT_NOFILE))", "(512, 512)"),
        ("trap '' HUP", "import signal; print(signal.getsignal(signal.SIGHUP).name)", "SIG_IGN"),
        ("export PYTHONUTF8=1", "import sys; print(sys.flags.utf8_mode)", "1"),
        ("export TZ=Asia/Tokyo", "import time; print(time.tzname[0])", "JST"),
        ("export LC_ALL=C", "import locale; print(locale.setlocale(locale.LC_ALL))", "C"),
        ("renice 5 $$ >/dev/null", "import os; print(os.nice(0))", "5"),
    ],
)
def test_a_call_that_begins_otherwise_runs_plain(machine: Machine, command: str, source: str, said: str):
    source = f"{MODULE}{WHERE}{source}\n"
    assert machine.run(f"{command}; {PYTHON}", source) == f"plain\n{said}\n0\n"
    machine.warm()


def test_umask_and_folder_are_the_callers(machine: Machine):
    source = MODULE + WHERE + "import os; print(oct(os.umask(0)), os.getcwd())"
    assert machine.run(f"umask 027; cd /var/tmp; {PYTHON}", source) == "warm\n0o27 /var/tmp\n0\n"
    gone = f"mkdir /root/gone; cd /root/gone; rmdir /root/gone; {PYTHON}"
    assert machine.run(gone, MODULE + WHERE) == "warm\n0\n"


WAITS = """
import os, time
open(f"/root/{os.environ['ME']}", "w").write(str(os.getpid()))
while not os.path.exists(os.environ["UNTIL"]):
    time.sleep(0.05)
"""
BEGUN = "until [ -s /root/me ]; do sleep 0.1; done; child=$(cat /root/me); "
# A shell lets its background ignore them, and a Python that begins so does too.
SERVED = f"env --default-signal=INT,QUIT {PYTHON}"
GONE = "; while kill -0 $child 2>/dev/null; do sleep 0.1; done; echo gone"


@pytest.fixture
def waits(machine: Machine) -> str:
    """Return a command that runs a module in the background, which waits for the file /root/go."""
    machine.run("rm -f /root/me /root/you /root/go")
    start = f"{SERVED} </root/source.py >/root/said 2>&1 & shim=$!"
    return f"cat >/root/source.py; export ME=me UNTIL=/root/go; {start}; {BEGUN}"


def test_the_end_of_the_program_is_the_end_of_the_call(machine: Machine, waits: str):
    said = machine.run(f"{waits} kill -KILL $shim; wait $shim{GONE}", MODULE + WHERE + WAITS)
    assert said == "gone\n0\n"
    assert machine.run("cat /root/said") == "warm\n0\n"


@pytest.mark.parametrize(
    ("handler", "code"), [("", 143), ("import signal; signal.signal(15, lambda *_: os._exit(9))", 9)]
)
def test_signals_are_handed_on(machine: Machine, waits: str, handler: str, code: int):
    source = f"{MODULE}{WHERE}import os\n{handler}\n{WAITS}"
    said = machine.run(f"{waits} kill $shim; wait $shim; echo $?{GONE}", source)
    assert said == f"{code}\ngone\n0\n"
    assert machine.run("cat /root/said") == "warm\n0\n"


def test_a_call_whose_watcher_ends_says_so(machine: Machine):
    said = machine.run(source=MODULE + "import os; os.kill(os.getppid(), 9)")
    assert (
        said == "/run/lab-warm/daemon.py: the process that watched this call has ended: run it again\n125\n"
    )


def test_a_call_outlives_the_daemon(machine: Machine, waits: str):
    daemon = "$(pgrep -o -f '[l]ab-warm/daemon.py')"
    said = machine.run(f"{waits} kill {daemon}; touch /root/go; wait $shim; echo $?", MODULE + WHERE + WAITS)
    assert said + machine.run("cat /root/said") == "0\n0\nwarm\n0\n"
    machine.warm()


def test_two_calls_run_at_once(machine: Machine, waits: str):
    first = waits.replace("/root/go", "/root/you")
    second = f"ME=you UNTIL=/root/me {PYTHON} </root/source.py"
    said = machine.run(f"{first} {second}; wait $shim; cat /root/said", MODULE + WHERE + WAITS)
    assert said == "warm\nwarm\n0\n"


def test_a_call_belongs_to_the_callers_unit(machine: Machine, waits: str):
    machine.run("cat >/root/source.py", MODULE + WHERE + WAITS)
    start = f"systemd-run --quiet --scope --unit probe {SERVED} </root/source.py >/root/said 2>&1 &"
    said = machine.run(
        f"export ME=me UNTIL=/root/go; {start} {BEGUN} cat /root/said /proc/$child/cgroup;"
        f" systemctl stop probe.scope{GONE}"
    ).splitlines()
    assert said[0] == "warm"
    assert any(line.endswith("/system.slice/probe.scope") for line in said)
    assert said[-2:] == ["gone", "0"]


def test_a_terminal_gets_pythons_own(machine: Machine):
    assert 'Type "help"' in machine.run(f"echo 'exit()' | script -qec {PYTHON} /dev/null")


# A module's wrapper, as far as it matters here; the archive is a copy of what the daemon has loaded.
PACKED = (
    MODULE
    + """
import os, shutil, sys, zipfile
archive = "/root/module.zip"
with zipfile.ZipFile("/run/lab-warm/ansible.zip") as known, zipfile.ZipFile(archive, "w") as mine:
    for name in known.namelist():
        replace = REPLACE if name.endswith("/common/file.py") else (b"", b"")
        mine.writestr(name, known.read(name).replace(*replace))
    mine.writestr("ansible/module_utils/mine.py", "text = 'mine'")
sys.path.insert(0, archive)
with open("/root/begun", "a") as begun:
    begun.write("x")
try:
    from ansible.module_utils import basic, mine
finally:
    os.remove("/root/begun") if os.path.getsize("/root/begun") == TIMES else None
print(basic.__file__, mine.text, basic.FILE_ATTRIBUTES["A"])
from ansible.module_utils.common import respawn
print(respawn._ANSIBLE_PARENT_PATH)
"""
)


def test_a_module_finds_its_own_archive_around_what_is_loaded(machine: Machine):
    said = machine.run(source=PACKED.replace("REPLACE", "(b'', b'')").replace("TIMES", "1") + WHERE)
    here = "/root/module.zip/ansible/module_utils/basic.py mine noatime\n/root/module.zip\n"
    assert said == f"{here}warm\n0\n"


def test_a_module_with_other_code_runs_plain_with_all_of_its_own(machine: Machine):
    source = PACKED.replace("REPLACE", "(b'noatime', b'NOATIME')").replace("TIMES", "2") + WHERE
    said = machine.run(source=source)
    here = "/root/module.zip/ansible/module_utils/basic.py mine NOATIME\n/root/module.zip\n"
    assert said == f"{here}plain\n0\n"
    assert machine.run(source=MODULE + WHERE) == "warm\n0\n"


def test_a_python_that_has_changed_is_not_served_by_the_one_before(machine: Machine):
    folder = "/usr/lib/python3/dist-packages"
    machine.run(f"mkdir -p /opt/late; echo 'text = 1' >/opt/late/late.py; echo /opt/late >{folder}/late.pth")
    source = MODULE + WHERE + "import late"
    assert machine.run(source=source) == "plain\n0\n"
    machine.warm()
    assert machine.run(source=source) == "warm\n0\n"


OBSERVED = (
    "systemctl list-units --all --plain --no-legend 'user*' '*.service' '*.socket' '*.timer' '*.mount'"
    " | grep -v -e '^session-' -e '^systemd-tmpfiles-clean'",
    "systemctl list-unit-files --no-legend",
    "systemctl --failed --no-legend",
    "ss -H -tuln",
    "findmnt -rno TARGET | sort",
    "ls -A /run /tmp /var/tmp /root /etc /opt",
)


def test_roles_and_their_tests_see_nothing_of_it(bench: Bench):
    for suite in SUITES:
        machine = Machine(bench, f"cold-{suite}")
        machine.run("systemctl stop systemd-hostnamed.service")  # it named the host, and would end by itself
        before = [machine.run(command) for command in OBSERVED]
        written = machine.run("journalctl -q -o cat | grep -v -i -e session -e sshd -e pam")
        assert machine.run("pgrep -f [l]ab-warm/daemon.py") == "1\n"
        machine.warm()
        assert [machine.run(command) for command in OBSERVED] == before
        assert machine.run("journalctl -q -o cat | grep -v -i -e session -e sshd -e pam") == written
        groups = machine.run("cat /proc/$(pgrep -f [l]ab-warm/daemon.py)/cgroup /proc/1/cgroup").splitlines()
        assert groups[: len(groups) // 2] == groups[len(groups) // 2 : -1]


def test_after_a_reboot_another_daemon_begins(bench: Bench):
    machine = Machine(bench, "cold-bookworm")
    boot = machine.run("cat /proc/sys/kernel/random/boot_id; cut -d' ' -f22 /proc/1/stat")
    machine.warm()
    subprocess.run([*machine.command, "systemctl reboot"], check=False, capture_output=True)
    end = time.monotonic() + 300
    while True:
        try:
            if machine.run("cat /proc/sys/kernel/random/boot_id; cut -d' ' -f22 /proc/1/stat") != boot:
                break
        except subprocess.CalledProcessError:
            pass
        assert time.monotonic() < end, "the host is not back within five minutes"
        time.sleep(0.5)
    assert machine.run("pgrep -f [l]ab-warm/daemon.py") == "1\n"
    assert machine.run(source=MODULE + WHERE) == "plain\n0\n"
    machine.warm()
