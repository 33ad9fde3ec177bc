"""Pages as the scripted visitor reads them; the HTML is shortened from JupyterHub 6.1 and the provider."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab.pages import Choice, parse
from lab.visitor import free_slices

SPAWN = """
<form id="spawn_form" action="/hub/spawn/alice?_xsrf=abc" method="post" enctype="multipart/form-data">
  <label for="memory">Memory</label>
  <select id="memory" name="memory"><option>1G</option><option selected>2G</option></select>
  <select name="gpu">
    <option value="">No GPU</option>
    <option value="1g.10gb">1g.10gb (10 GiB): 3 of 7 free</option>
    <option value="3g.40gb" disabled>3g.40gb (40 GiB): 0 of 1 free</option>
  </select>
  <button type="submit" name="start">Start</button>
</form>
"""
REFUSED = """
<div class="error"><h1>403 : No.</h1><p>You are in none of the groups.</p><p></p></div>
<div class="modal" aria-hidden="true"><div class="ajax-error alert-danger">The error</div></div>
"""


def test_a_form_left_alone_sends_what_is_selected() -> None:
    form = parse(SPAWN).form("spawn_form")
    assert form
    assert form.action == "/hub/spawn/alice?_xsrf=abc"
    assert form.values == {"memory": "2G", "gpu": ""}
    assert form.choices["memory"] == [Choice("1G", "1G"), Choice("2G", "2G")]


def test_free_slices_are_counted_by_profile() -> None:
    form = parse(SPAWN).form("spawn_form")
    assert form
    assert free_slices(form) == {"1g.10gb": 3, "3g.40gb": 0}
    form = parse(SPAWN.replace("3 of 7 free", "9 of 28 seats free")).form("spawn_form")
    assert form
    assert free_slices(form) == {"1g.10gb": 9, "3g.40gb": 0}, "of a shared slice, seats are free"


def test_a_choice_without_a_count_is_an_error_and_not_zero() -> None:
    form = parse(SPAWN.replace("3 of 7 free", "ask")).form("spawn_form")
    assert form
    with pytest.raises(ValueError, match="does not tell how many"):
        free_slices(form)


def test_hidden_and_password_fields_are_sent() -> None:
    page = parse('<form id="login"><input type=hidden name=_xsrf value=x><input name=username></form>')
    form = page.form("login")
    assert form
    assert form.values == {"_xsrf": "x", "username": ""}


def test_radio_buttons_have_the_words_of_their_labels() -> None:
    page = parse(
        '<form id=f><input type=radio name=gpu value="" id=none checked><label for=none>No GPU</label>'
        '<label><input type=radio name=gpu value="1g.10gb"> 1g.10gb: 2 free</label></form>'
    )
    form = page.form("f")
    assert form
    assert form.values == {"gpu": ""}
    assert form.choices["gpu"] == [Choice("", "No GPU"), Choice("1g.10gb", "1g.10gb: 2 free")]


def test_the_reason_of_a_refusal_is_found_once_and_hidden_dialogs_are_not() -> None:
    assert parse(REFUSED).messages == ["You are in none of the groups."]


def test_an_alert_of_the_provider_is_a_message() -> None:
    assert parse('<p class="error" role="alert">Wrong\n username.</p>').messages == ["Wrong username."]


@given(st.text())
def test_no_text_makes_the_reader_fail(text: str) -> None:
    assert parse(text).form("no such form") is None
