"""Policies: where machines are taken from, what nodes are given, how many instances there should be."""

from __future__ import annotations

import http.server
import json
import math
import ssl
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlparse

import pytest
import yaml
from deployer_site import DATA, HERE, Site
from gpufarm.errors import BadInput, GpufarmError
from gpufarm.prometheus import Prometheus
from gpufarm.scaling import Situation, decide
from hypothesis import given
from hypothesis import strategies as st

BASE = Path(__file__).resolve().parents[3] / "tosca" / "types" / "gpufarm_base.yaml"
PLACE = {
    "type": "tosca.policies.gpufarm.Placement",
    "targets": ["worker"],
    "properties": {"machines": ["b*"]},
}
GROW = {
    "type": "tosca.policies.gpufarm.Scaling",
    "targets": ["worker"],
    "properties": {"metrics": {"load": "sum(jobs)"}, "settings": {"high": 5.0, "low": 1.0}},
}


@pytest.fixture
def farm(site: Site) -> Site:
    """Machines a1, a2, b1 ... b4, which all are this one."""
    names = ("a1", "a2", "b1", "b2", "b3", "b4")
    site.machines(
        **{name: {**HERE, "ansible_host": f"127.0.0.{at}"} for at, name in enumerate(names, start=1)}
    )
    return site


def template(site: Site, *policies: dict[str, Any], **properties: Any) -> Path:
    """The farm of the tests, with one note on each worker and policies."""
    content = yaml.safe_load((DATA / "farm.yaml").read_text())
    content["imports"] = [str(DATA / "types.yaml"), str(BASE)]
    topology = content["topology_template"]
    topology["policies"] = [{f"policy{at}": policy} for at, policy in enumerate(policies)]
    topology["node_templates"]["base"]["properties"] |= properties
    content["policy_types"] = {
        "tosca.policies.test.Words": {
            "derived_from": "tosca.policies.gpufarm.Settings",
            "properties": {"text": {"type": "string"}, "nonsense": {"type": "string", "required": False}},
        }
    }
    path = site.root / "farm.yaml"
    path.write_text(yaml.safe_dump(content))
    return path


def plan(site: Site, path: Path) -> dict[str, Any]:
    answer = site.gpufarm("plan", path, "--pool", site.pool, "--input", f"folder={site.notes}", "--json")
    assert answer.status == 0, answer.error
    found: dict[str, Any] = json.loads(answer.output)
    return found


def complaints(site: Site, path: Path) -> str:
    answer = site.gpufarm("validate", path)
    assert answer.status == 2
    return answer.error


def test_machines_are_taken_from_where_a_policy_says(farm: Site) -> None:
    machines = plan(farm, template(farm, PLACE))["machines"]
    assert all(machines[node]["host"].startswith("b") for node in ("worker", "worker[2]"))


def test_a_placement_that_cannot_be_is_refused_with_its_reason(farm: Site) -> None:
    path = template(farm, {**PLACE, "properties": {"machines": ["c*", "b9"]}})
    answer = farm.gpufarm("plan", path, "--pool", farm.pool, "--input", f"folder={farm.notes}")
    assert answer.status == 3
    assert "a name like c* or b9" in answer.error


def test_a_policy_gives_its_targets_their_properties(farm: Site) -> None:
    words = {
        "type": "tosca.policies.test.Words",
        "targets": ["clock"],
        "properties": {"text": {"concat": [{"get_input": "text"}, " from the policy"]}},
    }
    steps = plan(farm, template(farm, words))["steps"]
    (clock,) = (step for step in steps if step["step"] == "clock.configure")
    assert clock["variables"]["text"] == "hello from the policy"


WORDS = {"type": "tosca.policies.test.Words", "targets": ["base"], "properties": {"text": "x"}}


