"""The settings file that the role paas_service writes is one that the deployer takes."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from ansible_collections.gpufarm.cluster.plugins.module_utils import _paas
from gpufarm.serve import settings
from hypothesis import given
from hypothesis import strategies as st

LEAST: dict[str, Any] = {
    "public_host": "paas.example.org",
    "https_port": 443,
    "server_port": 8080,
    "certificate_type": "self-signed",
    "certificate_file": "",
    "certificate_key_file": "",
    "issuers": [{"issuer": "https://iam.example.org/"}],
    "templates": {"notebooks": {"template": "ml_infn"}},
    "quotas": {},
    "callbacks": {},
    "limits": {},
    "services": {},
    "pages": {},
    "metrics_from": [],
    "keep_days": 0,
    "hours_minutes": 60,
    "files": {},
    "secrets": {},
    "pool": {"all": {"hosts": {"gpu1": {}}}},
    "known_hosts": [],
    "vault_password": "",
    "database": "",
    "workers": 2,
}


def parsed(**changes: Any) -> settings.Settings:
    found = _paas.plan({**LEAST, **changes})
    assert found["problems"] == []
    return settings.parsed(found["serve"], Path("/etc/gpufarm-serve/serve.yml"))


def test_the_least_is_enough() -> None:
    found = parsed()
    assert (found.url, found.port) == ("https://paas.example.org", 8080)
    assert found.database == "sqlite:////var/lib/gpufarm-serve/serve.db"
    assert found.state == Path("/var/lib/gpufarm-serve-worker/state")
    assert found.pool == Path("/etc/gpufarm-serve/pool.yml")


@pytest.mark.parametrize(
    ("host", "port", "url"),
    [
        ("paas.example.org", 8443, "https://paas.example.org:8443"),
        ("192.0.2.1", 443, "https://192.0.2.1"),
        ("2001:db8::1", 443, "https://[2001:db8::1]"),
        ("2001:db8::1", 8443, "https://[2001:db8::1]:8443"),
    ],
)
def test_the_address_is_that_of_the_proxy(host: str, port: int, url: str) -> None:
    assert parsed(public_host=host, https_port=port).url == url


def test_each_setting_gets_there() -> None:
    found = parsed(
        quotas={"user": {"machines": 7}},
        callbacks={"hosts": ["dashboard.example.org"]},
        limits={"body_mib": 3},
        services={"cmdb_url": "https://cmdb.example.org/"},
        metrics_from=["192.0.2.0/24"],
        keep_days=30,
        hours_minutes=15,
        database="postgresql+psycopg://gpufarm@db.example.org/gpufarm",
    )
    assert found.quotas.user.machines == 7
    assert found.callback_hosts == {"dashboard.example.org"}
    assert found.body == 3 << 20
    assert found.configuration == {"cmdb_url": "https://cmdb.example.org/"}
    assert [str(one) for one in found.metrics] == ["127.0.0.1/32", "::1/128", "192.0.2.0/24"]
    assert found.keep == 30
    assert found.hours_minutes == 15
    assert found.database.startswith("postgresql")


def test_pages_are_switched_on(tmp_path: Path) -> None:
    (tmp_path / "server").mkdir()
    secret = tmp_path / "server/pages"
    secret.touch(0o600)
    pages = {
        "issuer": "https://iam.example.org/",
        "client_id": "gpufarm",
        "client_secret_file": "server/pages",
    }
    written = _paas.plan({**LEAST, "pages": pages})["serve"]
    found = settings.parsed(written, tmp_path / "serve.yml").pages
    assert found == settings.Pages("https://iam.example.org/", "gpufarm", secret)


@pytest.mark.parametrize(
    "line", ["gpu1 ssh-ed25519 AAAA", "[10.0.0.1]:2222 ssh-rsa AAAA== me@x", "|1|a=|b= x AA"]
)
def test_lines_of_known_hosts(line: str) -> None:
    assert _paas.plan({**LEAST, "known_hosts": [line]})["problems"] == []


@pytest.mark.parametrize(
    "line", ["", "gpu1", "@cert-authority * x AA", "# x y", "a b AA\nc d AA", "a b AA\n"]
)
def test_other_lines_are_refused(line: str) -> None:
    (problem,) = _paas.plan({**LEAST, "known_hosts": [line]})["problems"]
    assert "write HOST TYPE KEY" in problem


@given(st.sampled_from(("files", "secrets")), st.text(max_size=9))
def test_no_name_leads_out_of_the_folder(kind: str, name: str) -> None:
    if not _paas.plan({**LEAST, kind: {name: "x"}})["problems"]:
        assert Path("/etc", name).resolve().parent == Path("/etc") and name == name.strip()
