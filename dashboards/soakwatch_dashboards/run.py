"""The dashboard of one run. Its first screen is for the wall: verdict, phase, device under load, losses, findings."""

# ruff: noqa: S608 - InfluxQL of our own names; what people choose is escaped by Grafana (${name:regex})

from __future__ import annotations

from grafana_foundation_sdk.builders.dashboard import QueryVariable
from grafana_foundation_sdk.models.dashboard import DynamicConfigValue, Panel

from soakwatch.transfer.sinks.grafana import WALL
from soakwatch_dashboards.board import DEVICE_UID, RUN, RUN_UID, Board, Columns, Row, Section, marks, targets, variable
from soakwatch_dashboards.common import (
    DROP_COUNTERS,
    HERE,
    LOAD_LINES,
    MEMORY_LINES,
    THIS_RUN,
    WHOLE,
    coverage,
    coverage_share,
    dropped,
    findings,
    load,
    memory_of_all,
    memory_of_parts,
    newest_findings,
    phases,
    rule_states,
)
from soakwatch_dashboards.influx import (
    TIME,
    Query,
    by_labels,
    counted_in_view,
    extreme_in_view,
    growth,
    largest,
    one_of,
    series,
    spread,
    tag_is,
    total,
)
from soakwatch_dashboards.panels import Column, band, figure, lines, of_unit, rows, sentence, word
from soakwatch_dashboards.style import (
    GREEN,
    GREY,
    ORANGE,
    OUTCOMES,
    PACKETS,
    PER_SECOND,
    PURPLE,
    RED,
    TILE,
    UPNESS,
    YELLOW,
    in_colour,
    unit_of,
)
from soakwatch_model.metric import BY_NAME

_RUN = one_of("run")
_RUNNING = f'{_RUN} AND "severity" = -1'
_STALE = '"last_ms" + "stale_after_ms" < $__to'
_UNDER_TEST = f"{HERE} AND \"role\" = 'dut'"
_GROWING = " AND ".join(
    [
        _UNDER_TEST,
        tag_is("target", "growing_on"),
        tag_is("process", "growing"),
        tag_is("instance", "growing_as"),
    ]
)


def _growing(tag: str, name: str, label: str) -> QueryVariable:
    return variable(
        name,
        label,
        largest(
            4,
            tag,
            'SELECT last("value") - first("value") AS "size" FROM "process.memory.usage"'
            f' WHERE {HERE} AND {TIME} GROUP BY "target", "process", "instance"',
        ),
        hidden=True,
        all_value="",
    )


GROWING = (
    _growing("target", "growing_on", "Targets of what grows most"),
    _growing("process", "growing", "Processes that grow most"),
    _growing("instance", "growing_as", "Instances of what grows most"),
)
"""The few processes with the largest growth in the view, since each of twenty devices has one of the same name."""


def _of_verdict(field: str, where: str = _RUN) -> Query:
    return Query(
        f'SELECT last("{field}") AS "{field}" FROM "soakwatch_verdict" WHERE {where}',
        table=field in {"headline", "phase"},
    )


def _verdict() -> Panel:
    columns = 'last("begin_ms") AS "begin_ms", last("end_ms") AS "end_ms" FROM "soakwatch_verdict"'
    known = f'SELECT last("rank") AS "rank", {columns} WHERE {_RUN}'
    queries = [
        Query(f'{known} AND ("rank" != -1 OR "last_ms" + "stale_after_ms" >= $__to)', table=True),
        # It says that it runs, but nothing arrived for too long: its collector was killed, or is cut off.
        Query(f'SELECT last("rank") - 2 AS "rank", {columns} WHERE {_RUN} AND "rank" = -1 AND {_STALE}', table=True),
    ]
    return word(
        "Verdict",
        queries,
        "rank",
        "The verdict; RUNNING while the run goes on; STALE where it should go on but its newest reading is too old; NOT"
        " JUDGED where it broke off or was never judged. A click shows the whole run.",
        OUTCOMES,
        [(name, f"/d/{RUN_UID}?{THIS_RUN}&{window}") for name, window in WHOLE],
    )


def _reason() -> Panel:
    return sentence("", _of_verdict("headline"), "headline", "Why the verdict is what it is, in one sentence.", size=18)


