"""Faults under the hub: its proxy, itself, the provider, its disk, the machine."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator

import httpx
import pytest
from testinfra.host import Host

from lab.visitor import Refused

STATE = "/var/lib/jupyterhub"
ASIDE = "/var/lib/jupyterhub-aside"
UNIT = "jupyterhub-notebook-alice.service"
CONSISTENT = f"/opt/jupyterhub/bin/gpufarm-hub-check {STATE}/leases.json"

pytestmark = pytest.mark.usefixtures("one_machine")


@pytest.fixture
def unreachable_provider(host: Host, bench) -> Iterator[Callable[[], None]]:
    """Cut the hub, not its users, off the provider; at the end it is reached again."""
    address = httpx.URL(bench["iam"]["url"]).host
    yield lambda: host.check_output(f"ip route add unreachable {address}/32") and None
    host.run(f"ip route del unreachable {address}/32")


@pytest.fixture
def small_disk(host: Host, eventually, hub_answers) -> Iterator[None]:
    """Keep the hub's state on a file system of its own with little room."""
    host.check_output(
        f"systemctl stop jupyterhub && cp -a {STATE} {ASIDE} "
        f"&& mount -t tmpfs -o size=8M,mode=0700 state {STATE} "
        f"&& cp -a {ASIDE}/. {STATE} && systemctl start jupyterhub"
    )
    eventually(hub_answers)
    yield
    host.check_output(
        f"systemctl stop jupyterhub && rm -rf {ASIDE} {STATE}/fill && cp -a {STATE} {ASIDE} "
        f"&& umount {STATE} && cp -a {ASIDE}/. {STATE} && rm -rf {ASIDE} && systemctl start jupyterhub"
    )
    eventually(hub_answers)


def test_notebooks_are_reached_again_after_the_proxy_died(host, visit, leases, eventually):
    alice = visit("alice")
    alice.spawn(gpu="1g.10gb")
    held = leases()
    pid = host.check_output(f"systemctl show --property=MainPID --value {UNIT}")
    host.check_output("systemctl kill --signal=KILL jupyterhub-proxy")

    def works() -> bool:
        with contextlib.suppress(httpx.HTTPError, Refused):
            return alice.execute("print(6 * 7)") == "42"
        return False

    eventually(works)
    assert leases() == held
    assert host.check_output(f"systemctl show --property=MainPID --value {UNIT}") == pid


def test_a_hub_that_dies_while_it_starts_a_notebook_leaves_no_lease_behind(
    host, visit, leases, eventually, hub_answers
):
    alice = visit("alice")

    def spawn() -> None:
        with contextlib.suppress(httpx.HTTPError, Refused):
            alice.spawn(gpu="1g.10gb")

    start = threading.Thread(target=spawn)
    start.start()
    eventually(lambda: "alice" in leases())
    host.check_output("systemctl kill --signal=KILL --kill-whom=main jupyterhub")
    start.join()
    eventually(hub_answers)
    eventually(lambda: host.run(CONSISTENT).rc == 0)
    eventually(alice.settled)
    # Whichever way it went, the next start works, and the slice comes back.
    if not alice.running():
        alice.spawn(gpu="1g.10gb")
    assert list(leases()) == ["alice"]
    alice.stop()
    eventually(lambda: leases() == {})


def test_while_the_provider_is_down_who_is_inside_works_on_and_others_read_why(
    visit, leases, unreachable_provider
):
    alice = visit("alice")
    unreachable_provider()
    with pytest.raises(Refused, match="Your identity provider does not answer") as no:
        visit("bob")
    assert no.value.status == 503
    alice.spawn(gpu="1g.10gb")  # for which the provider is asked again
    assert alice.slices().visible == [leases()["alice"]["uuid"]]


