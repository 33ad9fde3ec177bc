#!/usr/bin/python
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Ansible module: the accounts of persons on a machine, with keys and rights."""

from __future__ import annotations

DOCUMENTATION = r"""
module: user_accounts
short_description: Accounts that persons reach with SSH keys
version_added: 0.1.0
description:
  - Makes the accounts of a list, with their keys in one folder and their rights in one file of sudo, all in
    one call.
  - The list is the whole truth. Accounts of earlier runs that are not in it are locked, lose keys and rights,
    and keep their homes.
  - Only accounts in the group C(gpufarm-users) are ever changed. Names that belong to others are refused.
  - The accounts have no passwords.
  - It warns of accounts that keep a home elsewhere than in the folder of the role C(shared_home).
extends_documentation_fragment:
  - gpufarm.cluster.attributes.changing_module
attributes:
  diff_mode:
    support: full
    description: Returns accounts, keys and rights before and after.
options:
  users:
    description:
      - The users, each a map. C(os_user_name) and C(os_user_ssh_public_key), with one key per line, are
        required, C(os_user_add_to_sudoers), C(os_user_guid), C(groups), C(shell) and C(state) are not.
    type: list
    elements: dict
    required: true
  keys_folder:
    description: Absolute path of the folder that holds a file with the keys of each user.
    type: path
    required: true
  sudoers_file:
    description: Absolute path of the file with the rights of sudo, which has to pass C(visudo) first.
    type: path
    required: true
  allow_key_options:
    description: Whether options such as C(from="192.0.2.0/24") may stand before keys.
    type: bool
    default: false
  name_suffix:
    description: Suffix of the names of all accounts, after C(os_user_name).
    type: str
    default: ""
  end_sessions:
    description: Whether the processes of accounts that are locked are ended.
    type: bool
    default: false
author:
  - gpufarm maintainers (@gpufarm)
"""

EXAMPLES = r"""
- name: Make the accounts of two persons
  gpufarm.cluster.user_accounts:
    users:
      - os_user_name: ada
        os_user_ssh_public_key: >-
          ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIOMqqnkVzrm0SdG6UOoqKLsabgH5C9okWi0dh2l9GKJl ada@desk
        os_user_add_to_sudoers: true
      - os_user_name: ben
        state: absent
    keys_folder: /etc/ssh/gpufarm-users.d
    sudoers_file: /etc/sudoers.d/gpufarm-users
"""

RETURN = r"""
active:
  description: Names of the accounts that can be used.
  returned: success
  type: list
  elements: str
  sample: [ada]
locked:
  description: Names of the accounts of earlier runs that are locked.
  returned: success
  type: list
  elements: str
  sample: [ben]
ended:
  description: Names of the locked accounts whose processes were ended.
  returned: success
  type: list
  elements: str
  sample: []