def _last_reading() -> Panel:
    age = f'SELECT ($__to - last("last_ms")) / 1000 AS "age" FROM "soakwatch_verdict" WHERE {_RUNNING}'
    return figure(
        "Last poll",
        [
            Query(f'{age} AND "last_ms" + "stale_after_ms" >= $__to', "fresh"),
            Query(f"{age} AND {_STALE}", "stale"),
        ],
        "How long ago the newest poll was answered; red beyond three intervals. A dash when the run has ended.",
        "s",
        size=TILE,
        overrides={"^fresh$": [in_colour(GREEN)], "^stale$": [in_colour(RED)]},
        decimals=0,
    )


def _tiles() -> Row:
    left = Query(
        f'SELECT (last("planned_end_ms") - $__to) / 1000 AS "left" FROM "soakwatch_verdict" WHERE {_RUNNING}'
        ' AND "planned_end_ms" > $__to'
    )
    done = Query(
        'SELECT (last("end_ms") - last("begin_ms")) / (last("planned_end_ms") - last("begin_ms")) AS "done"'
        f' FROM "soakwatch_verdict" WHERE {_RUN}'
    )
    lasted = Query(
        f'SELECT (last("end_ms") - last("begin_ms")) / 1000 AS "lasted" FROM "soakwatch_verdict" WHERE {_RUN}'
    )
    return Row(
        3,
        [
            (5, _verdict()),
            (3, _last_reading()),
            (
                3,
                sentence(
                    "Phase",
                    _of_verdict("phase"),
                    "phase",
                    "The phase of now, of a run that goes on.",
                    size=TILE,
                    empty="ended",
                ),
            ),
            (3, figure("Ran, h:m:s", lasted, "From its start to its end, or until now.", "dthms", size=TILE)),
            (2, figure("Done", done, "Of the time that its plan says.", "percentunit", size=TILE, decimals=0)),
            (3, figure("Left, h:m:s", left, "By its plan. A dash when the run has ended.", "dthms", size=TILE)),
            (
                3,
                figure(
                    "Found",
                    [
                        Query(_of_verdict(count, f'{_RUN} AND ("rank" != -2 OR "{count}" > 0)').query, count)
                        for count in ("failed", "warned")
                    ],
                    "Findings that fail, and that warn; a dash for a run that was not judged. Inconclusive ones have"
                    " a table below.",
                    size=TILE,
                    limits=((None, GREEN), (1, RED)),
                    overrides={
                        "^warned$": [
                            DynamicConfigValue(
                                "thresholds",
                                {
                                    "mode": "absolute",
                                    "steps": [{"value": None, "color": GREEN}, {"value": 1, "color": YELLOW}],
                                },
                            )
                        ]
                    },
                ),
            ),
            (2, _load_failed()),
        ],
    )


def _load_failed() -> Panel:
    lost = {"lost": "load.lost.packets", "failed": "load.failures"}
    return figure(
        "Lost",
        [Query(counted_in_view(metric, _RUN, (), word), word) for word, metric in lost.items()],
        "Packets that the generators lost, and requests of theirs that failed, in the view; a dash where none of them"
        " counts any.",
        "short",
        size=TILE,
        limits=((None, GREEN), (1, RED)),
    )


def _cpu() -> Panel:
    core = ("target", "core")
    return lines(
        "CPU, with the load",
        "percentunit",
        [
            spread("system.cpu.core.utilization", HERE, core, "core"),
            total("system.cpu.module.utilization", HERE, ("target", "module"), "busiest module", of="max"),
            total("system.cpu.utilization", HERE, ("target",), "all cores", of="max"),
            total("process.cpu.utilization", HERE, ("target", "process", "instance"), "busiest process", of="max"),
            *load(),
        ],
        "The busiest, the median and the idlest core, as a band; all cores; the busiest process, of which 100 % is one"
        " core; dashed: the load. The busiest poll of each interval, so that no spike is lost.",
        {
            "^highest core$": [in_colour(ORANGE), *band("lowest core")],
            "^(median|lowest) core$": [in_colour(GREY)],
            "^all cores$": [in_colour(RED), DynamicConfigValue("custom.lineWidth", 2)],
            "^busiest module$": [in_colour(YELLOW)],
            "^busiest process$": [in_colour(PURPLE)],
            **LOAD_LINES,
        },
        1.0,
        compact=True,
    )


