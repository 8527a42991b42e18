"""The page of a lab server's queue: submitting, moving, stopping and scheduling, by mouse and by keyboard."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.browser.conftest import Opens
from tests.browser.records import HOSTILE
from tests.browser.tab import Scheme, Tab
from tests.collector.lab.conftest import plan_text
from tests.commands import wait_until

from soakwatch.lab.dispatcher import Dispatcher
from soakwatch.lab.lab import Lab
from soakwatch.lab.lab_model import JobState, Order, User
from soakwatch.lab.plans_folder import PlansFolder
from soakwatch.plan.web import WebPlan
from soakwatch.web.access import Token
from soakwatch.web.named_tokens import NamedTokens
from soakwatch.web.run_folder import RunFolder
from soakwatch.web.server import serve

ANNA = User("anna", "operator")
LOGIN_REFUSED = r"status of 401|404.*favicon"


@dataclass
class Shown:
    """A queue that nobody works on, and where its pages are."""

    lab: Lab
    url: str
    tokens: dict[str, str]

    def visit(self, tab: Tab, role: str) -> Tab:
        """The page of the queue, for someone who has logged in with a token."""
        tab.forgive(LOGIN_REFUSED)
        tab.page.goto(self.url)
        tab.page.get_by_label("Or enter your token").fill(self.tokens[role])
        tab.page.get_by_role("button", name="Log in").click()
        tab.page.get_by_role("link", name="Queue").click()
        tab.page.get_by_text("running, ").wait_for()
        return tab

    def ids(self) -> list[int]:
        """The jobs that wait."""
        return [job.id for job in self.lab.store.jobs(JobState.QUEUED)]


@contextmanager
def shown(folder: Path) -> Iterator[Shown]:
    """Serve a queue with plans, one of them wrong."""
    plans, runs = folder / "plans", folder / "runs"
    (plans / "fw").mkdir(parents=True)
    runs.mkdir()
    (plans / "fw" / "night.yaml").write_text(plan_text("192.0.2.1"))
    (plans / "a-wrong.yaml").write_text(plan_text("192.0.2.1").replace("duration", "duratoin"))
    lab = Lab(runs, PlansFolder(plans))
    people = NamedTokens(runs)
    tokens = {role: people.add(f"{role}-anna", role) for role in ("viewer", "operator")}
    folder_served = RunFolder(runs, (lab, Dispatcher(lab)))
    with serve(
        WebPlan(listen="127.0.0.1:0"), Token("a-token-of-a-test-0123456789"), folder_served, people=people
    ) as web:
        yield Shown(lab, web.url, tokens)
    lab.close()


@pytest.fixture
def queue(tmp_path: Path) -> Iterator[Shown]:
    """A queue of the test's own."""
    with shown(tmp_path) as one:
        yield one


def full(queue: Shown) -> Shown:
    """A queue with something of everything, names that attack among them."""
    for label in ("7.2", HOSTILE[0][:150] if HOSTILE[0].isprintable() else "<script>alert(1)</script>"):
        queue.lab.submit(Order("fw/night.yaml", {"release": label}), ANNA)
    queue.lab.submit(Order("fw/night.yaml"), User("<img src=x onerror=alert(1)>", "operator"))
    queue.lab.cancel(queue.lab.submit(Order("fw/night.yaml"), ANNA).id, ANNA, "<b>not</b> today")
    queue.lab.schedule(Order("fw/night.yaml"), ANNA, cron_text="0 20 * * mon-fri", zone="Europe/Vienna")
    queue.lab.enable(1, ANNA, on=False)
    return queue


def test_a_plan_is_submitted_moved_and_cancelled(queue: Shown, tabs: Opens) -> None:
    """From the list of runs on; the first plan that can be run is chosen, and what is wrong with another is told."""
    tab = queue.visit(tabs(), "operator")
    page = tab.page
    page.get_by_text("Run night on 192.0.2.1, 1 h long.").wait_for()
    assert page.locator("#plan").input_value() == "fw/night.yaml"
    page.locator("#plan").select_option("a-wrong.yaml")
    assert "a-wrong.yaml:2:1: unknown key 'duratoin'" in page.locator("#about").inner_text()
    assert page.get_by_role("button", name="Submit").is_disabled()
    page.locator("#plan").select_option("fw/night.yaml")
    page.get_by_label("Labels").fill("release=7.2, testbed=rack 3")
    page.get_by_label("Values of the plan").fill("duration=2h\nrules.memory_growth.tolerance=3%")
    for number in (1, 2, 3):
        page.get_by_role("button", name="Submit").click()
        page.get_by_text(f"Job {number} is queued.").wait_for()
    (first, *_) = queue.lab.store.jobs(JobState.QUEUED)
    assert (first.order.labels, first.planned_s) == ({"release": "7.2", "testbed": "rack 3"}, 7200)
    assert (first.order.values, first.user) == (
        ("duration=2h", "rules.memory_growth.tolerance=3%"),
        User("operator-anna", "operator"),
    )
    page.get_by_role("button", name="Move job 3 up").click()
    wait_until(lambda: queue.ids() == [1, 3, 2], "the move of a job")
    page.get_by_role("button", name="Cancel job 3").click()
    page.get_by_role("dialog", name="Cancel job 3 (fw/night.yaml)?").wait_for()
    page.get_by_label("Reason").fill("not today")
    page.get_by_role("button", name="Cancel the job").click()
    wait_until(lambda: queue.ids() == [1, 2], "the cancelling of a job")
    page.locator("#recent").get_by_text("cancelled by operator-anna: not today").wait_for()
    assert page.locator("#audit tbody tr").first.inner_text().split()[2:5] == ["operator-anna", "(operator)", "cancel"]


