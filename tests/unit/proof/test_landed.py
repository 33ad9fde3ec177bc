"""Which state the tree is compared with, and what has changed since."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from proof import landed
from proof.landed import NoBase
from proof.tree import tree_of, working_tree


class Repository:
    def __init__(self, root: Path) -> None:
        self.root = root
        self.git("init", "--quiet", "--initial-branch=main")
        self.git("config", "user.name", "test")
        self.git("config", "user.email", "test@example.org")

    def git(self, *words: str) -> str:
        done = subprocess.run(["git", "-C", self.root, *words], check=True, capture_output=True, text=True)
        return done.stdout.strip()

    def write(self, path: str, text: str) -> None:
        (self.root / path).parent.mkdir(exist_ok=True)
        (self.root / path).write_text(text)

    def commit(self, **files: str) -> str:
        for name, text in files.items():
            self.write(name, text)
        self.git("add", "--all")
        self.git("commit", "--quiet", "--allow-empty", "--message", "change")
        return self.git("rev-parse", "HEAD")

    def land(self, commit: str) -> str:
        self.write(landed.FILE, f"{commit}\n")
        return self.commit()

    def base(self, **environment: str) -> str:
        return landed.base(self.root, environment)


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    return Repository(tmp_path)


def test_the_file_names_the_commit(repository: Repository):
    first = repository.commit(a="1")
    repository.land(first)
    assert repository.base() == first


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (None, "there is no file .ci/landed"),
        ("", "expected the full hash of one commit, found ''"),
        ("main", "expected the full hash of one commit, found 'main'"),
        ("0" * 40, "is not in the history of HEAD"),
    ],
)
def test_a_file_that_names_no_commit_of_the_history_is_told(
    repository: Repository, content: str | None, reason: str
):
    repository.commit(a="1")
    if content is not None:
        repository.write(landed.FILE, content)
    with pytest.raises(NoBase, match=reason):
        repository.base()


def test_a_commit_of_another_branch_is_refused(repository: Repository):
    repository.commit(a="1")
    repository.git("checkout", "--quiet", "-b", "other")
    other = repository.commit(a="2")
    repository.git("checkout", "--quiet", "main")
    repository.land(other)
    with pytest.raises(NoBase, match="not in the history of HEAD"):
        repository.base()


def test_a_shallow_clone_has_no_base(repository: Repository, tmp_path_factory: pytest.TempPathFactory):
    repository.land(repository.commit(a="1"))
    clone = tmp_path_factory.mktemp("clone")
    repository.git("clone", "--quiet", "--depth=1", f"file://{repository.root}", str(clone))
    with pytest.raises(NoBase, match="or this clone is shallow"):
        landed.base(clone, {})


def test_hosted_ci_compares_with_the_merge_base(repository: Repository):
    first = repository.commit(a="1")
    begun = repository.commit(a="2")
    repository.git("checkout", "--quiet", "-b", "work")
    repository.land(first)
    assert repository.base(CI_TARGET_BRANCH="main") == begun
    with pytest.raises(NoBase, match="no common commit of HEAD and nowhere"):
        repository.base(CI_TARGET_BRANCH="nowhere")


def test_work_may_name_the_commit_that_it_began_from_or_an_older_one(repository: Repository):
    older, begun = repository.commit(a="1"), repository.commit(a="2")
    repository.git("checkout", "--quiet", "-b", "work")
    own = repository.commit(a="3")
    assert landed.why_not(repository.root, older, "main") == ""
    assert landed.why_not(repository.root, begun, "main") == ""
    assert "later than" in landed.why_not(repository.root, own, "main")


def test_changes_are_those_of_commits_and_of_the_working_tree(repository: Repository):
    first = repository.commit(a="1", b="1", c="1", d="1")
    repository.commit(a="2")
    repository.write("b", "2")
    repository.write("new", "1")
    (repository.root / "c").unlink()
    assert landed.changed(repository.root, first) == {"a", "b", "c", "new"}


def test_a_landing_changed_what_lies_between_two_states_that_the_file_named(repository: Repository):
    first = repository.commit(a="1")
    repository.land(first)
    repository.commit(a="2")
    second = repository.commit(b="1")
    repository.land(second)
    assert landed.landings(repository.root) == [{"a", "b", landed.FILE}]
    third = repository.commit(c="1")
    repository.land(third)
    assert landed.landings(repository.root)[1] == {"c", landed.FILE}


def test_trees_are_read_from_the_working_tree_and_from_commits(repository: Repository):
    repository.write(".gitignore", "ignored\n")
    first = repository.commit(a="1", ignored="1")
    repository.write("b", "2")
    assert dict(working_tree(repository.root).texts) == {".gitignore": "ignored\n", "a": "1", "b": "2"}
    assert dict(tree_of(repository.root, first).texts) == {".gitignore": "ignored\n", "a": "1"}
