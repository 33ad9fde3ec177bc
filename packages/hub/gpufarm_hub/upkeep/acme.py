# SPDX-License-Identifier: GPL-3.0-or-later
"""Get the hub's certificate from an authority that speaks ACME (RFC 8555), and renew it in time.

``python -m gpufarm_hub.upkeep.acme SETTINGS`` becomes lego, the client of the distribution, when there is
something to do; with ``--check`` it only says so. The authority asks for the answer to its challenge over
HTTP (RFC 8555, 8.3), which `redirect` gives.
"""

from __future__ import annotations

import json
import os
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from cryptography import x509

from . import certificate

LEGO = "/usr/bin/lego"


def command(settings: dict[str, Any], now: datetime) -> list[str]:
    """Return the command that gets or renews the certificate; empty when it is good as it is.

    Args:
        settings: ``directory`` (URL), ``email``, ``host``, ``folder`` (accounts and certificates of this
            authority) and ``webroot``.
        now: the time.
    """
    held = _held(settings, now)
    if held and certificate.is_for(held, settings["host"]) and not certificate.is_due(held, now):
        return []
    asked = [
        LEGO,
        "--accept-tos",
        f"--server={settings['directory']}",
        f"--email={settings['email']}",
        f"--domains={settings['host']}",
        f"--path={settings['folder']}",
        "--key-type=ec256",
        "--http",
        f"--http.webroot={settings['webroot']}",
    ]
    # Without it lego would decide by days, which say nothing of a certificate that lives for some hours.
    return [*asked, "renew", "--days=10000", "--no-random-sleep"] if held else [*asked, "run"]


def is_shown(settings: dict[str, Any]) -> bool:
    """Tell whether the hub's certificate, the file ``shown`` of the settings, is the newest that was got."""
    shown, file = Path(settings["shown"]), _file(settings)
    return file.exists() and shown.exists() and file.read_bytes() == shown.read_bytes()


def _held(settings: dict[str, Any], now: datetime) -> x509.Certificate | None:
    """Return the certificate that was got; None for one that the hub cannot show, as after a full disk."""
    file = _file(settings)
    try:
        return certificate.check(
            file.read_bytes(), file.with_name(f"{settings['host']}.key").read_bytes(), now
        )
    except (OSError, certificate.CertificateError):
        return None


def _file(settings: dict[str, Any]) -> Path:
    return Path(settings["folder"]) / "certificates" / f"{settings['host']}.crt"


def main() -> None:
    """Become lego, or do nothing."""
    settings = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    asked = command(settings, datetime.now(UTC))
    if sys.argv[2:] == ["--check"]:
        print("due" if asked or not is_shown(settings) else "")
    elif asked:
        # Above all the account's key and the certificate's; the answers to challenges are for everybody.
        Path(settings["folder"]).mkdir(mode=0o700, exist_ok=True)
        os.execv(asked[0], asked)  # noqa: S606


if __name__ == "__main__":
    main()
