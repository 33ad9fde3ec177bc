"""Tokens of users end, also those that an older hub made without an end."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

from gpufarm_hub.upkeep import tokens
from jupyterhub import orm

LIFETIME = 7 * 24 * 3600


def test_tokens_without_an_end_get_one(tmp_path: Path) -> None:
    path = tmp_path / "jupyterhub.sqlite"
    tokens.limit(path, LIFETIME)
    assert not path.exists()
    session = orm.new_session_factory(f"sqlite:///{path}")()
    user, service = orm.User(name="alice"), orm.Service(name="keeper")
    soon = datetime(2020, 11, 23)
    session.add_all(
        orm.APIToken(note=note, hashed=str(note), prefix="", expires_at=end, user=owner, service=other)
        for note, end, owner, other in (
            ("Server at /user/alice/", None, user, None),
            ("mine", None, user, None),
            (None, None, user, None),
            ("soon", soon, user, None),
            ("late", datetime(2099, 1, 1), user, None),  # of a hub that gave them more time
            ("service", None, None, service),
        )
    )
    session.commit()
    before = {token.note or "": token.expires_at for token in session.query(orm.APIToken)}
    session.close()
    for _ in range(2):
        tokens.limit(path, LIFETIME)
    session = orm.new_session_factory(f"sqlite:///{path}")()
    after = {token.note or "": token.expires_at for token in session.query(orm.APIToken)}
    notes = {note for note in before if note.startswith(("Server", "service", "soon"))}
    assert {note: after[note] for note in notes} == {note: before[note] for note in notes}
    latest = datetime.now(UTC).replace(tzinfo=None) + timedelta(seconds=LIFETIME)
    ends = [after[note] for note in after.keys() - notes]
    assert len(ends) == 3 and all(latest - timedelta(hours=1) < end <= latest for end in ends)


def test_a_database_without_tables(tmp_path: Path) -> None:
    path = tmp_path / "jupyterhub.sqlite"
    path.touch()
    tokens.limit(path, LIFETIME)
