"""The settings that the roles for Lustre write exist, by a separate list: that of the fakes."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible.inventory.manager import InventoryManager
from ansible.parsing.dataloader import DataLoader
from ansible.template import Templar
from ansible.vars.manager import VariableManager
from ansible_collections.gpufarm.cluster.plugins.module_utils._lustre import client, layout, options
from ansible_collections.gpufarm.cluster.plugins.module_utils._lustre import lnet as lustre_lnet

from lab.lustre.fake import ask, disk, lnet, mounts, network, state

ROOT = Path(__file__).resolve().parents[2]
VALUES = {
    "network": "o2ib1",
    "mgssec": "skpi",
    "skpath": "/etc/lustre/keys",
    "exclude": "home-OST0001",
    "retry": "5",
}


def defaults(role: str) -> dict[str, Any]:
    found = yaml.safe_load((ROOT / "roles" / role / "defaults" / "main.yml").read_text())
    return {name.removeprefix(f"{role}_"): value for name, value in found.items()}


def test_every_mount_option_that_the_role_takes_is_one_of_lustre() -> None:
    names = mounts.CLIENT | mounts.FLAGS | set(mounts.WITH_VALUE)
    taken = 0
    for name in sorted(names | set(options._mount_names())):
        option = f"{name}={VALUES[name]}" if name in VALUES else name
        try:
            options.check_mount_options([option])
        except options.OptionError:
            continue
        taken += 1
        assert mounts.read_options([option], client=True) is not None, option
    assert taken > 30


def test_lnet_has_the_same_keys() -> None:
    assert set(lustre_lnet.SETTINGS) == set(state.GLOBAL)
    assert set(lustre_lnet.TUNABLES) == set(lnet.TUNABLES)
    assert {kind: set(names) for kind, names in lustre_lnet.LND_TUNABLES.items()} == {
        kind: set(names) for kind, names in lnet.LND_TUNABLES.items()
    }


def test_tunables_are_within_what_lustre_takes() -> None:
    for name, (value, least, most) in ask.CLIENT_VALUES.items():
        pattern = re.sub(r"\{fs\}.*\{id\}", "*", name)
        if pattern.endswith("max_mod_rpcs_in_flight"):
            continue  # depends on another
        for number in (least, value):
            with_least = max(number, 2) if pattern.startswith("mdc") else number
            assert options.check_tunable(pattern, with_least) == str(with_least)
        with pytest.raises(options.OptionError):
            options.check_tunable(pattern, 10**9 if most < 10**9 else -1)


def ibisco(host: str, role: str) -> dict[str, Any]:
    """The settings of a machine of the example, as the role gets them."""
    loader = DataLoader()
    inventory = InventoryManager(loader, [str(ROOT / "inventories" / "ibisco")])
    manager = VariableManager(loader, inventory)
    variables = manager.get_vars(host=inventory.get_host(host))
    found = Templar(loader, variables).template(
        {name: value for name, value in variables.items() if name.startswith(f"{role}_")}
    )
    return {**defaults(role), **{name.removeprefix(f"{role}_"): value for name, value in found.items()}}


@pytest.mark.parametrize("number", [1, 2, 3, 4])
def test_each_server_of_the_example_has_its_part(number: int) -> None:
    host = f"storage{number}"
    settings = ibisco(host, "lustre_server")
    assert layout.problems(settings, host) == []
    plan = layout.plan(settings, host)
    names = [one["name"] for one in plan["targets"]]
    first = 2 * (number - 2)
    assert names == (
        ["MGS", "home-MDT0000", "scratch-MDT0000"]
        if number == 1
        else [f"{name}-OST{index:04x}" for name in ("home", "scratch") for index in (first, first + 1)]
    )
    for target in plan["targets"]:
        asked = disk.arguments("mkfs.lustre", layout.mkfs_words(target))
        assert asked.device == target["device"]
        for node in asked.mgsnode + asked.servicenode:
            disk.flatten([node])


def test_the_clients_of_the_example_mount_both() -> None:
    settings = ibisco("gpu07", "lustre_client")
    assert client.problems(settings) == []
    plan = client.plan(settings)
    assert plan["mount_units"] == ["home.mount", "scratch.mount"]
    for name in plan["mount_units"]:
        unit = dict(line.split("=", 1) for line in plan["units"][name].splitlines() if "=" in line)
        groups, file_system, folder = mounts.read_source(unit["What"])
        assert (len(groups), len(groups[0]), file_system, folder) == (1, 2, name.removesuffix(".mount"), "")
        assert mounts.read_options(unit["Options"].split(","), client=True) is not None


@pytest.mark.parametrize("kinds", layout.QUOTAS)
def test_quotas_are_set_as_lctl_takes_them(
    kinds: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(state, "VAR", tmp_path)
    monkeypatch.setattr(network, "manages", lambda: True)
    enforced = dict.fromkeys(("home-MDT0000", "home-OST0000"), "unknown")
    for words in layout.quota_changes({"home": kinds}, enforced):
        ask.lctl(words)
    for target in enforced:
        assert network.kept(f"osd-ldiskfs.{target}.quota_slave.enabled") == kinds
    assert network.kept("osd-ldiskfs.scratch-OST0000.quota_slave.enabled") is None
