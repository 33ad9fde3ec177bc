# SPDX-License-Identifier: GPL-3.0-or-later
"""Packs a template with all that it needs into a CSAR, for orchestrators that run one."""

from __future__ import annotations

import copy
import importlib.metadata
import json
import os
import subprocess
import tarfile
import tempfile
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

from gpufarm import ansible, collection, library, template
from gpufarm.document import Document
from gpufarm.errors import BadInput, GpufarmError
from gpufarm.library import Library
from gpufarm.problems import near
from gpufarm.topology import Topology

# TOSCA Simple Profile 1.3, section 6.2: the keys of TOSCA.meta, and their values for CSAR 1.1.
META = "TOSCA-Metadata/TOSCA.meta"
META_VERSIONS = {"TOSCA-Meta-File-Version": "1.1", "CSAR-Version": "1.1"}


def pack(path: Path, archive: Path, addresses: Mapping[str, str]) -> list[str]:
    """Pack a template.

    The template stands at the root of the archive, beside the folders that its imports and playbooks stand
    in: xOpera refuses paths that leave the folder of the template. The collection, which the playbooks call,
    is in the folder ``collections``, as ``ansible-galaxy collection install`` takes it.

    Args:
        path: the template.
        archive: file to write; it is replaced as a whole or not at all.
        addresses: of machines that exist, by the name of their node, for orchestrators that cannot choose.

    Returns:
        The names of the files in the archive.

    Raises:
        BadInput: the template is wrong, lies beside what it needs, or has no machine of such a name.
        GpufarmError: the collection cannot be built.
    """
    source, topology = template.read(path)
    _check(topology, addresses)
    root = _root(source, topology)
    with tempfile.TemporaryDirectory(prefix="gpufarm-") as folder:
        packed = _collection(Path(folder))
        members = {
            META: _meta(path.name),
            path.name: _template(source.template, root, addresses),
            **{str(file.relative_to(root)): file.read_bytes() for file in _needed(source, topology)},
            f"collections/{packed.name}": packed.read_bytes(),
        }
    _write(archive, members)
    return list(members)


def _check(topology: Topology, addresses: Mapping[str, str]) -> None:
    machines = [node.name for node in topology.nodes.values() if node.is_machine]
    for name in addresses:
        if name not in machines:
            raise BadInput(f"{name} is no machine of {topology.path.name}; {near(name, machines)}")


def _needed(source: Library, topology: Topology) -> list[Path]:
    """All files but the template that it and all types name: xOpera wants those of unused types too."""
    files = {document.path.resolve() for document in source.origin.values()} - {topology.path}
    bodies = [(source.template, body) for body in _nodes(source.template.data).values()]
    bodies += [(document, source.types[kind][name]) for (kind, name), document in source.origin.items()]
    for document, body in bodies:
        named = [*_playbooks(body.get("interfaces")), *_artifacts(body.get("artifacts"))]
        files |= {path for path in map(document.beside, named) if path}
    return sorted(files)


