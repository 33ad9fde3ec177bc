# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Plans and refusals for settings of the role cvmfs_client."""

from __future__ import annotations

import base64
import re
import shlex
from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible_collections.gpufarm.cluster.plugins.module_utils._cvmfs import parameters as cvmfs_parameters
from ansible_collections.gpufarm.cluster.plugins.module_utils._cvmfs.client import plan as cvmfs_client_plan
from ansible_collections.gpufarm.cluster.plugins.module_utils._mounts import table as mount_table
from hypothesis import given, settings
from hypothesis import strategies as st

ROLE = Path(__file__).resolve().parents[3] / "roles" / "cvmfs_client"
BODY = base64.b64encode(bytes([0x30, 3, 2, 1, 1])).decode()
KEY = f"-----BEGIN PUBLIC KEY-----\n{BODY}\n-----END PUBLIC KEY-----\n"
SITE = {"example.org": {"CVMFS_SERVER_URL": "http://s1.example.org/cvmfs/@fqrn@"}}


def role_settings(**changes: Any) -> dict[str, Any]:
    """The role's defaults with changes, as its vars hand them on."""
    defaults = yaml.safe_load((ROLE / "defaults" / "main.yml").read_text())
    found = {name.removeprefix("cvmfs_client_"): value for name, value in defaults.items()}
    return {**found, "repositories": "sft.cern.ch", **changes}


def assignments(text: str) -> dict[str, str]:
    """Variables that /bin/sh reads from a file of plain assignments."""
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    pairs = [shlex.split(line) for line in lines]
    assert all(len(words) == 1 for words in pairs)
    return dict(words[0].split("=", 1) for words in pairs)


@pytest.mark.parametrize("wanted", ["sft.cern.ch  software.eessi.io", "sft.cern.ch, software.eessi.io"])
def test_repositories_are_separated_by_blanks_or_commas(wanted: str) -> None:
    plan = cvmfs_client_plan(role_settings(repositories=wanted))
    assert plan["repositories"] == ["sft.cern.ch", "software.eessi.io"]
    assert (
        assignments(plan["files"]["default.local"])["CVMFS_REPOSITORIES"] == "sft.cern.ch,software.eessi.io"
    )


def test_the_defaults_of_the_role_are_an_empty_request() -> None:
    plan = cvmfs_client_plan(role_settings(repositories=""))
    assert (plan["problems"], plan["repositories"]) == ([], [])


def test_a_site_is_written_to_the_files_of_its_domain() -> None:
    plan = cvmfs_client_plan(
        role_settings(
            repositories="tools.example.org",
            proxies="http://p1:3128|http://p2:3128;DIRECT",
            domains=SITE,
            keys={"example.org/our.pub": KEY},
            config_repository="config.example.org",
            repository_parameters={"tools.example.org": {"CVMFS_SHARED_CACHE": False}},
        )
    )
    files = plan["files"]
    assert set(files) == {
        "default.local",
        "default.d/90-gpufarm.conf",
        "domain.d/example.org.local",
        "config.d/tools.example.org.local",
        "keys/gpufarm/example.org/our.pub",
    }
    assert assignments(files["default.local"])["CVMFS_HTTP_PROXY"] == "http://p1:3128|http://p2:3128;DIRECT"
    assert "CONFIG_REPOSITORY" not in files["default.local"]
    assert assignments(files["domain.d/example.org.local"]) == {
        "CVMFS_SERVER_URL": "http://s1.example.org/cvmfs/@fqrn@",
        "CVMFS_KEYS_DIR": "/etc/cvmfs/keys/gpufarm/example.org",
    }
    assert assignments(files["config.d/tools.example.org.local"]) == {"CVMFS_SHARED_CACHE": "no"}
    assert [server["proxy"] for server in plan["servers"]] == ["http://p1:3128", "http://p2:3128", ""]
    assert plan["servers"][0]["url"] == "http://s1.example.org/cvmfs/tools.example.org/.cvmfspublished"
    assert plan["key_paths"] == []


def test_an_alien_cache_takes_what_it_needs_with_it() -> None:
    plan = cvmfs_client_plan(role_settings(alien_cache="/shared/cvmfs", quota=-1))
    default = assignments(plan["files"]["default.local"])
    assert (default["CVMFS_QUOTA_LIMIT"], default["CVMFS_SHARED_CACHE"]) == ("-1", "no")


