"""The bench's identity provider: OpenID Connect with INDIGO IAM's paths and claims, and users.

The program in `provider/` runs on Node.js as unit iam.service of a host; this package installs it there.
"""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json
import secrets
import shutil
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from lab.hosts import Bind
from lab.iam.certificates import ensure_certificates
from lab.iam.runtime import SOURCES, node_modules, node_program
from lab.iam.users import ensure_logins, users_of
from lab.system import write_atomically

PORT = 8443
ORGANISATION = "gpufarm-lab"
PROGRAM_FILES = ("claims.mjs", "indigo.mjs", "package.json", "pages.mjs", "server.mjs", "store.mjs")
UNIT = Path(__file__).parent / "iam.service"


def url(address: str) -> str:
    """The provider's issuer, without a slash at the end."""
    return f"https://{address}:{PORT}"


def install(root: Path, address: str, state_dir: Path, cache_dir: Path) -> list[Bind]:
    """Make a host the identity provider from its next boot on.

    Args:
        root: the host's mounted root file system.
        address: the host's IP address, where the provider will listen.
        state_dir: the bench's folder; gets iam-users.json {name: {"password", "groups"}} (0600), iam-ca.crt
            and the keys. Existing files are kept, so users and certificates stay the same.
        cache_dir: folder for downloaded packages.

    Returns:
        Bind mounts that the host needs at boot.

    Raises:
        LabError: the provider's packages could not be installed.
    """
    config = _configuration(address, state_dir)
    (root / "etc/iam").mkdir(mode=0o700, exist_ok=True)
    write_atomically(root / "etc/iam/config.json", json.dumps(config), 0o600)

    program = root / "opt/iam/provider"
    program.mkdir(parents=True, exist_ok=True)
    for name in PROGRAM_FILES:
        shutil.copyfile(SOURCES / name, program / name)
    shutil.copyfile(UNIT, root / "etc/systemd/system" / UNIT.name)
    wanted = root / "etc/systemd/system/multi-user.target.wants/iam.service"
    wanted.parent.mkdir(exist_ok=True)
    if not wanted.is_symlink():
        wanted.symlink_to("/etc/systemd/system/iam.service")

    return [
        Bind(node_program(), "/opt/iam/node"),
        Bind(node_modules(cache_dir), "/opt/iam/node_modules"),
    ]


def _configuration(address: str, state_dir: Path) -> dict[str, Any]:
    _, certificate, key = ensure_certificates(state_dir, address)
    return {
        "issuer": url(address),
        "organisation": ORGANISATION,
        "users": users_of(ensure_logins(state_dir / "iam-users.json")),
        "tls_certificate": certificate,
        "tls_key": key,
        **_session_keys(state_dir / "iam-keys.json"),
    }


def _session_keys(file: Path) -> dict[str, Any]:
    """Keys for tokens (RS256, as INDIGO IAM) and cookies, made once: sessions outlive a restart."""
    if not file.exists():
        signing_key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        pem = signing_key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
        keys = {"signing_key": pem.decode(), "cookie_keys": [secrets.token_urlsafe(32)]}
        write_atomically(file, json.dumps(keys), 0o600)
    return json.loads(file.read_text())
