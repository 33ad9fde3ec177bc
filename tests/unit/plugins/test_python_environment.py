"""The module python_environment parses lock files and plans changes."""

from __future__ import annotations

from pathlib import Path

import pytest
from ansible_collections.gpufarm.cluster.plugins.module_utils import _python_environment as environment

ROOT = Path(__file__).parents[3]
HASH_A = "--hash=sha256:" + "a" * 64
HASH_B = "--hash=sha256:" + "b" * 64
LOCK = f"""\
# made by uv
nvidia-ml-py==13.615.71 \\
    {HASH_A} \\
    {HASH_B}
    # via -r gpu.in
uv==0.13.8 {HASH_B}
Colorama==0.4.6 ; sys_platform == 'win32' {HASH_A}
"""
REQUIREMENTS = environment.parse_lock(LOCK)
INSTALLED = (("nvidia-ml-py", "13.615.71"), ("uv", "0.13.8"))


def record(**changes: object) -> environment.Record:
    """Record of a finished run."""
    values: dict[str, object] = {
        "python": "3.11",
        "digest": environment.digest(REQUIREMENTS),
        "requirements": tuple(requirement.text for requirement in REQUIREMENTS),
        "installed": INSTALLED,
        "created": True,
        "complete": True,
    }
    return environment.Record(**{**values, **changes})


def test_a_lock_is_read_with_markers_and_every_hash() -> None:
    assert [requirement.text for requirement in REQUIREMENTS] == [
        "colorama==0.4.6 ; sys_platform == 'win32'",
        "nvidia-ml-py==13.615.71",
        "uv==0.13.8",
    ]
    assert REQUIREMENTS[1].hashes == ("a" * 64, "b" * 64)


def test_the_lock_of_this_project_is_read() -> None:
    text = (ROOT / "requirements" / "controller.lock").read_text() + f"uv==0.13.8 {HASH_A}\n"
    assert "jupyterhub" in {requirement.name for requirement in environment.parse_lock(text)}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (f"uv>=0.13 {HASH_A}", "'uv>=0.13"),
        ("uv==0.13.8", "line for uv has no SHA-256 hashes"),
        (f"uv==0.13.8 {HASH_A} --no-binary :all:", "line for uv has no SHA-256 hashes, or other options"),
        (f"--index-url https://example.org/simple\nuv==0.13.8 {HASH_A}", "--index-url"),
        (f"tool @ https://example.org/tool.whl\nuv==0.13.8 {HASH_A}", "tool @ https"),
        (f"pynvml==1 {HASH_A}", "does not pin uv"),
        ("", "does not pin uv"),
    ],
)
def test_a_lock_that_vouches_for_nothing_is_refused(text: str, said: str) -> None:
    with pytest.raises(environment.LockError, match=said.replace("(", r"\(")):
        environment.parse_lock(text)


def test_comments_and_layout_do_not_change_the_digest_but_a_hash_does() -> None:
    other = environment.parse_lock("\n".join(line for line in LOCK.splitlines() if "#" not in line))
    assert environment.digest(other) == environment.digest(REQUIREMENTS)
    moved = environment.parse_lock(LOCK.replace("b" * 64, "c" * 64))
    assert environment.digest(moved) != environment.digest(REQUIREMENTS)


def test_nothing_is_done_when_the_environment_holds_the_lock() -> None:
    assert not environment.plan(REQUIREMENTS, (), "3.11", record(), INSTALLED).changed


def test_a_missing_environment_is_created() -> None:
    todo = environment.plan(REQUIREMENTS, (), "3.11", None, ())
    assert (todo.create, todo.synchronize, todo.before) == (True, True, ())
    assert "nvidia-ml-py==13.615.71" in todo.after


@pytest.mark.parametrize(
    ("changes", "python", "installed", "create", "reinstall"),
    [
        ({"created": False, "complete": False}, "3.11", (), True, False),
        ({"complete": False, "installed": ()}, "3.11", INSTALLED, False, True),
        ({}, "3.13", INSTALLED, True, False),
        ({"digest": "0"}, "3.11", INSTALLED, False, False),
        ({}, "3.11", (*INSTALLED, ("requests", "2.0")), False, False),
        ({}, "3.11", INSTALLED[:1], False, False),
    ],
    ids=["interrupted creation", "interrupted installation", "new Python", "new lock", "added", "removed"],
)
def test_what_differs_is_repaired(
    changes: dict[str, object],
    python: str,
    installed: tuple[tuple[str, str], ...],
    create: bool,
    reinstall: bool,
) -> None:
    todo = environment.plan(REQUIREMENTS, (), python, record(**changes), installed)
    assert todo.changed
    assert (todo.create, todo.reinstall) == (create, reinstall)
    assert todo.before != todo.after or changes == {"digest": "0"}


