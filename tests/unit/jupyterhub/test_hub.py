"""The hub's pages and API with a real JupyterHub: waiting, limits, who may see and do what."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator

import httpx
import pytest
from gpufarm_hub.sharing.slices import Slice
from gpufarm_hub.spawning.systemd_spawner import SystemdSliceSpawner
from hub_process import Browser, HubProcess, slices, users_of

from lab.patience import PATIENCE

LIMITS = [
    {"name": "students", "groups": ["students"], "slices_together": 1},
    {"name": "two", "users": ["twice"], "slices": 2, "servers": 2},
    {"name": "little", "users": ["little"], "servers": 2, "gpus": 0, "memory": "2G"},
    {"name": "least", "users": ["least"], "memory": "1G"},
]


@pytest.fixture(scope="module")
def process(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HubProcess]:
    hub = HubProcess(tmp_path_factory.mktemp("hub"), LIMITS)
    hub.partition(slices(1))
    hub.start()
    yield hub
    hub.kill()


@pytest.fixture
def user(process: HubProcess) -> Iterator[Callable[[str], Browser]]:
    """Log users in; at the end nobody holds anything or waits."""
    process.partition(slices(1))
    with users_of(process) as log_in:
        yield log_in


def test_who_waits_is_served_in_turn(process: HubProcess, user: Callable[[str], Browser]) -> None:
    alice, carol, dave = user("alice"), user("carol"), user("dave")
    assert alice.spawn(gpu="1g.10gb").messages == []
    assert "You wait as number 1 of 1" in carol.spawn(gpu="1g.10gb", memory="2G").messages[0]
    assert "You wait as number 2 of 2" in dave.spawn(gpu="1g.10gb").messages[0]
    place = carol.queue().json()
    assert (place["position"], place["waiting"], place["called"]) == (1, 2, False)
    assert place["options"] == {"memory": "2G", "gpu": "1g.10gb", "slices": 1}
    alice.stop()
    assert [browser.queue().json()["called"] for browser in (carol, dave)] == [True, False]
    assert "You wait as number 2 of 2" in dave.spawn(gpu="1g.10gb").messages[0]
    assert carol.spawn(gpu="1g.10gb", memory="2G").messages == []
    assert carol.queue().status_code == 404
    assert dave.queue().json()["position"] == 1
    assert process.audit()[-2:] == [("returned", "alice"), ("taken", "carol")]


def test_who_stops_waiting_is_out(user: Callable[[str], Browser]) -> None:
    alice, carol, dave = user("alice"), user("carol"), user("dave")
    alice.spawn(gpu="1g.10gb")
    carol.spawn(gpu="1g.10gb")
    dave.spawn(gpu="1g.10gb")
    assert carol.api("DELETE", "/gpufarm/users/carol/queue/").status_code == 204
    assert carol.api("DELETE", "/gpufarm/users/carol/queue/").status_code == 404
    assert dave.queue().json()["position"] == 1


def test_nobody_asks_or_leaves_for_others(user: Callable[[str], Browser]) -> None:
    alice, carol, mallory = user("alice"), user("carol"), user("mallory")
    alice.spawn(gpu="1g.10gb")
    carol.spawn(gpu="1g.10gb")
    assert mallory.queue("carol").status_code == 404
    assert mallory.api("DELETE", "/gpufarm/users/carol/queue/").status_code == 404
    assert mallory.api("GET", "/gpufarm/users/carol/notices").status_code == 404
    assert mallory.api("DELETE", "/users/alice/server").status_code == 404
    seen = mallory.api("GET", "/gpufarm/slices").json()
    assert [(piece["held"], piece["holders"]) for piece in seen["slices"]] == [(True, [])]
    assert seen["queue"] == []
    assert carol.queue().status_code == 200
    assert alice.running()


def test_a_foreign_page_can_do_nothing_with_the_users_cookies(user: Callable[[str], Browser]) -> None:
    alice, carol = user("alice"), user("carol")
    alice.spawn(gpu="1g.10gb")
    carol.spawn(gpu="1g.10gb")
    cross = {"Origin": "https://evil.example", "Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "cors"}
    for method, path in (
        ("DELETE", "/hub/api/gpufarm/users/carol/queue/"),
        ("DELETE", "/hub/api/users/carol/server"),
        ("GET", "/hub/api/gpufarm/slices"),
    ):
        assert carol.http.request(method, path, headers=cross).status_code == 403
    for header in ({}, {"X-XSRFToken": "guess"}):
        assert carol.http.delete("/hub/api/gpufarm/users/carol/queue/", headers=header).status_code == 403
    assert carol.queue().status_code == 200


def test_who_is_not_logged_in_sees_nothing(process: HubProcess) -> None:
    for path in ("slices", "users/alice/queue/", "users/alice/notices"):
        answer = httpx.get(f"{process.url}/hub/api/gpufarm/{path}", trust_env=False, timeout=PATIENCE)
        assert answer.status_code == 403


def test_administrators_see_holders_and_release(user: Callable[[str], Browser]) -> None:
    alice, carol, bob = user("alice"), user("carol"), user("bob")
    alice.spawn(gpu="1g.10gb")
    carol.spawn(gpu="1g.10gb")
    assert bob.page("/hub/slices").status_code == 200
    assert "GPU slices" in bob.page("/hub/home").text
    assert alice.page("/hub/slices").status_code == 403
    assert "GPU slices</a>" not in alice.page("/hub/home").text
    seen = bob.api("GET", "/gpufarm/slices").json()
    assert [one["user"] for piece in seen["slices"] for one in piece["holders"]] == ["alice"]
    assert [(place["user"], place["position"]) for place in seen["queue"]] == [("carol", 1)]
    assert bob.api("DELETE", "/users/alice/server").status_code in (202, 204)
    assert carol.spawn(gpu="1g.10gb").messages == []


def later(process: HubProcess, owner: str, seconds: float) -> None:
    """Have it been so long ago that an owner was called."""
    file = process.folder / "leases.json"
    content = json.loads(file.read_text())
    content["queue"][owner]["called"] -= seconds
    file.write_text(json.dumps(content))


def test_who_is_called_has_some_minutes_and_others_see_that(
    process: HubProcess, user: Callable[[str], Browser]
) -> None:
    alice, carol, dave, bob = user("alice"), user("carol"), user("dave"), user("bob")
    alice.spawn(gpu="1g.10gb")
    carol.spawn(gpu="1g.10gb")
    dave.spawn(gpu="1g.10gb")
    alice.stop()
    until = carol.queue().json()["until"]
    assert 590 < until - time.time() <= 600
    assert "0 of 1 free, 1 kept for others until" in dave.page("/hub/spawn").text
    assert "1 of 1 free, 1 waiting" in carol.page("/hub/spawn").text
    for browser, whom in ((bob, {"user": "carol", "server": ""}), (dave, None)):
        [piece] = browser.api("GET", "/gpufarm/slices").json()["slices"]
        assert (piece["held"], piece["kept"]) == (False, [{"until": until, "for": whom}])
    later(process, "carol/", 601)
    assert carol.queue().status_code == 404
    sentence = "You have lost your place in the queue: 1 GPU slice 1g.10gb was kept for you until"
    assert sentence in carol.page("/hub/home").text
    assert sentence not in dave.page("/hub/home").text
    assert ("missed", "carol") in process.audit()
    assert dave.spawn(gpu="1g.10gb").messages == []


def test_administrators_remove_a_place(process: HubProcess, user: Callable[[str], Browser]) -> None:
    carol, bob, dave = user("carol"), user("bob"), user("dave")
    dave.spawn(gpu="1g.10gb")
    carol.spawn(gpu="1g.10gb")
    assert bob.api("DELETE", "/gpufarm/users/carol/queue/").status_code == 204
    assert carol.queue().status_code == 404
    assert "Your place in the queue was removed by bob." in carol.page("/hub/home").text
    assert process.audit()[-1] == ("removed", "carol")
    assert bob.api("DELETE", "/gpufarm/users/carol/queue/").status_code == 404


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"gpu": "1g.10gb", "slices": "0"}, "The number of slices is 0;"),
        ({"gpu": "1g.10gb", "slices": "-1"}, "The number of slices is -1;"),
        ({"gpu": "1g.10gb", "slices": "99999999999"}, "The number of slices is"),
        ({"gpu": "1g.10gb", "slices": "2"}, "may hold 1 at once (limit everybody)"),
        ({"gpu": "7g.80gb"}, "no GPU slice 7g.80gb any more"),
        ({"memory": "900G"}, "is not offered"),
    ],
)
def test_what_is_out_of_range_is_refused(
    user: Callable[[str], Browser], fields: dict[str, str], sentence: str
) -> None:
    alice = user("alice")
    assert sentence in alice.spawn(**fields).messages[0]
    assert alice.queue().status_code == 404


def test_a_user_who_may_hold_two_slices(process: HubProcess, user: Callable[[str], Browser]) -> None:
    process.partition(slices(3))
    twice, alice = user("twice"), user("alice")
    assert "Number of slices" in twice.page("/hub/spawn").text
    assert "Number of slices" not in alice.page("/hub/spawn").text
    twice.spawn(gpu="1g.10gb", slices="2")
    environment = json.loads((process.folder / "jupyterhub-notebook-twice.service.env").read_text())
    assert environment["CUDA_VISIBLE_DEVICES"] == "MIG-1g.10gb-0,MIG-1g.10gb-1"
    answer = twice.api("POST", "/users/twice/servers/second", json={"gpu": "1g.10gb"})
    assert answer.status_code == 409
    assert "You hold 2 GPU slices already and may hold 2 at once (limit two)" in answer.json()["message"]


def test_servers_at_once(user: Callable[[str], Browser]) -> None:
    twice = user("twice")
    twice.spawn()
    assert twice.api("POST", "/users/twice/servers/second").status_code in (201, 202)
    answer = twice.api("POST", "/users/twice/servers/third")
    assert answer.status_code in (400, 409)
    twice.api("DELETE", "/users/twice/servers/second", json={"remove": True})
    alice = user("alice")
    alice.spawn()
    answer = alice.api("POST", "/users/alice/servers/second")
    assert "You run 1 notebook server already and may run 1 at once" in answer.json()["message"]


def test_memory_of_all_servers_of_a_user(process: HubProcess, user: Callable[[str], Browser]) -> None:
    least, little = user("least"), user("little")
    assert 'value="2G"' not in least.page("/hub/spawn").text
    assert "The memory size 2G is not offered; choose one of 1G." in least.spawn(memory="2G").messages[0]
    little.spawn(memory="1G")
    answer = little.api("POST", "/users/little/servers/second", json={"memory": "2G"})
    assert answer.status_code == 409
    assert (
        "Your other notebooks have 1 GiB of memory and all of yours may have 2 GiB (limit little)"
        in answer.json()["message"]
    )
    assert little.api("POST", "/users/little/servers/second", json={"memory": "1G"}).status_code in (201, 202)
    little.api("DELETE", "/users/little/servers/second", json={"remove": True})


def test_a_hub_that_starts_knows_the_memory_of_notebooks_that_run() -> None:
    before, after = (SystemdSliceSpawner.__new__(SystemdSliceSpawner) for _ in range(2))
    before.unit_name, before.mem_limit = "unit", "2G"
    after.load_state(json.loads(json.dumps(before.get_state())))
    assert after.mem_limit == 2 << 30


def test_whole_gpus_are_offered_where_the_limit_has_them(
    process: HubProcess, user: Callable[[str], Browser]
) -> None:
    gpu = Slice("GPU-0", "NVIDIA H100", 1, None, None, 80 << 30)
    process.partition([*slices(1), gpu])
    little, alice = user("little"), user("alice")
    assert "NVIDIA H100" in alice.page("/hub/spawn").text
    form = little.page("/hub/spawn").text
    assert "NVIDIA H100" not in form and "1g.10gb" in form
    assert "may hold 0 at once (limit little)" in little.spawn(gpu="NVIDIA H100").messages[0]
    process.partition([gpu])
    assert "Your account may not hold GPU slices here." in little.page("/hub/spawn").text


def test_a_group_that_has_all_it_may_have_waits_and_others_do_not(
    process: HubProcess, user: Callable[[str], Browser]
) -> None:
    process.partition(slices(2))
    first, second, alice = user("student1"), user("student2"), user("alice")
    first.spawn(gpu="1g.10gb")
    assert "You wait as number 1 of 1" in second.spawn(gpu="1g.10gb").messages[0]
    assert alice.spawn(gpu="1g.10gb").messages == []
    first.stop()
    assert second.queue().json()["called"]


def test_metrics_name_no_users(user: Callable[[str], Browser]) -> None:
    alice, carol, bob = user("alice"), user("carol"), user("bob")
    alice.spawn(gpu="1g.10gb")
    carol.spawn(gpu="1g.10gb")
    token = bob.api("POST", "/users/bob/tokens", json={}).json()["token"]
    answer = httpx.get(
        f"{bob.hub.url}/hub/metrics",
        headers={"Authorization": f"token {token}"},
        trust_env=False,
        timeout=PATIENCE,
    )
    ours = [line for line in answer.text.splitlines() if line.startswith("gpufarm_hub")]
    assert 'gpufarm_hub_slices_held{profile="1g.10gb"} 1.0' in ours
    assert 'gpufarm_hub_waiting{profile="1g.10gb"} 1.0' in ours
    assert any(line.startswith('gpufarm_hub_decision_seconds_bucket{le="0.05",step="take"}') for line in ours)
    assert not [line for line in ours if "alice" in line or "carol" in line]


def test_a_slice_that_is_gone_is_told_to_its_user(
    process: HubProcess, user: Callable[[str], Browser]
) -> None:
    alice, carol = user("alice"), user("carol")
    alice.spawn(gpu="1g.10gb")
    process.partition(slices(1, "2g.20gb"))
    carol.spawn(gpu="2g.20gb")
    sentence = "Your GPU slice 1g.10gb is gone: the machine was partitioned anew."
    assert sentence in alice.page("/hub/home").text
    assert sentence not in carol.page("/hub/home").text
    assert sentence in alice.api("GET", "/gpufarm/users/alice/notices").json()[""]
    alice.stop()
    alice.spawn()
    assert sentence not in alice.page("/hub/home").text
