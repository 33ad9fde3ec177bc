#!/usr/bin/python3
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Fakes of programs of the CernVM-FS client: called as mount.cvmfs, cvmfs2, cvmfs_config or cvmfs_talk.

README.md beside this file says what of the real programs each of them follows, and from which source.
"""

from __future__ import annotations

import hashlib
import json
import os
import pwd
import shlex
import shutil
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any, NoReturn

ETC = Path("/etc/cvmfs")
RUN = Path("/run/cvmfs")
LOG = Path("/var/log/cvmfs-fake.log")
AUTOFS_MAP = Path("/etc/auto.master.d/cvmfs.autofs")
MARK = "@@fake "
REQUIRED = (
    "CVMFS_USER CVMFS_NFILES CVMFS_MOUNT_DIR CVMFS_STRICT_MOUNT CVMFS_RELOAD_SOCKETS CVMFS_QUOTA_LIMIT"
    " CVMFS_CACHE_BASE CVMFS_SERVER_URL CVMFS_HTTP_PROXY CVMFS_TIMEOUT CVMFS_TIMEOUT_DIRECT"
    " CVMFS_SHARED_CACHE CVMFS_CHECK_PERMISSIONS"
)
SWITCHES = (
    "CVMFS_STRICT_MOUNT CVMFS_SHARED_CACHE CVMFS_NFS_SOURCE CVMFS_CHECK_PERMISSIONS CVMFS_AUTO_UPDATE"
    " CVMFS_MOUNT_RW CVMFS_SEND_INFO_HEADER CVMFS_USE_GEOAPI CVMFS_CLAIM_OWNERSHIP CVMFS_SYSTEMD_NOKILL"
    " CVMFS_CONFIG_REPO_REQUIRED"
)
MOUNT_OPTIONS = frozenset(
    ("rw", "ro", "nodev", "dev", "nosuid", "suid", "noexec", "exec", "noatime", "relatime", "_netdev")
)
# One shell reads all files, as `readonly` in the first of them must hold for the others.
READ = """
read_file() { if [ -f "$1" ]; then cd "$(dirname "$1")" && . "$1"; echo "@@fake $1"; set; fi; }
repository() { [ -z "$CVMFS_CONFIG_REPOSITORY" ] || [ "$CVMFS_CONFIG_REPOSITORY" = "$CVMFS_FQRN" ] ||
  read_file "/cvmfs/$CVMFS_CONFIG_REPOSITORY/etc/cvmfs/$1"; }
