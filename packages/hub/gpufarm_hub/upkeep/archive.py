# SPDX-License-Identifier: GPL-3.0-or-later
"""Archives of the hub: a gzipped tar file whose first member, ``manifest.json``, says what must be in it."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import re
import tarfile
import zlib
from datetime import datetime
from typing import Any

FORMAT = 1
MANIFEST = "manifest.json"
MAKER = "gpufarm_hub.backup"
# A part and a plain name, so that nothing leads out of the folders.
NAME = re.compile(r"[a-z]+/[A-Za-z0-9_-][A-Za-z0-9_.-]*")


class ArchiveError(Exception):
    """An archive that must not be restored; the text says why."""


def pack(files: dict[str, bytes], hub: str, release: str, now: datetime) -> bytes:
    """Return an archive.

    Args:
        files: contents by names such as ``state/leases.json``.
        hub: address of the hub that they belong to.
        release: JupyterHub's version, such as ``6.1.1``.
        now: the time.

    Raises:
        ValueError: a name is none.
    """
    for name in files:
        if not NAME.fullmatch(name):
            raise ValueError(f"{name!r} cannot be in an archive")
    manifest = {
        "made_by": MAKER,
        "format": FORMAT,
        "hub": hub,
        "release": release,
        "time": now.isoformat(timespec="seconds"),
        "files": {name: hashlib.sha256(content).hexdigest() for name, content in files.items()},
    }
    members = {MANIFEST: json.dumps(manifest, indent=1).encode(), **files}
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz", format=tarfile.USTAR_FORMAT) as tar:
        for name, content in members.items():
            member = tarfile.TarInfo(name)
            member.size, member.mode, member.mtime = len(content), 0o600, int(now.timestamp())
            tar.addfile(member, io.BytesIO(content))
    return packed.getvalue()


def unpack(packed: bytes, hub: str, release: str) -> dict[str, bytes]:
    """Return what `pack` was given.

    Args:
        packed: the archive.
        hub: address of the hub that it must belong to.
        release: JupyterHub's version here; an older hub cannot read the database of a newer one.

    Raises:
        ArchiveError: damaged, not made by `pack`, of another hub, or of a newer one.
    """
    try:
        # As a whole first: tarfile stops reading before gzip's own checksum, the only one that covers names.
        plain = gzip.decompress(packed)
        with tarfile.open(fileobj=io.BytesIO(plain), mode="r:") as tar:
            members = {member.name: _read(tar, member) for member in tar}
    except (tarfile.TarError, gzip.BadGzipFile, zlib.error, EOFError) as error:
        raise ArchiveError(f"it is damaged, or no archive ({error})") from error
    manifest = _manifest(members.pop(MANIFEST, b""))
    if manifest["hub"] != hub:
        raise ArchiveError(f"it belongs to {manifest['hub']}, and this is {hub}")
    if _numbers(manifest["release"]) > _numbers(release):
        raise ArchiveError(
            f"it is of JupyterHub {manifest['release']}, and {release} is installed; upgrade first"
        )
    sums = {name: hashlib.sha256(content).hexdigest() for name, content in members.items()}
    if sums != manifest["files"]:
        wrong = sorted(name for name, _sum in sums.items() ^ manifest["files"].items())
        raise ArchiveError(f"{wrong[0]} is not as it was when the archive was made")
    return members


def _read(tar: tarfile.TarFile, member: tarfile.TarInfo) -> bytes:
    if member.name != MANIFEST and not NAME.fullmatch(member.name):
        raise ArchiveError(f"it holds {member.name!r}, which leads elsewhere")
    stream = tar.extractfile(member) if member.isreg() else None
    if stream is None:
        raise ArchiveError(f"it holds {member.name!r}, which is no plain file")
    return stream.read()


def _manifest(content: bytes) -> dict[str, Any]:
    try:
        manifest = json.loads(content)
    except ValueError:
        manifest = None
    expected = {"made_by", "format", "hub", "release", "time", "files"}
    if not isinstance(manifest, dict) or manifest.get("made_by") != MAKER or set(manifest) != expected:
        raise ArchiveError("it was not made by this hub's backup")
    if manifest.get("format") != FORMAT:
        raise ArchiveError(f"its format is {manifest.get('format')}, and only {FORMAT} is known here")
    return manifest


def _numbers(release: str) -> list[int]:
    return [int(number) for number in re.findall(r"\d+", release)]
