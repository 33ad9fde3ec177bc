# SPDX-License-Identifier: GPL-3.0-or-later
"""The command ``gpufarm serve``: help, a check of the settings, and the manual that goes with them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from click.testing import CliRunner
from doubles.issuer import Issuer
from gpufarm.cli import main
from gpufarm.serve import commands, settings
from serve_site import Site, make_older

MANUAL = (Path(__file__).parents[3] / "docs" / "serve.md").read_text()


def invoked(*arguments: str | Path) -> tuple[int, str]:
    result = CliRunner().invoke(main, [str(argument) for argument in arguments])
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result.exit_code, result.output


def test_settings_and_templates_can_be_checked(paas: Site, iam: Issuer) -> None:
    path = paas.folder / "serve.yml"
    assert invoked("serve", "--settings", path, "check") == (
        0,
        f"the settings are in order; users may deploy: needy, notes\n{iam.url} answers\n",
    )
    path.write_text(path.read_text().replace("notes.yaml", "missing.yaml"))
    status, output = invoked("serve", "--settings", path, "check")
    assert status == 2 and "missing.yaml" in output
    assert invoked("serve", "--settings", paas.folder / "other.yml", "check")[0] == 2


def test_a_check_asks_the_issuers(paas: Site, iam: Issuer, tmp_path: Path) -> None:
    path = paas.folder / "serve.yml"
    path.write_text(path.read_text().replace(iam.url, "https://127.0.0.1:1"))
    status, output = invoked("serve", "--settings", path, "check")
    assert status == 1 and "the settings are in order" in output
    assert "issuer https://127.0.0.1:1 does not answer" in output


def test_a_check_tells_that_tables_will_change(paas: Site) -> None:
    path = paas.folder / "serve.yml"
    make_older(paas.service.database)
    assert "will be changed; they are of version 0001" in invoked("serve", "--settings", path, "check")[1]
    assert invoked("serve", "--settings", path, "upgrade")[0] == 0
    assert "will be changed" not in invoked("serve", "--settings", path, "check")[1]


def test_without_its_libraries_it_tells_how_to_get_them(monkeypatch: pytest.MonkeyPatch, paas: Site) -> None:
    monkeypatch.setattr(commands.importlib.util, "find_spec", lambda _name: None)
    status, output = invoked("serve", "--settings", paas.folder / "serve.yml", "check")
    assert status == 1 and 'pip install "gpufarm[serve]"' in output


def test_the_examples_of_manual_and_help_are_right(tmp_path: Path) -> None:
    example = re.search(r"```yaml\n(# /etc/gpufarm/serve.yml.*?)```", MANUAL, re.DOTALL)
    assert example
    path = tmp_path / "serve.yml"
    path.write_text(example[1])
    assert [offer.name for offer in settings.read(path).offers] == ["notebooks", "containers", "jobs"]
    status, output = invoked("serve", "--settings", path, "check")
    assert status == 1 and "issuer https://iam.example.org/ does not answer" in output
    text = commands.serve.help or ""
    smallest = re.search(r"The smallest settings.*?\n(.*?)\n\n", text, re.DOTALL)
    assert smallest
    path.write_text(smallest[1])
    assert settings.read(path).offers[0].groups == {"physics"}


def test_the_manual_names_every_setting() -> None:
    source = (Path(settings.__file__)).read_text()
    names = set(
        re.findall(r"\.(?:text|texts|url|number|path|file|inner|maps|choice|limit)\(\"(\w+)\"", source)
    )
    names |= {*settings.CONFIGURATION}
    words = set(re.findall(r"\w+", MANUAL))
    assert names and names <= words
