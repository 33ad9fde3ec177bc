"""Names of images, and who may start which."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import pytest
from gpufarm_hub.spawning import images
from gpufarm_hub.spawning.images import ImageError
from hypothesis import given
from hypothesis import strategies as st

DIGEST = "sha256:" + "0a" * 32
SETTINGS = {
    "images": [
        {"label": "Small", "image": "registry.example/ml/small:1"},
        {"image": "registry.example/ml/large@" + DIGEST, "groups": ["staff"]},
    ],
    "own_images": ["registry.example/people", "docker.io"],
    "own_images_groups": ["staff"],
}
POLICY = images.read(SETTINGS)


@pytest.mark.parametrize(
    ("written", "full"),
    [
        ("ubuntu", "docker.io/library/ubuntu:latest"),
        ("jupyter/base-notebook:2026-01", "docker.io/jupyter/base-notebook:2026-01"),
        ("quay.io/jupyter/base", "quay.io/jupyter/base:latest"),
        ("127.0.0.1:5000/x", "127.0.0.1:5000/x:latest"),
        ("localhost/x/y:1", "localhost/x/y:1"),
        (f"a/b:1@{DIGEST}", f"docker.io/a/b@{DIGEST}"),
        (f"a.b/c@{DIGEST}", f"a.b/c@{DIGEST}"),
    ],
)
def test_names_are_read_as_docker_reads_them(written: str, full: str) -> None:
    assert str(images.parse(written)) == full


@pytest.mark.parametrize(
    "name",
    [
        "",
        "-v",
        "--privileged",
        "a b",
        "a/../b",
        "/etc",
        "a//b",
        "a:",
        "a@sha256:00",
        "a\n",
        "A",
        "a:b:c",
        "http://a/b",
    ],
)
def test_what_is_no_name_is_refused(name: str) -> None:
    with pytest.raises(ImageError, match="is not a name of an image"):
        images.parse(name)


@given(st.text(max_size=40) | st.from_regex(r"[a-z./:@_-]{1,30}"))
def test_a_name_is_refused_or_read_the_same_again(name: str) -> None:
    try:
        image = images.parse(name)
    except ImageError:
        return
    assert images.parse(str(image)).repository == image.repository
    assert str(image)[0].isalnum() and not any(character.isspace() for character in str(image))


@pytest.mark.parametrize(
    ("name", "prefix", "below"),
    [
        ("registry.example/people/a", "registry.example/people", True),
        ("registry.example/people/a", "registry.example", True),
        ("registry.example/people/a", "registry.example/people/", True),
        ("registry.example/people2/a", "registry.example/people", False),
        ("registry.example.org/people/a", "registry.example", False),
        ("ubuntu", "docker.io", True),
    ],
)
def test_what_belongs_to_a_registry(name: str, prefix: str, below: bool) -> None:
    assert images.parse(name).is_below(prefix) is below


def test_each_sees_what_is_for_their_groups() -> None:
    assert [offer.label for offer in POLICY.seen_by([])] == ["Small"]
    assert [offer.label for offer in POLICY.seen_by(["staff"])] == ["Small", SETTINGS["images"][1]["image"]]
    assert str(POLICY.choose("", "", [])) == "registry.example/ml/small:1"
    assert str(POLICY.choose("", "ubuntu", ["staff"])) == "docker.io/library/ubuntu:latest"


@pytest.mark.parametrize(
    ("label", "own", "groups", "sentence"),
    [
        ("Large", "", [], "The image Large is not offered; choose one of Small."),
        (["Small"], "", [], "is not offered"),
        ("", "ubuntu", [], "You cannot start images of your own here"),
        ("", "quay.io/x/y", ["staff"], "own images must come from registry.example/people or docker.io"),
        ("", ["ubuntu"], ["staff"], "must be given by its name"),
        ("", "--privileged", ["staff"], "is not a name of an image"),
    ],
)
def test_what_is_not_offered_is_refused(label: object, own: object, groups: list[str], sentence: str) -> None:
    with pytest.raises(ImageError, match=sentence):
        POLICY.choose(label, own, groups)


def test_who_is_offered_nothing_is_told_so() -> None:
    policy = images.read({**SETTINGS, "images": SETTINGS["images"][1:]})  # type: ignore[index]
    with pytest.raises(ImageError, match="No image is offered to your groups"):
        policy.choose("", "", ["students"])


@pytest.mark.parametrize(
    ("version", "fits"), [("6.0.0", True), ("6.2.1", True), ("5.3.0", False), ("16.0", False)]
)
def test_versions_that_fit(version: str, fits: bool) -> None:
    assert images.runs_with(version, "6.1.1") is fits