def test_hand_made_changes_show_in_the_diff() -> None:
    todo = environment.plan(REQUIREMENTS, (), "3.11", record(), (INSTALLED[0], ("requests", "2.0")))
    assert "uv==0.13.8 was removed by hand" in todo.before
    assert "requests==2.0 was installed by hand" in todo.before


def test_packages_are_known_by_their_directories() -> None:
    names = [
        "nvidia_ml_py-13.615.71.dist-info",
        "pip-23.0.1.dist-info",
        "pynvml.py",
        "Zope.Event-5.0.dist-info",
    ]
    assert environment.installed_packages(names) == (("nvidia-ml-py", "13.615.71"), ("zope-event", "5.0"))


def test_reality_is_compared_with_the_lock() -> None:
    assert environment.difference(REQUIREMENTS, (), INSTALLED) == ()
    assert environment.difference(REQUIREMENTS, (), (("nvidia-ml-py", "12.0"), ("six", "1.0"))) == (
        "six 1.0 is not in the lock",
        "nvidia-ml-py is 12.0, the lock says 13.615.71",
        "uv is missing",
    )


@pytest.mark.parametrize("text", ["", "{", "{}", '{"python": 1}'])
def test_a_torn_record_counts_as_none(text: str) -> None:
    assert environment.parse_record(text) is None


HUB = environment.project("GPUfarm_Hub", "0.1.0", {"pyproject.toml": "", "hub.py": "pass"})
NEWER = environment.project("gpufarm-hub", "0.2.0", {"pyproject.toml": "", "hub.py": "return"})
WITH_HUB = (("gpufarm-hub", "0.1.0"), *INSTALLED)


def test_a_project_is_installed_again_when_its_files_changed() -> None:
    before = record(installed=WITH_HUB, projects=(HUB,))
    assert not environment.plan(REQUIREMENTS, (HUB,), "3.11", before, WITH_HUB).changed
    todo = environment.plan(REQUIREMENTS, (NEWER,), "3.11", before, WITH_HUB)
    assert (todo.synchronize, todo.projects) == (False, (NEWER,))
    assert HUB.text in todo.before and NEWER.text in todo.after


def test_a_project_that_was_changed_by_hand_is_repaired() -> None:
    before = record(installed=WITH_HUB, projects=(HUB,))
    todo = environment.plan(REQUIREMENTS, (HUB,), "3.11", before, WITH_HUB, frozenset({"gpufarm-hub"}))
    assert (todo.synchronize, todo.projects) == (False, (HUB,))
    assert "gpufarm-hub was changed by hand" in todo.before


def test_an_interrupted_installation_of_a_project_is_finished() -> None:
    before = record(installed=WITH_HUB, projects=())
    todo = environment.plan(REQUIREMENTS, (HUB,), "3.11", before, WITH_HUB)
    assert (todo.synchronize, todo.projects) == (False, (HUB,))
    # Killed when the old files were gone already.
    assert environment.plan(REQUIREMENTS, (HUB,), "3.11", before, INSTALLED).synchronize


def test_a_project_that_is_dropped_is_removed() -> None:
    before = record(installed=WITH_HUB, projects=(HUB,))
    todo = environment.plan(REQUIREMENTS, (), "3.11", before, WITH_HUB)
    assert (todo.synchronize, todo.projects) == (True, ())


def test_projects_come_back_after_the_packages_of_the_lock() -> None:
    before = record(installed=WITH_HUB, projects=(HUB,), digest="0")
    todo = environment.plan(REQUIREMENTS, (HUB,), "3.11", before, WITH_HUB)
    assert (todo.synchronize, todo.projects) == (True, (HUB,))


def test_a_project_belongs_to_what_is_allowed_and_wanted() -> None:
    assert environment.difference(REQUIREMENTS, (HUB,), WITH_HUB) == ()
    assert environment.difference(REQUIREMENTS, (HUB,), INSTALLED) == ("gpufarm-hub is missing",)
    assert environment.difference(REQUIREMENTS, (NEWER,), WITH_HUB) == (
        "gpufarm-hub is 0.1.0, the lock says 0.2",
    )