def test_a_machine_that_stands_alone_leaves_proxies_to_the_configuration_repository() -> None:
    request = role_settings(profile="single", proxies="")
    plan = cvmfs_client_plan(request)
    assert plan["problems"] == []
    default = assignments(plan["files"]["default.local"])
    assert default["CVMFS_CLIENT_PROFILE"] == "single"
    assert "CVMFS_HTTP_PROXY" not in default


def test_units_mount_the_configuration_repository_first() -> None:
    plan = cvmfs_client_plan(
        role_settings(mount="systemd-automount", config_repository="cvmfs-config.cern.ch", idle_timeout=90)
    )
    assert plan["started"] == ["cvmfs-cvmfs\\x2dconfig.cern.ch.automount", "cvmfs-sft.cern.ch.automount"]
    units = plan["units"]
    assert "RequiresMountsFor=/cvmfs/cvmfs-config.cern.ch\n" in units["cvmfs-sft.cern.ch.mount"]
    assert "RequiresMountsFor" not in units["cvmfs-cvmfs\\x2dconfig.cern.ch.mount"]
    assert "TimeoutIdleSec=90\n" in units["cvmfs-sft.cern.ch.automount"]
    assert "[Install]" not in units["cvmfs-sft.cern.ch.mount"]
    assert {"path": "/cvmfs", "state": "unmounted"} in plan["places"]
    static = cvmfs_client_plan(role_settings(mount="static"))
    assert static["started"] == ["cvmfs-sft.cern.ch.mount"]
    assert "WantedBy=remote-fs.target\n" in static["units"]["cvmfs-sft.cern.ch.mount"]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"repositories": "atlas"}, "names 'atlas', which is no repository"),
        ({"repositories": "../etc.example"}, "which is no repository"),
        ({"proxies": ""}, "cvmfs_client_proxies is empty"),
        ({"proxies": "http://squid.example.org"}, "without a port: write http://squid.example.org:3128"),
        ({"proxies": "http://a:3128;;DIRECT"}, "a separator stands alone"),
        ({"proxies": "htp://a:3128"}, "names 'htp://a:3128', which is no proxy"),
        ({"proxies": "http://a:99999"}, "without a port"),
        ({"cache_base": "var/lib"}, "give an absolute path"),
        ({"cache_base": "/var/../etc"}, "give an absolute path"),
        ({"quota": 10}, "give 1000 MB or more"),
        ({"quota": -1}, "give 1000 MB or more"),
        ({"alien_cache": "/shared"}, "set it to -1"),
        ({"alien_cache": "/var/lib/cvmfs/alien", "quota": -1}, "lies in cvmfs_client_cache_base"),
        ({"parameters": {"CVMFS_TIMOUT": 5}}, "nearest is CVMFS_TIMEOUT (time for a request"),
        ({"parameters": {"timeout": 5}}, "nearest is CVMFS_TIMEOUT "),
        ({"parameters": {"CVMFS_HTTP_PROXY": "DIRECT"}}, "set cvmfs_client_proxies in its place"),
        ({"parameters": {"CVMFS_CONFIG_REPOSITORY": "a.b"}}, "set cvmfs_client_config_repository"),
        ({"parameters": {"CVMFS_USER": "root"}}, "does not allow it to be changed"),
        ({"parameters": {"CVMFS_MAX_EXTERNAL_SERVERS": 1}}, "CVMFS_EXTERNAL_MAX_SERVERS in its place"),
        ({"parameters": {"CVMFS_TIMEOUT": "soon"}}, "takes a number of seconds from 0"),
        ({"parameters": {"CVMFS_TIMEOUT": True}}, "takes a number of seconds from 0"),
        ({"parameters": {"CVMFS_SUID": "maybe"}}, "takes yes or no"),
        ({"parameters": {"CVMFS_SYSLOG_PREFIX": "it's"}}, "without single quotes"),
        ({"parameters": {"CVMFS_SYSLOG_PREFIX": "a\nrm -rf /"}}, "of one line"),
        (
            {"parameters": {"CVMFS_FALLBACK_PROXY": "http://a"}},
            "CVMFS_FALLBACK_PROXY names 'http://a' without a port",
        ),
        ({"domains": {"example.org": {"CVMFS_CONFIG_REPOSITORY": "a.b"}}}, "holds for all or for none"),
        ({"domains": {"example.org": []}}, "without parameters"),
        ({"domains": {"../x": {}}}, "which is no name"),
        ({"repository_parameters": {"sfo.cern.ch": {}}}, "not among cvmfs_client_repositories"),
        ({"keys": {"our.pub": KEY}}, "write DOMAIN/NAME.pub"),
        ({"keys": {"example.org/../../x.pub": KEY}}, "write DOMAIN/NAME.pub"),
        ({"keys": {"example.org/our.pub": "ssh-rsa AAAA"}}, "is no public key in PEM"),
        ({"repositories": "t.example.org", "domains": SITE}, "The key of t.example.org is missing"),
        ({"packages": ["cvmfs", "cvmfs-config-none"]}, "whose servers are unknown"),
        ({"packages": ["cvmfs-config-default"]}, "cvmfs_client_packages lacks cvmfs"),
        ({"packages": ["cvmfs", "cvmfs-config-default", "rm -rf"]}, "no name of a package"),
        ({"apt_key_fingerprint": "12"}, "write it like 40 hexadecimal digits"),
        ({"probe_timeout": 0}, "give 1 seconds or more"),
    ],
)
def test_bad_input_is_refused_in_one_sentence(changes: dict[str, Any], words: str) -> None:
    [said] = cvmfs_client_plan(role_settings(**changes))["problems"]
    assert words in said
    assert said.endswith(".") and "\n" not in said


