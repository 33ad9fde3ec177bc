"""A crowd at the hub: 50 people want 14 GPU slices at once, and five hoard turns. `make bench-hub`.

On a bench of its own: the real hub behind its proxy, a simulated pair of A100, real logins at the bench's
identity provider, the pages and the REST API that browsers use, real notebook servers.
"""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json
import os
import secrets
import statistics
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import click
import httpx
from rich.console import Console
from rich.table import Table

from lab import bench as benches
from lab.bench import Bench
from lab.demo import HUB_AUTHORITY
from lab.errors import LabError
from lab.hub_check import buckets, overtaken, quantile, shared
from lab.spec import HostSpec
from lab.stage import ROOT
from lab.system import require_root, run, write_atomically
from lab.visitor import Refused, Visitor, trust

HOSTS = [HostSpec("hub", gpus=("a100-80gb:2",)), HostSpec("iam", iam=True)]
PROFILE = "1g.10gb"
SLICES = 14  # seven of each A100
PEOPLE = 50
HOARDERS = 5  # they let their turn pass, again and again
CLAIM = 2  # minutes in which somebody who is called must start
HOLD = 4.0  # seconds that somebody keeps the slice
PAIRS = 10  # starts of each kind of notebook that are compared
PATIENCE = 900  # seconds after which the crowd is given up
DECISION = "gpufarm_hub_decision_seconds"
AIMS = {"decision": 0.050, "start": 1.05}
SAMPLES = Path("watch.jsonl")

# Beside the hub's own spawner the stock one, for people of one name: both in the same hub at the same time.
BOTH_SPAWNERS = '''
from systemdspawner import SystemdSpawner

c = get_config()
ours = c.JupyterHub.spawner_class


class Plain(SystemdSpawner):
    """JupyterHub's own spawner: no slices, no queue, no sandbox."""


class Either(ours):
    def __new__(cls, *args, **kwargs):
        if kwargs["user"].name == "plain":
            return Plain(*args, **kwargs)
        return super().__new__(cls, *args, **kwargs)


hooks = {"apply_user_options", "post_stop_hook"}
for kind in reversed(ours.__mro__):
    for name, value in c.get(kind.__name__, {}).items():
        if name in SystemdSpawner.class_traits() and name not in hooks:
            c.Plain[name] = value
# Fourteen starts at once take longer on a small machine than users would wait.
for section in (c[ours.__name__], c.Plain):
    section.http_timeout = 300
    section.start_timeout = 300
c.Plain.unit_name_template = "plain-notebook"
c.Plain.mem_limit = "1G"
c.JupyterHub.spawner_class = Either
'''

console = Console(highlight=False, soft_wrap=True)


