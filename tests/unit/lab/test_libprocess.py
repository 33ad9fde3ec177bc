"""The fakes of Marathon and Chronos do not start where libmesos would not: with TLS and no key."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import ssl
import subprocess
from pathlib import Path

import pytest

from lab.marathon.options import Stop, libprocess


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """Environment of a framework where the masters speak TLS."""
    certificate, key = tmp_path / "a.pem", tmp_path / "a.key"
    new = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-noenc"]
    subprocess.run(
        ["openssl", "req", "-x509", *new, "-subj", "/CN=a", "-keyout", key, "-out", certificate],
        check=True,
        capture_output=True,
    )
    files = {"CERT": certificate, "KEY": key, "CA": certificate}
    return {f"LIBPROCESS_SSL_{name}_FILE": str(path) for name, path in files.items()} | {
        "LIBPROCESS_SSL_ENABLED": "true"
    }


def test_without_tls_nothing_is_needed() -> None:
    assert libprocess({}) is None


def test_with_all_files_it_encrypts_and_verifies(environment: dict[str, str]) -> None:
    context = libprocess(environment)
    assert context is not None and context.verify_mode is ssl.CERT_REQUIRED


@pytest.mark.parametrize("name", ["KEY", "CERT"])
def test_it_stops_without_its_own_files(environment: dict[str, str], name: str) -> None:
    del environment[f"LIBPROCESS_SSL_{name}_FILE"]
    with pytest.raises(Stop, match=f"NOTE: Set path with LIBPROCESS_SSL_{name}_FILE"):
        libprocess(environment)


def test_it_stops_at_a_file_that_it_cannot_read(environment: dict[str, str]) -> None:
    Path(environment["LIBPROCESS_SSL_KEY_FILE"]).unlink()
    with pytest.raises(Stop, match="Could not load"):
        libprocess(environment)
