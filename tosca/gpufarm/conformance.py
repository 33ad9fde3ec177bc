# SPDX-License-Identifier: GPL-3.0-or-later
"""Has tosca-parser check a template, so that what is valid here is valid elsewhere too."""

from __future__ import annotations

import contextlib
import copy
import io
import logging
import re
from typing import Any

from toscaparser.common.exception import ExceptionCollector, ValidationError
from toscaparser.tosca_template import ToscaTemplate

from gpufarm import dialect
from gpufarm.catalogue import Catalogue
from gpufarm.errors import BadTemplate
from gpufarm.library import Library
from gpufarm.problems import Problem

# Its warnings repeat what is said here in better words.
logging.getLogger("tosca").addHandler(logging.NullHandler())
logging.getLogger("tosca").propagate = False


def _quoted(text: str) -> list[str]:
    """The words in quotation marks, the innermost first, as `Library.find` wants them."""
    words = [first or second for first, second in re.findall(r"\"([^\"]+)\"|'([^']+)'", text)]
    if re.match(r'[\w ]*: *"\w+" of template "', text):
        words[:2] = reversed(words[:2])  # "properties" of template "x": x is the outer one
    return words[::-1]


def _problem(source: Library, line: str) -> Problem:
    """A complaint of tosca-parser, with the place that it seems to mean."""
    line = re.sub(r"^(\w+: *)?'(.*)'$", r"\2", line)
    sentence = re.sub(r"^\w+: +|\.$| Refer to the definition to verify valid values\.$", "", line)
    return Problem(source.find(*_quoted(line)), sentence)


def check_template(source: Library, values: dict[str, Any] | None = None) -> None:
    """Have tosca-parser validate the template.

    Args:
        source: the template and its imports.
        values: of inputs; with them, what they feed is checked as well. tosca-parser itself does not check a
            property or a capability whose value comes from an input.

    Raises:
        BadTemplate: the template is refused.
    """
    flat = source.flat()
    # it writes into what it is given; the types it only reads
    flat["topology_template"] = copy.deepcopy(flat["topology_template"])
    # what outputs refer to is examined already, and the first entry of an empty list makes it stumble
    flat["topology_template"].pop("outputs", None)
    if values is not None:
        flat["topology_template"] = _with_inputs(flat["topology_template"], values)
    if source.indigo:
        flat = dialect.properties(flat, Catalogue(source).properties_of)
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            ToscaTemplate(yaml_dict_tpl=flat)
    except ValidationError as error:
        # its own text has a traceback behind every complaint
        told = ExceptionCollector.getExceptionsReport(False) or [str(error)]
        raise BadTemplate(_problem(source, " ".join(entry.split())) for entry in told) from error
    except Exception as error:  # a malformed template reaches tosca-parser's code as any exception of Python
        text = str(error).partition("\n")[0]
        sentence = f"is no valid TOSCA; tosca-parser stops with {type(error).__name__}: {text}"
        raise BadTemplate([Problem(source.find(text.strip("'\"")), " ".join(sentence.split()))]) from error
    finally:
        ExceptionCollector.stop()


def _with_inputs(value: Any, values: dict[str, Any]) -> Any:
    """The value with every ``{get_input: name}`` replaced."""
    if isinstance(value, dict):
        if len(value) == 1 and isinstance(value.get("get_input"), str) and value["get_input"] in values:
            return values[value["get_input"]]
        return {key: _with_inputs(item, values) for key, item in value.items()}
    if isinstance(value, list):
        return [_with_inputs(item, values) for item in value]
    return value