def test_what_the_server_refuses_is_told_beside_the_form(queue: Shown, tabs: Opens) -> None:
    """All that is wrong, and what was entered stays."""
    tab = queue.visit(tabs(), "operator")
    tab.forgive("status of 40[03]")
    page = tab.page
    values = page.get_by_label("Values of the plan")
    values.fill("targets.dut.sources.snmp.host=192.0.2.9")
    page.get_by_role("button", name="Submit").click()
    page.get_by_role("alert").get_by_text("needs the role admin").wait_for()
    assert values.input_value() == "targets.dut.sources.snmp.host=192.0.2.9"
    values.fill("duration=never")
    page.get_by_role("button", name="Submit").click()
    page.get_by_role("alert").get_by_text("duration").wait_for()
    assert queue.ids() == []


def test_a_plan_is_scheduled_disabled_and_started(queue: Shown, tabs: Opens) -> None:
    """By cron in a time zone, or once at the reader's own time; removing asks first."""
    page = queue.visit(tabs(), "operator").page
    page.get_by_label("When").select_option("cron")
    page.get_by_label("Minute hour day month weekday").fill("0 20 * * mon-fri")
    page.get_by_label("Time zone").fill("Europe/Vienna")
    page.get_by_role("button", name="Submit").click()
    page.get_by_text("Schedule s1 is made, next at").wait_for()
    page.get_by_label("When").select_option("at")
    page.get_by_label("Time (yours)").fill("2099-12-24T20:00")
    page.get_by_role("button", name="Submit").click()
    page.get_by_text("Schedule s2 is made").wait_for()
    page.get_by_role("button", name="Disable schedule s1").click()
    page.get_by_role("button", name="Enable schedule s1").wait_for()
    page.get_by_role("button", name="Start schedule s1 now").click()
    wait_until(lambda: queue.ids() == [1], "the start of a schedule")
    page.get_by_role("button", name="Remove schedule s2").click()
    page.get_by_role("button", name="Remove", exact=True).click()
    wait_until(lambda: [made.id for made in queue.lab.store.schedules()] == [1], "the removal of a schedule")
    assert not queue.lab.one_schedule(1).enabled


def test_a_viewer_sees_everything_and_no_button(queue: Shown, tabs: Opens) -> None:
    page = full(queue).visit(tabs(), "viewer").page
    page.locator("#schedules tbody tr").wait_for()
    assert page.locator("main button:visible").count() == 0
    assert page.locator("#order").count() == 0
    assert "Logged in as viewer-anna (viewer)" in page.locator("main").inner_text()
    assert page.locator("#queue tbody tr").count() == 3


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_no_barrier(queue: Shown, tabs: Opens, scheme: Scheme) -> None:
    """Of the whole page, and of the dialog; names that attack are only shown."""
    tab = full(queue).visit(tabs(scheme=scheme), "operator")
    tab.page.locator("#schedules tbody tr").wait_for()
    assert tab.barriers() == []
    assert tab.page.get_by_text("<img src=x onerror=alert(1)>").first.is_visible()
    tab.page.get_by_role("button", name="Cancel job 1").click()
    assert tab.barriers() == []


def test_the_page_is_used_by_keyboard_and_on_a_telephone(queue: Shown, tabs: Opens) -> None:
    """Each control is reached in order and shows the focus, which stays where it was when the tables are drawn anew."""
    tab = full(queue).visit(tabs(), "operator")
    tab.page.locator("#schedules tbody tr").wait_for()
    assert tab.tour() == []
    up = tab.page.get_by_role("button", name="Move job 3 up")
    up.focus()
    tab.page.keyboard.press("Enter")
    wait_until(lambda: queue.ids() == [1, 3, 2], "the move of a job")
    tab.page.wait_for_function("() => document.querySelector('#queue tbody tr:nth-child(2)').dataset.key === 'q3'")
    assert tab.focused() == "button# Move job 3 up"
    tab.page.set_viewport_size({"width": 390, "height": 844})
    assert tab.too_wide() == []


def test_a_server_that_is_away_is_said_and_asked_again(queue: Shown, tabs: Opens) -> None:
    tab = queue.visit(tabs(), "viewer")
    tab.forgive("ERR_FAILED|Failed to load")
    tab.page.route("**/api/lab", lambda route: route.abort())
    for _ in range(2):
        with tab.page.expect_event("requestfailed"):
            tab.page.evaluate("() => dispatchEvent(new Event('visibilitychange'))")
    tab.page.get_by_text("What runs goes on; this page asks again.").wait_for()
    tab.page.unroute("**/api/lab")
    tab.page.evaluate("() => dispatchEvent(new Event('visibilitychange'))")
    tab.page.locator("#lost").wait_for(state="hidden")
