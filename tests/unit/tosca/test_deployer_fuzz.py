"""For any change of the text of a template, `gpufarm` reports problems in sentences."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from deployer_site import Site
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

TOSCA = Path(__file__).resolve().parents[3] / "tosca"
TEMPLATES = sorted(
    (path.name, path.read_text().replace("../types/", f"{TOSCA}/types/"))
    for path in (TOSCA / "templates").glob("*.yaml")
)
WORDS = st.sampled_from(
    [
        *(
            "",
            "[",
            "]",
            "{",
            "}",
            ":",
            "-",
            "&a",
            "*a",
            "!x",
            "|",
            "?",
            "%",
            "#",
            "'",
            '"',
            "\t",
            "\0",
            "\u2028",
        ),
        *("1e400", "0x", "null", "~", "<<: {a: 1}", "!!binary", "get_input", "get_attribute: [SELF, x]"),
    ]
)


@st.composite
def mangled(draw: st.DrawFn) -> tuple[str, str]:
    """A template in whose lines something was removed, repeated, moved, indented or overwritten."""
    name, text = draw(st.sampled_from(TEMPLATES))
    lines = text.split("\n")
    for _count in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, len(lines) - 1))
        column = draw(st.integers(0, len(lines[at])))
        kind = draw(st.sampled_from(["remove", "repeat", "move", "indent", "insert", "cut", "overwrite"]))
        if kind == "remove" and len(lines) > 1:
            del lines[at]
        elif kind == "repeat":
            lines.insert(at, lines[at])
        elif kind == "move":
            lines.insert(draw(st.integers(0, len(lines) - 1)), lines.pop(at))
        elif kind == "indent":
            lines[at] = " " * draw(st.integers(0, 9)) + lines[at].lstrip()
        elif kind == "insert":
            lines[at] = lines[at][:column] + draw(WORDS) + lines[at][column:]
        elif kind == "overwrite":
            lines[at] = lines[at].partition(":")[0] + ": " + draw(WORDS)
        else:
            lines[at:] = [lines[at][:column]]
    return name, "\n".join(lines)


@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(template=mangled())
def test_no_text_ends_in_a_traceback(
    tmp_path_factory: pytest.TempPathFactory, template: tuple[str, str]
) -> None:
    site = Site(tmp_path_factory.mktemp("mangled"))
    name, text = template
    path = site.root / name
    path.write_text(text, encoding="utf-8", newline="")
    answer = site.gpufarm("validate", path, "--json")  # raises what the command does not catch
    found = json.loads(answer.output)
    assert answer.status == (0 if found["valid"] else 2), answer
    assert found["valid"] == (not found["problems"])
    for problem in found["problems"]:
        assert problem["text"] and problem["file"]
        assert "Traceback" not in problem["text"] and len(problem["text"]) < 2000


@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(content=st.binary(max_size=300))
def test_no_bytes_end_in_a_traceback(tmp_path_factory: pytest.TempPathFactory, content: bytes) -> None:
    site = Site(tmp_path_factory.mktemp("bytes"))
    path = site.root / "template.yaml"
    path.write_bytes(content)
    answer = site.gpufarm("validate", path)
    assert answer.status == 2 and str(path) in answer.error