def test_a_full_disk_costs_no_slice(host, small_disk, visit, leases, eventually):
    alice, bob = visit("alice"), visit("bob")
    alice.spawn(gpu="1g.10gb")
    held = leases()
    host.run(f"head --bytes=1G /dev/zero > {STATE}/fill")
    said = ""
    try:
        bob.spawn(gpu="1g.10gb")
    except (httpx.HTTPError, Refused) as refused:
        said = str(refused)
    assert said, "without room in its database the hub starts nothing"
    assert not [word for word in ("Errno", "Traceback", "Internal Server Error", "sqlite") if word in said]
    assert leases() == held
    with contextlib.suppress(httpx.HTTPError, TimeoutError):
        alice.stop(timeout=5)
    host.check_output(f"rm {STATE}/fill")
    # The hub may have taken them for strangers meanwhile, as a page of it that cannot be written down does.
    alice, bob = visit("alice"), visit("bob")
    if alice.running():
        alice.stop()
    eventually(lambda: "alice" not in leases())
    if not bob.running():
        bob.spawn(gpu="1g.10gb")
    assert list(leases()) == ["bob"]
    assert host.run(CONSISTENT).rc == 0


@pytest.mark.parametrize("fault", ["rm", "truncate --size=20", "truncate --size=0"])
def test_leases_come_back_from_the_notebooks_that_run(host, visit, leases, eventually, hub_answers, fault):
    alice = visit("alice")
    alice.spawn(gpu="1g.10gb")
    held = leases()["alice"]["uuid"]
    host.check_output(f"{fault} {STATE}/leases.json && systemctl restart jupyterhub")
    eventually(hub_answers)
    assert leases()["alice"]["uuid"] == held
    bob = visit("bob")
    bob.spawn(gpu="1g.10gb")
    assert leases()["bob"]["uuid"] != held
    assert alice.slices().visible == [held]
    visit("alice").stop()
    eventually(lambda: "alice" not in leases())


@pytest.mark.parametrize("fault", ["rm", "truncate --size=20"])
def test_leases_that_are_lost_under_the_hub_give_nobodys_slice_away(host, visit, leases, fault):
    alice, bob = visit("alice"), visit("bob")
    alice.spawn(gpu="1g.10gb")
    held = leases()["alice"]["uuid"]
    host.check_output(f"{fault} {STATE}/leases.json")
    bob.spawn(gpu="1g.10gb")
    assert leases()["alice"]["uuid"] == held != leases()["bob"]["uuid"]
    assert host.run(CONSISTENT).rc == 0


def test_a_second_notebook_that_can_open_a_slice_is_found_and_loses_it(
    host, visit, leases, eventually, hub_answers
):
    alice = visit("alice")
    alice.spawn(gpu="1g.10gb")
    held = leases()
    other = "jupyterhub-notebook-eve.service"
    allowed = "systemctl show --property=DeviceAllow --value"
    rules = [line for line in host.check_output(f"{allowed} {UNIT}").splitlines() if line.startswith("/dev/")]
    properties = " ".join(f"--property='DeviceAllow={rule}'" for rule in rules)
    host.check_output("systemctl stop jupyterhub")
    host.check_output(f"systemd-run --unit={other} --property=DevicePolicy=closed {properties} sleep 900")
    try:
        found = host.run(CONSISTENT)
        assert found.rc == 1 and f"{UNIT} and {other} can all open {held['alice']['uuid']}" in found.stderr
        host.check_output("systemctl start jupyterhub")
        eventually(hub_answers)
        assert "/dev/nvidia" not in host.check_output(f"{allowed} {other}")
        assert leases() == held and host.run(CONSISTENT).rc == 0
        assert visit("alice").slices().visible == [held["alice"]["uuid"]]
    finally:
        host.run(f"systemctl stop {other}")
        host.run("systemctl start jupyterhub")


def test_a_machine_that_dies_takes_its_notebooks_along_and_leaves_no_lease(
    host, visit, leases, eventually, hub_answers
):
    alice = visit("alice")
    alice.spawn(gpu="1g.10gb")
    boot = "/proc/sys/kernel/random/boot_id"
    before = host.file(boot).content_string
    host.check_output("systemd-run --on-active=1 systemctl reboot --force --force")

    def is_back() -> bool:
        with contextlib.suppress(RuntimeError):
            return host.file(boot).content_string != before and hub_answers()
        return False

    def is_ended() -> bool:
        with contextlib.suppress(httpx.HTTPError):
            return not alice.running()
        return False

    eventually(is_back)
    eventually(is_ended)
    assert leases() == {}
    alice.spawn(gpu="1g.10gb")
    assert alice.slices().visible == [leases()["alice"]["uuid"]]
