# SPDX-License-Identifier: GPL-3.0-or-later
"""Hours: how machines are asked, what is kept, and that nobody sees those of somebody else."""

from __future__ import annotations

import csv
import io
import time
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from doubles.issuer import Issuer as Provider
from gpufarm.hours import FIELDS, NoSources
from gpufarm.serve import attempt, hours
from gpufarm.serve.database import Database
from gpufarm.serve.gathering import Gathering
from gpufarm.serve.people import User
from gpufarm.serve.refusals import Refused
from gpufarm.serve.settings import Issuer
from gpufarm.serve.tables import Audit, Source, Use
from hypothesis import given
from hypothesis import strategies as st
from serve_site import Site, site, with_pages
from sqlalchemy import func, select

both = pytest.mark.parametrize("database_url", ["sqlite", "postgresql"], indirect=True)
NOW = datetime(2026, 11, 20, 12, tzinfo=UTC).timestamp()
MONTH = f"{datetime.now(UTC):%Y-%m}"
PERIOD = "since=2026-10&before=2026-12"
WANTED = hours.Wanted("2026-10", "2026-12", ("month", "user"))


def row(user: str = "ann", machine: str = "ctl", identity: str = "", **other: Any) -> dict[str, Any]:
    """A row as the deployer tells it."""
    return {
        "month": "2026-11",
        "user": user,
        "group": "physics",
        "source": "slurm",
        "profile": "1g.10gb",
        "machine": machine,
        "identity": identity or f"farm/{user}/{machine}",
        "slice_hours": 2.0,
        "gpu_hours": 0.0,
        "cpu_hours": 4.0,
        "memory_gib_hours": 8.0,
        **other,
    }


def answer(*rows: dict[str, Any], silent: dict[str, str] | None = None, **holders: str) -> dict[str, Any]:
    """An answer of machines, which are those of the site unless they have a holder."""
    machines = dict.fromkeys([one["machine"] for one in rows], "") | dict.fromkeys(silent or {}, "") | holders
    return {"rows": [*rows], "machines": machines, "silent": silent or {}}


def keep(database: Database, told: dict[str, Any], now: float = NOW) -> None:
    gathering = Gathering(database, 60)
    since = gathering.due(now)
    assert since
    gathering.keep(now, since, told)


def reads(database: Database, *readings: tuple[float, str, dict[str, Any]]) -> None:
    """Read again and again, and see from which month on."""
    gathering = Gathering(database, 60)
    for now, month, told in readings:
        since = gathering.due(now)
        assert since == datetime.strptime(f"{month}-01+0000", "%Y-%m-%d%z")
        gathering.keep(now, since, told)


def kept(database: Database) -> list[Use]:
    with database.reading() as session:
        return [*session.scalars(select(Use).order_by(Use.login, Use.machine))]


@both
def test_a_use_that_goes_on_grows_and_counts_once(database: Database) -> None:
    keep(database, answer(row(), row(profile="")))
    keep(database, answer(row(slice_hours=3.0), row(profile="")), NOW + 3600)
    assert [one.slice_hours for one in kept(database)] in ([2.0, 3.0], [3.0, 2.0])


@both
def test_what_a_machine_forgets_stays(database: Database) -> None:
    keep(database, answer(*(row(identity=str(number)) for number in range(1200))))
    keep(database, answer(row(identity="new")), NOW + 3600)
    assert len(kept(database)) == 1201


def test_one_reading_in_a_period_whichever_worker_asks(database: Database) -> None:
    first, other = Gathering(database, 60), Gathering(database, 60)
    assert first.due(NOW) and not other.due(NOW) and not first.due(NOW + 3599)
    assert other.due(NOW + 3600) and not first.due(NOW + 3600)


def test_a_reading_begins_at_a_month_and_reaches_back_to_machines_that_were_silent(
    database: Database,
) -> None:
    later = datetime(2026, 12, 3, tzinfo=UTC).timestamp()
    much_later = datetime(2027, 6, 30, tzinfo=UTC).timestamp()
    off = answer(row(), silent={"hub": "it is off"})
    reads(
        database,
        (NOW, "2025-11", answer(row(), row(machine="hub"))),
        (NOW + 3600, "2026-11", answer(row(), row(machine="hub"))),
        (later, "2026-11", off),
        (later + 3600, "2026-11", off),
        (much_later, "2027-04", off),
        (much_later + 3600, "2027-04", off),
    )


