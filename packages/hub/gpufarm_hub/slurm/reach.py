# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether a notebook answers on its node: the look of the hub, as strict as that of the proxy.

JupyterHub's own look takes any certificate for the node's address, and each notebook on the node has one.
"""

from __future__ import annotations

import asyncio
import ssl
from pathlib import Path

from . import handover

TIMEOUT = 10  # seconds


async def answers(folder: Path, owner: str, host: str, port: int) -> bool:
    """Tell whether the notebook of an owner, and nothing else, listens at an address.

    Args:
        folder: of the authority, with the hub's certificate.
        owner: user and server name.
        host: address of the node.
        port: on the node.
    """
    context = ssl.create_default_context(cafile=folder / "ca.crt")
    context.load_cert_chain(folder / "cert.pem", folder / "key.pem")
    name = handover.name_of(owner)
    try:
        async with asyncio.timeout(TIMEOUT):
            _reader, writer = await asyncio.open_connection(host, port, ssl=context, server_hostname=name)
    except OSError:  # also of TLS, and TimeoutError
        return False
    writer.close()
    return True
