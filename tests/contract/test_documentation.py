"""Documentation: the menu of the site leads to every page, and links in pages to files that are there."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import re
from fnmatch import fnmatch
from pathlib import Path

import pytest
import yaml
from packaging.specifiers import SpecifierSet
from proof.tree import git

ROOT = Path(__file__).resolve().parents[2]
FILES = git(ROOT, "ls-files", "-z", "--cached", "--others", "--exclude-standard").decode().split("\0")
PAGES = {path for path in FILES if path.endswith(".md") and not path.startswith("scripts/pages/")}
MENU = (ROOT / "scripts" / "pages" / "menu.md").read_text()
# Where antsibull-docs writes the pages of modules, other plugins and roles.
REFERENCE = "collections/gpufarm/cluster/index"


def entries() -> list[str]:
    """Entries of the menu: pages without their suffix, or patterns of them."""
    blocks = re.findall(r"```\{toctree\}\n(.*?)```", MENU, re.DOTALL)
    lines = [line for block in blocks for line in block.splitlines() if line and not line.startswith(":")]
    return [re.sub(r".*<(.*)>", r"\1", line) for line in lines]


def test_the_menu_leads_to_every_page() -> None:
    named = {page for page in PAGES for entry in entries() if fnmatch(page, f"{entry}.md")}
    assert named == PAGES - {"README.md"}, (
        "put the page into scripts/pages/menu.md; the home page is README.md"
    )
    assert REFERENCE in entries()


def test_the_menu_names_only_what_is_there() -> None:
    for entry in entries():
        written = entry.startswith("collections/")
        assert written or any(fnmatch(page, f"{entry}.md") for page in PAGES), entry


def test_every_role_and_every_template_has_a_page() -> None:
    roles = {path.parent.parent.name for path in ROOT.glob("roles/*/meta/argument_specs.yml")}
    templates = {path.stem for path in ROOT.glob("tosca/templates/*.yaml")}
    assert roles and {f"roles/{role}/README.md" for role in roles} <= PAGES
    assert templates and {f"docs/templates/{template}.md" for template in templates} <= PAGES


@pytest.mark.parametrize("page", sorted(PAGES))
def test_links_lead_to_files(page: str) -> None:
    text = re.sub(r"```.*?```|`[^`\n]*`", "", (ROOT / page).read_text(), flags=re.DOTALL)
    for link in re.findall(r"\]\(([^)]+)\)", text):
        if not re.match(r"https?:|#", link):
            assert ((ROOT / page).parent / link.partition("#")[0]).is_file(), link


def test_every_release_of_ansible_that_is_accepted_was_tried() -> None:
    accepted = SpecifierSet(yaml.safe_load((ROOT / "meta" / "runtime.yml").read_text())["requires_ansible"])
    table = (ROOT / "docs" / "compatibility.md").read_text()
    tried = set(re.findall(r"^\| (2\.\d+)\.\d+ \|", table, re.MULTILINE))
    assert tried == {f"2.{minor}" for minor in range(15, 40) if accepted.contains(f"2.{minor}.0")}
