"""Apps come and go, some of them broken, Marathon is away: requests to a good one are answered."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json
import re
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from lab.patience import PATIENCE

CA = "/etc/app-gateway/tls/self-signed.crt"
MARATHON = (
    "curl --silent --show-error --cacert /opt/fake/tls.crt --user 'gateway:a password of the bench' "
    "--header 'Content-Type: application/json' https://gateway:8443/v2/"
)


def call(host: Any, path: str, method: str = "GET", body: Any = None) -> Any:
    """Ask Marathon."""
    data = f" --data '{json.dumps(body)}'" if body is not None else ""
    answer = host.check_output(f"{MARATHON}{path} --request {method}{data}")
    return json.loads(answer) if answer else None


def ask(host: Any, url: str, *options: str) -> tuple[int, str]:
    """Ask the gateway: HTTP status, and what it said."""
    done = host.run(f"curl --silent --cacert {CA} --write-out '\n%{{http_code}}' {' '.join(options)} {url}")
    text, _newline, status = done.stdout.rpartition("\n")
    return int(status or 0), text


def status(host: Any) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(host.run("cat /run/app-gateway-routes/status.json").stdout or "{}")
    return found


def running(host: Any, app_id: str, count: int) -> list[dict[str, Any]]:
    """The tasks of an app, if that many run."""
    tasks: list[dict[str, Any]] = call(host, f"apps{app_id}/tasks")["tasks"]
    return tasks if [task["state"] for task in tasks] == ["TASK_RUNNING"] * count else []


def serving(host: Any, app_id: str, count: int) -> list[dict[str, Any]]:
    """The tasks of an app, if that many run and all answer: the agent may lag behind Marathon."""
    tasks = running(host, app_id, count)
    ports = " ".join(f"http://127.0.0.1:{task['ports'][0]}/" for task in tasks)
    return tasks if tasks and host.run(f"curl --silent --fail --output /dev/null {ports}").rc == 0 else []


def until(true: Callable[[], Any]) -> Any:
    end = time.monotonic() + PATIENCE
    while not (found := true()):
        assert time.monotonic() < end
        time.sleep(0.2)
    return found


def app(
    app_id: str, labels: dict[str, str], instances: int = 1, port: int = 0, **more: Any
) -> dict[str, Any]:
    return {
        "id": app_id,
        "cmd": "serve",
        "cpus": 0.1,
        "mem": 32,
        "instances": instances,
        "labels": {"HAPROXY_GROUP": "external"} | labels,
        "portDefinitions": [{"port": port}],
        "networks": [{"mode": "host"}],
        **more,
    }


@pytest.fixture(scope="module")
def apps(host: Any) -> None:
    """Two apps that are fine, one for all: by name and by path."""
    health = [{"protocol": "MESOS_HTTP", "path": "/plots/", "portIndex": 0, "intervalSeconds": 2}]
    call(host, "apps", "POST", app("/anna/plots", {"HAPROXY_0_VHOST": "Plots.apps.example.org"}, 2))
    call(host, "apps", "POST", app("/carl/plots", {"HAPROXY_0_PATH": "/plots"}, healthChecks=health))
    call(host, "apps", "POST", app("/dora/service", {}, port=10007))
    until(
        lambda: (
            len(status(host).get("routes", [])) == 3
            and all(route["tasks"] for route in status(host)["routes"])
        )
    )
    until(lambda: ask(host, "https://apps.example.org/plots/")[0] == 200)


def test_apps_are_reached_by_name_by_path_and_by_port(host: Any, apps: None) -> None:
    named = ("--resolve plots.apps.example.org:443:127.0.0.1", "--header 'X-Forwarded-For: 6.6.6.6'")
    code, text = ask(host, "https://plots.apps.example.org/x?y=1", *named)
    assert code == 200
    assert json.loads(text) == {
        "app": "/anna/plots",
        "host": "127.0.0.1",
        "path": "/x?y=1",
        "X-Forwarded-Proto": "https",
        "X-Forwarded-For": "127.0.0.1",
    }
    for path in ("/plots", "/plots/", "/plots/1"):
        assert '"/carl/plots"' in ask(host, f"https://apps.example.org{path}")[1]
    for path in ("/", "/plots2", "/Plots", "/plotsx/", "/x/plots/"):
        assert ask(host, f"https://apps.example.org{path}") == (404, "No app has this address.\n"), path
    assert '"/dora/service"' in ask(host, "http://apps.example.org:10007/")[1]
    assert "HTTP/2 200" in host.check_output(
        f"curl --silent --head --cacert {CA} https://apps.example.org/plots/ || true"
    ) or (
        "HTTP/2"
        in host.check_output(f"curl --silent --include --http2 --cacert {CA} https://apps.example.org/plots/")
    )


def test_http_leads_to_https_and_old_tls_is_refused(host: Any, apps: None) -> None:
    answer = host.check_output("curl --silent --include 'http://apps.example.org/plots/?x=1'")
    assert "302" in answer and "location: https://apps.example.org/plots/?x=1" in answer
    assert host.run(f"curl --silent --tls-max 1.1 --cacert {CA} https://apps.example.org/").rc != 0


def test_a_broken_app_harms_nobody(host: Any, apps: None) -> None:
    bad = {
        "/bad/a": app("/bad/a", {"HAPROXY_0_VHOST": "x y\n    bind *:1"}),
        "/bad/b": app("/bad/b", {"HAPROXY_0_PATH": "/plots"}),  # carl has it
        "/bad/c": app("/bad/c", {}, port=22),
        "/bad/d": app("/bad/d", {"HAPROXY_0_PATH": "/silent", "bench/app": "silent"}),
        "/bad/e": app(
            "/bad/e", {"HAPROXY_0_BACKEND_HEAD": "backend {backend}\n  server evil 6.6.6.6:1\n"}, port=10009
        ),
        "/bad/f": app("/bad/f", {}, port=10008),
    }
    with_listener = "systemd-run --unit=other python3 -m http.server 10008"
    host.check_output(with_listener)
    until(lambda: "10008" in host.check_output("ss --no-header --listening --tcp --numeric"))
    for wanted in bad.values():
        call(host, "apps", "POST", wanted)
    until(lambda: len(status(host).get("problems", [])) == 4)
    told = " ".join(status(host)["problems"])
    for words in (
        "/bad/a, port 0",
        "apps.example.org/plots is taken by backend carl_plots_0",
        "service port 22",
        "port 10008",
    ):
        assert words in told
    assert "HAPROXY_0_BACKEND_HEAD has no effect" in status(host)["notes"][0]
    assert ask(host, "https://apps.example.org/silent/")[0] == 503
    assert '"/carl/plots"' in ask(host, "https://apps.example.org/plots/")[1]
    assert "6.6.6.6" not in host.check_output("cat /var/lib/app-gateway/apps.cfg")
    assert "/bad/a, port 0 is not served" in host.check_output(
        "journalctl --unit app-gateway-routes --output cat"
    )
    for name in bad:
        call(host, f"apps{name}", "DELETE")
    host.check_output("systemctl stop other")
    until(lambda: not status(host)["problems"])


def test_a_configuration_that_haproxy_refuses_does_not_take_effect(host: Any, apps: None) -> None:
    """Also where something else than an app is wrong: here the file that all of them share."""
    before = host.check_output("cat /var/lib/app-gateway/apps.cfg")
    host.check_output("sed --in-place=.good 's/^backend no_app/nonsense here/' /etc/app-gateway/haproxy.cfg")
    call(host, "apps", "POST", app("/late", {"HAPROXY_0_PATH": "/late"}))
    until(lambda: "The routes stay as they are" in status(host).get("failure", ""))
    assert host.check_output("cat /var/lib/app-gateway/apps.cfg") == before
    assert ask(host, "https://apps.example.org/plots/")[0] == 200
    host.check_output("mv /etc/app-gateway/haproxy.cfg.good /etc/app-gateway/haproxy.cfg")
    until(lambda: ask(host, "https://apps.example.org/late/")[0] == 200)
    call(host, "apps/late", "DELETE")


def test_no_request_fails_while_apps_come_and_go(host: Any, apps: None) -> None:
    """wrk asks without a pause while tasks are scaled, killed and restarted, and other apps come and go."""
    reloads = host.check_output("journalctl --unit app-gateway --output cat").count("Loading success")
    call(
        host,
        "apps/anna/plots",
        "PUT",
        {"instances": 4, "labels": {"HAPROXY_GROUP": "external", "HAPROXY_0_PATH": "/anna"}},
    )
    until(lambda: ask(host, "https://apps.example.org/anna/")[0] == 200)
    host.check_output(
        "systemd-run --unit=load --property=RemainAfterExit=yes --property=StandardOutput=truncate:/root/wrk "
        "wrk --threads 1 --connections 16 --duration 20s --timeout 10s https://apps.example.org/anna/"
    )
    for turn in range(6):
        wanted = 2 + turn % 3
        call(host, "apps", "POST", app(f"/visitor/{turn}", {"HAPROXY_0_PATH": f"/visitor{turn}"}))
        call(host, "apps/anna/plots", "PUT", {"instances": wanted})
        # Where the only task that runs is killed, nobody can answer.
        tasks = until(partial(serving, host, "/anna/plots", wanted))
        call(host, f"apps/anna/plots/tasks/{tasks[0]['id']}", "DELETE")
        call(host, f"apps/visitor/{turn}", "DELETE")
        time.sleep(1)
    until(lambda: "Requests/sec" in host.run("cat /root/wrk").stdout)
    report = host.check_output("cat /root/wrk")
    host.check_output("systemctl stop load")
    assert "Socket errors" not in report and "Non-2xx" not in report, report
    match = re.search(r"(\d+) requests in", report)
    assert match and int(match[1]) > 500, report
    assert (
        host.check_output("journalctl --unit app-gateway --output cat").count("Loading success") - reloads
        >= 6
    )


def test_without_marathon_everything_is_served_on(host: Any, apps: None) -> None:
    host.check_output("systemctl stop marathon")
    until(lambda: "The routes stay as they are" in status(host).get("failure", ""))
    host.check_output("systemctl restart app-gateway app-gateway-routes")
    until(lambda: ask(host, "https://apps.example.org/plots/")[0] == 200)
    host.check_output("systemctl start marathon")  # without its memory, as a new cluster
    until(lambda: status(host).get("failure") == "" and status(host)["routes"] == [])
    assert ask(host, "https://apps.example.org/plots/")[0] == 404


def test_a_haproxy_that_dies_is_back(host: Any) -> None:
    host.check_output("systemctl kill --signal=KILL app-gateway")
    until(lambda: ask(host, "https://apps.example.org/")[0] == 404)


def test_secrets_and_sockets_are_for_those_who_need_them(host: Any) -> None:
    assert host.file("/etc/app-gateway/secrets").mode == 0o700
    password = host.file("/etc/app-gateway/secrets/marathon_password")
    assert (password.mode, password.user) == (0o600, "root")
    key = host.file("/etc/app-gateway/tls/gateway.pem")
    assert (key.mode, key.user, key.group) == (0o640, "root", "app-gateway")
    assert host.file("/etc/app-gateway/tls/self-signed.key").mode == 0o600
    assert host.file("/run/app-gateway/admin.sock").mode == 0o600
    assert host.file("/run/app-gateway").mode == 0o750
    for text in (
        "cat /proc/*/cmdline",
        "journalctl --unit 'app-gateway*'",
        "cat /etc/app-gateway/*.json /var/lib/app-gateway/*",
    ):
        assert "a password of the bench" not in host.run(text + " 2>/dev/null").stdout
    for unit, account in (("app-gateway", "app-gateway"), ("app-gateway-routes", "app-gateway-routes")):
        pid = host.check_output(f"systemctl show --property MainPID --value {unit}")
        assert host.check_output(f"ps -o user:32= -p {pid}").strip() == account
        exposure = host.check_output(f"systemd-analyze security --no-pager {unit} | tail -n 1")
        assert float(re.search(r"level for [^:]*: ([0-9.]+)", exposure)[1]) < 2.5, exposure  # type: ignore[index]


def test_the_haproxy_of_the_site_goes_on(host: Any) -> None:
    assert host.service("haproxy").is_enabled
    assert host.check_output("curl --silent http://127.0.0.1:8089/") == "site"