def test_earlier_months_of_a_machine_that_joins_later_are_read(database: Database) -> None:
    alone, both = answer(row()), answer(row(), row(machine="hub"))
    off = answer(row(), silent={"hub": "it is off"})
    reads(
        database,
        (NOW, "2025-11", alone),
        (NOW + 3600, "2026-11", off),  # one that never answers is not asked for a year each time
        (NOW + 7200, "2026-09", both),
        (NOW + 10800, "2025-11", off),
        (NOW + 14400, "2026-09", both),
        (NOW + 18000, "2025-11", both),
        (NOW + 21600, "2026-11", both),
    )


def test_a_machine_that_does_not_answer_keeps_its_numbers_and_their_time(database: Database) -> None:
    keep(database, answer(row(), row(machine="hub")))
    keep(database, answer(row(slice_hours=5.0), silent={"hub": "it is off"}), NOW + 3600)
    assert {one.machine: one.slice_hours for one in kept(database)} == {"ctl": 5.0, "hub": 2.0}
    with database.reading() as session:
        found = {one.machine: (one.answered, one.failure) for one in session.scalars(select(Source))}
    assert found == {"": (NOW + 3600, ""), "ctl": (NOW + 3600, ""), "hub": (NOW, "it is off")}
    keep(database, answer(row()), NOW + 7200)  # the hub is gone for good
    with database.reading() as session:
        assert [*session.scalars(select(Source.machine).order_by(Source.machine))] == ["", "ctl"]


def test_a_failed_reading_is_told_until_one_goes_well(database: Database) -> None:
    gathering = Gathering(database, 60)
    gathering.due(NOW)
    gathering.failed("no machine answers")
    with database.reading() as session:
        whole = session.get_one(Source, "")
        assert (whole.failure, whole.answered) == ("no machine answers", 0.0)
    keep(database, answer(row()), NOW + 3600)
    with database.reading() as session:
        assert session.get_one(Source, "").failure == ""


@both
def test_each_database_adds_up(database: Database) -> None:
    keep(database, answer(row(), row(profile=""), row("bob"), silent={"hub": "off"}))
    issuer = Issuer("https://iam.example.org", administrators="admins", login_claim="name")
    kinds = {"hours_minutes": 60, "issuers": [issuer], "offers": []}
    kept_hours = hours.Hours(database, SimpleNamespace(**kinds))  # type: ignore[arg-type]
    ann = User(issuer.url, "1", claims={"name": "ann"})
    own = kept_hours.own(ann, hours.Wanted("2026-11", "2026-12", tuple(hours.FIELDS)))
    assert [(one["user"], one["profile"], one["slice_hours"]) for one in own.rows] == [
        ("ann", "", 2.0),
        ("ann", "1g.10gb", 2.0),
    ]
    everybody = kept_hours.all(replace(ann, administrator=True), WANTED)
    assert [(one["user"], one["cpu_hours"]) for one in everybody.rows] == [("ann", 8.0), ("bob", 4.0)]
    assert [one.machine for one in everybody.silent] == ["hub"]


class Teller:
    def hours(self, **asked: Any) -> Any:
        self.asked = asked
        return SimpleNamespace(rows=[row()], machines={"ctl": ""}, silent={"hub": "off"}, records=[])


def test_an_attempt_asks_for_each_use_by_month() -> None:
    teller = Teller()
    order = {"kind": "HOURS", "pool": "/pool.yml", "since": "2026-11-01T00:00:00+00:00"}
    told = attempt.carry_out(order, teller, None)  # type: ignore[arg-type]
    assert told == {"rows": [row()], "machines": {"ctl": ""}, "silent": {"hub": "off"}}
    assert teller.asked == {"pool": Path("/pool.yml"), "since": order["since"], "by": FIELDS}


def test_a_pool_without_hubs_and_clusters_has_no_hours(monkeypatch: pytest.MonkeyPatch) -> None:
    def none(self: Teller, **asked: Any) -> Any:
        raise NoSources("nothing keeps hours")

    monkeypatch.setattr(Teller, "hours", none)
    told = attempt.carry_out({"kind": "HOURS", "pool": "x", "since": "x"}, Teller(), None)  # type: ignore[arg-type]
    assert told == {"rows": [], "machines": {}, "silent": {}}


@given(st.text(max_size=12), st.text(max_size=12), st.lists(st.text(max_size=12), max_size=3))
def test_a_request_is_right_or_refused(since: str, before: str, by: list[str]) -> None:
    try:
        found = hours.wanted(since, before, by, NOW)
    except Refused:
        return
    assert found.since < found.before and set(found.by) <= {*hours.FIELDS}


