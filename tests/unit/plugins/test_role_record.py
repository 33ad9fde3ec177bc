"""The controller tells a machine a digest of all that a role depends on."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
import yaml
from ansible.errors import AnsibleActionFail
from ansible.parsing.dataloader import DataLoader
from ansible.template import Templar, trust_as_template
from ansible_collections.gpufarm.cluster.plugins.action.role_record import ActionModule
from ansible_collections.gpufarm.cluster.plugins.plugin_utils import digest

Tell = Callable[..., dict[str, Any]]
DEFAULTS = yaml.safe_load((digest.COLLECTION / "roles" / "jupyterhub" / "defaults" / "main.yml").read_text())
FIRST = {"inventory_hostname": "gpu1", "jupyterhub_iam_url": "https://iam.example.org/"}


@pytest.fixture
def tell() -> Tell:
    """Run the action and return the arguments of the module on the machine."""

    def run(known: Mapping[str, Any], **args: Any) -> dict[str, Any]:
        loader = DataLoader()
        task = mock.Mock(
            args={"step": "compare", "role": "jupyterhub", **args}, async_val=0, check_mode=False
        )
        action = ActionModule(
            task, mock.Mock(), mock.Mock(), loader, Templar(loader, variables=dict(known)), mock.Mock()
        )
        with mock.patch.object(ActionModule, "_execute_module", return_value={}) as called:
            action.run(task_vars=dict(known))
        given: dict[str, Any] = called.call_args.kwargs["module_args"]
        return given

    return run


def variables(given: Mapping[str, Any]) -> str:
    (request,) = given["requests"]
    return str(request["variables"])


def test_a_role_and_the_play_before_it_have_the_same_digest(tell: Tell) -> None:
    inside = tell({**DEFAULTS, **FIRST})
    own = {key: value for key, value in FIRST.items() if key != "inventory_hostname"}
    outside = tell({"inventory_hostname": "gpu1"}, step="probe", role=None, roles={"jupyterhub": own})
    assert variables(inside) == variables(outside) != ""


def test_a_text_of_the_command_line_is_the_number_that_it_means(tell: Tell) -> None:
    number, text = ({**FIRST, "jupyterhub_port": one} for one in (443, "443"))
    assert variables(tell(number)) == variables(tell(text)) != variables(tell(FIRST))


@pytest.mark.parametrize("other", [{"inventory_hostname": "gpu2"}, {"ansible_host": "192.0.2.7"}])
def test_another_machine_has_another_digest(tell: Tell, other: dict[str, str]) -> None:
    assert variables(tell({**FIRST, **other})) != variables(tell(FIRST))


def test_the_state_is_no_setting(tell: Tell) -> None:
    removal = tell({**FIRST, "jupyterhub_state": "absent"}, state="absent")
    assert removal["requests"][0]["state"] == "absent"
    assert variables(removal) == variables(tell(FIRST))


def test_a_file_of_the_controller_counts_with_its_content(tell: Tell, tmp_path: Path) -> None:
    file = tmp_path / "ca.crt"
    file.write_text("one")
    known = {**FIRST, "jupyterhub_iam_ca_file": str(file)}
    before = variables(tell(known))
    file.write_text("two")
    assert variables(tell(known)) != before


@pytest.mark.parametrize("place", ["ca.crt", "files/ca.crt", "tls/ca.crt", "files/tls/ca.crt"])
def test_a_file_beside_the_playbook_counts_as_the_role_finds_it(
    tell: Tell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    file = tmp_path / place
    file.parent.mkdir(parents=True, exist_ok=True)
    monkeypatch.chdir(tmp_path)
    digests = []
    for text in ("one", "two"):
        file.write_text(text)
        digests.append(variables(tell({**FIRST, "jupyterhub_iam_ca_file": place.removeprefix("files/")})))
    assert digests[0] != digests[1] != ""


def test_a_word_that_names_no_file_is_none(
    tell: Tell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = {**FIRST, "jupyterhub_spawner": "docker"}
    before = variables(tell(known))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "docker").write_text("one")
    assert variables(tell(known)) == before


def test_a_machine_of_the_inventory_counts_with_its_address(tell: Tell) -> None:
    def with_controller(**known: Any) -> str:
        found = {"inventory_hostname": "n1", "slurm_node_controllers": ["c1"], "hostvars": {"c1": known}}
        return variables(tell(found, step="probe", role=None, roles={"slurm_node": {}}))

    assert with_controller(ansible_host="192.0.2.1") == with_controller(ansible_host="192.0.2.1", port=1)
    assert with_controller(ansible_host="192.0.2.1") != with_controller(ansible_host="192.0.2.2")
    assert with_controller() != ""


def test_what_is_no_file_is_not_opened(tell: Tell) -> None:
    for path in ("/dev/zero", "/", "/no/such/file", "a/b\0c", "x/" * 3000):
        assert variables(tell({**FIRST, "jupyterhub_iam_ca_file": path}))


def test_values_are_data(tell: Tell, tmp_path: Path) -> None:
    evil = f"{{{{ lookup('ansible.builtin.pipe', 'touch {tmp_path}/evil') }}}}"
    tell(
        {"inventory_hostname": "gpu1"},
        step="probe",
        role=None,
        roles={"jupyterhub": {"jupyterhub_iam_url": evil}},
    )
    assert not (tmp_path / "evil").exists()
    template = trust_as_template("{{ 'https://' ~ 'iam.example.org/' }}")
    assert variables(tell({**FIRST, "jupyterhub_iam_url": template})) == variables(tell(FIRST))


def test_variables_that_are_known_later_have_no_digest(tell: Tell) -> None:
    assert variables(tell({**FIRST, "jupyterhub_iam_url": trust_as_template("{{ not_yet }}")})) == ""
    assert variables(tell({**FIRST, "jupyterhub_port": "many"})) == ""


def test_a_role_that_depends_on_other_machines_says_so(tell: Tell) -> None:
    assert tell(FIRST, alone=False)["requests"][0]["alone"] is False
    assert variables(tell(FIRST, alone=False)) == variables(tell(FIRST))


def test_a_machine_is_told_what_was_before(tell: Tell) -> None:
    given = tell(FIRST, step="claim", before={"nginx.service": "enabled"}, made={"paths": ["/etc/x"]})
    assert given["requests"][0]["before"] == {"nginx.service": "enabled"}
    assert tell(FIRST)["requests"][0]["before"] == {}


def test_each_instance_has_a_record_of_its_own(tell: Tell) -> None:
    several = tell({**FIRST, "chronos_name": "queue"}, role="chronos", instance="queue")
    assert several["requests"][0]["role"] == "chronos.queue"
    assert tell(FIRST, instance="jupyterhub")["requests"][0]["role"] == "jupyterhub"


def test_the_owner_is_a_playbook_unless_somebody_says_otherwise(tell: Tell) -> None:
    assert tell(FIRST)["owner"] == "a playbook"
    known = {
        **FIRST,
        "gpufarm_owner": "deployment x",
        "gpufarm_take_over": "false",
        "gpufarm_full_run": "yes",
    }
    given = tell(known)
    assert (given["owner"], given["take_over"], given["full_run"]) == ("deployment x", False, True)


def test_roles_that_are_no_dictionary_are_refused(tell: Tell) -> None:
    with pytest.raises(AnsibleActionFail, match="roles has to be a dictionary"):
        tell(FIRST, step="probe", role=None, roles=["mig"])


def test_the_collection_has_one_digest() -> None:
    assert digest.digest() == digest.VERSION


def test_an_operator_without_a_name_is_told_by_the_number(
    tell: Tell, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in a container whose account is in no list."""
    for name in ("SUDO_USER", "LOGNAME", "USER", "LNAME", "USERNAME"):
        monkeypatch.delenv(name, raising=False)
    nobody = mock.patch("pwd.getpwuid", side_effect=KeyError("getpwuid(): uid not found: 4711"))
    with nobody, mock.patch("os.getuid", return_value=4711):
        assert tell(FIRST)["operator"] == "4711"


def test_an_operator_is_the_person_behind_sudo(tell: Tell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SUDO_USER", "ada")
    assert tell(FIRST)["operator"] == "ada"


def test_the_machine_is_told_which_settings_other_roles_change(tell: Tell) -> None:
    beside = {"munge.service": ["slurm_node"]}
    given = tell(FIRST, step="claim", before={"munge.service": "on"}, beside=beside)
    assert given["requests"][0]["beside"] == beside
