"""The tests that should notice a mistake in a file, those first that are likeliest to."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import islice
from pathlib import PurePosixPath

from proof.names import Names
from proof.references import references
from proof.tree import Tree

# Tests of which each case runs one role; its name is in the brackets of the case.
OF_ROLES = (
    "tests/contract/test_roles.py",
    "tests/contract/test_misspelt_variables.py",
    "tests/contract/test_secrets.py",
    "tests/contract/test_units.py",
    "tests/contract/test_life_of_roles.py",
    "tests/contract/test_written_files.py",
    "tests/unit/roles",
    "tests/contract/test_variables_as_text.py",
    "tests/contract/test_every_variable.py",
)
# They check other programs than the product, or take minutes for any of its files.
NOT_FOR_THIS = (
    "tests/contract/test_mutants.py",
    "tests/contract/test_proof.py",
    *(f"tests/unit/{program}/" for program in ("lab", "molecule", "mutation", "nvmlsim", "proof", "scripts")),
)
NEAREST = 8  # files of tests; more of them seldom notice what these do not
USERS = 2  # roles that stand for all that use the same file
HARNESS = "tests/harness/"
REAL = ("plugins/filter", "plugins/lookup")
DEFINED = re.compile(r"^\s*(?:def|class) (\w+)", re.MULTILINE)
NAME = re.compile(r"\w+")
WORD = re.compile(r"[a-z]+")
QUOTED = re.compile(r'"(\w+)"')


def _cases(tests: Sequence[str], roles: Sequence[str]) -> tuple[str, ...]:
    """The words for the cases that run one of some roles; none where there is no test or role."""
    cases = " or ".join(f"[{name}{end}" for name in roles for end in ("]", "-", ":"))
    return (*tests, "-k", cases) if tests and roles else ()


def _public(role: str) -> bool:
    """Whether a role is used by itself."""
    return not role.startswith("_")


class Noticing:
    """Finds tests in one state of the repository.

    Args:
        tree: the files of that state.
    """

    def __init__(self, tree: Tree) -> None:
        self.names = Names(tree)
        self._named: dict[str, frozenset[str]] = {}

    def commands(self, path: str) -> list[tuple[str, ...]]:
        """Return the words for pytest, one list for each call of it.

        Args:
            path: path of the file that has the mistake.
        """
        role = re.match(r"roles/(\w+)/", path)
        there = [test for test in OF_ROLES if self.names.tree.below(test) or test in self.names.tree.texts]
        first, last = there[:-1], there[-1:]
        if not role or path.endswith(".py"):
            users = self._users(path) if path.startswith("plugins/") else []
            found = [tuple(self.nearest(path)), _cases(first, users)]
        else:
            roles = self._roles(path)
            found = [
                tuple(self._of_these_alone(roles)),
                _cases(first, roles),
                tuple(self.nearest(path, 1)),
                _cases(last, roles),
            ]
        return [words for words in found if words]

    def _users(self, path: str) -> list[str]:
        """Roles that use a filter or lookup of which a file is a part; without hosts these run as well."""
        texts = self.names.tree.texts
        plugins = [one for kind in REAL for one in self.names.tree.below(kind) if one.endswith(".py")]
        names = [PurePosixPath(one).stem for one in plugins if self._distance(one, path) is not None]
        word = re.compile(rf"gpufarm\.cluster\.({'|'.join(names) or '-'})\b")
        files = [one for one in self.names.tree.below("roles") if word.search(texts[one])]
        return sorted(filter(_public, {one.split("/")[1] for one in files}))[:USERS]

    def _of_these_alone(self, roles: Sequence[str]) -> Iterator[str]:
        """Files of tests without hosts that run some of these roles and no other."""
        for test in self.names.tree.below("tests/unit/roles"):
            named = set(QUOTED.findall(self.names.tree.texts[test])) & self.names.roles
            if PurePosixPath(test).name.startswith("test_") and named and named <= set(roles):
                yield test

    def _roles(self, path: str) -> list[str]:
        """The role of a file, or roles that include the file as a part of a role that they share."""
        name = path.split("/")[1]
        if _public(name):
            return [name]
        users = (role for role in sorted(self.names.roles) if _public(role) and path in self._parts(role))
        return list(islice(users, USERS))

    def _parts(self, role: str) -> set[str]:
        """The files of a role and of the roles that it includes."""
        reached = {reference.path for reference in self.names.role(role)}
        seen: set[str] = set()
        while reached:
            seen |= reached
            named = {other for path in reached if path.endswith(".yml") for other in self._references(path)}
            reached = {path for path in named if path.startswith("roles/")} - seen
        return seen

    def nearest(self, path: str, within: int = 9) -> list[str]:
        """Return the files of tests that come to a file, those first that share most names with it.

        Args:
            path: path of the file.
            within: how many steps from file to named file there may be.
        """
        distances = {test: self._distance(test, path) for test in self._tests}
        ranked = [
            (-self._shared(test, path), distance, test)
            for test, distance in distances.items()
            if distance is not None and distance <= within
        ]
        return [test for *_, test in sorted(ranked)][:NEAREST]

    def _shared(self, test: str, path: str) -> int:
        """How many functions and classes of a file a test names, and words of its path; these count twice."""
        texts, stem = self.names.tree.texts, PurePosixPath(path).stem
        defined = {stem, *DEFINED.findall(texts[path])} if path.endswith(".py") else {stem}
        words = set(WORD.findall(PurePosixPath(test).stem)) & set(WORD.findall(stem))
        return len(defined & set(NAME.findall(texts[test]))) + 2 * len(words)

    @cached_property
    def _tests(self) -> list[str]:
        paths = [*self.names.tree.below("tests/unit"), *self.names.tree.below("tests/contract")]
        return [
            path
            for path in paths
            if PurePosixPath(path).name.startswith("test_")
            and path.endswith(".py")
            and not path.startswith((*NOT_FOR_THIS, *OF_ROLES))
        ]

    def _distance(self, test: str, path: str) -> int | None:
        """How many files lie between a test and a file; None if it is not reached."""
        seen = {test, *self._beside(test)}
        reached, distance = set(seen), 0
        while reached:
            if path in reached:
                return distance
            # The harness names all roles; their tests are chosen by the name of the role.
            following = {file for file in reached if not file.startswith(HARNESS)}
            reached = {named for file in following for named in self._references(file)} - seen
            seen |= reached
            distance += 1
        return None

    def _beside(self, test: str) -> Iterator[str]:
        """The fixtures of a test's folder."""
        conftest = str(PurePosixPath(test).with_name("conftest.py"))
        if conftest in self.names.tree.texts:
            yield conftest

    def _references(self, path: str) -> frozenset[str]:
        if path not in self._named:
            found = references(path, self.names)
            self._named[path] = frozenset(reference.path for reference in found)
        return self._named[path]