class Guest(Visitor):
    """Somebody who waits for a slice, uses it for a moment, and gives it back.

    Attributes:
        answers: seconds that the hub took to answer each time a slice was asked for.
        positions: places in the queue, as they were told.
        waited: seconds until the notebook ran.
    """

    waited = 0.0

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.answers: list[float] = []
        self.positions: list[int] = []

    def hoard(self, over: threading.Event) -> None:
        """Wait, and when called only ask again until the place is lost; then wait anew."""
        while not over.is_set():
            if self._ask():
                self.stop()  # a slice was free
                continue
            while not over.wait(2):
                if self._api("GET", f"/hub/api/gpufarm/users/{self._name}/queue/").status_code == 404:
                    break
        self._api("DELETE", f"/hub/api/gpufarm/users/{self._name}/queue/")

    def use_a_slice(self, until: float) -> None:
        """Ask, wait as the page does, hold, stop.

        Raises:
            Refused: the hub says something else than "you wait".
            LabError: the place in the queue is lost, or it is not one's turn in time.
        """
        asked = time.monotonic()
        while not self._ask():
            while not self._called():
                if time.monotonic() > until:
                    raise LabError(f"{self._name} still waits as number {self.positions[-1]}")
                time.sleep(2)
        self.waited = time.monotonic() - asked
        time.sleep(HOLD)
        self.stop()

    def _ask(self) -> bool:
        """Send the form; tell whether the notebook runs, or else one waits."""
        started = time.monotonic()

        def answered(_message: str) -> None:
            if len(self.answers) == before:
                self.answers.append(time.monotonic() - started)

        before = len(self.answers)
        try:
            self.spawn(gpu=PROFILE, progress=answered)
        except Refused as refused:
            if refused.status != 409 or "You wait as number" not in str(refused):
                raise
            answered("")
            return False
        return True

    def _called(self) -> bool:
        answer = self._api("GET", f"/hub/api/gpufarm/users/{self._name}/queue/")
        if answer.status_code != 200:
            raise LabError(f"{self._name} lost the place in the queue (HTTP status {answer.status_code})")
        place = answer.json()
        self.positions.append(place["position"])
        return bool(place["called"])

    def _progress(self) -> Iterator[dict[str, Any]]:
        # The hub answers the form before it starts the notebook: it asks the provider first.
        for attempt in range(60):
            try:
                yield from super()._progress()
                return
            except httpx.HTTPStatusError as error:
                if error.response.status_code != 400 or attempt == 59:
                    raise
                time.sleep(0.5)

    def start_seconds(self, options: dict[str, str]) -> tuple[float, float]:
        """Start the notebook server by the REST API; return when, and the seconds until it answers."""
        started = time.monotonic()
        self._api("POST", f"/hub/api/users/{self._name}/server", json=options).raise_for_status()
        for event in self._progress():
            if event.get("failed"):
                raise Refused(500, event["message"])
        return started, time.monotonic() - started

    def metrics(self) -> str:
        """Return the hub's metrics; for an administrator."""
        token = self._api("POST", f"/hub/api/users/{self._name}/tokens", json={}).json()["token"]
        headers = {"Authorization": f"token {token}"}
        return self._http.get(f"{self.hub}/hub/metrics", headers=headers).raise_for_status().text