def test_a_key_on_the_machine_will_do() -> None:
    domains = {"example.org": {**SITE["example.org"], "CVMFS_PUBLIC_KEY": "/srv/a.pub:/srv/b.pub"}}
    plan = cvmfs_client_plan(role_settings(repositories="tools.example.org", domains=domains))
    assert plan["key_paths"] == ["/srv/a.pub", "/srv/b.pub"]


@given(st.text(max_size=12))
@settings(max_examples=200, deadline=None)
def test_names_of_units_are_unescaped_by_systemd_to_the_path(name: str) -> None:
    path = f"/cvmfs/{name.replace('/', '').replace(chr(0), '')}".rstrip("/")
    unit = mount_table.unit_name(path, "mount").removesuffix(".mount")
    assert re.fullmatch(r"[A-Za-z0-9:_.\\-]+", unit)
    plain = unit.replace("-", "/")
    plain = re.sub(r"\\x([0-9a-f]{2})", lambda found: chr(int(found[1], 16)), plain)
    assert "/" + plain.encode("latin-1").decode(errors="surrogateescape") == path or not name.isprintable()


VALUES = st.one_of(
    st.text(max_size=20), st.integers(-3000, 3000), st.booleans(), st.sampled_from(["yes", "/a", "off"])
)


@given(st.dictionaries(st.sampled_from(sorted(cvmfs_parameters.PARAMETERS)), VALUES, max_size=4))
@settings(max_examples=300, deadline=None)
def test_whatever_is_rendered_is_known_and_of_its_kind(parameters: dict[str, Any]) -> None:
    request = role_settings(parameters=parameters, domains={"cern.ch": parameters})
    for text in cvmfs_client_plan(request).get("files", {}).values():
        for name, value in assignments(text).items():
            assert cvmfs_parameters.read_value(name, value) == value


def test_every_parameter_has_a_kind_and_a_default_of_it() -> None:
    assert len(cvmfs_parameters.PARAMETERS) == 118
    for name, parameter in cvmfs_parameters.PARAMETERS.items():
        assert parameter.kind in cvmfs_parameters.KINDS and parameter.meaning, name
        if parameter.default and name not in cvmfs_parameters.REFUSED:
            assert cvmfs_parameters.read_value(name, parameter.default) == parameter.default
    assert cvmfs_parameters.PARAMETERS.keys() >= cvmfs_parameters.AT_MOUNT
    assert cvmfs_parameters.REFUSED.keys() <= cvmfs_parameters.PARAMETERS.keys()
    assert cvmfs_parameters.read_value("CVMFS_CACHE_hpc_TYPE", "tiered") == "tiered"


# mount(8), "FILESYSTEM-INDEPENDENT MOUNT OPTIONS"
KNOWN_OPTIONS = {"_netdev", "nodev", "nosuid", "noexec", "ro", "noatime"}


def test_mount_options_are_known() -> None:
    for unit in cvmfs_client_plan(role_settings(mount="static"))["units"].values():
        options = re.search("(?m)^Options=(.*)$", unit)
        assert options and set(options[1].split(",")) <= KNOWN_OPTIONS
