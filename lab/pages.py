"""The forms and messages of a web page, as the scripted visitor reads them. Pure."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from dataclasses import dataclass, field

from bs4 import BeautifulSoup, Tag

# Where the provider, JupyterHub's error page and its spawn page tell what went wrong.
MESSAGES = '[role="alert"], .error p, .spawn-error-msg, .login_error'
NOT_SENT = {"submit", "button", "image", "reset", "file"}


@dataclass(frozen=True)
class Choice:
    """One choice of a field: the value that is sent, the words that are shown."""

    value: str
    label: str


@dataclass
class Form:
    """A form: its address, what it sends when left as it is, and the choices of fields that have some."""

    id: str
    action: str
    values: dict[str, str] = field(default_factory=dict)
    choices: dict[str, list[Choice]] = field(default_factory=dict)


@dataclass(frozen=True)
class Page:
    """Forms of a page, in its order, and its error messages, each once."""

    forms: list[Form]
    messages: list[str]

    def form(self, identifier: str) -> Form | None:
        """The form with this id, or None."""
        return next((form for form in self.forms if form.id == identifier), None)


def parse(html: str) -> Page:
    """Read a page; broken HTML gives what can be read of it."""
    soup = BeautifulSoup(html, "html.parser")
    texts = [_text(element) for element in soup.select(MESSAGES)]
    return Page([_form(form) for form in soup.select("form")], list(dict.fromkeys(filter(None, texts))))


def _form(element: Tag) -> Form:
    form = Form(str(element.get("id", "")), str(element.get("action", "")))
    for item in element.select("input[name], select[name], textarea[name]"):
        name = str(item["name"])
        kind = str(item.get("type", "text")).lower()
        if item.name == "select":
            _read_select(form, name, item)
        elif item.name == "input" and kind in ("radio", "checkbox"):
            value = str(item.get("value", "on"))
            form.choices.setdefault(name, []).append(Choice(value, _text(_label_of(element, item))))
            if item.has_attr("checked"):
                form.values[name] = value
        elif kind not in NOT_SENT:
            form.values[name] = str(item.get("value", "")) if item.name == "input" else item.get_text()
    return form


def _read_select(form: Form, name: str, element: Tag) -> None:
    options = element.select("option")
    form.choices[name] = [Choice(_value(option), _text(option)) for option in options]
    chosen = next((option for option in options if option.has_attr("selected")), None)
    if options:
        form.values[name] = _value(chosen or options[0])


def _value(option: Tag) -> str:
    return str(option["value"]) if option.has_attr("value") else _text(option)


def _label_of(form: Tag, item: Tag) -> Tag | None:
    if item.get("id"):
        label = form.find("label", attrs={"for": item["id"]})
        if isinstance(label, Tag):
            return label
    return item.find_parent("label")


def _text(element: Tag | None) -> str:
    return " ".join(element.get_text(" ").split()) if element else ""