@dataclass
class Load:
    """One run on one bench.

    Attributes:
        figures: what is reported, in the order in which it is measured.
        wrong: what must not have happened, one sentence each.
    """

    bench: Bench
    figures: dict[str, float] = field(default_factory=dict)
    wrong: list[str] = field(default_factory=list)

    def run(self) -> None:
        """Set the service up, compare starts, let the crowd in."""
        with self._phase("bench and service"):
            self.bench.up(HOSTS)
            logins = self._people()
            self._role("mig", {"mig_partition_flavor": f"7x {PROFILE}"})
            iam = self.bench.status()["iam"]
            self._role(
                "jupyterhub",
                {
                    "jupyterhub_iam_url": iam["url"],
                    "jupyterhub_iam_ca_file": iam["ca_file"],
                    "jupyterhub_memory_choices": ["1G"],
                    "jupyterhub_queue_claim_minutes": CLAIM,
                },
            )
            self._add_plain_spawner()
            context = trust(self._on("hub", "cat", HUB_AUTHORITY), Path(iam["ca_file"]).read_text())
            url = f"https://{self.bench.host('hub').address}:8888"
        with ExitStack() as stack:
            watch = stack.enter_context(self._watch())
            with self._phase("login of everybody"):
                guests = {name: stack.enter_context(Guest(url, context)) for name in logins}
                self.figures["memory_idle_mebibytes"] = self._memory()["VmRSS"] / 1024
                with ThreadPoolExecutor(len(guests)) as pool:
                    list(pool.map(lambda name: guests[name].login(name, logins[name]), guests))
            admin, plain = guests.pop("bob"), guests.pop("plain")
            hoarders = [guests.pop(name) for name in list(guests) if name.startswith("hoarder")]
            with self._phase("starts compared"):
                self._compare_starts(next(iter(guests.values())), plain)
            self.figures["machine_load"] = os.getloadavg()[0]
            with self._phase("crowd"):
                before = buckets(admin.metrics(), DECISION)
                self._crowd(list(guests.values()), hoarders)
                after = buckets(admin.metrics(), DECISION)
            counts = {bound: count - before.get(bound, 0) for bound, count in after.items()}
            self.figures["decisions"] = max(counts.values())
            self.figures["decision_p95_seconds"] = quantile(0.95, counts)
            self.figures["memory_peak_mebibytes"] = self._memory()["VmHWM"] / 1024
            samples = [json.loads(line) for line in watch.read_text().splitlines()[:-1]]
        self._verify(samples)

    def _people(self) -> dict[str, str]:
        """Give the provider more people; returns names and passwords of those who come."""
        users_file = Path(self.bench.status()["iam"]["users_file"])
        bob = json.loads(users_file.read_text())["bob"]["password"]
        names = ["plain", *(f"guest{number:02}" for number in range(1, PEOPLE + 1))]
        names += [f"hoarder{number}" for number in range(1, HOARDERS + 1)]
        logins = {name: secrets.token_urlsafe(9) for name in names}
        people = [
            {
                "name": name,
                "password": password,
                "groups": ["ml-infn-users"],
                "sub": str(uuid.uuid5(uuid.NAMESPACE_DNS, f"{name}.example.org")),
                "given_name": name,
                "family_name": "Guest",
                "email": f"{name}@example.org",
            }
            for name, password in logins.items()
        ]
        config = json.loads(self._on("iam", "cat", "/etc/iam/config.json"))
        config["users"] = [user for user in config["users"] if user["name"] not in logins] + people
        self._on("iam", "tee /etc/iam/config.json >/dev/null", stdin=json.dumps(config))
        self._on("iam", "systemctl restart iam")
        return {"bob": bob, **logins}

    def _role(self, name: str, variables: dict[str, Any]) -> None:
        command = ["ansible", "hub", "--inventory", str(ROOT / "inventories" / "lab")]
        command += ["--module-name", "ansible.builtin.include_role", "--args", f"name=gpufarm.cluster.{name}"]
        environment = {
            **os.environ,
            "ANSIBLE_CONFIG": str(ROOT / "ansible.cfg"),
            "LAB_BENCH": self.bench.name,
        }
        done = subprocess.run(
            [*command, "--extra-vars", json.dumps(variables)],
            env=environment,
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise LabError(f"role {name} failed: {done.stdout[-2000:]}{done.stderr[-500:]}")

    def _add_plain_spawner(self) -> None:
        self._on("hub", "tee --append /etc/jupyterhub/jupyterhub_config.py >/dev/null", stdin=BOTH_SPAWNERS)
        for name in ("plain", "guest01"):
            self._on(
                "hub",
                "/opt/jupyterhub/bin/python -c "
                f"\"from gpufarm_hub.people import accounts; accounts.ensure('{name}')\"",
            )
        self._on("hub", "systemctl restart jupyterhub")
        self._on(
            "hub", "timeout 60 sh -c 'until curl --fail --silent 127.0.0.1:8081/hub/api/; do sleep 0.5; done'"
        )

    @contextmanager
    def _watch(self) -> Iterator[Path]:
        """Look at leases and units all the time; the samples are in the file when the block ends."""
        file = self.bench.directory / SAMPLES
        command = ["ssh", "-F", str(self.bench.ssh_config), "hub", "python3", "-"]
        program = Path(__file__).with_name("hub_watch.py")
        with program.open() as source, file.open("w") as output:
            process = subprocess.Popen(command, stdin=source, stdout=output)
        try:
            yield file
        finally:
            process.terminate()
            process.wait()

    def _compare_starts(self, ours: Guest, plain: Guest) -> None:
        """Start notebooks of both kinds in turn, a pair to warm up and then those that count.

        Most of a start is the notebook's own program, the same in both. The hub's work before that is
        measured apart, as the program's time varies more than what is to be compared.
        """
        units = {ours: f"jupyterhub-notebook-{ours._name}", plain: "plain-notebook"}
        whole: dict[Guest, list[float]] = {ours: [], plain: []}
        before: dict[Guest, list[float]] = {ours: [], plain: []}
        for number in range(-1, PAIRS):
            for guest in (ours, plain) if number % 2 else (plain, ours):
                started, seconds = guest.start_seconds({"gpu": PROFILE} if guest is ours else {})
                show = f"systemctl show --value --property=ExecMainStartTimestampMonotonic {units[guest]}"
                # Microseconds of the clock that all hosts of a bench share.
                ran = int(self._on("hub", show)) / 1e6
                guest.stop()
                if number >= 0:
                    whole[guest].append(seconds)
                    before[guest].append(ran - started)
        self.figures["start_seconds"] = statistics.median(whole[ours])
        self.figures["start_plain_seconds"] = statistics.median(whole[plain])
        self.figures["order_seconds"] = statistics.median(before[ours])
        self.figures["order_plain_seconds"] = statistics.median(before[plain])
        extra = self.figures["order_seconds"] - self.figures["order_plain_seconds"]
        self.figures["start_ratio"] = self.figures["start_seconds"] / self.figures["start_plain_seconds"]
        self.figures["order_ratio"] = 1 + extra / self.figures["start_plain_seconds"]

    def _crowd(self, guests: list[Guest], hoarders: list[Guest]) -> None:
        """Let everybody ask at the same moment; returns when everybody but the hoarders has had a slice."""
        together, over = threading.Barrier(len(guests) + len(hoarders)), threading.Event()
        started = time.monotonic()

        def come(guest: Guest) -> str:
            together.wait()
            try:
                guest.use_a_slice(started + PATIENCE)
            except Exception as error:
                return f"{guest._name}: {error or type(error).__name__}"
            return ""

        def hoard(hoarder: Guest) -> None:
            together.wait()
            hoarder.hoard(over)

        with ThreadPoolExecutor(len(guests) + len(hoarders)) as pool:
            hoarding = [pool.submit(hoard, hoarder) for hoarder in hoarders]
            self.wrong += filter(None, pool.map(come, guests))
            over.set()
            for each in hoarding:
                each.result()
        self.figures["longest_wait_seconds"] = max(guest.waited for guest in guests)
        self.figures["crowd_seconds"] = time.monotonic() - started
        self.figures["waited"] = sum(bool(guest.positions) for guest in guests)
        answers = sorted(seconds for guest in guests for seconds in guest.answers)
        self.figures["answer_p95_seconds"] = answers[len(answers) * 95 // 100]
        for guest in guests:
            if guest.positions != sorted(guest.positions, reverse=True):
                self.wrong.append(f"{guest._name} went back in the queue: {guest.positions}")

    def _verify(self, samples: list[dict[str, Any]]) -> None:
        self.figures["samples"] = len(samples)
        self.figures["held_at_most"] = max(len(sample["leases"]) for sample in samples)
        self.wrong += sorted({problem for sample in samples for problem in shared(sample)})
        lines = self._on("hub", "cat", "/var/log/jupyterhub/audit.jsonl").splitlines()
        events = [event for event in map(json.loads, lines) if event["user"] != "plain"]
        self.wrong += overtaken(events, SLICES)
        self.figures["missed"] = sum(event["event"] == "missed" for event in events)
        served = {event["user"] for event in events if event["event"] == "taken" and "guest" in event["user"]}
        self.figures["served"] = len(served)
        if len(served) != PEOPLE:
            self.wrong.append(f"{PEOPLE - len(served)} people never had a slice")
        left = json.loads(self._on("hub", "cat", "/var/lib/jupyterhub/leases.json"))
        if left.get("leases") or left.get("queue"):
            self.wrong.append(f"leases or queue are not empty at the end: {left}")

    def _memory(self) -> dict[str, int]:
        """Resident memory of the hub in KiB, as the watch has seen it last."""
        lines: list[str] = []
        while len(lines) < 2:
            time.sleep(0.5)
            lines = (self.bench.directory / SAMPLES).read_text().splitlines()
        memory: dict[str, int] = json.loads(lines[-2])["memory"]
        return memory

    def _on(self, host: str, *command: str, stdin: str | None = None) -> str:
        return run(["ssh", "-F", self.bench.ssh_config, host, *command], stdin=stdin)

    @contextmanager
    def _phase(self, title: str) -> Iterator[None]:
        console.print(f"{title} ...", end="")
        started = time.monotonic()
        yield
        console.print(f" {time.monotonic() - started:.0f} s")


def table(figures: dict[str, float]) -> Table:
    """The figures as a table."""
    decision, start = figures["decision_p95_seconds"], figures["order_ratio"]
    rows: list[tuple[str, str, str]] = [
        ("people, slices", f"{PEOPLE}, {SLICES}", ""),
        ("people who got a slice", f"{figures['served']:.0f}", f"{PEOPLE}"),
        ("people who waited", f"{figures['waited']:.0f}", ""),
        ("hoarders; turns that they let pass", f"{HOARDERS}; {figures['missed']:.0f}", ""),
        ("longest wait of anybody else, s", f"{figures['longest_wait_seconds']:.0f}", ""),
        ("slices held at most", f"{figures['held_at_most']:.0f}", f"{SLICES}"),
        ("looks at leases and units", f"{figures['samples']:.0f}", ""),
        ("until everybody had one, s", f"{figures['crowd_seconds']:.0f}", ""),
        ("lease decisions", f"{figures['decisions']:.0f}", ""),
        ("lease decision, p95, ms", f"{decision * 1000:.1f}", f"< {AIMS['decision'] * 1000:.0f}"),
        ("answer to the form, p95, s", f"{figures['answer_p95_seconds']:.1f}", ""),
        ("start with a slice, median, s", f"{figures['start_seconds']:.2f}", ""),
        ("plain start, median, s", f"{figures['start_plain_seconds']:.2f}", ""),
        ("start with a slice / plain start", f"{figures['start_ratio']:.2f}", ""),
        ("until its program runs, ms", f"{figures['order_seconds'] * 1000:.0f}", ""),
        ("the same for a plain start, ms", f"{figures['order_plain_seconds'] * 1000:.0f}", ""),
        ("start with that much more / plain start", f"{start:.2f}", f"< {AIMS['start']}"),
        ("load of this machine before the crowd", f"{figures['machine_load']:.1f}", "0"),
        ("memory of the hub when idle, MiB", f"{figures['memory_idle_mebibytes']:.0f}", ""),
        ("memory of the hub at most, MiB", f"{figures['memory_peak_mebibytes']:.0f}", ""),
    ]
    result = Table(box=None, pad_edge=False)
    for title in ("figure", "value", "aim"):
        result.add_column(title, justify="left" if title == "figure" else "right")
    for row in rows:
        result.add_row(*row)
    return result


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--keep", is_flag=True, help="Leave the bench up, to look around.")
@click.option(
    "--bench", default="hub-load", show_default=True, help="Name of the bench; one that is there goes."
)
def main(keep: bool, bench: str) -> None:
    """Let 50 people ask for 14 slices at once, and compare starts of notebooks with the stock spawner's."""
    require_root()
    say: Callable[[str], None] = lambda line: None  # noqa: E731
    load = Load(Bench(bench, benches.state_dir(), benches.cache_dir(), say))
    load.bench.down()
    try:
        load.run()
    finally:
        if not keep:
            load.bench.down()
    console.print(table(load.figures))
    write_atomically(ROOT / ".work" / f"{bench}.json", json.dumps(load.figures, indent=2) + "\n")
    if load.wrong:
        raise LabError("; ".join(load.wrong[:5]) + (" ..." if len(load.wrong) > 5 else ""))


if __name__ == "__main__":
    try:
        main(standalone_mode=False)
    except LabError as problem:
        sys.exit(f"hub_load: {problem}")
    except (KeyboardInterrupt, click.Abort):
        sys.exit(130)