@pytest.mark.parametrize(
    ("policies", "sentence"),
    [
        (
            [{**PLACE, "type": "tosca.policies.gpufarm.Placing"}],
            "did you mean tosca.policies.gpufarm.Placement?",
        ),
        ([{**PLACE, "type": "tosca.policies.Placement"}], "has no type that does anything here"),
        ([{**PLACE, "targets": ["wrker"]}], "did you mean worker?"),
        ([{**PLACE, "targets": ["base"]}], "is for machines, but base is none"),
        ([{**PLACE, "targets": []}], "has no targets"),
        ([{**PLACE, "targets": "worker"}], "has no targets"),
        ([{**PLACE, "properties": {}}], "needs the property machines"),
        ([{**PLACE, "properties": {"machines": []}}], "property machines of policy policy0"),
        ([PLACE, PLACE], "two policies say where worker is placed"),
        ([{**PLACE, "triggers": {}}], "triggers of policy policy0 is not supported"),
        ([WORDS], "text of node base is said elsewhere too"),
        ([{**WORDS, "targets": ["clock"]}] * 2, "text of node clock is said elsewhere too"),
        ([{**WORDS, "targets": ["worker"]}], "sets text, which node worker does not have"),
        (
            [{**WORDS, "targets": ["clock"], "properties": {"text": {"get_input": "txt"}}}],
            "did you mean text?",
        ),
    ],
)
def test_a_policy_that_makes_no_sense_is_refused(
    farm: Site, policies: list[dict[str, Any]], sentence: str
) -> None:
    assert sentence in complaints(farm, template(farm, *policies))


def test_policies_have_to_be_a_list(farm: Site) -> None:
    path = template(farm)
    path.write_text(path.read_text().replace("policies: []", "policies: {place: here}"))
    assert "policies has to be a list" in complaints(farm, path)


def situation(instances: int, load: float, **settings: float) -> Situation:
    return Situation(instances, 1, 8, {"load": load}, settings)


@pytest.mark.parametrize(
    ("decision", "now", "wanted"),
    [
        ("threshold", situation(2, 6, high=5, low=1), 3),
        ("threshold", situation(2, 3, high=5, low=1), 2),
        ("threshold", situation(2, 0, high=5, low=1), 1),
        ("threshold", situation(2, 0, high=5), 2),
        ("threshold", situation(2, 6, high=5, step=4), 6),
        ("threshold", situation(8, 6, high=5), 8),
        ("threshold", situation(1, 0, high=5, low=1), 1),
        ("per_instance", situation(1, 21, share=10), 3),
        ("per_instance", situation(5, 0, share=10), 1),
        ("per_instance", situation(5, 1000, share=10), 8),
        ("per_instance", situation(5, math.nan, share=10), 5),
        ("per_instance", situation(5, math.inf, share=10), 5),
    ],
)
def test_decisions(decision: str, now: Situation, wanted: int) -> None:
    assert decide(decision, now, rested=math.inf, cooldown=600).instances == wanted


@pytest.mark.parametrize(
    ("decision", "now", "sentence"),
    [
        ("threshold", Situation(1, 1, 2, {}, {"high": 1}), "no metric load"),
        ("threshold", situation(1, 1), "no setting high"),
        ("threshold", situation(1, 1, high=1, low=2), "low below high"),
        ("threshold", situation(1, 1, high=1, step=0), "step of at least 1"),
        ("per_instance", situation(1, 1, share=0), "share above 0"),
        ("treshold", situation(1, 1), "did you mean threshold?"),
    ],
)
def test_incomplete_policies_are_refused(decision: str, now: Situation, sentence: str) -> None:
    with pytest.raises(BadInput, match=sentence):
        decide(decision, now, rested=math.inf, cooldown=0)


def test_a_python_package_can_decide(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "night.py").write_text(
        "from gpufarm.scaling import Decision\n"
        "def none(now):\n"
        "    return Decision(now.least, 'nobody works at night')\n"
    )
    known = tmp_path / "night-1.dist-info"
    known.mkdir()
    (known / "METADATA").write_text("Metadata-Version: 2.1\nName: night\nVersion: 1\n")
    (known / "entry_points.txt").write_text("[gpufarm.scaling]\nat_night = night:none\n")
    monkeypatch.syspath_prepend(tmp_path)
    found = decide("at_night", situation(5, 99), rested=math.inf, cooldown=600)
    assert (found.instances, found.reason) == (1, "nobody works at night")


def test_nothing_is_changed_while_the_last_change_rests() -> None:
    found = decide("threshold", situation(2, 6, high=5), rested=60, cooldown=600)
    assert found.instances == 2
    assert "9 more minutes" in found.reason


