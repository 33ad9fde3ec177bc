"""An imagined host that remembers what modules have made on it: files, units, accounts and packages."""

from __future__ import annotations

import base64
import fnmatch
import itertools
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Any

from ansible_collections.gpufarm.cluster.plugins.module_utils._host.io.programs import PROGRAMS
from ansible_collections.gpufarm.cluster.plugins.module_utils._record.decide import found_beside
from ansible_collections.gpufarm.cluster.plugins.module_utils._record.entry import Entry

from harness.recording import Answer, Call
from harness.stubs import ALL_IS_WELL, LUSTRE_MACHINE, SECRET

# Programs that find changes since a service started: find, and the hub's own program.
NEWER = {"-newer", "-newercm", "-newermt", "gpufarm_hub.upkeep.fingerprint"}
# Units that come with packages of other names, and what these names begin with.
FROM_PACKAGES = {
    "autofs.service": "cvmfs",
    "docker.service": "docker.io",
    "grafana-server.service": "grafana",
    "lnet.service": "lustre-",
    "nfs-server.service": "nfs-kernel-server",
    "nvidia-dcgm.service": "datacenter-gpu-manager-",
    "nvidia-dcgm-exporter.service": "datacenter-gpu-manager-exporter",
    "nvidia-persistenced.service": "nvidia-driver",
    "opensm.service": "opensm",
}
# Folders below /run of units of packages.
RUNNING = {"mysqld": "mariadb.service"}
# Modules that DKMS builds for a kernel.
BUILT = "/lib/modules/{}/updates/dkms/lustre.ko"
AUTOFS_MAP = "/etc/auto.master.d/cvmfs.autofs"


@dataclass
class File:
    """A file or folder; ``time`` counts the changes of the host."""

    kind: str
    content: str = ""
    mode: str = ""
    owner: str = "root"
    time: int = 0


@dataclass
class Unit:
    """A unit of systemd that a role has told something; ``time`` is that of its last start."""

    enabled: bool = False
    running: bool = False
    time: int = 0