def _memory_growth() -> Panel:
    of_all = ("target",)
    return lines(
        "Memory growth since the view began, with the load: what grows most",
        "bytes",
        [
            growth("process.memory.usage", _GROWING, ("target", "process", "instance")),
            growth("system.memory.pool.usage", _UNDER_TEST, ("target", "pool"), "$tag_target pool $tag_pool"),
            growth("system.memory.usage", _UNDER_TEST, of_all, "$tag_target, all of it"),
            growth("system.memory.utilization", _UNDER_TEST, of_all, "$tag_target, share of all of it"),
            *load(),
        ],
        "Of the devices under test the four processes that have grown most in the view, and the pools, each from zero;"
        " all of a device has an axis of its own at the right, for it swings by more than a leak grows; dashed: the"
        " load.",
        {", all of it$": [*of_unit("bytes"), in_colour(GREY)], **MEMORY_LINES, **LOAD_LINES},
        below_zero=True,
        compact=True,
    )


def _lost() -> Panel:
    return lines(
        "Drops and losses a second, with the load",
        PER_SECOND,
        [
            *dropped(HERE),
            # The generator's losses belong to the run, not to the chosen target.
            total("load.lost.packets", _RUN, ("target",), "lost, as the generator counts"),
            total("load.failures", _RUN, ("target",), "requests failed"),
            *load(),
        ],
        "What the device counts as dropped, place by place; what the generator misses; dashed: the load. The left axis"
        " is logarithmic with a zero, so that one drop a minute is seen beside a million a second.",
        {"^lost, ": [in_colour(RED)], "^requests failed$": [in_colour(ORANGE)], **LOAD_LINES},
        small_and_large=True,
        compact=True,
    )


def _devices() -> Panel:
    """A row a device, to find which one of many it is.

    One column for each place of drops: InfluxQL keeps measurements apart, and Grafana's sum would turn no value into 0.
    """
    by = ("target",)
    counted = 'SELECT count("rank") AS "{}" FROM "soakwatch_finding" WHERE {} AND "rank" = {} AND "target" != \'\''
    busy = {
        name: extreme_in_view(f"system.cpu.{part}utilization", _UNDER_TEST, by, name, of="max")
        for name, part in (("all cores", ""), ("busiest module", "module."))
    }
    rising = (
        'SELECT mean("rate") AS "an hour" FROM (SELECT derivative(mean("value"), 1h) AS "rate" FROM'
        f' "system.memory.usage" WHERE {_UNDER_TEST} AND {TIME} GROUP BY time($__interval), "target" fill(none))'
    )
    places = {metric: f"dropped: {place}" for metric, _, place in DROP_COUNTERS}
    selected = {
        **{name: counted.format(name, HERE, rank) for name, rank in (("failed", 3), ("warned", 2))},
        **busy,
        "now": f'SELECT last("value") AS "now" FROM "system.memory.usage" WHERE {_UNDER_TEST} AND {TIME}',
        "an hour": rising,
        **{name: counted_in_view(metric, _UNDER_TEST, by, name) for metric, name in places.items()},
        "answered": f'SELECT mean("ok") AS "answered" FROM "soakwatch_poll" WHERE {_UNDER_TEST} AND {TIME}',
    }
    to_device = (
        f"/d/{DEVICE_UID}?{THIS_RUN}&var-target=${{__data.fields.target:percentencode}}"
        "&from=${__from:percentencode}&to=${__to:percentencode}"
    )
    return rows(
        "Devices",
        [by_labels((name,), select, by) for name, select in selected.items()],
        {
            "Time": Column(hidden=True),
            "target": Column("Target", links=[("The device", to_device)]),
            "failed": Column("Failed", width=80, text=True),
            "warned": Column("Warned", width=80, text=True),
            "all cores": Column("CPU, at most", "percentunit", width=110, decimals=0, text=True),
            "busiest module": Column("Its module", "percentunit", width=100, decimals=0, text=True),
            "now": Column("Memory now", "bytes", width=110, text=True),
            "an hour": Column("Growth per hour", "bytes", width=130, text=True),
            **{name: Column(name.capitalize(), "short", width=150, text=True) for name in places.values()},
            "answered": Column("Polls answered", "percentunit", width=120, decimals=2, text=True),
        },
        "A row a device, those that failed most first: findings that failed and warned in the whole run; the rest is of"
        " the view. A dash: it does not tell. The name leads to the device. A generator or the monitor stands here only"
        " if it failed or warned.",
        sorted_by=("Failed", "Warned"),
    )


