"""The notebook as its user comes to it: through the gateway, with what the role told."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json
from urllib.parse import urlsplit

import httpx
import pytest

from lab.patience import PATIENCE
from lab.visitor import Visitor, trust


@pytest.fixture
def password():
    return "correct horse battery"


@pytest.fixture
def place(host):
    """Return where the role said that the notebook is: the gateway's address, and the path."""
    parts = urlsplit(json.loads(host.file("/root/result.json").content_string)["endpoint"])
    assert parts.scheme == "https"
    return f"https://{parts.netloc}", parts.path


@pytest.fixture
def visitor(host, place, eventually):
    """Somebody at the gateway, after it has seen the notebook answer."""
    address, path = place
    context = trust(host.file("/etc/app-gateway/tls/self-signed.crt").content_string)

    def answers():
        answer = httpx.get(f"{address}{path}api", verify=context, trust_env=False, timeout=PATIENCE)
        return answer.status_code == 200

    eventually(answers)
    with Visitor(address, context) as one:
        yield one
