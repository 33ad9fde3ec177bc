"""A mutant is checked by the tests of its file, in a sandbox that keeps its harm from the machine."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from mutation import gate
from mutation.check import Broken, Unconfined, Verdict, check
from mutation.choosing import changed, shuffled
from mutation.listed import Entry, find
from mutation.mutant import Mutant
from mutation.noticing import Noticing
from mutation.places import mutants
from proof.tree import Tree, git, working_tree

PATH = "plugins/module_utils/_x.py"
AS_ROOT = pytest.mark.skipif(os.getuid() != 0, reason="mounts need root")


def mutant(text: str = "", number: int = 1) -> Mutant:
    return Mutant(PATH, "comparison", f"a < {number}", f"a <= {number}", 1, 1, text)


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A repository with one product file and its test."""
    for path, text in (
        (PATH, "def f(a):\n    return a < 1\n"),
        (
            "tests/unit/test_x.py",
            "import runpy\n"
            "def test_x():\n"
            f"    f = runpy.run_path('{PATH}')['f']\n"
            "    assert f(0) and not f(1)\n",
        ),
    ):
        (tmp_path / path).parent.mkdir(parents=True)
        (tmp_path / path).write_text(text)
    (tmp_path / ".venv/bin").mkdir(parents=True)
    (tmp_path / ".venv/bin/pytest").write_text(f'#!/bin/sh\nexec {sys.executable} -m pytest "$@"\n')
    (tmp_path / ".venv/bin/pytest").chmod(0o700)
    (tmp_path / ".gitignore").write_text(".venv\n")
    for words in (
        ("init", "-q"),
        ("add", "-A"),
        ("-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "x"),
    ):
        git(tmp_path, *words)
    return tmp_path


def verdict(checkout: Path, text: str) -> Verdict:
    return check(checkout, mutant(text), [("tests/unit/test_x.py",)])


@AS_ROOT
def test_tests_notice_a_mistake_and_the_repository_stays_as_it_is(checkout: Path) -> None:
    assert verdict(checkout, "def f(a):\n    return a <= 1\n").noticed
    assert not verdict(checkout, "def f(a):\n    return a < 0.5\n").noticed
    assert git(checkout, "status", "--porcelain") == b""


@AS_ROOT
def test_a_mistake_that_removes_files_removes_them_for_itself_only(checkout: Path, tmp_path: Path) -> None:
    (tmp_path / "precious").write_text("")
    text = f"import os\nos.unlink('{tmp_path}/precious')\ndef f(a):\n    return a < 1\n"
    assert not verdict(checkout, text).noticed
    assert (tmp_path / "precious").exists()


@AS_ROOT
def test_tests_that_fail_without_a_mistake_decide_nothing(checkout: Path) -> None:
    (checkout / "tests/unit/test_x.py").write_text("def test_x():\n    assert False\n")
    with pytest.raises(Broken, match="fail without this mistake too"):
        verdict(checkout, "def f(a):\n    return a <= 1\n")


@AS_ROOT
def test_tests_may_have_marks_of_plugins(checkout: Path) -> None:
    (checkout / "pyproject.toml").write_text('[tool.pytest.ini_options]\naddopts = "--strict-markers"\n')
    path = checkout / "tests/unit/test_x.py"
    marked = "@pytest.mark.filterwarnings('ignore:x')\ndef test_x"
    path.write_text("import pytest\n" + path.read_text().replace("def test_x", marked))
    assert verdict(checkout, "def f(a):\n    return a <= 1\n").noticed
    assert not verdict(checkout, "def f(a):\n    return a < 0.5\n").noticed


@AS_ROOT
def test_tests_do_not_meet_the_temporary_files_of_others(checkout: Path) -> None:
    beside = checkout.parent / "of-others"
    beside.write_text("")
    text = f"import os\nassert not os.path.exists('{beside}')\ndef f(a):\n    return a < 1\n"
    assert not verdict(checkout, text).noticed


@AS_ROOT
def test_settings_of_the_kernel_can_only_be_read(checkout: Path) -> None:
    text = "import os\nassert os.statvfs('/sys').f_flag & os.ST_RDONLY\ndef f(a):\n    return a < 1\n"
    assert not verdict(checkout, text).noticed


@pytest.mark.parametrize("program", [("false",), ("sh", "-c", "echo mount: not permitted; exit 32")])
def test_a_sandbox_that_cannot_be_set_up_checks_nothing(
    program: tuple[str, ...], checkout: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mutation.check.NAMESPACES", program)
    with pytest.raises(Unconfined, match=r"was not set up \(.+\); run this as root"):
        verdict(checkout, "def f(a):\n    return a <= 1\n")


def test_a_file_that_no_test_comes_to_is_noticed_by_none(checkout: Path) -> None:
    assert not check(checkout, mutant(), []).noticed


def test_tests_of_a_file_are_those_that_import_it_the_nearest_first() -> None:
    name = "ansible_collections.gpufarm.cluster.plugins.module_utils"
    tree = Tree(
        {
            PATH: "def wanted(): ...\n",
            "plugins/module_utils/_y.py": f"from {name} import _x\n",
            "tests/unit/plugins/test_a.py": f"from {name} import _y\n",
            "tests/unit/plugins/test_b.py": f"from {name}._x import wanted\n",
            "tests/unit/plugins/test_c.py": "import os\n",
        }
    )
    assert Noticing(tree).commands(PATH) == [("tests/unit/plugins/test_b.py", "tests/unit/plugins/test_a.py")]


def test_tests_of_a_role_are_its_cases_of_the_tests_of_all_roles() -> None:
    tests = ("tests/contract/test_secrets.py", "tests/contract/test_every_variable.py")
    tree = Tree({"roles/r/tasks/main.yml": "[]\n", **dict.fromkeys(tests, "")})
    cases = ("-k", "[r] or [r- or [r:")
    assert Noticing(tree).commands("roles/r/tasks/main.yml") == [(test, *cases) for test in tests]


def test_tests_of_one_role_alone_run_first() -> None:
    texts = {"r": 'CASES["r"]', "r_again": 'on(host, "r")', "both": 'CASES["r"], CASES["s"]', "none": "r = 1"}
    tree = Tree(
        {
            **{f"roles/{role}/tasks/main.yml": "[]\n" for role in "rs"},
            **{f"tests/unit/roles/test_{name}.py": text for name, text in texts.items()},
            "tests/unit/roles/refused.py": 'CASES["r"]',
        }
    )
    first, *_others = Noticing(tree).commands("roles/r/tasks/main.yml")
    assert first == ("tests/unit/roles/test_r.py", "tests/unit/roles/test_r_again.py")


def test_tests_of_a_shared_role_are_the_cases_of_roles_that_include_the_file() -> None:
    test = "tests/contract/test_secrets.py"

    def including(role: str, entry: str) -> str:
        return f"- include_role: {{name: gpufarm.cluster.{role}, tasks_from: {entry}}}\n"

    tree = Tree(
        {
            "roles/_far/tasks/one.yml": "[]\n",
            "roles/_far/tasks/other.yml": "[]\n",
            "roles/_near/tasks/main.yml": including("_far", "one"),
            "roles/a/tasks/main.yml": including("_far", "other"),
            "roles/b/tasks/main.yml": including("_near", "main"),
            test: "",
        }
    )
    for path, role in (("_far/tasks/one", "b"), ("_far/tasks/other", "a"), ("_near/tasks/main", "b")):
        cases = ("-k", f"[{role}] or [{role}- or [{role}:")
        assert Noticing(tree).commands(f"roles/{path}.yml") == [(test, *cases)]


def test_changed_lines_have_the_mutants(checkout: Path) -> None:
    commit = git(checkout, "rev-parse", "HEAD").decode().strip()
    (checkout / PATH).write_text("def f(a):\n    return a < 1\n\n\ndef g(a):\n    return a > 2\n")
    found = changed(checkout, commit, working_tree(checkout))
    assert {one.was for one in found} == {"return a > 2"}


def test_the_order_is_always_the_same_and_takes_files_in_turn() -> None:
    one, two, other = mutant(number=1), mutant(number=2), Mutant("roles/x", "mode", "a", "b", 1, 1, "")
    order = shuffled([one, two, other])
    assert order == shuffled([other, two, one])
    assert {found.path for found in order[:2]} == {PATH, "roles/x"}


def test_an_entry_is_found_by_its_line_wherever_that_is() -> None:
    entry = Entry(PATH, "comparison", "return a < 1", "return a <= 1")
    for before in ("", "import os\n\n\n"):
        tree = Tree({PATH: f"{before}def f(a):\n    return a < 1\n"})
        (found,) = find([entry], tree)
        assert found in set(mutants(PATH, tree))
    assert list(find([entry], Tree({PATH: "def f(a):\n    return a < 2\n"}))) == [None]


def verdicts(noticed: int, survived: int) -> list[Verdict]:
    return [Verdict(mutant(), number < noticed, "") for number in range(noticed + survived)]


def test_the_gate_says_when_too_few_mistakes_are_noticed() -> None:
    assert gate.listed(verdicts(9, 1)) == []
    assert gate.listed(verdicts(8, 2)) == ["Tests notice 80% of the mistakes in Python; 90% are needed."]
    assert gate.changed(verdicts(5, 5)) == []
    assert gate.changed(verdicts(4, 6))[0].startswith("Tests notice 40% of the mistakes in changed lines")
    assert gate.changed(verdicts(0, gate.ENOUGH - 1)) == [], "too few to say"
    assert gate.unchecked(0, []) == gate.unchecked(3, verdicts(1, 0)) == []
    assert gate.unchecked(3, [])[0].startswith("None of the mistakes was checked")


def command(checkout: Path) -> subprocess.CompletedProcess[str]:
    """Try the mistakes of the product file."""
    scripts = Path(__file__).parents[3] / "scripts"
    for name in ("mutation", "proof"):
        shutil.copytree(scripts / name, checkout / "scripts" / name)
    shutil.copy(scripts / "mutants", checkout / "scripts")
    words = [sys.executable, "scripts/mutants", PATH]
    return subprocess.run(words, cwd=checkout, capture_output=True, text=True, check=False)


@AS_ROOT
def test_the_command_prints_what_is_not_noticed_and_fails(checkout: Path) -> None:
    (checkout / "tests/unit/test_x.py").write_text(f"PATH = '{PATH}'\ndef test_x(): ...\n")
    done = command(checkout)
    assert done.returncode == 1, done.stdout + done.stderr
    assert f"not noticed: {PATH}:2: comparison: 'return a < 1' becomes 'return a <= 1'" in done.stdout


@AS_ROOT
def test_the_command_fails_where_nothing_is_checked(checkout: Path) -> None:
    (checkout / "tests/unit/test_x.py").write_text(f"PATH = '{PATH}'\ndef test_x():\n    assert False\n")
    done = command(checkout)
    assert done.returncode == 1, done.stdout + done.stderr
    assert "None of the mistakes was checked" in done.stdout


def test_the_command_says_where_nothing_can_be_tried(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (checkout / "unshare").write_text("#!/bin/sh\necho unshare: Operation not permitted\nexit 1\n")
    (checkout / "unshare").chmod(0o700)
    (checkout / "tests/unit/test_x.py").write_text(f"PATH = '{PATH}'\ndef test_x(): ...\n")
    monkeypatch.setenv("PATH", f"{checkout}:{os.environ['PATH']}")
    done = command(checkout)
    assert done.returncode == 1, done.stdout + done.stderr
    assert "the sandbox was not set up (unshare: Operation not permitted); run this as root" in done.stdout