def _generator() -> Section:
    def counted(metric: str, word: str) -> Query:
        return series(metric, _RUN, ("target",), alias=f"{word} $tag_target")

    requests = [
        counted("load.offered.rate", "offered"),
        counted("load.request.rate", "answered"),
        counted("load.requests", "answered, counted"),
        counted("load.failure.rate", "failed"),
        counted("load.failures", "failed, counted"),
    ]
    packets = [
        counted("load.offered.packet.rate", "offered"),
        counted("load.tx.packet.rate", "sent"),
        counted("load.rx.packet.rate", "received"),
        counted("load.tx.packets", "sent, counted"),
        counted("load.rx.packets", "received, counted"),
    ]
    bits = [
        counted("load.offered.bit.rate", "offered"),
        counted("load.tx.bit.rate", "sent"),
        counted("load.rx.bit.rate", "received"),
        series("load.tx.bytes", _RUN, ("target",), times="8", alias="sent, counted $tag_target"),
        series("load.rx.bytes", _RUN, ("target",), times="8", alias="received, counted $tag_target"),
    ]
    lost = [
        counted("load.lost.packets", "lost"),
        counted("load.disordered.packets", "out of order"),
        counted("load.retransmits", "sent again"),
        series("load.loss", _RUN, ("target",), alias="loss ratio $tag_target"),
    ]
    users = [
        series("load.users", _RUN, ("target",), alias="users $tag_target"),
        series("load.connections", _RUN, ("target",), alias="connections $tag_target"),
        series("load.connections.opened", _RUN, ("target",), alias="opened a second $tag_target"),
        series("load.connections.failed", _RUN, ("target",), alias="failed a second $tag_target"),
    ]
    return Section(
        "The generator",
        [
            Row(
                9,
                [
                    (8, lines("Requests: offered, answered, failed", "reqps", requests, "Per second.")),
                    (8, lines("Packets: offered, sent, received", PACKETS, packets, "Per second.")),
                    (8, lines("Bits: offered, sent, received", "bps", bits, "Per second.")),
                ],
            ),
            Row(
                9,
                [
                    (
                        12,
                        lines(
                            "Lost, out of order, sent again, a second",
                            PER_SECOND,
                            lost,
                            "Packets and segments; on the right the loss ratio that the generator says.",
                            {"^loss ratio ": of_unit("percentunit")},
                            small_and_large=True,
                        ),
                    ),
                    (
                        12,
                        lines(
                            "Users and connections",
                            "short",
                            users,
                            "That the generator simulates and has open; on the right connections a second.",
                            {"a second ": of_unit("cps")},
                        ),
                    ),
                ],
            ),
        ],
        collapsed=False,
    )


def _flows() -> Section:
    """The generator by flow and port: losses and latency, worst first."""
    of_flow = ("target", "flow")
    flows = {
        "at most": extreme_in_view("load.flow.loss", _RUN, of_flow, "at most", of="max"),
        "sent": counted_in_view("load.flow.tx.packets", _RUN, of_flow, "sent"),
        "received": counted_in_view("load.flow.rx.packets", _RUN, of_flow, "received"),
        "latency": extreme_in_view("load.flow.latency", _RUN, of_flow, "latency", of="max"),
        "jitter": extreme_in_view("load.flow.jitter", _RUN, of_flow, "jitter", of="max"),
    }
    of_flows = rows(
        "By flow",
        [by_labels((word,), select, of_flow) for word, select in flows.items()],
        {
            "Time": Column(hidden=True),
            "target": Column("Generator", width=130),
            "flow": Column("Flow"),
            "at most": Column("Loss, at most", unit_of("load.flow.loss"), width=110, text=True),
            "sent": Column("Sent", "short", width=100, text=True),
            "received": Column("Received", "short", width=100, text=True),
            "latency": Column("Latency, at most", unit_of("load.flow.latency"), width=130, text=True),
            "jitter": Column("Jitter, at most", unit_of("load.flow.jitter"), width=120, text=True),
        },
        "Of each flow that the generators tell apart, in the view: what it counted, and the worst reading.",
        sorted_by=("Loss, at most",),
    )
    of_port = ("target", "port")
    ports = {
        "link": extreme_in_view("load.port.up", _RUN, of_port, "link", of="min"),
        "sent": counted_in_view("load.port.tx.packets", _RUN, of_port, "sent"),
        "received": counted_in_view("load.port.rx.packets", _RUN, of_port, "received"),
        "errors": counted_in_view("load.port.errors", _RUN, of_port, "errors"),
    }
    of_ports = rows(
        "By port",
        [by_labels((word,), select, of_port) for word, select in ports.items()],
        {
            "Time": Column(hidden=True),
            "target": Column("Generator", width=130),
            "port": Column("Port"),
            "link": Column("Link, at the worst", named=UPNESS, width=140),
            "sent": Column("Sent", "short", width=100, text=True),
            "received": Column("Received", "short", width=100, text=True),
            "errors": Column("Errors", "short", width=100, text=True),
        },
        "Of each port of the generators, in the view: what it counted, and the worst reading.",
        sorted_by=("Errors",),
    )

    def by(metric: str, alias: str) -> Query:
        return series(metric, _RUN, ("target", *BY_NAME[metric].labels), alias=alias)

    packets = lines(
        "Packets by port",
        PACKETS,
        [
            by("load.port.tx.packet.rate", "sent $tag_port"),
            by("load.port.rx.packet.rate", "received $tag_port"),
            by("load.port.tx.packets", "sent, counted $tag_port"),
            by("load.port.rx.packets", "received, counted $tag_port"),
            by("load.port.errors", "errors $tag_port $tag_direction"),
        ],
        "Per second; on the right errors.",
        {"^errors ": of_unit("cps")},
    )
    bits = lines(
        "Bits by port",
        "bps",
        [
            series("load.port.tx.bytes", _RUN, ("target", "port"), times="8", alias="sent $tag_port"),
            series("load.port.rx.bytes", _RUN, ("target", "port"), times="8", alias="received $tag_port"),
        ],
        "From the byte counters of the ports.",
    )
    loss = lines("Loss by flow", "percentunit", [by("load.flow.loss", "$tag_flow")], "As the generator says.")
    late = lines(
        "Latency and jitter by flow, with the load",
        "s",
        [
            by("load.flow.latency", "$tag_flow $tag_quantile"),
            by("load.flow.jitter", "jitter $tag_flow"),
            *load(),
        ],
        "Percentiles of each flow.",
        LOAD_LINES,
    )
    return Section(
        "By flow and port of the generator",
        [
            Row(9, [(14, of_flows), (10, of_ports)]),
            Row(9, [(12, packets), (12, bits)]),
            Row(9, [(12, loss), (12, late)]),
        ],
    )


