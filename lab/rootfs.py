"""Root file systems, built by mmdebstrap from this machine's own Debian mirror and cached by content."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from functools import partial
from pathlib import Path

from lab.errors import LabError
from lab.recipe import KEYRING, MASKED, PACKAGES, PASSED_ON, VM_PACKAGES, Recipe
from lab.system import locked, require_space, run

CERTIFICATES = Path("/usr/local/share/ca-certificates")
BUILD_MEBIBYTES = 2500
BUILD_SECONDS = 1800
# In namespaces that end with this process: a killed build leaves no process or mount behind.
ISOLATED = (
    *("setpriv", "--pdeathsig", "KILL"),
    *("unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc"),
)


def recipe_for(suite: str, kernel: bool) -> Recipe:
    """The recipe of a suite on this machine: its mirror, its certificate authorities, its index settings.

    :raises LabError: if this machine's apt knows no Debian mirror.
    """
    if not Path(KEYRING).exists():
        raise LabError(f"{KEYRING} is missing: apt-get install debian-archive-keyring")
    mirror = _mirror("Debian")
    if not mirror:  # the targets are listed only after their lists were downloaded once
        run(["apt-get", "update", "-qq"])
        mirror = _mirror("Debian")
    if not mirror:
        raise LabError(
            "the apt sources of this machine name no Debian mirror: add one to /etc/apt/sources.list.d"
        )
    return Recipe(
        suite=suite,
        packages=tuple(sorted([*PACKAGES, *(VM_PACKAGES if kernel else [])])),
        mirror=mirror,
        security=_mirror("Debian-Security"),
        environment={name: os.environ[name] for name in PASSED_ON if name in os.environ},
        certificates={path.name: path.read_text() for path in sorted(CERTIFICATES.glob("*.crt"))},
        kernel=kernel,
    )


def _mirror(label: str) -> str:
    """URL of the first archive with this label in its Release file, which keeps third-party sources out."""
    lines = run(
        ["apt-get", "indextargets", "--format", "$(REPO_URI)", "Created-By: Packages", f"Label: {label}"]
    )
    return next(iter(sorted(set(lines.split()))), "").rstrip("/")


def ensure(recipe: Recipe, cache_dir: Path, say: Callable[[str], None]) -> Path:
    """The root file system of a recipe, built if the cache does not hold it.

    :returns: the directory, never to be changed.
    :raises LabError: if the build fails, with the reason mmdebstrap gives.
    """
    return build_once(
        cache_dir / "rootfs" / recipe.name, f"the {recipe.suite} image", partial(_build, recipe), say
    )


def build_once(target: Path, what: str, build: Callable[[Path], None], say: Callable[[str], None]) -> Path:
    """A folder of the cache, built if it is not there.

    Two builders wait for one another; an interrupted build never counts, as the folder gets its name last.

    :param target: the folder; its name tells all that decides its content.
    :param what: what is built, for messages.
    :param build: makes the folder that it is given.
    :returns: the folder, never to be changed.
    """
    if target.is_dir():
        return target
    with locked(target.with_name(f"{target.name}.lock"), f"building {what}", BUILD_SECONDS):
        if not target.is_dir():
            require_space(target.parent, BUILD_MEBIBYTES, f"building {what}")
            say(f"building {what} (once)")
            unfinished = target.with_name(f"{target.name}.partial")
            _remove_tree(unfinished)
            try:
                build(unfinished)
            except BaseException:
                _remove_tree(unfinished)
                raise
            unfinished.rename(target)
    return target


def _remove_tree(path: Path) -> None:
    if path.exists():
        run(["rm", "-rf", "--one-file-system", path])


def _build(recipe: Recipe, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    command = [*ISOLATED, "mmdebstrap", "--mode=root", "--variant=minbase", "--format=directory"]
    command += [
        f"--aptopt={line.rstrip(';')}" for line in recipe.files["etc/apt/apt.conf.d/99lab"].splitlines()
    ]
    # The package lists stay, as on any server: in check mode apt looks into them but downloads none.
    command.append("--skip=cleanup/apt/lists")
    command += ['--aptopt=Apt::Install-Recommends "false"', f"--include={','.join(recipe.packages)}"]
    if recipe.certificates:
        command.append(f"--customize-hook=copy-in {CERTIFICATES} {CERTIFICATES.parent}")
    command += ['--customize-hook=chroot "$1" update-ca-certificates', recipe.suite, str(target), "-"]
    done = subprocess.run(command, input=recipe.sources, text=True, capture_output=True, check=False)
    if done.returncode:
        reasons = [line for line in done.stderr.splitlines() if line.startswith(("E:", "W: Failed"))]
        reason = "; ".join(dict.fromkeys(reasons[:3])) or done.stderr.strip()[-300:]
        raise LabError(f"mmdebstrap could not build {recipe.suite} from {recipe.mirror}: {reason}")
    for name, text in recipe.files.items():
        path = target / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    units = target / "etc/systemd/system"
    for unit in MASKED:
        (units / unit).unlink(missing_ok=True)
        (units / unit).symlink_to("/dev/null")
    # Hosts get keys and identities of their own.
    (target / "var/lib/dbus/machine-id").unlink(missing_ok=True)
    for key in (target / "etc/ssh").glob("ssh_host_*"):
        key.unlink()
    if recipe.kernel:
        _enable_kernel_network(units)
    # They look old, else a role with cache_valid_time would take them for fresh for an hour after the build.
    os.utime(target / "var/lib/apt/lists", (0, 0))


def _enable_kernel_network(units: Path) -> None:
    """Let systemd take the address from the kernel command line (systemd-network-generator(8))."""
    for target, unit in (
        ("multi-user.target.wants", "systemd-networkd.service"),
        ("sysinit.target.wants", "systemd-network-generator.service"),
    ):
        link = units / target / unit
        link.parent.mkdir(exist_ok=True)
        link.unlink(missing_ok=True)
        link.symlink_to(f"/lib/systemd/system/{unit}")
