"""What `--plot` draws: panels of the queues that were contended most, in units of time that people use."""

from __future__ import annotations

from math import isnan
from pathlib import Path
from typing import Any

import pytest
from sluice_scheduler.simulator.compare import Outcome, table
from sluice_scheduler.simulator.plot import PANELS_MAX, draw_comparison, draw_queues, plot_queues, unit_of
from sluice_scheduler.simulator.run import Result, Simulation
from sluice_scheduler.simulator.samples import (
    Interval,
    Portion,
    Sample,
    averaged,
    contended_times,
    most_contended,
    play,
    window,
)
from sluice_scheduler.simulator.scenario import Scenario, ScenarioError

HOUR_MS = 3_600_000


def sample(at_ms: int, *, contended: bool = False, **held: float | tuple[float, float, float]) -> Sample:
    portions = {
        queue: Portion(held=figures)
        if isinstance(figures, float)
        else Portion(held=figures[0], deserved=figures[1], asked=figures[2])
        for queue, figures in held.items()
    }
    return Sample(at_ms=at_ms, contended=contended, portions=portions)


@pytest.mark.parametrize(
    ("span_ms", "unit"),
    [
        (0, "seconds"),
        (90_000, "seconds"),
        (10 * 60_000, "minutes"),
        (5 * HOUR_MS, "hours"),
        (150 * 24 * HOUR_MS, "days"),
    ],
)
def test_time_is_told_in_a_unit_that_fits(span_ms: int, unit: str) -> None:
    assert unit_of(span_ms).name == unit


def test_contended_times_that_touch_are_one() -> None:
    samples = [
        sample(0),
        sample(10, contended=True),
        sample(20, contended=True),
        sample(30),
        sample(40, contended=True),
        sample(50),
    ]
    assert contended_times(samples) == [Interval(10, 30), Interval(40, 50)]


def test_who_lacks_most_while_pods_wait_is_contended_most() -> None:
    samples = [
        sample(0, rich=(0.9, 0.3, 0.9), modest=(0.1, 0.5, 0.1), poor=(0.1, 0.3, 0.9), late=(0.0, 0.5, 0.5)),
        sample(10, contended=True, rich=(0.9, 0.3, 0.9), modest=(0.1, 0.5, 0.1), poor=(0.1, 0.3, 0.9)),
        sample(20),
    ]
    assert most_contended(samples, 1) == ["poor"], "who asks for less, or holds more, lacks nothing"
    assert most_contended(samples, 2) == ["rich", "poor"], "then who holds most; in their order"
    assert most_contended([sample(0, contended=True, a=0.1, b=0.2), sample(1, a=0.1, b=0.2)], 1) == ["b"]


def test_what_is_drawn_is_the_time_around_contention() -> None:
    idle = [sample(0, a=0.0), sample(1000, contended=True, a=0.5), sample(1100, a=0.5), sample(5000, a=0.0)]
    assert window([idle]) == Interval(990, 1110)
    assert window([idle, [sample(0), sample(2000, contended=True), sample(2100)]]) == Interval(890, 2210)
    most = [sample(0, a=0.0), sample(10, contended=True, a=0.5), sample(90, a=0.5), sample(100, a=0.0)]
    assert window([most]) == Interval(0, 100), "all, if that is most of it"
    assert window([[sample(0), sample(70)]]) == Interval(0, 70)


def test_where_points_would_lie_over_each_other_means_are_drawn() -> None:
    samples = [sample(at, a=(at / 100, 0.5, float(at % 20 == 0))) for at in range(0, 110, 10)]
    assert averaged(samples, Interval(0, 100), 10) == samples
    halves = averaged(samples, Interval(0, 100), 2)
    assert [each.at_ms for each in halves] == [0, 50, 100]
    found = [each.portions["a"] for each in halves]
    assert [portion.held for portion in found] == pytest.approx([0.2, 0.7, 0.7])
    assert [portion.deserved for portion in found] == pytest.approx([0.5, 0.5, 0.5])
    assert [portion.asked for portion in found] == pytest.approx([0.6, 0.4, 0.4])
    long = [sample(0, a=1.0), sample(1, a=0.0), sample(2, a=0.5), sample(60, a=0.25), sample(100, a=0.0)]
    assert [each.portions["a"].held for each in averaged(long, Interval(0, 100), 2)] == pytest.approx(
        [(1 + 48 * 0.5) / 50, (10 * 0.5 + 40 * 0.25) / 50, 0.3]
    )
    thirds = averaged(samples, Interval(20, 80), 3)
    assert [each.portions["a"].held for each in thirds] == pytest.approx([0.25, 0.45, 0.65, 0.65])


def drawn_lines(axes: Any) -> list[str]:
    return [line.get_color() for line in axes.lines]