@pytest.mark.parametrize(
    ("since", "before", "by", "words"),
    [
        ("2026-13", None, [], "2026-13 is no month"),
        ("2026-11", "2026-11", [], "is empty"),
        ("9999-01", None, [], "is empty"),
        (None, None, ["login"], "login is no field"),
    ],
)
def test_wrong_requests_are_refused(since: str, before: str, by: list[str], words: str) -> None:
    with pytest.raises(Refused, match=words):
        hours.wanted(since, before, by, NOW)


def test_a_year_counts_unless_told_otherwise() -> None:
    assert hours.wanted(None, None, [], NOW) == hours.Wanted("2025-12", "2026-12", ("month",))
    december = datetime(2026, 12, 31, 23, tzinfo=UTC).timestamp()
    assert hours.wanted(None, None, [], december).before == "2027-01"


# The pages and the interface.


@pytest.fixture
def paas(tmp_path: Path, iam: Provider, request: pytest.FixtureRequest) -> Iterator[Site]:
    iam.accounts, iam.more = {}, {}
    issuers = [
        {
            "issuer": iam.url,
            "administrators": "admins",
            "ca_file": str(iam.ca_file),
            "login_claim": "preferred_username",
        }
    ]
    templates = {"notes": {"template": "notes.yaml", "accounts": True}, "needy": {"template": "needy.yaml"}}
    changes = {"issuers": issuers, "templates": templates, "hours_minutes": 60} | getattr(
        request, "param", {}
    )
    with site(tmp_path, iam, **with_pages(tmp_path, iam), **changes) as made:
        yield made


def filled(paas: Site, told: dict[str, Any], now: float = NOW) -> Site:
    keep(paas.service.database, told, now)
    return paas


def rows(answered: Any) -> list[dict[str, Any]]:
    assert answered.status_code == 200, answered.text
    return list(answered.json()["rows"])


def test_users_see_their_own_hours_only(paas: Site) -> None:
    filled(paas, answer(row("ann"), row("bob"), row("Ann"), row("ann ")))
    for query in ("", "&of=me", "&by=user", "&user=bob", "&by=user&login=bob", "&of=me&of=me"):
        found = rows(paas.user("ann").get(f"/hours?{PERIOD}&by=user{query}"))
        assert [(one["user"], one["slice_hours"]) for one in found] == [("ann", 2.0)]
    assert paas.user("ann").get(f"/hours?{PERIOD}&of=all").status_code == 403
    assert paas.client().get("/hours").status_code == 401
    browser = paas.browser("ann")
    browser.get(f"/ui/hours?{PERIOD}")
    assert "bob" not in browser.page.text
    for path in ("all-hours", "all-hours.csv", "all-hours.json"):
        assert browser.get(f"/ui/{path}").status_code == 403


def test_a_subject_that_is_the_name_of_another_account_gives_nothing(paas: Site) -> None:
    filled(paas, answer(row("bob")))
    assert rows(paas.user("bob", preferred_username="robert").get(f"/hours?{PERIOD}")) == []


@pytest.mark.parametrize("name", ["", 7, False, ["ann"], "a\nb", {"a": 1}])
def test_a_user_without_a_login_sees_nothing_and_is_told(paas: Site, name: Any) -> None:
    filled(paas, answer(row("ann"), row("")))
    told = paas.user("ann", preferred_username=name).get(f"/hours?{PERIOD}")
    assert told.status_code == 404 and "does not know the name of your account" in told.text


def test_without_the_claim_of_the_operator_no_login_is_known(
    paas: Site, tmp_path: Path, iam: Provider
) -> None:
    folder = tmp_path / "other"
    folder.mkdir()
    with site(folder, iam, **with_pages(folder, iam), hours_minutes=60) as other:
        filled(other, answer(row("ann")))
        ann, eve = other.browser("ann"), other.browser("eve", "admins")
        ann.get("/ui/hours")
        assert "does not know the name of your account" in ann.page.select_one("#unknown").text
        assert ann.page.select("table") == []
        assert ann.http.get(f"/ui/hours.json?{PERIOD}").json()["rows"] == []
        # nobody said that the accounts of the site are those of this issuer
        assert eve.http.get(f"/ui/all-hours.json?{PERIOD}").json()["rows"] == []


