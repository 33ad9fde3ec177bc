# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Options, parameters of modules and tunables are those that Lustre has, with values of their kind."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.gpufarm.cluster.plugins.module_utils._lustre import options


@pytest.mark.parametrize(
    "given",
    [
        [],
        ["flock", "noatime", "nosuid", "nodev", "_netdev"],
        ["localflock", "ro", "network=o2ib1", "retry=5", "mgssec=skpi", "exclude=home-OST0001:home-OST000a"],
    ],
)
def test_options_that_exist(given: list[str]) -> None:
    options.check_mount_options(given)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (["flok"], "did you mean flock"),
        (["flock", "noflock"], "excludes the other"),
        (["flock=1"], "does not exist"),
        (["noatime", "noatime"], "more than once"),
        (["retry=100"], "not of its kind"),
        (["network=eth0"], "not of its kind"),
        (["x-systemd.automount"], "for fstab"),
        (["noauto"], "lustre_client_automount"),
        (["mgsname=x"], "hides"),
        (["exclude=home-MDT0000"], "not of its kind"),
        (["skpath=/a b"], "not of its kind"),
    ],
)
def test_options_that_are_refused(given: list[str], words: str) -> None:
    with pytest.raises(options.OptionError, match=words):
        options.check_mount_options(given)


def test_the_list_of_module_parameters_is_whole() -> None:
    counts = {module: len(parameters) for module, parameters in options.MODULES.items()}
    assert counts == {
        "ko2iblnd": 27,
        "ksocklnd": 34,
        "libcfs": 12,
        "lnet": 39,
        "ptlrpc": 18,
        "obdclass": 2,
        "osc": 2,
    }
    assert options.MODULES["lnet"]["networks"] == options.ModuleParameter(words=True, deprecated=True)


@pytest.mark.parametrize(
    ("module", "name", "value", "written"),
    [
        ("ko2iblnd", "peer_credits", 32, "32"),
        ("libcfs", "libcfs_panic_on_lbug", False, "0"),
        ("lnet", "accept", "secure", "secure"),
        ("ksocklnd", "tos", -1, "-1"),
    ],
)
def test_module_parameters(module: str, name: str, value: Any, written: str) -> None:
    assert options.check_module_parameter(module, name, value) == written


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"ko2iblnd": {"peer_credit": 32}}, "did you mean peer_credits"),
        ({"ko2iblnd": {"peer_credits": "many"}}, "a whole number belongs"),
        ({"ko2iblnd": {"map_on_demand": 1}}, "deprecated"),
        ({"lnet": {"accept": "secure x=1"}}, "one word belongs"),
        ({"lnet": {"networks": "tcp(eth0)"}}, "deprecated"),
        ({"nvidia": {"NVreg": 1}}, "no parameters here"),
        ({"lnet": 3}, "without parameters"),
    ],
)
def test_module_parameters_that_are_refused(parameters: dict[str, Any], words: str) -> None:
    (problem,) = options.module_problems("lustre_client_", parameters)
    assert words in problem and problem.startswith("lustre_client_module_parameters ")


def test_module_parameters_are_written_for_modprobe() -> None:
    parameters = {"osc": {"osc_idle_timeout": 20}, "ko2iblnd": {"peer_credits": 32, "credits": 1024}}
    assert options.module_lines(parameters) == (
        "options ko2iblnd credits=1024 peer_credits=32\noptions osc osc_idle_timeout=20\n"
    )


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("osc.*.max_rpcs_in_flight", 512),
        ("mdc.home-MDT0000-*.max_mod_rpcs_in_flight", 7),
        ("llite.scratch-*.xattr_cache", True),
        ("ldlm.namespaces.*.lru_size", 0),
        ("at_max", 600),
        ("jobid_var", "SLURM_JOB_ID"),
        ("jobid_name", "%H:%e:%u"),
    ],
)
def test_tunables_that_exist(name: str, value: Any) -> None:
    options.check_tunables({name: value})


@pytest.mark.parametrize(
    ("tunables", "words"),
    [
        ({"osc.*.max_rpcs_in_flight": 513}, "from 1 to 512"),
        ({"llite.*.max_cached_mb": 16777217}, "from 1 to 16777216"),
        ({"osc.*.max_rpc_in_flight": 8}, "did you mean max_rpcs_in_flight"),
        ({"osc.max_rpcs_in_flight": 8}, "no tunable"),
        ({"osc.a b.checksums": 1}, "other than letters"),
        ({"osc.*.checksums": "yes"}, "from 0 to 1"),
        ({"osc.*.state": "FULL"}, "can be read and not set"),
        ({"jobid_name": "%H; reboot"}, "one word belongs"),
        ({"mdc.*.max_mod_rpcs_in_flight": 8}, "must be less than mdc.*.max_rpcs_in_flight"),
        ({"mdc.*.max_mod_rpcs_in_flight": 16, "mdc.*.max_rpcs_in_flight": 16}, "must be less"),
    ],
)
def test_tunables_that_are_refused(tunables: dict[str, Any], words: str) -> None:
    with pytest.raises(options.OptionError, match=words.replace("*", r"\*")):
        options.check_tunables(tunables)