def test_a_panel_a_queue_with_what_is_known_of_it(tmp_path: Path) -> None:
    """Of `a` nobody knows what it deserved or asked for, and of `b` only sometimes."""
    samples = [
        sample(0, a=0.5, b=(0.2, 0.3, 4.0)),
        sample(2 * HOUR_MS, contended=True, a=0.7, b=0.1),
        sample(5 * HOUR_MS, a=0.0, b=(0.3, 0.3, 0.3)),
    ]
    figure = draw_queues(samples)
    a, b = figure.axes
    assert (a.get_title(loc="left"), b.get_title(loc="left"), b.get_xlabel()) == ("a", "b", "hours")
    assert (drawn_lines(a), drawn_lines(b)) == ([], ["black", "tab:red"])
    assert max(y for y in b.lines[1].get_ydata() if not isnan(y)) < b.get_ylim()[1], "along the edge"
    assert [text.get_text() for text in figure.legends[0].texts] == [
        "held",
        "deserved",
        "asked for",
        "some pod waits",
    ]
    plot_queues(samples, tmp_path / "out.png")
    assert (tmp_path / "out.png").read_bytes().startswith(b"\x89PNG")
    with pytest.raises(ScenarioError, match="no-such-folder"):
        plot_queues(samples, tmp_path / "no-such-folder" / "out.png")


def test_a_picture_ends_with_the_run() -> None:
    """And what a run held in its end is drawn to the end of a longer one beside it."""
    short = [sample(0, contended=True, a=0.5), sample(60_000, a=0.7)]
    (axes,) = draw_queues(short).axes
    assert axes.get_xlim() == (0, 60)
    longer = [*short, sample(100_000, a=0.1)]
    outcomes = [
        Outcome(policy=name, result=Result(), mean_shares={}, mean_waits_s={"a": 0.0}, samples=samples)
        for name, samples in (("drf", short), ("fifo", longer))
    ]
    first, second, _ = draw_comparison(outcomes).axes
    assert first.get_xlim() == second.get_xlim() == (0, 100)
    assert [axes.collections[-1].get_datalim(axes.transData).x1 for axes in (first, second)] == [100, 100]
    (at_once,) = draw_queues([sample(0, a=0.5)]).axes
    assert at_once.get_xlim() == (0, 0.001)


def test_queues_without_a_panel_are_named() -> None:
    held: dict[str, Any] = {f"q{number}": number / 100 for number in range(PANELS_MAX + 30)}
    figure = draw_queues([sample(0, contended=True, **held), sample(10, **held)])
    assert len(figure.axes) == PANELS_MAX
    told = figure.get_supxlabel().replace("\n", " ")
    assert told.startswith("contended less, and not drawn: q0, q1, ")
    assert told.endswith("q19 and 10 more")


def scenario(**more: object) -> Scenario:
    pod_set = {"name": "main", "count": 1, "requests": {"cpu": "1"}}
    job = {"name": "w", "queue": "a", "repeat": 2, "podSets": [pod_set], "runtime": "10s"}
    return Scenario.model_validate(
        {
            "apiVersion": "sluice.dev/v1alpha1",
            "kind": "Scenario",
            "pools": [{"name": "p", "nodes": 1, "capacity": {"cpu": "1"}}],
            "queues": [{"name": "team"}, {"name": "a", "parent": "team"}],
            "events": [{"at": "5s", "submit": job}],
        }
        | more
    )


def test_what_is_thrown_away_is_told_by_queue_and_in_all() -> None:
    """Ten seconds after the first has begun the other queue, which is guaranteed it all, takes its room."""
    pod_set = {"name": "main", "count": 1, "requests": {"cpu": "1"}}
    jobs = {
        queue: {"name": f"of-{queue}", "queue": queue, "podSets": [pod_set]} for queue in ("poor", "owed")
    }
    played = scenario(
        queues=[{"name": "poor"}, {"name": "owed", "guaranteed": {"cpu": "1"}}],
        events=[{"at": "0s", "submit": jobs["poor"]}, {"at": "10s", "submit": jobs["owed"]}],
        until="60s",
    )
    simulation, samples = play(played)
    summary = simulation.result.summary
    assert summary["lost_work_ms"] == {"poor": 10_000, "owed": 0}
    assert summary["lost_work_total_ms"] == 10_000
    outcome = Outcome(
        policy="drf", result=simulation.result, mean_shares={}, mean_waits_s={}, samples=samples
    )
    assert outcome.as_line()["lost_work_total_ms"] == 10_000
    head, first, *more = table([outcome])
    assert (head.split()[-2:], first.split()[-1]) == (["lost", "work"], "10s")
    assert [line.split() for line in more if line.startswith(("lost work", "poor", "owed"))] == [
        ["lost", "work,", "seconds", "drf"],
        ["poor", "10"],
    ]


def test_a_simulation_remembers_when_pods_waited() -> None:
    simulation, samples = play(scenario(until="60s"))
    found = {each.at_ms: (each.contended, each.portions["a"].held) for each in samples}
    assert {at_ms: found[at_ms] for at_ms in (0, 5_000, 15_000, 25_000, 60_000)} == {
        0: (False, 0.0),
        5_000: (True, 1.0),
        15_000: (False, 1.0),
        25_000: (False, 0.0),
        60_000: (False, 0.0),
    }
    assert samples[0].portions.keys() == {"a"}, "leaves only"
    claims = {each.at_ms: (each.portions["a"].deserved, each.portions["a"].asked) for each in samples}
    assert claims[5_000] == (pytest.approx(1.0), 2.0)
    assert claims[15_000] == (pytest.approx(1.0), 1.0)
    assert claims[25_000] == (0.0, 0.0)
    assert simulation.result.contended_ms == 10_000
    assert simulation.result.lines == Simulation(scenario(until="60s")).run().lines