domain=${CVMFS_FQRN#*.}
read_file /etc/cvmfs/default.conf
for file in /etc/cvmfs/default.d/*.conf; do read_file "$file"; done
repository default.conf
read_file /etc/cvmfs/default.local
if [ -n "$CVMFS_FQRN" ]; then
  repository "domain.d/$domain.conf"
  read_file "/etc/cvmfs/domain.d/$domain.conf"
  read_file "/etc/cvmfs/domain.d/$domain.local"
  repository "config.d/$CVMFS_FQRN.conf"
  read_file "/etc/cvmfs/config.d/$CVMFS_FQRN.conf"
  read_file "/etc/cvmfs/config.d/$CVMFS_FQRN.local"
fi
"""


def fail(status: int, words: str) -> NoReturn:
    print(words, file=sys.stderr)
    raise SystemExit(status)


def configuration(fqrn: str = "") -> dict[str, tuple[str, str]]:
    """Return parameters with their values and the files that they are from."""
    done = subprocess.run(
        ["/bin/sh", "-c", READ],
        env={"PATH": os.defpath, "CVMFS_FQRN": fqrn},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        fail(1, f"Failed to read CernVM-FS configuration: {done.stderr.strip()}")
    found: dict[str, tuple[str, str]] = {}
    file = ""
    for line in done.stdout.splitlines():
        name, separator, value = line.partition("=")
        if line.startswith(MARK):
            file = line.removeprefix(MARK)
        elif separator and name.startswith("CVMFS_") and name != "CVMFS_FQRN":
            words = " ".join(shlex.split(value))
            words = words.replace("@fqrn@", fqrn).replace("@org@", fqrn.partition(".")[0])
            if words and found.get(name, ("", ""))[0] != words:
                found[name] = (words, file)
    return found


def values(fqrn: str = "") -> dict[str, str]:
    return {name: value for name, (value, _file) in configuration(fqrn).items()}


def dump(parameters: dict[str, tuple[str, str]]) -> str:
    lines = [f"{name}={shlex.quote(value)}    # from {file}\n" for name, (value, file) in parameters.items()]
    return "".join(sorted(lines))


def full_name(repository: str) -> str:
    if "." in repository:
        return repository
    domain = values().get("CVMFS_DEFAULT_DOMAIN")
    return f"{repository}.{domain}" if domain else fail(1, "CVMFS_DEFAULT_DOMAIN missing")


def is_on(value: str | None) -> bool:
    return str(value).lower() in ("yes", "on", "1", "true")


def mounts() -> dict[str, str]:
    """Return the source of every mount by its mount point."""
    lines = (line.split() for line in Path("/proc/self/mountinfo").read_text().splitlines())
    return {fields[4]: fields[fields.index("-") + 2] for fields in lines}


def state_file(fqrn: str) -> Path:
    return RUN / f"fake.{fqrn}.json"


def running(fqrn: str) -> dict[str, Any] | None:
    """Return what is known of the client that serves a repository; None when there is none."""
    try:
        state: dict[str, Any] = json.loads(state_file(fqrn).read_text())
        command = Path(f"/proc/{state['pid']}/cmdline").read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return None
    return state if b"squashfuse" in command else None


def key_hashes(parameters: dict[str, str]) -> set[str]:
    folder = parameters.get("CVMFS_KEYS_DIR", "")
    files = sorted(Path(folder).glob("*.pub")) if folder else []
    files = files or [Path(path) for path in parameters.get("CVMFS_PUBLIC_KEY", "").split(":") if path]
    return {hashlib.sha256(file.read_bytes()).hexdigest() for file in files if file.is_file()}


def fetch(parameters: dict[str, str], name: str) -> tuple[bytes, str]:
    """Return a file of the repository and the proxy that it came through, trying one after another."""
    problems = []
    for url in parameters.get("CVMFS_SERVER_URL", "").split(";"):
        for proxy in parameters["CVMFS_HTTP_PROXY"].replace("|", ";").split(";"):
            chosen = {} if proxy == "DIRECT" else {"http": proxy}
            opener = urllib.request.build_opener(urllib.request.ProxyHandler(chosen))
            try:
                with opener.open(f"{url}/{name}", timeout=float(parameters["CVMFS_TIMEOUT"])) as answer:
                    return answer.read(), proxy
            except (OSError, ValueError) as error:
                problems.append(f"{url} through {proxy}: {error}")
    raise urllib.error.URLError("; ".join(problems))


def load(fqrn: str, parameters: dict[str, str]) -> tuple[Path, dict[str, Any], str]:
    """Return the image of a repository in the cache, what was published with it, and the proxy in use."""
    try:
        text, proxy = fetch(parameters, ".cvmfspublished")
        published: dict[str, Any] = json.loads(text)
        content, _proxy = fetch(parameters, "content.squashfs")
    except urllib.error.URLError as error:
        fail(32, f"CernVM-FS: file catalog failure (16): {error.reason}")
    if published["key"] not in key_hashes(parameters):
        fail(32, f"CernVM-FS: signature verification failure (15): no key of {fqrn} in place")
    image = workspace(fqrn, parameters) / f"{fqrn}.squashfs"
    image.write_bytes(content)
    return image, published, proxy


def workspace(fqrn: str, parameters: dict[str, str]) -> Path:
    base = Path(parameters["CVMFS_CACHE_BASE"])
    return base / ("shared" if is_on(parameters.get("CVMFS_SHARED_CACHE")) else fqrn)


def mount(words: list[str]) -> None:
    options: list[str] = []
    operands = []
    while words:
        word = words.pop(0)
        if word == "-o":
            options += words.pop(0).split(",")
        elif not word.startswith("-"):
            operands.append(word)
    if len(operands) != 2:
        fail(1, "Mandatory arguments: repository name, mountpoint")
    fqrn, point = full_name(operands[0].rpartition("/")[2]), operands[1]
    parameters = values(fqrn)
    if is_on(parameters.get("CVMFS_STRICT_MOUNT")):
        listed = parameters.get("CVMFS_REPOSITORIES", "").split(",")
        if fqrn not in (*listed, parameters.get("CVMFS_CONFIG_REPOSITORY")):
            fail(1, f"Not allowed to mount {fqrn}, add it to CVMFS_REPOSITORIES")
    if not parameters.get("CVMFS_HTTP_PROXY"):
        fail(1, "CVMFS_HTTP_PROXY required")
    try:
        account = pwd.getpwnam(parameters["CVMFS_USER"])
    except KeyError:
        fail(1, "Failed to find user cvmfs in passwd database")
    state = running(fqrn)
    if state and state["mountpoint"] in mounts():
        fail(1, f"Repository {fqrn} is already mounted on {state['mountpoint']}")
    folder = workspace(fqrn, parameters)
    for made in (folder, RUN):
        made.mkdir(mode=0o755, parents=True, exist_ok=True)
        os.chown(made, account.pw_uid, account.pw_gid)
    unknown = [
        one for one in options if one and one not in MOUNT_OPTIONS and not one.startswith(("x-", "comment="))
    ]
    if unknown:
        fail(32, f"fuse: unknown option(s): `-o {','.join(unknown)}'")
    if not Path(point).is_dir():
        fail(32, f"Moint point {point} does not exist")
    image, published, proxy = load(fqrn, parameters)
    os.chown(point, account.pw_uid, account.pw_gid)
    # It goes into the background once it has mounted; until then it has to be in the process group of autofs,
    # which would otherwise make it wait for the mount that it is about to make.
    words = ["squashfuse", "-o", "fsname=cvmfs2,allow_other,ro,nosuid,nodev", str(image), point]
    if subprocess.run(words, stdin=subprocess.DEVNULL, check=False).returncode != 0:
        fail(32, "CernVM-FS: failed to mount (4)")
    remember(fqrn, client_of(words), point, published["revision"], proxy, 0)
    print(f"CernVM-FS: mounted cvmfs on {point}")


def client_of(words: list[str]) -> int:
    """Return the process that serves a mount."""
    wanted = "\0".join(words).encode()
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if (process / "cmdline").read_bytes().rstrip(b"\0") == wanted:
                return int(process.name)
        except OSError:  # ended meanwhile
            continue
    fail(32, "CernVM-FS: failed to mount (4)")


def remember(fqrn: str, pid: int, point: str, revision: int, proxy: str, reloads: int) -> None:
    state = {
        "pid": pid,
        "mountpoint": point,
        "revision": revision,
        "proxy": proxy,
        "reloads": reloads,
        "parameters": dump(configuration(fqrn)),
    }
    state_file(fqrn).write_text(json.dumps(state))


def talk(words: list[str]) -> None:
    if words[:1] != ["-i"] or len(words) < 3:
        fail(1, "Usage: cvmfs_talk -i instance command")
    fqrn, question = full_name(words[1]), " ".join(words[2:])
    state = running(fqrn)
    if state is None:
        print(f"Seems like CernVM-FS is not running in {workspace(fqrn, values(fqrn))}")
        raise SystemExit(1)
    # A client that hangs does not answer its socket either.
    while " T (" in "".join(Path(f"/proc/{state['pid']}/status").read_text().replace("\t", " ").splitlines()):
        time.sleep(1)
    size = sum(file.stat().st_size for file in workspace(fqrn, values(fqrn)).iterdir() if file.is_file())
    groups = values(fqrn)["CVMFS_HTTP_PROXY"].split(";")
    chain = "".join(f"[{number}] {group.replace('|', ', ')}\n" for number, group in enumerate(groups))
    active = [number for number, group in enumerate(groups) if state["proxy"] in group.split("|")]
    answers = {
        "revision": f"{state['revision']}\n",
        "pid": f"{state['pid']}\n",
        "mountpoint": f"{state['mountpoint']}\n",
        "parameters": state["parameters"],
        "cache size": f"Current cache size is {size >> 20}MB ({size} Bytes), pinned: 0MB (0 Bytes)\n",
        "proxy info": f"Load-balance groups:\n{chain}Active proxy: [{(active or [0])[0]}] {state['proxy']}\n",
    }
    if question not in answers:
        fail(1, f"What do you want from me? {question}")
    sys.stdout.write(answers[question])


def setup(words: list[str]) -> int:
    if set(words) - {"nouser", "nocfgmod", "nostart", "noautofs"}:
        print(f"Bad option: {words[0]}")
        return 1
    Path("/cvmfs").mkdir(exist_ok=True)
    Path("/var/lib/cvmfs").mkdir(exist_ok=True)
    if "nouser" not in words:
        add_user()
        shutil.chown("/var/lib/cvmfs", "cvmfs", "cvmfs")
    if not {"noautofs", "nocfgmod"} & set(words) and not AUTOFS_MAP.exists():
        AUTOFS_MAP.write_text("# automatically generated by CernVM-FS\n/cvmfs /etc/auto.cvmfs\n")
        subprocess.run(["systemctl", "reload", "-q", "autofs"], check=False)
    if not {"noautofs", "nostart"} & set(words):
        subprocess.run(["systemctl", "start", "-q", "autofs"], check=True)
        subprocess.run(["systemctl", "enable", "-q", "autofs"], check=True)
    return 0


def add_user() -> None:
    try:
        pwd.getpwnam("cvmfs")
    except KeyError:
        words = ["useradd", "-r", "-U", "-d", "/var/lib/cvmfs", "-s", "/sbin/nologin", "cvmfs"]
        subprocess.run(words, check=True)


def check_setup() -> int:
    errors, warnings = [], []
    if not AUTOFS_MAP.is_file():
        warnings.append("CernVM-FS map is not referenced from autofs maps (/etc/auto.master)")
    try:
        pwd.getpwnam("cvmfs")
    except KeyError:
        errors.append("user cvmfs does not exist")
    if subprocess.run(["systemctl", "-q", "is-active", "autofs"], check=False).returncode != 0:
        warnings.append("autofs service is not running")
    late = [ETC / "default.local", *ETC.glob("domain.d/*.*"), *ETC.glob("config.d/*.*")]
    for file in late:
        if file.is_file() and any(
            line.startswith("CVMFS_CONFIG_REPOSITORY=") for line in file.read_text().splitlines()
        ):
            errors.append(
                "CVMFS_CONFIG_REPOSITORY can only be set in /etc/cvmfs/default.conf and"
                f" /etc/cvmfs/default.d/*.conf (not in {file})"
            )
    for fqrn in values().get("CVMFS_REPOSITORIES", "").split(","):
        if fqrn:
            check_repository(fqrn, errors, warnings)
    print(
        "\n".join([*(f"Error: {one}" for one in errors), *(f"Warning: {one}" for one in warnings)] or ["OK"])
    )
    return min(len(errors), 255)


def check_repository(fqrn: str, errors: list[str], warnings: list[str]) -> None:
    parameters = values(fqrn)
    errors += [
        f"required parameter {name} undefined for {fqrn}"
        for name in REQUIRED.split()
        if not parameters.get(name)
    ]
    errors += [
        f"invalid value for {name} (valid values: yes/no) for {fqrn}"
        for name in SWITCHES.split()
        if parameters.get(name, "yes").lower() not in ("yes", "no", "on", "off", "1", "0")
    ]
    if parameters.get("CVMFS_ALIEN_CACHE"):
        if is_on(parameters.get("CVMFS_SHARED_CACHE")):
            errors.append(f"alien cache and shared cache are mutually exclusive ({fqrn})")
        if int(parameters.get("CVMFS_QUOTA_LIMIT", "0")) >= 0:
            errors.append(f"alien cache and managed cache quota are mutually exclusive ({fqrn})")
    if not key_hashes(parameters):
        errors.append(f"no public keys in {parameters.get('CVMFS_KEYS_DIR')}")
    for proxy in parameters.get("CVMFS_HTTP_PROXY", "").replace("|", ";").split(";"):
        if proxy not in ("", "DIRECT", "auto") and not proxy.startswith("http"):
            warnings.append(f"{proxy} does not start with http(s)://")


def show(words: list[str]) -> int:
    fqrn = full_name(words[-1])
    print(f"CVMFS_REPOSITORY_NAME={fqrn}")
    sys.stdout.write(dump(configuration(fqrn)))
    return 0


def probe(words: list[str]) -> int:
    status = 0
    for name in words or values().get("CVMFS_REPOSITORIES", "").split(","):
        path = f"/cvmfs/{full_name(name)}"
        print(f"Probing {path}... ", end="", flush=True)
        subprocess.run(["ls", path], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
        done = subprocess.run(["df", "-P", path], capture_output=True, text=True, check=False)
        good = any(line.startswith("cvmfs2") for line in done.stdout.splitlines())
        print("OK" if good else "Failed!")
        status = status if good else 1
    return status


def reload(words: list[str]) -> int:
    """Read the files anew; the process that serves the repository, and the mount, stay."""
    status = 0
    names = words or [file.name[len("fake.") : -len(".json")] for file in RUN.glob("fake.*.json")]
    for name in names:
        fqrn = full_name(name)
        state = running(fqrn)
        if state is None:
            print(f"Seems like CernVM-FS is not running for {fqrn}")
            status = 1
            continue
        _image, published, proxy = load(fqrn, values(fqrn))
        remember(fqrn, state["pid"], state["mountpoint"], published["revision"], proxy, state["reloads"] + 1)
    return status


def configure(words: list[str]) -> int:
    command, rest = (words or [""])[0], words[1:]
    if command == "setup":
        return setup(rest)
    if command == "chksetup":
        return check_setup()
    if command == "showconfig":
        return show(rest)
    if command == "probe":
        return probe(rest)
    if command == "reload":
        return reload(rest)
    print("Usage: cvmfs_config setup|chksetup|showconfig|probe|reload")
    return 1


def cvmfs2(words: list[str]) -> int:
    """Make the folders of an alien cache."""
    if words[:1] != ["__MK_ALIEN_CACHE__"] or len(words) != 4:
        return 1
    folder, owner = Path(words[1]), (int(words[2]), int(words[3]))
    for made in (folder, *(folder / f"{number:02x}" for number in range(256)), folder / "txn"):
        made.mkdir(mode=0o770, parents=True, exist_ok=True)
        os.chown(made, *owner)
    return 0


def control(words: list[str]) -> int:
    """Stop the client of a repository or let it go on: not of the real client, for tests only."""
    what, fqrn = words
    state = running(fqrn)
    if state is None:
        return 1
    os.kill(state["pid"], {"hang": signal.SIGSTOP, "resume": signal.SIGCONT}[what])
    return 0


def main() -> int:
    name = Path(sys.argv[0]).name
    with LOG.open("a") as log:
        log.write(json.dumps([name, *sys.argv[1:]]) + "\n")
    if name == "mount.cvmfs":
        mount(sys.argv[1:])
    elif name == "cvmfs_talk":
        talk(sys.argv[1:])
    elif name == "cvmfs_config":
        return configure(sys.argv[1:])
    elif name == "cvmfs2":
        return cvmfs2(sys.argv[1:])
    else:
        return control(sys.argv[1:])
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
