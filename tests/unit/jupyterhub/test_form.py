"""The spawn form: what it shows, and what it lets through."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import pytest
from bs4 import BeautifulSoup
from gpufarm_hub.spawning import form

SIZES = ["1G", "2G"]


def shown(html: str) -> BeautifulSoup:
    return BeautifulSoup(html, "html.parser")


def test_shows_how_many_slices_of_each_profile_are_free() -> None:
    offers = [form.Offer("1g.10gb", 10 << 30, 3, 7), form.Offer("3g.40gb", 40 << 30, 0, 1)]
    gpu = shown(form.render(SIZES, offers)).find("select", {"name": "gpu"})
    options = {option["value"]: option for option in gpu.find_all("option")}
    assert list(options) == ["", "1g.10gb", "3g.40gb"]
    assert options["1g.10gb"].text == "1g.10gb (10 GiB): 3 of 7 free"


def test_shows_how_many_wait() -> None:
    gpu = shown(form.render(SIZES, [form.Offer("1g.10gb", 10 << 30, 0, 7, 2)])).find(
        "select", {"name": "gpu"}
    )
    option = gpu.find_all("option")[1]
    assert option.text == "1g.10gb (10 GiB): 0 of 7 free, 2 waiting"
    assert not option.has_attr("disabled")


def test_what_is_kept_for_others_is_not_shown_as_free() -> None:
    offer = form.Offer("1g.10gb", 10 << 30, 0, 7, 2, 1, "2026-11-25 10:00 UTC")
    assert "0 of 7 free, 1 kept for others until 2026-11-25 10:00 UTC, 2 waiting" in form.render(
        SIZES, [offer]
    )


@pytest.mark.parametrize(("most", "numbers"), [(1, []), (2, ["1", "2"]), (9, ["1", "2", "3"])])
def test_a_number_of_slices_can_be_chosen_where_there_is_a_choice(most: int, numbers: list[str]) -> None:
    page = shown(form.render(SIZES, [form.Offer("1g.10gb", 1, 3, 3)], most))
    assert [option["value"] for option in page.select("select[name=slices] option")] == numbers


def test_every_field_has_its_label() -> None:
    page = shown(form.render(SIZES, [form.Offer("1g.10gb", 10 << 30, 1, 1)]))
    names = [select["name"] for select in page.find_all("select")]
    assert names == ["memory", "gpu"]
    assert [page.find("label", {"for": name}) is not None for name in names] == [True, True]


@pytest.mark.parametrize(
    ("offers", "problem", "sentence"),
    [
        ([], "", "This machine has no GPU slices at the moment."),
        ([form.Offer("1g.10gb", 1, 0, 7)], "", "All GPU slices are in use; choose one to wait for it."),
        ([], "The GPUs of this machine do not answer.", "The GPUs of this machine do not answer."),
    ],
)
def test_says_why_there_is_nothing_to_choose(offers: list[form.Offer], problem: str, sentence: str) -> None:
    assert shown(form.render(SIZES, offers, problem=problem)).find(id="gpu-summary").text == sentence


def test_who_may_hold_none_is_told_so() -> None:
    page = shown(form.render(SIZES, [form.Offer("1g.10gb", 1, 3, 3)], 0))
    assert page.find(id="gpu-summary").text == "Your account may not hold GPU slices here."
    assert [option["value"] for option in page.select("select[name=gpu] option")] == [""]


def test_without_gpus_there_is_no_gpu_field() -> None:
    assert "gpu" not in form.render(SIZES, None)


def test_names_are_escaped() -> None:
    html = form.render(SIZES, [form.Offer('"><script>', 1, 1, 1)])
    assert "<script>" not in html
    assert shown(html).find_all("option")[-1]["value"] == '"><script>'


def test_the_browsers_answer_becomes_options() -> None:
    sent = {"memory": ["2G"], "gpu": ["1g.10gb"], "_xsrf": ["token"], "admin": ["yes"]}
    assert form.parse(sent) == {"memory": "2G", "gpu": "1g.10gb"}
    assert form.parse({}) == {}


def test_what_is_left_out_is_the_first_size_and_no_gpu() -> None:
    assert form.check({}, SIZES, use_gpu=True) == form.Choice("1G", "", 1)


@pytest.mark.parametrize(
    ("options", "use_gpu", "sentence"),
    [
        ({"memory": "1000G"}, True, "The memory size 1000G is not offered; choose one of 1G, 2G."),
        ({"memory": ["1G"]}, True, r"The memory size \['1G'\] is not offered"),
        ({"gpu": {"a": 1}}, True, "must be given by the name of its profile"),
        ({"gpu": "1g.10gb"}, False, "This service offers no GPUs."),
        ({"slices": "0"}, True, "The number of slices is 0; give a whole number from 1."),
        ({"slices": True}, True, "The number of slices is True;"),
        ({"slices": ["2"]}, True, r"The number of slices is \['2'\];"),
        ({"slices": "2\n"}, True, "The number of slices is 2\n;"),
        ({"slices": "\u0662"}, True, "The number of slices is"),
    ],
)
def test_what_is_not_offered_is_refused(options: dict[str, object], use_gpu: bool, sentence: str) -> None:
    """Options reach the hub through its REST API as well, in any shape."""
    with pytest.raises(form.ChoiceError, match=sentence):
        form.check(options, SIZES, use_gpu)


def test_cores_and_time_are_fields_only_where_there_is_a_choice() -> None:
    page = shown(form.render(SIZES, [], cpu_choices=["2"], hours=1))
    assert page.find("select", {"name": "cpus"}) is page.find("select", {"name": "hours"}) is None
    for offers in (None, [], [offer("1g.10gb", 10, 1)]):
        page = shown(form.render(SIZES, offers, cpu_choices=["2", "4"], hours=9.5))
        assert [option["value"] for option in page.select("select[name=cpus] option")] == ["2", "4"]
        options = page.select("select[name=hours] option")
        assert [option["value"] for option in options] == ["1", "2", "4", "8", "9.5"]
        assert [option.text for option in options] == [
            "1 hour",
            "2 hours",
            "4 hours",
            "8 hours",
            "570 minutes",
        ]
        assert [option["value"] for option in options if option.has_attr("selected")] == ["9.5"]


@pytest.mark.parametrize("hours", ["2", 2, 2.0, ""])
def test_a_time_up_to_the_limit_is_taken(hours: object) -> None:
    taken = form.check({"hours": hours, "cpus": "4"}, SIZES, False, cpu_choices=["2", "4"], hours=8)
    assert taken == form.Choice("1G", "", cpus="4", hours=str(hours)[:1])


@pytest.mark.parametrize(
    ("options", "limit", "sentence"),
    [
        ({"hours": "12"}, 8, "The number of hours 12 is not offered; choose one of 1, 2, 4, 8."),
        ({"hours": "0"}, 8, "The number of hours 0 is not offered"),
        ({"hours": "-1"}, 8, "The number of hours -1 is not offered"),
        ({"hours": True}, 8, "The number of hours True is not offered"),
        ({"hours": ["1"]}, 8, "is not offered"),
        ({"hours": float("nan")}, 8, "The number of hours nan is not offered"),
        ({"hours": "1"}, 0, "The number of hours 1 is not offered; leave it out."),
        ({"cpus": "64"}, 0, "The number of CPU cores 64 is not offered; choose one of 2, 4."),
    ],
)
def test_other_times_and_cores_are_refused(options: dict[str, object], limit: float, sentence: str) -> None:
    with pytest.raises(form.ChoiceError, match=sentence):
        form.check(options, SIZES, False, cpu_choices=["2", "4"], hours=limit)


def test_fields_are_shown_only_where_there_is_a_choice() -> None:
    assert form.image_fields([], []) == form.image_fields(["One"], []) == form.last_fields([], []) == ""
    page = shown(
        form.image_fields(["One", "<Two>"], ["docker.io"]) + form.last_fields(["ml"], ["/data", "/b&c"])
    )
    assert [option["value"] for option in page.select("select[name=image] option")] == ["One", "<Two>"]
    assert [option["value"] for option in page.select("select[name=group] option")] == ["", "ml"]
    assert [box["value"] for box in page.select("input[name=mounts]")] == ["/data", "/b&c"]
    for field in page.select("select, input"):
        assert page.find("label", {"for": field["id"]})


def test_boxes_that_are_ticked_become_a_list() -> None:
    sent = {"mounts": ["/a", "/b"], "image": ["One"], "group": [""]}
    assert form.parse(sent) == {"mounts": ["/a", "/b"], "image": "One", "group": ""}


def offer(profile: str, gib: int, free: int, likely: str = "") -> form.Offer:
    return form.Offer(profile, gib << 30, free, 7, likely=likely)


@pytest.mark.parametrize(
    ("offers", "left", "chosen"),
    [
        ([offer("3g.40gb", 40, 1), offer("1g.10gb", 10, 3)], 1, "1g.10gb"),
        ([offer("3g.40gb", 40, 1), offer("1g.10gb", 10, 0)], 1, "3g.40gb"),
        ([offer("1g.10gb", 10, 0)], 1, ""),  # the form left as it is must not lead into the queue
        ([offer("1g.10gb", 10, 3)], 0, ""),  # nor to a refusal
        ([], 1, ""),
    ],
)
def test_the_smallest_free_slice_is_proposed(offers: list[form.Offer], left: int, chosen: str) -> None:
    assert form.preselected(offers, left) == chosen


def explained(html: str) -> str:
    found = shown(html).find(id="explained")
    return " ".join(found.text.split()) if found else ""


def test_a_shared_slice_is_a_choice_of_its_own_with_a_warning() -> None:
    offers = [offer("1g.10gb", 10, 0), form.Offer("1g.10gb", 10 << 30, 5, 28, notebooks=4)]
    page = shown(form.render(SIZES, offers, most=9))
    options = {option["value"]: option.text for option in page.select("select[name=gpu] option")}
    assert options["1g.10gb.shared"] == "1g.10gb (10 GiB), shared by up to 4 notebooks: 5 of 28 seats free"
    assert page.find(id="gpu-summary").text.endswith("unless you choose a shared one.")
    assert "its memory in common: one that takes all of the memory" in explained(str(page))
    assert [option["value"] for option in page.select("select[name=slices] option")][-1] == "7"
    assert form.preselected(offers, 1) == "", "nobody shares who does not choose to"
    assert "share" not in form.render(SIZES, offers[:1])


def test_newcomers_read_what_a_slice_is() -> None:
    assert "A slice is a part of a GPU" in explained(form.render(SIZES, [offer("1g.10gb", 10, 1)]))
    assert explained(form.render(SIZES, [offer("1g.10gb", 10, 1)], most=0)) == ""
    assert explained(form.render(SIZES, [])) == explained(form.render(SIZES, None)) == ""


def test_the_likely_wait_is_shown_where_it_is_known() -> None:
    known, unknown = offer("1g.10gb", 10, 0, "2026-11-25 10:00 UTC"), offer("3g.40gb", 40, 0)
    assert str(known) == "1g.10gb (10 GiB): 0 of 7 free, likely free by 2026-11-25 10:00 UTC"
    assert "likely" not in str(offer("1g.10gb", 10, 1, "2026-11-25 10:00 UTC"))
    told = explained(form.render(SIZES, [known, unknown]))
    assert 'A time after "likely free by" is the latest' in told
    assert "How long you would wait for 3g.40gb is not known" in told
    told = explained(form.render(SIZES, [offer("1g.10gb", 10, 1)]))
    assert "likely" not in told and "How long" not in told


@pytest.mark.parametrize(
    ("idle_gpu", "idle", "hours", "use_gpu", "sentence"),
    [
        (
            "2 hours",
            "24 hours",
            "",
            True,
            "A notebook that nobody uses is ended after 2 hours if it holds a slice, else after 24 hours.",
        ),
        ("2 hours", "", "", True, "A notebook with a slice that nobody uses is ended after 2 hours."),
        ("", "24 hours", "", True, "A notebook without a slice that nobody uses is ended after 24 hours."),
        ("2 hours", "24 hours", "", False, "A notebook that nobody uses is ended after 24 hours."),
        ("", "", "8 hours", True, "Yours is ended after 8 hours in any case."),
    ],
)
def test_newcomers_read_when_a_notebook_ends(
    idle_gpu: str, idle: str, hours: str, use_gpu: bool, sentence: str
) -> None:
    assert form.when_it_ends(idle_gpu, idle, hours, use_gpu) == (
        f"Closing the browser does not stop a notebook. {sentence} "
        "You are warned before, and your files are kept."
    )


def test_a_notebook_that_nothing_ends() -> None:
    assert form.when_it_ends("", "", "", True) == "Closing the browser does not stop a notebook."