@dataclass
class Host:
    """State of a host. A new host has no file that a role could have made.

    Attributes:
        files: by path.
        units: by name, with its kind.
        accounts: users and groups, as ``user ada``.
        packages: the version of each that was asked for, by its name.
        held: packages that apt is not to change.
        unread: units that have changed since systemd last read all.
        made: what each role has recorded.
        before: settings that each role has found at its first claim.
        projects: file and environment of each Compose project that runs.
        unchanged: whether all is as recorded, so that roles that depend on other machines leave steps out.
    """

    files: dict[str, File] = field(default_factory=dict)
    units: dict[str, Unit] = field(default_factory=dict)
    accounts: set[str] = field(default_factory=set)
    packages: dict[str, str] = field(default_factory=dict)
    held: set[str] = field(default_factory=set)
    unread: set[str] = field(default_factory=set)
    made: dict[str, Any] = field(default_factory=dict)
    before: dict[str, dict[str, str]] = field(default_factory=dict)
    projects: dict[str, Any] = field(default_factory=dict)
    unchanged: bool = False
    now: int = 0

    def answers(self, known: Mapping[str, Answer]) -> dict[str, Answer]:
        """Return what modules answer on this host, beside what a case knows of them."""
        modules = {
            "ansible.builtin.apt": self._apt,
            "ansible.builtin.assemble": self._copy,
            "ansible.builtin.blockinfile": self._block,
            "ansible.builtin.command": self._command,
            "ansible.builtin.copy": self._copy,
            "ansible.builtin.dpkg_selections": self._hold,
            "ansible.builtin.file": self._file,
            "ansible.builtin.find": self._find,
            "ansible.builtin.get_url": self._copy,
            "ansible.builtin.getent": self._getent,
            "ansible.builtin.group": self._account,
            "ansible.builtin.lineinfile": self._line,
            "ansible.builtin.slurp": self._slurp,
            "ansible.builtin.stat": self._stat,
            "ansible.builtin.systemd_service": self._unit,
            "ansible.builtin.template": self._copy,
            "ansible.builtin.user": self._account,
            "gpufarm.cluster.compose_project": self._compose_project,
            "gpufarm.cluster.environment_modules": self._environment_modules,
            "gpufarm.cluster.gpu_settings": self._gpu_settings,
            "gpufarm.cluster.host_program": self._host_program,
            "gpufarm.cluster.lustre_info": self._lustre_info,
            "gpufarm.cluster.network_configuration": self._network_configuration,
            "gpufarm.cluster.notebook_environments": self._notebook_environments,
            "gpufarm.cluster.notebook_environments_info": self._notebook_environments_info,
            "gpufarm.cluster.path_info": self._path_info,
            "gpufarm.cluster.paths": self._paths,
            "gpufarm.cluster.python_environment": self._python_environment,
            "gpufarm.cluster.role_record": self._record,
            "gpufarm.cluster.secret_files": self._secret_files,
            "gpufarm.cluster.text_files": self._text_files,
        }
        return {
            name: _beside({**ALL_IS_WELL, **known}.get(name, {}), answer) for name, answer in modules.items()
        }

    def units_written(self) -> Iterator[tuple[str, str]]:
        """Return the names and texts of the units that are files in /etc."""
        for path, file in self.files.items():
            if re.fullmatch(r"/etc/systemd/system/[^/]+\.(service|socket|timer|mount|target)", path):
                yield path.rpartition("/")[2], file.content

    def alter(self, path: str) -> None:
        """Do what somebody does who edits a file."""
        self.now += 1
        self.files[path].content += "# edited\n"
        self.files[path].time = self.now

    def _write(self, call: Call, path: str, wanted: File) -> bool:
        """Have a file; return whether that changes something."""
        before = self.files.get(path)
        wanted.time = before.time if before else 0
        if before == wanted:
            return False
        if not call.check_mode:
            self.now += 1
            wanted.time = self.now
            self.files[path] = wanted
            self.unread |= {path} if path.startswith("/etc/systemd/system/") else set()
        return True

    def _remove(self, call: Call, path: str) -> bool:
        gone = [one for one in self.files if one == path or one.startswith(f"{path}/")]
        for one in gone if not call.check_mode else []:
            del self.files[one]
            self.unread |= {one} if one.startswith("/etc/systemd/system/") else set()
        return bool(gone)

    def _text_files(self, call: Call) -> Mapping[str, Any]:
        folder, mode = str(call.args["folder"]).rstrip("/"), str(call.args.get("mode", "0644"))
        owner = call.args.get("owner", "root")
        changed = [
            name
            for name, content in call.args["files"].items()
            if self._write(call, f"{folder}/{name}", File("file", content, mode, owner))
        ]
        wanted = {f"{folder}/{name}" for name in call.args["files"]}
        others = [
            path
            for path in self._below([folder], call.args.get("remove_others", [])[:])
            if call.args.get("remove_others") and path not in wanted
        ]
        gone = [path for path in others if self._remove(call, path)]
        return {"changed": bool(changed or gone), "changed_files": sorted([*changed, *gone])}

    def _secret_files(self, call: Call) -> Mapping[str, Any]:
        """Secrets are made once; another file in the place of one is another secret."""
        if call.args.get("create") is False:  # those of another host
            return {}
        folder = call.args["folder"]
        missing = [name for name in call.args.get("names", []) if f"{folder}/{name}" not in self.files]
        for name in missing:
            self._write(call, f"{folder}/{name}", File("file", f"{SECRET}{name}", "0600"))
        return {"changed": bool(missing)}

    def _copy(self, call: Call) -> Mapping[str, Any]:
        args = call.args
        content = str(args.get("content", args.get("src", args.get("url"))))
        file = File("file", content, str(args.get("mode", "")), args.get("owner", "root"))
        return {"changed": self._write(call, args["dest"], file)}

    def _block(self, call: Call) -> Mapping[str, Any]:
        """A file that a package brings has one line; the block is put before it or taken away."""
        args = call.args
        if args["path"] not in self.files and not args.get("create"):
            return {"failed": True, "msg": f"Path {args['path']} does not exist !"}
        if args.get("state") == "absent":
            return {"changed": self._remove(call, args["path"])}
        return {
            "changed": self._write(call, args["path"], File("file", args["block"], args.get("mode", "0644")))
        }

    def _line(self, call: Call) -> Mapping[str, Any]:
        """The last line that matches is replaced, in files of packages that a test has planted."""
        args, path = call.args, call.args["path"]
        if path not in self.files:
            return {}
        lines, absent = self._text(path).splitlines(), args.get("state") == "absent"
        matching = [number for number, line in enumerate(lines) if re.search(args["regexp"], line)]
        number = matching[-1] if matching else len(lines)
        kept = [line for line in lines if not re.search(args["regexp"], line)]
        after = kept if absent else [*lines[:number], args["line"], *lines[number + 1 :]]
        text = "".join(f"{line}\n" for line in after)
        return {"changed": self._write(call, path, File("file", text, self.files[path].mode))}

    def _environment_modules(self, call: Call) -> Mapping[str, Any]:
        """A tree for this host only, so what is not wanted any more goes."""
        folder, wanted = call.args["folder"], call.args.get("files", {})
        mark = f"{folder}/.gpufarm/{call.args['machine']}"
        if call.args.get("state") == "absent":
            return {"changed": self._remove(call, folder), "users": []}
        old = [path for path in self._below([folder], []) if path != mark]
        changed = [self._remove(call, path) for path in old if path.removeprefix(f"{folder}/") not in wanted]
        changed += [
            self._write(call, f"{folder}/{name}", File("file", text, "0644")) for name, text in wanted.items()
        ]
        changed.append(self._write(call, mark, File("file", "", "0644")))
        return {"changed": any(changed), "users": []}

    def _file(self, call: Call) -> Mapping[str, Any]:
        args = call.args
        path = args.get("path", args.get("dest"))
        if args.get("state") == "absent":
            return {"changed": self._remove(call, path)}
        if args.get("state", "file") == "file" and path not in self.files:
            return {"failed": True, "msg": f"file ({path}) is absent, cannot continue"}
        before = self.files.get(path, File(args.get("state", "file")))
        kind = args.get("state", before.kind)
        mode, owner = str(args.get("mode", before.mode)), args.get("owner", before.owner)
        return {"changed": self._write(call, path, File(kind, before.content, mode, owner))}

    def _paths(self, call: Call) -> Mapping[str, Any]:
        changed = []
        for one in call.args["paths"]:
            if one.get("state", "directory") == "directory":
                folder = File("directory", "", str(one.get("mode", "")), one.get("owner", "root"))
                changed.append(self._write(call, one["path"], folder))
            elif one["state"] == "absent" or not self._below([one["path"]], []):
                changed.append(self._remove(call, one["path"]))
        return {"changed": any(changed)}

    def _python_environment(self, call: Call) -> Mapping[str, Any]:
        path = call.args["path"]
        if call.args.get("state") == "absent":
            return {"changed": self._remove(call, path)}
        self._write(call, f"{path}/bin/python", File("file", "", "0755"))
        for project in call.args.get("projects", []):
            for name, text in project["files"].items():
                self._write(call, f"{path}/lib/{project['name']}/{name}", File("file", text, "0644"))
        return {"changed": self._write(call, path, File("directory", "", "0755"))}

    def _notebook_environments(self, call: Call) -> Mapping[str, Any]:
        folder = call.args["folder"]
        old = [one for one in self._versions(folder) if one not in call.args["keep"]]
        return {"changed": len([one for one in old if self._remove(call, f"{folder}/{one}")]) > 0, "kept": {}}

    def _notebook_environments_info(self, call: Call) -> Mapping[str, Any]:
        versions = [one.split("/") for one in self._versions(call.args["folder"])]
        return {
            **ALL_IS_WELL["gpufarm.cluster.notebook_environments_info"],
            "versions": [
                {"name": name, "version": version, "complete": True, "users": []}
                for name, version in versions
            ],
        }

    def _versions(self, folder: str) -> list[str]:
        there = [path for path in self.files if re.fullmatch(rf"{folder}/[^/]+/[^/]+/bin/python", path)]
        return [path.removeprefix(f"{folder}/").removesuffix("/bin/python") for path in there]

    def _record(self, call: Call) -> Mapping[str, Any]:
        """Keep what a role made; its steps are needed in any case, as if the operator had asked for that."""
        role, step = call.args["role"], call.args["step"]
        before = self.before.get(role, {})
        if step == "claim":
            first = role not in self.before and not any(
                self._is_there(path) for path in call.args.get("made", {}).get("paths", [])
            )
            found = call.args.get("before", {}) if first or call.args.get("divided") else {}
            beside = {
                name: [{role: Entry(before=self.before[role])} for role in roles if role in self.before]
                for name, roles in call.args.get("beside", {}).items()
            }
            before = {**found_beside(found, beside), **before}
            if not call.check_mode and call.args.get("owns", True):
                self.before[role] = before
            return {"before": before}
        if step == "forget" and not call.check_mode:
            self.made.pop(role, None)
            self.before.pop(role, None)
        if step == "record" and not call.check_mode:
            self.made[role] = call.args.get("made", {})
        if step != "compare":
            return {}
        made = any(self.made.get(role, {}).values())
        run, unchanged = call.args["state"], self.unchanged
        return {"run": run, "unchanged": unchanged, "made": made, "before": before, "done": {}}

    def _compose_project(self, call: Call) -> Mapping[str, Any]:
        """Run the containers of a file with an environment."""
        file = self.files.get(call.args["file"])
        wanted = (
            None if call.args.get("state") == "absent" else (file and file.content, call.args["secret_env"])
        )
        changed = self.projects.get(call.args["name"]) != wanted
        if not call.check_mode:
            self.projects[call.args["name"]] = wanted
        return {"changed": changed, "containers": {}}

    def _gpu_settings(self, call: Call) -> Mapping[str, Any]:
        """Its file remembers what was asked for, while anything is."""
        path, wanted = "/etc/gpufarm/settings.json", call.args["settings"]
        if not wanted:
            return {"changed": self._remove(call, path)}
        return {"changed": self._write(call, path, File("file", str(wanted), "0644"))}

    def _network_configuration(self, call: Call) -> Mapping[str, Any]:
        """Others than the files of the role are not there; the state is kept while its program may change."""
        folder, state = "/etc/systemd/network", "/var/lib/gpufarm/network/mtu.json"
        wanted = {f"{folder}/{name}": text for name, text in call.args["files"].items()}
        gone = [path for path in self._below([folder], []) if path not in wanted and self._remove(call, path)]
        changed = [self._write(call, path, File("file", text, "0644")) for path, text in wanted.items()]
        if any(changed) or gone:
            self._write(call, state, File("file", "{}", "0600"))
        return {"changed": any(changed) or bool(gone)}

    def _host_program(self, call: Call) -> Mapping[str, Any]:
        path, package = f"/opt/gpufarm/bin/{call.args['name']}", "/opt/gpufarm/lib/current"
        if call.args.get("state") != "absent":
            changed = [
                self._write(call, package, File("link")),
                self._write(call, path, File("file", f"#!{PROGRAMS[call.args['name']][0]} -I\n", "0755")),
            ]
            return {"changed": any(changed), "path": path}
        changed = [self._remove(call, path)]
        if not self._below(["/opt/gpufarm/bin"], []):
            changed.append(self._remove(call, package))
        return {"changed": any(changed), "path": path}

    def _lustre_info(self, call: Call) -> Mapping[str, Any]:
        """Its programs come with packages, and its configuration tells which role has written it."""
        written = re.search(r"gpufarm\.cluster\.(\w+)", self._text("/etc/lnet.conf"))
        lnet = {**LUSTRE_MACHINE["lnet"], "written_by": written[1] if written else ""}
        kernels = LUSTRE_MACHINE["kernels"]
        if any(name.endswith("-modules-dkms") for name in self.packages):
            nothing = {"version": "", "built_for": "", "fits": False}
            kernels = [
                one if BUILT.format(one["release"]) in self.files else {**one, **nothing} for one in kernels
            ]
        installed = any(name.startswith("lustre-") for name in self.packages)
        return {"installed": installed, "kernels": kernels, "lnet": lnet}

    def _text(self, path: str) -> str:
        return self.files[path].content if path in self.files else ""

    def _path_info(self, call: Call) -> Mapping[str, Any]:
        there = {path: self._info(path) for path in call.args["paths"] if self._is_there(path)}
        return {"found": there}

    def _info(self, path: str) -> dict[str, Any]:
        file = self.files.get(path, File("directory"))
        return {
            "kind": {"directory": "folder"}.get(file.kind, file.kind),
            "mode": file.mode or "0755",
            "owner": file.owner,
            "group": "root",
            "size": len(file.content),
        }

    def _is_there(self, path: str) -> bool:
        if path.startswith("/run/") and self._since(path) is not None:
            return True
        return path in self.files or bool(self._below([path], []))

    def _stat(self, call: Call) -> Mapping[str, Any]:
        path = call.args["path"]
        if not self._is_there(path):
            return {}
        return {"stat": {"exists": True, "mtime": self.files[path].time if path in self.files else 0}}

    def _slurp(self, call: Call) -> Mapping[str, Any]:
        file = self.files.get(call.args["src"])
        return {"content": base64.b64encode(file.content.encode()).decode()} if file else {}

    def _below(self, folders: Sequence[str], patterns: Sequence[str]) -> list[str]:
        return [
            path
            for path in self.files
            if any(path.startswith(f"{folder}/") for folder in folders)
            and (not patterns or any(fnmatch.fnmatch(path.rpartition("/")[2], one) for one in patterns))
        ]

    def _find(self, call: Call) -> Mapping[str, Any]:
        args = {
            name: [value] if isinstance(value, str) else value
            for name, value in call.args.items()
            if name in ("paths", "path", "patterns", "pattern", "excludes", "contains")
        }
        found = self._below(args.get("paths", args.get("path", [])), args.get("patterns", []))
        if str(args["paths"][0]).endswith(".target.wants"):
            return {
                "files": [{"path": f"{args['paths'][0]}/{name}"} for name in self._enabled(args["patterns"])]
            }
        if not call.args.get("recurse"):
            folders = args.get("paths", args.get("path", []))
            found = [path for path in found if str(PurePosixPath(path).parent) in folders]
        found = [
            path
            for path in found
            if not any(fnmatch.fnmatch(path.rpartition("/")[2], one) for one in args.get("excludes", []))
            and all(
                re.search(one, self.files[path].content, re.MULTILINE) for one in args.get("contains", [])
            )
        ]
        return (
            {
                "files": [{"path": path, "mtime": self.files[path].time} for path in found],
                "matched": len(found),
            }
            if found
            else {}
        )

    def _enabled(self, patterns: Sequence[str]) -> list[str]:
        return [
            name
            for name, unit in self.units.items()
            if unit.enabled and any(fnmatch.fnmatch(name, one) for one in patterns)
        ]

    def unit(self, name: str) -> Unit:
        """Return a unit; of a template its first instance, as all are alike."""
        template = name.replace("@.", "@*.")
        return next((unit for one, unit in self.units.items() if fnmatch.fnmatch(one, template)), Unit())

    def _unit(self, call: Call) -> Mapping[str, Any]:
        args, changed = call.args, False
        if args.get("daemon_reload") and not call.check_mode:
            self.unread.clear()
        if not args.get("name"):
            return {}
        name = args["name"] if "." in args["name"] else f"{args['name']}.service"
        if not self.knows(name):
            return {"failed": True, "msg": f"Could not find the requested service {name}: host"}
        unit = self.units.get(name, Unit())
        after = Unit(bool(args.get("enabled", unit.enabled)), unit.running, unit.time)
        state = args.get("state")
        if self._masked(name) and state not in (None, "stopped"):
            return {"failed": True, "msg": f"Unit {name} is masked."}
        if state in ("started", "restarted", "reloaded"):
            after.running = not self._ends_at_once(name)
        elif state == "stopped":
            after.running = False
        changed = after != unit or state in ("restarted", "reloaded")
        if (state == "started" and not unit.running) or state in ("restarted", "reloaded"):
            after.time = self.now + 1
        if not call.check_mode:
            self.now += 1
            self.units[name] = after
        return {"changed": changed}

    def knows(self, unit: str) -> bool:
        """Whether systemd has a unit: a file in /etc, or one of a package; slices are made as needed."""
        begins = FROM_PACKAGES.get(unit, unit.rpartition(".")[0])
        template = re.sub("@.*[.]", "@.", unit)
        return (
            not {f"/etc/systemd/system/{unit}", f"/etc/systemd/system/{template}"}.isdisjoint(self.files)
            or unit in self.units
            or unit.endswith(".slice")
            or any(package.startswith(begins) for package in self.packages)
        )

    def _account(self, call: Call) -> Mapping[str, Any]:
        name = f"{call.action.rpartition('.')[2]} {call.args['name']}"
        wanted = call.args.get("state", "present") == "present"
        changed = wanted != (name in self.accounts)
        if not call.check_mode:
            (self.accounts.add if wanted else self.accounts.discard)(name)
        return {"changed": changed}

    def _getent(self, call: Call) -> Mapping[str, Any]:
        """Tell of an account that is asked for by its name."""
        database, name = call.args["database"], call.args.get("key")
        kind = {"passwd": "user"}.get(database, database)
        if f"{kind} {name}" in self.accounts:
            return {"accounts": {f"getent_{database}": {name: ["x", "990", "990"]}}}
        return (
            {"accounts": {f"getent_{database}": {name: None}}} if call.args.get("fail_key") is False else {}
        )

    def _apt(self, call: Call) -> Mapping[str, Any]:
        names = call.args.get("name") or []
        wanted = dict(str(one).partition("=")[::2] for one in ([names] if isinstance(names, str) else names))
        absent = call.args.get("state") == "absent"
        there = {name for name in wanted if wanted[name] in ("", self.packages.get(name))}
        there &= self.packages.keys()
        changed = wanted.keys() & self.packages.keys() if absent else wanted.keys() - there
        if changed & self.held and not call.args.get("allow_change_held_packages"):
            return {"failed": True, "msg": "E: Held packages were changed and -y was used"}
        if not call.check_mode:
            for name in changed:
                if absent:
                    del self.packages[name]
                    for path in fnmatch.filter(self.files, BUILT.format("*")) if "-dkms" in name else []:
                        del self.files[path]
                else:
                    self.packages[name] = wanted[name]
            self.held -= changed if absent else set()
        return {"changed": bool(changed)}

    def _hold(self, call: Call) -> Mapping[str, Any]:
        name = call.args["name"]
        wanted = call.args["selection"] == "hold"
        changed = wanted != (name in self.held)
        if not call.check_mode:
            (self.held.add if wanted else self.held.discard)(name)
        return {"changed": changed}

    def _command(self, call: Call) -> Mapping[str, Any]:
        """Tell what is newer than what runs, where a role asks for it; write keys and certificates."""
        words = [str(word) for word in call.args.get("argv") or str(call.args.get("_raw_params")).split()]
        folder = call.args.get("chdir", "")
        if words[:1] == ["openssl"]:
            return self._openssl(call, words, folder)
        if words[0] == "ssh-keygen" and "creates" in call.args and words[-1] not in self.files:
            self._write(call, words[-1], File("file", "a key", "0600"))
        if words[0] == "dkms":
            self._write(call, BUILT.format(words[-1]), File("file", words[2]))
        if words[:2] == ["dpkg-query", "--listfiles"]:
            return {"stdout_lines": [f"/usr/src/{words[2].removesuffix('-dkms')}-1/dkms.conf"]}
        if words[0] == "pam-auth-update":
            self._pam_auth_update(call, words)
        if "cvmfs_config" in words:
            return self._cvmfs_config(call, words[-1])
        if words[:2] == ["systemctl", "show"] and "--property=UnitFileState" in words:
            return {"stdout": "\n\n".join(map(self._show, words[4:]))}
        if words[:2] == ["apt-mark", "showhold"]:
            return {"stdout": "\n".join(sorted(self.held)), "stdout_lines": sorted(self.held)}
        if words[:2] == ["systemctl", "show"] and "--property=ActiveEnterTimestamp" in words:
            unit = self.units.get(words[-1], Unit())
            return {"stdout": str(unit.time) if unit.running else ""}
        if words[0] == "grep" and words[-1] in ("/etc/pam.d/common-auth", "/etc/pam.d/common-session"):
            return {"rc": int(words[-2] not in self._text(words[-1]))}
        if words[:2] == ["dpkg-query", "--show"]:
            patterns = [word.strip("'") for word in words[4:]]
            found = [one for one in self.packages if any(fnmatch.fnmatch(one, each) for each in patterns)]
            lines = [self._package(words[3], one) for one in found]
            return {"stdout": "\n".join(lines), "stdout_lines": lines}
        marks = [number for number, word in enumerate(words) if word in NEWER]
        if not marks:
            return {}
        mark = next(path for path in words[marks[0] + 1 :] if path != "check")
        mark = str(PurePosixPath(folder, mark))
        since = self._since(mark)
        if since is None:
            return {"rc": 1, "stderr": f"find: '{mark}': No such file or directory"}
        paths = [str(PurePosixPath(folder, word)) for word in words[1:]]
        asked = tuple(path for path in paths if path.startswith(("/etc/", "/opt/", "/usr/", "/var/")))
        newer = [path for path, file in self.files.items() if file.time > since and path.startswith(asked)]
        different = "check" in words and bool(newer)
        count = sum(1 for _ in itertools.takewhile(lambda word: not word.startswith("-"), words[1:]))
        gone = words[0] == "find" and not all(map(self._finds, paths[:count]))
        return {"rc": int(different or gone), "stdout": "\n".join(newer), "stdout_lines": newer}

    def _package(self, form: str, name: str) -> str:
        """Tell of a package that is there in the form that is asked for."""
        for word, told in {
            "${db:Status-Want}": "hold" if name in self.held else "install",
            "${db:Status-Status}": "installed",
            "${Package}": name,
            "'": "",
            "\\n": "",
        }.items():
            form = form.replace(word, told)
        return form.strip()

    def _show(self, name: str) -> str:
        """Tell of a unit; those of packages are enabled as they are installed."""
        unit = self.units.get(name, Unit(enabled=True))
        there = {True: "enabled", False: "disabled"}[unit.enabled] if self.knows(name) else ""
        there = "masked" if self._masked(name) else there
        active = "active" if unit.running and there else "inactive"
        return f"ActiveState={active}\nUnitFileState={there}"

    def _masked(self, name: str) -> bool:
        path = f"/etc/systemd/system/{name}"
        return path in self.files and self.files[path].kind == "link"

    def _finds(self, path: str) -> bool:
        """Whether a path is there, as far as roles make it."""
        return path.startswith("/usr/") or self._is_there(path)

    def _ends_at_once(self, name: str) -> bool:
        """Whether a unit does something once, after which it no longer runs."""
        text = self._text(f"/etc/systemd/system/{name}")
        return "\nType=oneshot\n" in text and "\nRemainAfterExit=yes\n" not in text

    def _pam_auth_update(self, call: Call, words: Sequence[str]) -> None:
        """Have PAM follow the last profile that is named, or no longer, as the program of Debian does."""
        name = words[words.index("--enable" if "--remove" not in words else "--remove") + 1]
        text = self._text(f"/usr/share/pam-configs/{name}")
        for kind in ("account", "session"):
            found = re.search(rf"\n{kind.capitalize()}:\n((\t.*\n)*)", text)
            path = f"/etc/pam.d/common-{kind}"
            if found and "--remove" not in words:
                self._write(call, path, File("file", found[1].replace("\t", f"{kind}\t"), "0644"))
            else:
                self._remove(call, path)

    def _cvmfs_config(self, call: Call, what: str) -> Mapping[str, Any]:
        """Have autofs mount repositories, as the program of CernVM-FS does."""
        if what == "setup":
            self._write(call, AUTOFS_MAP, File("file", "/cvmfs program:/etc/auto.cvmfs\n", "0644"))
        missing = what == "chksetup" and AUTOFS_MAP not in self.files
        return {"stdout": "Warning: autofs map is not referenced" if missing else ""}

    def _openssl(self, call: Call, words: Sequence[str], folder: str) -> Mapping[str, Any]:
        """Read and write files that stand for certificates and keys; each is another one."""
        options = dict(itertools.pairwise(words))
        paths = {name: str(PurePosixPath(folder, path)) for name, path in options.items()}
        read = [paths[name] for name in ("-in", "-CAfile") if name in paths]
        if any(path not in self.files for path in read):
            return {"rc": 1}
        if call.args.get("creates") not in self.files:
            for path in [paths[name] for name in ("-keyout", "-out") if name in paths]:
                self._write(call, path, File("file", f"{' '.join(words)} {self.now}", "0600"))
        known = self.files[read[0]].content if read else ""
        return {"stdout": known} if known.startswith("openssl") else {}

    def _since(self, mark: str) -> int | None:
        """When a file was written, or the service started that leaves a mark below /run; else None."""
        if mark.isdigit():
            return int(mark)
        if not mark.startswith("/run/"):
            return self.files[mark].time if mark in self.files else None
        folder = re.compile(rf"RuntimeDirectory=.*(?<![\w-]){re.escape(mark.split('/')[2])}(?![\w-])")
        of_package = RUNNING.get(mark.split("/")[2])
        times = [
            unit.time
            for name, unit in self.units.items()
            if unit.running
            and (
                name == of_package
                or any(
                    folder.search(file.content)
                    for path, file in self.files.items()
                    if path.startswith(f"/etc/systemd/system/{name}")
                )
            )
        ]
        return max(times, default=None)


def _beside(known: Answer, answer: Callable[[Call], Mapping[str, Any]]) -> Answer:
    """Facts of a case and of the host; paths of either exist."""

    def both(call: Call) -> Mapping[str, Any]:
        said = dict(known(call)) if callable(known) else dict(known)
        own = dict(answer(call))
        if "found" in own:
            own["found"] = {**said.get("found", {}), **own["found"]}
        for database, accounts in own.pop("accounts", {}).items():
            known_ones = said.get("ansible_facts", {}).get(database, {})
            own["ansible_facts"] = {**said.get("ansible_facts", {}), database: {**accounts, **known_ones}}
        return {**said, **own}

    return both