def deployed(paas: Site, user: str, template: str = "notes", *groups: str) -> str:
    text = paas.template if template == "notes" else paas.closed
    body = {
        "template": text,
        "parameters": {"name": "x", "admin_password": "y"} if template == "needy" else {},
    }
    made = paas.user(user, *groups).post(
        "/deployments", json=body | ({"userGroup": groups[0]} if groups else {})
    )
    assert made.status_code == 201, made.text
    return str(made.json()["uuid"])


def test_machines_of_deployments_count_for_users_only_where_the_operator_says_so(paas: Site) -> None:
    vouched, other = deployed(paas, "bob"), deployed(paas, "bob", "needy")
    told = answer(row(), row(machine="hub1"), row(machine="hub2"), hub1=vouched, hub2=other)
    filled(paas, told)
    assert [one["machine"] for one in rows(paas.user("ann").get(f"/hours?{PERIOD}&by=machine"))] == [
        "ctl",
        "hub1",
    ]
    everything = rows(paas.user("eve", "admins").get(f"/hours?{PERIOD}&by=machine"))
    assert [one["machine"] for one in everything] == ["ctl", "hub1", "hub2"]


def test_administrators_see_no_deployments_of_other_issuers(paas: Site) -> None:
    own = deployed(paas, "bob")
    filled(paas, answer(row(machine="hub1"), row(machine="lost"), hub1=own, lost="unknown-deployment"))
    with paas.service.database.changing() as session:
        found = session.scalars(select(Use).where(Use.machine == "hub1")).one()
        found.issuer = "https://other.example.org/"
    assert rows(paas.user("eve", "admins").get(f"/hours?{PERIOD}")) == []
    assert rows(paas.user("ann").get(f"/hours?{PERIOD}")) == []


def test_a_use_stays_with_the_deployment_that_held_the_machine_first(paas: Site) -> None:
    first, then = deployed(paas, "bob", "notes", "physics"), deployed(paas, "eve", "notes", "course")
    filled(paas, answer(row(machine="hub1"), hub1=first))
    filled(paas, answer(row(machine="hub1"), row("dan", "hub1"), hub1=then), NOW + 3600)
    found = rows(paas.user("eve", "admins").get(f"/hours?{PERIOD}&by=project&by=user"))
    assert [(one["project"], one["user"]) for one in found] == [("course", "dan"), ("physics", "ann")]


def test_looks_of_administrators_are_in_the_audit(paas: Site) -> None:
    filled(paas, answer(row()))
    paas.browser("eve", "admins").get("/ui/all-hours")
    paas.browser("ann").get("/ui/hours")
    with paas.service.database.reading() as session:
        assert [(one.subject, one.action) for one in session.scalars(select(Audit))] == [
            ("eve", "list hours")
        ]


def test_the_page_has_a_table_bars_and_files(paas: Site) -> None:
    filled(paas, answer(row(), row(month="2026-10", slice_hours=4.0, identity="2"), row("bob")))
    ann = paas.browser("ann")
    assert ann.get(f"/ui/hours?{PERIOD}&by=month&by=profile").status_code == 200
    assert [one.text for one in ann.page.select("thead th")][:2] == ["Month", "Profile"]
    cells = [[cell.text.strip() for cell in line.select("td")] for line in ann.page.select("tbody tr")]
    assert cells == [
        ["2026-10", "1g.10gb", "4.0", "0.0", "4.0", "8.0"],
        ["2026-11", "1g.10gb", "2.0", "0.0", "4.0", "8.0"],
    ]
    assert [cell.text for cell in ann.page.select("tfoot td")] == ["6.0", "0.0", "8.0", "16.0"]
    assert [(one["value"], one["max"]) for one in ann.page.select("progress")] == [
        ("4.0", "4.0"),
        ("2.0", "4.0"),
    ]
    links = [one["href"] for one in ann.page.select("main .actions a")]
    in_csv, in_json = (ann.http.get(link) for link in links)
    assert "attachment" in in_csv.headers["Content-Disposition"]
    assert [one["slice_hours"] for one in csv.DictReader(io.StringIO(in_csv.text))] == ["4.0", "2.0"]
    assert [one["slice_hours"] for one in in_json.json()["rows"]] == [4.0, 2.0]


@pytest.mark.parametrize(
    "name", ["<script>alert(1)</script>", '"><img src=x onerror=alert(1)>', "=cmd()", "@x"]
)
def test_names_are_neither_html_nor_formulas(paas: Site, name: str) -> None:
    filled(paas, answer(row(name, group=name, machine=name), silent={f"{name}2": name}))
    eve = paas.browser("eve", "admins")
    eve.get(f"/ui/all-hours?{PERIOD}&by=user&by=group&by=machine")
    assert [one.get("src") for one in eve.page.select("script, img")] == ["/ui/static/pages.js"]
    assert [cell.text for cell in eve.page.select("tbody td")][:3] == [name] * 3
    lines = [*csv.reader(io.StringIO(eve.http.get(f"/ui/all-hours.csv?{PERIOD}&by=user&by=group").text))]
    assert not any(cell[:1] in ("=", "@", "+", "-") for line in lines for cell in line)


