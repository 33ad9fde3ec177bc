"""Same content, same image; other content, another image."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from dataclasses import replace

import pytest

from lab.recipe import Recipe

RECIPE = Recipe(
    "bookworm", ("dbus", "systemd"), "http://mirror.example/debian", "http://mirror.example/security"
)


def test_the_name_is_stable():
    assert replace(RECIPE).name == RECIPE.name
    assert RECIPE.name.startswith("bookworm-")


@pytest.mark.parametrize(
    "change",
    [
        {"suite": "trixie"},
        {"packages": ("dbus", "systemd", "udev")},
        {"mirror": "http://other.example/debian"},
        {"security": ""},
        {"certificates": {"site.crt": "PEM"}},
        {"environment": {"PIP_INDEX_URL": "https://pypi.example/simple"}},
        {"kernel": True},
    ],
    ids=lambda change: next(iter(change)),
)
def test_every_ingredient_changes_the_name(change: dict[str, object]):
    assert replace(RECIPE, **change).name != RECIPE.name


def test_sources_are_signed_and_leave_out_what_is_not_there():
    assert RECIPE.sources.count("signed-by=/usr/share/keyrings/debian-archive-keyring.gpg") == 3
    assert "http://mirror.example/security bookworm-security main" in RECIPE.sources
    assert "security" not in replace(RECIPE, security="").sources


def test_settings_reach_logins_and_services():
    files = replace(RECIPE, environment={"PIP_INDEX_URL": "https://pypi.example/simple"}).files
    assert "PIP_INDEX_URL=https://pypi.example/simple\n" in files["etc/environment"]
    services = files["etc/systemd/system.conf.d/lab-environment.conf"]
    assert "DefaultEnvironment=PIP_INDEX_URL=https://pypi.example/simple\n" in services