@given(
    st.integers(1, 20),
    st.integers(1, 20),
    st.integers(1, 20),
    st.floats(-1e6, 1e6),
    st.sampled_from(
        [("threshold", {"high": 5.0, "low": 1.0, "step": 3.0}), ("per_instance", {"share": 2.5})]
    ),
)
def test_no_decision_leaves_the_bounds(
    least: int, span: int, instances: int, load: float, policy: tuple[str, dict[str, float]]
) -> None:
    most = least + span
    name, settings = policy
    found = decide(name, Situation(instances, least, most, {"load": load}, settings), rested=1, cooldown=0)
    assert least <= found.instances <= most


class Metrics(http.server.BaseHTTPRequestHandler):
    """The one answer of Prometheus' HTTP API that matters here ("Instant queries")."""

    load = 0.0

    def do_GET(self) -> None:
        query = parse_qs(urlparse(self.path).query)["query"][0]
        series = [{"metric": {}, "value": [0, str(self.load)]}] if query == "sum(jobs)" else []
        body = json.dumps({"status": "success", "data": {"resultType": "vector", "result": series}}).encode()
        self.send_response(200)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_words: object) -> None:
        pass


@pytest.fixture
def metrics() -> Iterator[str]:
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Metrics) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def test_a_deployment_follows_its_load(farm: Site, metrics: str) -> None:
    path = template(farm, GROW)
    done = farm.gpufarm(
        "deploy", path, "--pool", farm.pool, "--input", f"folder={farm.notes}", "--name", "farm"
    )
    assert done.status == 0, done.error
    question = ("autoscale", "farm", "--prometheus", metrics, "--json")
    Metrics.load = 3.0
    assert json.loads(farm.gpufarm(*question).output)[0]["decision"]["instances"] == 2
    Metrics.load = 9.0
    (proposal,) = json.loads(farm.gpufarm(*question).output)
    assert (proposal["instances"], proposal["decision"]["instances"]) == (2, 3)
    assert "worker[3]" not in farm.remembered("farm")["machines"], "nothing is done unless told"
    applied = farm.gpufarm(*question, "--apply")
    assert applied.status == 0 and json.loads(applied.output)[0]["node"] == "worker", "only JSON is printed"
    assert "worker[3]" in farm.remembered("farm")["machines"]
    rested = farm.gpufarm("autoscale", "farm", "--prometheus", metrics, "--apply")
    assert "the last change rests" in " ".join(rested.output.split())
    assert "worker[4]" not in farm.remembered("farm")["machines"]


def test_without_one_number_nothing_is_decided(metrics: str) -> None:
    with pytest.raises(BadInput, match="gives 0 numbers instead of one"):
        Prometheus(metrics).ask("sum(nothing)")
    with pytest.raises(GpufarmError, match="does not answer"):
        Prometheus("http://127.0.0.1:9").ask("sum(jobs)")


def certificate(folder: Path, name: str) -> tuple[Path, Path]:
    """A certificate as the role monitoring makes it, and its key."""
    made, key = folder / f"{name}.pem", folder / f"{name}.key"
    words = f"req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -noenc -subj /CN={name} -days 1"
    extensions = (f"subjectAltName=DNS:{name},DNS:localhost", "basicConstraints=critical,CA:FALSE")
    more = [word for extension in extensions for word in ("-addext", extension)]
    subprocess.run(
        ["openssl", *words.split(), *more, "-keyout", key, "-out", made], check=True, capture_output=True
    )
    return made, key


def test_a_server_that_wants_a_certificate_and_proves_its_own_name(tmp_path: Path) -> None:
    own, asker = certificate(tmp_path, "gpufarm-monitoring"), certificate(tmp_path, "autoscaler")
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=str(asker[0]))
    context.load_cert_chain(*own)
    context.verify_mode = ssl.CERT_REQUIRED
    Metrics.load = 4.0
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Metrics) as server:
        server.socket = context.wrap_socket(server.socket, server_side=True)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url = f"https://127.0.0.1:{server.server_port}"
        assert Prometheus(url, own[0], asker, "gpufarm-monitoring").ask("sum(jobs)") == 4
        for wrong in (
            Prometheus(url, own[0], asker),  # the certificate does not name the address
            Prometheus(url, own[0], asker, "another"),
            Prometheus(url, asker[0], asker, "gpufarm-monitoring"),  # signed by somebody else
            Prometheus(url, own[0], None, "gpufarm-monitoring"),
        ):
            with pytest.raises(GpufarmError, match="does not answer"):
                wrong.ask("sum(jobs)")
        server.shutdown()