def board() -> Board:
    """The dashboard *Run*."""
    # 18 rows of the grid fit 1080 lines at the browser's 150 %, where Grafana's 12 pixels become 18.
    wall = Columns(
        [
            (12, [(2, phases()), (6, _cpu()), (5, _lost()), (2, coverage_share(HERE))]),
            (12, [(2, _reason()), (6, _memory_growth()), (7, newest_findings(_RUN))]),
        ]
    )
    latency = lines(
        "Latency, with the load",
        "s",
        [series("load.latency", _RUN, ("target", "quantile"), alias="$tag_quantile $tag_target"), *load()],
        "Percentiles that the generators measured.",
        LOAD_LINES,
    )
    sessions = lines(
        "Sessions, with the load",
        "short",
        [series("system.sessions", HERE, ("target", "table")), *load()],
        "Connections that a firewall, a NAT or a balancer keeps.",
        LOAD_LINES,
    )
    used = lines(
        "Memory in use, with the load",
        "bytes",
        [*memory_of_parts(HERE, _GROWING), *memory_of_all(_UNDER_TEST), *load()],
        "Resident memory of the processes that grow most, pools, all of it; on the right shares and the load.",
        {**MEMORY_LINES, **LOAD_LINES},
    )
    queues = lines(
        "Queues, with the load",
        "short",
        [series("queue.depth", HERE, ("target", "queue")), *load()],
        "Packets waiting.",
        LOAD_LINES,
    )
    return Board(
        RUN_UID,
        "Soakwatch · Run",
        "One run: verdict, load, device, losses and findings on one time axis. The first screen is the wall: open it"
        f" with ?{WALL} at 150 % zoom on 1920 x 1080.",
        [
            _tiles(),
            wall,
            Row(7, [(24, _devices())]),
            Row(9, [(12, latency), (12, used)]),
            Row(9, [(24, rule_states(_RUN))]),
            Row(9, [(24, findings(_RUN, "What failed and warned; the name of a rule leads to its window."))]),
            _generator(),
            _flows(),
            Section("Sessions and queues, with the load", [Row(9, [(12, sessions), (12, queues)])]),
            Section("Coverage by source", [Row(9, [(24, coverage(HERE))])]),
            Section(
                "Inconclusive findings",
                [
                    Row(
                        10,
                        [
                            (
                                24,
                                findings(
                                    _RUN,
                                    "What could not be judged, and why.",
                                    title="Inconclusive findings",
                                    ranks='"rank" = 1',
                                ),
                            )
                        ],
                    )
                ],
            ),
        ],
        [RUN, targets(), *GROWING],
        marks(),
    )