@pytest.mark.parametrize(
    "query",
    [
        "since=0001-01&before=9999-12",
        "since=2026-11&before=2026-10",
        "since='",
        "by=' OR 1=1 --",
        "by=" + "x" * 99,
        "since=%00",
        "before=2026-1" + "0" * 40,
        "&".join(["by=month"] * 40),
        "by=user&by=user",
    ],
)
def test_odd_requests_are_answered_or_refused(paas: Site, query: str) -> None:
    filled(paas, answer(row("bob")))
    ann = paas.browser("ann")
    for found in (ann.http.get(f"/ui/hours?{query}"), paas.user("ann").get(f"/hours?{query}")):
        assert found.status_code in (200, 400, 422), found.text
        assert "bob" not in found.text


def test_too_many_rows_are_refused_and_long_tables_cut(paas: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    filled(paas, answer(*(row(f"user{number:04}") for number in range(600))))
    eve = paas.browser("eve", "admins")
    eve.get(f"/ui/all-hours?{PERIOD}&by=user")
    assert len(eve.page.select("tbody tr")) == 500
    assert "500 of 600 rows" in eve.page.text
    assert eve.http.get(f"/ui/all-hours.csv?{PERIOD}&by=user").text.count("\n") == 601
    monkeypatch.setattr(hours, "MOST", 599)
    told = eve.get(f"/ui/all-hours?{PERIOD}&by=user")
    assert told.status_code == 400 and "choose fewer months or fields" in eve.page.text


def test_silent_machines_are_named_with_the_time_of_their_numbers(paas: Site) -> None:
    deployment = deployed(paas, "bob")
    filled(paas, answer(row(), row(machine="own")))
    told = answer(row(), silent={"own": "no route to 10.0.0.7", "theirs": "secret place"}, theirs=deployment)
    filled(paas, told, NOW + 3600)
    ann, eve = paas.browser("ann"), paas.browser("eve", "admins")
    ann.get(f"/ui/hours?{PERIOD}")
    assert "own, last numbers of 20 Nov 2026, 12:00" in ann.page.text
    assert "10.0.0.7" not in ann.page.text and "theirs" not in ann.page.text
    eve.get(f"/ui/all-hours?{PERIOD}")
    assert "no route to 10.0.0.7" in eve.page.text
    assert "theirs, no numbers yet: secret place" in " ".join(eve.page.text.split())
    silent = paas.user("ann").get(f"/hours?{PERIOD}").json()["silent"]
    assert silent == {"own": "it did not answer; last numbers: 2026-11-20T12:00:00+00:00"}


def test_a_reading_that_failed_is_told(paas: Site) -> None:
    filled(paas, answer(row()))
    Gathering(paas.service.database, 60).failed("the key at /srv/key is lost")
    ann, eve = paas.browser("ann"), paas.browser("eve", "admins")
    ann.get(f"/ui/hours?{PERIOD}")
    assert "The last reading has failed" in ann.page.text and "/srv/key" not in ann.page.text
    assert ann.page.select("tbody tr")
    eve.get("/ui/all-hours")
    assert "the key at /srv/key is lost" in eve.page.text


@pytest.mark.parametrize("paas", [{"hours_minutes": 0}], indirect=True)
def test_a_service_that_keeps_no_hours_has_no_page(paas: Site) -> None:
    ann = paas.browser("ann")
    assert ann.get("/ui/hours").status_code == 404
    ann.get("/ui/deployments")
    assert not [one for one in ann.page.select("nav a") if "hours" in one["href"]]
    assert paas.user("ann").get("/hours").status_code == 404


def test_large_sites_are_answered_from_the_database(paas: Site) -> None:
    users = [row(f"user{number % 50}", identity=str(number), month=MONTH) for number in range(5000)]
    filled(paas, answer(*users), time.time())
    found = rows(paas.user("eve", "admins").get("/hours?by=user"))
    assert len(found) == 50 and sum(one["slice_hours"] for one in found) == 10_000
    with paas.service.database.reading() as session:
        assert session.scalar(select(func.count()).select_from(Use)) == 5000