def _nodes(template: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = template["topology_template"]["node_templates"]
    return found


def _playbooks(value: Any) -> Iterator[str]:
    """The paths of playbooks anywhere in interfaces, and those of the files on which they depend."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield from item if _are_dependencies(key, item) else _playbooks(item)
    elif isinstance(value, str) and value.endswith((".yml", ".yaml")):
        yield value


def _are_dependencies(key: Any, value: Any) -> bool:
    return key == "dependencies" and isinstance(value, list)


def _artifacts(artifacts: Mapping[str, Any] | None) -> Iterator[str]:
    """The files of artifacts, among them names of images and addresses."""
    for artifact in (artifacts or {}).values():
        file = artifact.get("file") if isinstance(artifact, dict) else artifact
        if isinstance(file, str):
            yield file


def _root(source: Library, topology: Topology) -> Path:
    """The deepest folder that has everything in it."""
    folders = [topology.path.parent, *(file.parent for file in _needed(source, topology))]
    root = Path(os.path.commonpath(folders))
    if (root / topology.path.name) in _needed(source, topology):
        raise BadInput(
            f"{root / topology.path.name} and {topology.path} would be one file; rename the template"
        )
    return root


def _moved(document: Document, root: Path, name: str) -> str:
    """The path of a file, as seen from the template, once that stands at the root."""
    found = library.beside(document, name)
    return str(found.relative_to(root)) if found else name


def _template(document: Document, root: Path, addresses: Mapping[str, str]) -> bytes:
    """The template as it stands at the root."""
    data = copy.deepcopy(document.data)
    data["imports"] = [_import(document, root, entry) for entry in data.get("imports") or []]
    nodes = _nodes(data)
    for node in nodes.values():
        if "interfaces" in node:
            node["interfaces"] = _implementations(document, root, node["interfaces"])
        for name, artifact in (node.get("artifacts") or {}).items():
            node["artifacts"][name] = _import(document, root, artifact)
    for name, address in addresses.items():
        nodes[name].setdefault("attributes", {}).update(public_address=address, private_address=address)
    if not data["imports"]:
        del data["imports"]
    return yaml.safe_dump(data, sort_keys=False, width=110, allow_unicode=True).encode()


def _import(document: Document, root: Path, entry: Any) -> Any:
    if isinstance(entry, dict):
        return {key: _import(document, root, item) for key, item in entry.items()}
    return _moved(document, root, entry) if isinstance(entry, str) else entry


def _implementations(document: Document, root: Path, value: Any) -> Any:
    """Interfaces in which the playbooks are named as seen from the root."""
    if isinstance(value, dict):
        return {
            key: [_moved(document, root, name) for name in item]
            if _are_dependencies(key, item)
            else _implementations(document, root, item)
            for key, item in value.items()
        }
    if isinstance(value, str) and value.endswith((".yml", ".yaml")):
        return _moved(document, root, value)
    return value


def _meta(entry: str) -> bytes:
    lines = {
        **META_VERSIONS,
        "Created-By": f"gpufarm {importlib.metadata.version('gpufarm')}",
        "Entry-Definitions": entry,
    }
    return "".join(f"{key}: {value}\n" for key, value in lines.items()).encode()


def _collection(folder: Path) -> Path:
    """Pack the collection as ``ansible-galaxy collection install`` takes it."""
    source = collection.root()
    if source != collection.CHECKOUT:
        return _installed(source, folder)
    done = subprocess.run(
        ["ansible-galaxy", "collection", "build", "--output-path", str(folder), str(source)],
        env=os.environ | ansible.environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    found = next(folder.glob("*.tar.gz"), None)
    if done.returncode != 0 or found is None:
        raise GpufarmError(f"the collection cannot be built: {ansible.complaint(done.stderr)}")
    return found


def _installed(source: Path, folder: Path) -> Path:
    path = folder / f"gpufarm-cluster-{collection.version_in(source)}.tar.gz"
    listed = json.loads((source / "FILES.json").read_text())["files"]
    with tarfile.open(path, "w:gz") as archive:
        for name in ("MANIFEST.json", "FILES.json", *(one["name"] for one in listed if one["name"] != ".")):
            archive.add(source / name, name, recursive=False)
    return path


def _write(archive: Path, members: Mapping[str, bytes]) -> None:
    part = archive.with_name(f".{archive.name}.part")
    try:
        with zipfile.ZipFile(part, "w", zipfile.ZIP_DEFLATED) as target:
            for name, content in _sorted(members):
                target.writestr(zipfile.ZipInfo(name), content, zipfile.ZIP_DEFLATED)
        part.replace(archive)
    finally:
        part.unlink(missing_ok=True)


def _sorted(members: Mapping[str, bytes]) -> Iterator[tuple[str, bytes]]:
    """TOSCA.meta first, as archives of other tools have it."""
    yield META, members[META]
    yield from sorted((name, content) for name, content in members.items() if name != META)