"""

import contextlib
import json
import os
import pwd
import signal
import time
from pathlib import Path
from typing import Any, NoReturn

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.gpufarm.cluster.plugins.module_utils._accounts.plan import (
    Machine,
    Plan,
    plan,
    read_accounts,
    shown,
)
from ansible_collections.gpufarm.cluster.plugins.module_utils._accounts.request import (
    User,
    UserProblem,
    read_users,
)
from ansible_collections.gpufarm.cluster.plugins.module_utils._host.io.module_files import replace_file
from ansible_collections.gpufarm.cluster.plugins.module_utils._shared_home import elsewhere
from ansible_collections.gpufarm.cluster.plugins.module_utils._shared_home.program import (
    COMMAND as HOME_COMMAND,
)
from ansible_collections.gpufarm.cluster.plugins.module_utils._shared_home.program import (
    SETTINGS as HOME_SETTINGS,
)

# Seconds that processes have to end by themselves.
PATIENCE = 10


def fail(module: AnsibleModule, text: str) -> NoReturn:
    """End the module."""
    module.fail_json(msg=text)
    raise SystemExit(1)


def owner(number: int) -> str:
    """Return the name of the account with a number that any service of names knows; empty without one."""
    try:
        return pwd.getpwuid(number).pw_name
    except KeyError:
        return ""


def known_elsewhere(name: str) -> bool:
    """Return whether any service of names knows the account (nsswitch.conf(5))."""
    try:
        pwd.getpwnam(name)
    except KeyError:
        return False
    return True


def operators() -> frozenset[str]:
    """Return the names of the accounts behind this run: of sudo(8), and of the login (pam_loginuid(8))."""
    numbers = [os.environ.get("SUDO_UID", "")]
    with contextlib.suppress(OSError):  # a kernel without it
        numbers.append(Path("/proc/self/loginuid").read_text(encoding="ascii"))
    names = set()
    for number in numbers:
        try:
            names.add(pwd.getpwuid(int(number)).pw_name)
        except (KeyError, ValueError, OverflowError):
            continue
    return frozenset(names)


def read_machine(
    users: list[User], keys_folder: Path, sudoers_file: Path, folder: Path = Path("/etc")
) -> Machine:
    """Return what the machine has.

    Args:
        users: those that are asked for.
        keys_folder: folder of the files of keys.
        sudoers_file: file with the rights of sudo.
        folder: of the tables of accounts.

    Raises:
        OSError: a file cannot be read.
    """
    accounts, groups = read_accounts(
        *((folder / name).read_text(errors="surrogateescape") for name in ("passwd", "group", "shadow"))
    )
    local = {account.uid for account in accounts.values()}
    numbers = {user.uid: owner(user.uid) for user in users if user.uid and user.uid not in local}
    names = [user.name for user in users]
    homes_on_use = Path(HOME_COMMAND).exists()
    files = sorted(keys_folder.iterdir()) if keys_folder.is_dir() else []
    return Machine(
        accounts=accounts,
        groups=groups,
        elsewhere=frozenset(name for name in names if name not in accounts and known_elsewhere(name)),
        # The command that makes homes refuses one that is another user's.
        homes=frozenset(
            name
            for name in names
            if not homes_on_use and name not in accounts and Path("/home", name).exists()
        ),
        shells=frozenset(user.shell for user in users if os.access(user.shell, os.X_OK)),
        keys={path.name: tuple(path.read_text().splitlines()) for path in files},
        sudoers=sudoers_file.read_text() if sudoers_file.exists() else None,
        operators=operators(),
        homes_on_use=homes_on_use,
        numbers={number: name for number, name in numbers.items() if name},
    )


def warn_of_homes(module: AnsibleModule, names: list[str]) -> None:
    """Tell which accounts do not have the homes that the role shared_home gives."""
    settings = Path(HOME_SETTINGS)
    if settings.exists():
        folder = json.loads(settings.read_text(encoding="utf-8"))["path"]
        for sentence in elsewhere.sentences(Path("/etc/passwd").read_text(), names, folder):
            module.warn(sentence)


def _check_sudoers(module: AnsibleModule, file: str) -> None:
    module.run_command(["visudo", "-c", "-s", "-f", file], check_rc=True)


def apply(module: AnsibleModule, machine: Machine, wanted: Plan) -> None:
    """Take rights away first, and give them last, so that an interrupted run leaves nobody with too many."""
    folder, sudoers = Path(module.params["keys_folder"]), Path(module.params["sudoers_file"])
    for name in set(machine.keys) - set(wanted.keys):
        (folder / name).unlink()
    if wanted.sudoers is None:
        if machine.sudoers is not None:
            sudoers.unlink()
    elif wanted.sudoers != machine.sudoers:
        replace_file(module, sudoers, wanted.sudoers, 0o440, lambda new: _check_sudoers(module, new))
    for command in wanted.commands:
        module.run_command(command, check_rc=True)
    if wanted.keys and not folder.is_dir():
        folder.mkdir(mode=0o755)
    for name, lines in wanted.keys.items():
        if lines != machine.keys.get(name):
            replace_file(module, folder / name, "\n".join(lines) + "\n", 0o644)


def check(module: AnsibleModule, users: list[User], keys_folder: Path, sudoers_file: Path) -> None:
    """Fail unless the machine has what was asked for."""
    machine = read_machine(users, keys_folder, sudoers_file)
    wanted = plan(users, machine)
    reality = shown(machine.ours(), machine.keys, machine.sudoers)
    if reality != shown(wanted.accounts, wanted.keys, wanted.sudoers):
        fail(module, f"The accounts are not as asked for after the run, but: {text(reality)}")


def text(state: dict[str, Any]) -> str:
    """Return a state as the text of a diff."""
    return json.dumps(state, indent=2, sort_keys=True) + "\n"


def processes(uids: list[int]) -> dict[int, int]:
    """Return the owners of the processes that belong to some users, by process number."""
    found = {}
    for path in Path("/proc").iterdir():
        if path.name.isdecimal():
            try:
                uid = path.stat().st_uid
            except OSError:
                continue  # it has ended meanwhile
            if uid in uids:
                found[int(path.name)] = uid
    return found


def end_processes(uids: list[int]) -> None:
    """End the processes of users, by force when they have not ended by themselves."""
    deadline = time.monotonic() + PATIENCE
    sign = signal.SIGTERM
    while processes(uids) and time.monotonic() < deadline + PATIENCE:
        for process in processes(uids):
            try:
                os.kill(process, sign)
            except ProcessLookupError:
                continue
        time.sleep(0.2)
        if time.monotonic() > deadline:
            sign = signal.SIGKILL


def end(module: AnsibleModule, locked: list[str]) -> list[str]:
    """End what locked accounts still run; return the names of those that ran something."""
    uids = {}
    for name in locked:
        try:
            uids[pwd.getpwnam(name).pw_uid] = name
        except KeyError:
            continue
    running = sorted({uids[uid] for uid in processes(list(uids)).values()})
    if running and not module.check_mode:
        end_processes(list(uids))
        if processes(list(uids)):
            fail(
                module,
                f"Processes of {', '.join(running)} do not end; look for them with ps on the machine.",
            )
    return running


def main() -> None:
    """Run the module."""
    module = AnsibleModule(
        argument_spec={
            "users": {"type": "list", "elements": "dict", "required": True},
            "keys_folder": {"type": "path", "required": True, "no_log": False},
            "sudoers_file": {"type": "path", "required": True},
            "allow_key_options": {"type": "bool", "default": False, "no_log": False},
            "name_suffix": {"type": "str", "default": ""},
            "end_sessions": {"type": "bool", "default": False},
        },
        supports_check_mode=True,
    )
    os.umask(0o022)
    folder, sudoers = Path(module.params["keys_folder"]), Path(module.params["sudoers_file"])
    try:
        users = read_users(
            module.params["users"], module.params["allow_key_options"], module.params["name_suffix"]
        )
        machine = read_machine(users, folder, sudoers)
        wanted = plan(users, machine)
    except UserProblem as problem:
        fail(module, str(problem))
    except OSError as error:
        fail(module, f"{error.filename} cannot be read: {error.strerror}.")
    before = shown(machine.ours(), machine.keys, machine.sudoers)
    after = shown(wanted.accounts, wanted.keys, wanted.sudoers)
    if before != after and not module.check_mode:
        try:
            apply(module, machine, wanted)
        except OSError as error:
            fail(module, f"{error.filename} cannot be changed: {error.strerror}.")
        check(module, users, folder, sudoers)
    warn_of_homes(module, sorted(wanted.keys))
    ended = end(module, wanted.locked) if module.params["end_sessions"] else []
    module.exit_json(
        changed=before != after or bool(ended),
        active=sorted(wanted.keys),
        locked=wanted.locked,
        ended=ended,
        diff={"before": text(before), "after": text(after)},
    )


if __name__ == "__main__":
    main()
