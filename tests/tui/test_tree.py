"""From sessions to lines, without a screen: exact rows, the same in whatever order the sessions arrive."""

from __future__ import annotations

from typing import Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from tui.sample_sessions import LEAD, LOCATIONS, MODELS, NOW, SHOP, TREE, sample_sessions, session, usage

from fairlead.clients import Usage
from fairlead.sessions import AttentionNeeded, Evidence, Idle, OpenCall, Session, Working
from fairlead.text import cell_width
from fairlead.tui._plain import plain_view
from fairlead.tui.model._layout import column_headings, columns, layout_row, summary
from fairlead.tui.model._projects import Location
from fairlead.tui.model._quota import quota_texts
from fairlead.tui.model._rows import activity_text, display_name, make_row
from fairlead.tui.model._totals import Totals
from fairlead.tui.model._tree import SessionTree
from fairlead.tui.model._view import SORTS, FoldState, Line, Sort, View

DAY = NOW - 10 * 3600


def shown(sessions: list[Session], view: View | None = None, cells: int = 80) -> list[str]:
    tree = SessionTree(sessions, LOCATIONS)
    lines = tree.lines(view or View(), NOW)
    cols = columns(cells, has_usage=tree.has_usage)
    return ["".join(text for text, _ in layout_row(make_row(tree.data(line), NOW), cols)).rstrip() for line in lines]


def test_sessions_are_a_tree_with_what_needs_the_user_above_it() -> None:
    assert shown(sample_sessions()) == [
        " NEEDS YOU",
        "   ! needs you 2m05s   webshop  Checkout: pay by… Permission for Bash",
        "   ! needs you   31s   fairlead/i…  build the li… Question: which colours?",
        "",
        " ▾ fairlead !1                                                             $2.45",
        "  ▾ main                                                                   $2.05",
        "   ○ idle        15m   Release notes                                 96%   $2.05",
        "   ~ stale     9h00m   Yesterday",
        "  ▾ issue-5 !1  fairlead-issue-5                                           $0.40",
        "   ! needs you   31s ▾ build the live view of th… Question: which …  12%   $0.40",
        "   ● working     40s   ▾ reviewer: read the diff  Read src/app.py",
        "   ● working     20s     └ Explore                Glob",
        " ▾ webshop !1  main                                                        $4.95",
        "   ! needs you 2m05s   Checkout: pay by invoice   Permission for B…  41%   $1.20",
        "   ● working     10m ▾ Find the slow query        Edit src/orders/…  83%   $3.75",
        "   ● working   1m35s   └ Explore: who calls load… Grep               31k",
    ]


def test_a_wide_row_has_evidence_model_context_bar_cost_and_age() -> None:
    row = next(line for line in shown(sample_sessions(), cells=140) if "Find the slow" in line)

    assert row == (
        "   ● working     10m ▾ Find the slow query                Edit src/orders/query… "
        "PreToolUse 4s          sonnet-5   ████▏  83%   $3.75  1h00m"
    )


def test_ended_sessions_are_shown_on_request_and_come_last() -> None:
    lines = shown(sample_sessions(), View(show_ended=True))

    assert lines[-1] == "   x ended     8m20s   Done long ago              prompt_input_exit"
    assert [line for line in lines if "test-writer" in line] == [
        "   x ended     1m00s   └ test-writer: tests for … completed"
    ]


def test_the_longest_wait_comes_first_and_stale_sessions_last() -> None:
    waits = [("old", 9 * 3600), ("new", 5), ("long", 300)]
    sessions = [
        session(name, state=AttentionNeeded("Permission"), since=NOW - ago, last_activity=NOW - ago)
        for name, ago in waits
    ]

    needs = [line for line in SessionTree(sessions).lines(View(), NOW) if line.kind == "attention"]

    assert [line.id for line in needs] == ["long", "new", "old"]
    assert [make_row(SessionTree(sessions).data(line), NOW).blinks for line in needs] == [True, True, False]


def test_a_subagent_that_needs_the_user_names_its_session_and_marks_all_above_it() -> None:
    parent = session("p", title="Big job", state=Working("Agent"))
    child = session("p/1", parent="p", agent_type="coder", state=AttentionNeeded("Permission"))

    assert shown([parent, child], View(folds=FoldState(exceptions=frozenset({("session", "p")}))), 100) == [
        " NEEDS YOU",
        "   ! needs you   10s   webshop  coder of Big job           Permission                          1h00m",
        "",
        " ▾ webshop !1  main",
        "   ● working     10s ▸ !1 Big job                          Agent                               1h00m",
    ]


def test_the_summary_counts_main_sessions_and_all_that_wait() -> None:
    tree = SessionTree(sample_sessions(), LOCATIONS)
    tree.lines(View(today=DAY), NOW)

    totals = tree.totals._replace(cost=round(tree.totals.cost, 6), today=round(tree.totals.today, 6))
    assert totals == Totals(working=1, waiting=2, idle=1, stale=1, ended=1, cost=7.4, today=7.4)


def test_the_cost_of_today_leaves_out_sessions_without_activity_today() -> None:
    tree = SessionTree([session("a", usage=usage(1, 5.0), last_activity=NOW - 7200), session("b", usage=usage(1, 1.0))])
    tree.lines(View(today=NOW - 3600), NOW)

    assert (tree.totals.today, tree.totals.cost) == (1.0, 6.0)
    assert summary_of(tree) == " nothing needs you   ● 0 working   ○ 2 idle   $1.00 today"


def test_the_cost_of_today_of_an_older_session_is_an_upper_bound() -> None:
    tree = SessionTree([session("a", started=NOW - 90_000, usage=usage(1, 5.0)), session("b", usage=usage(1, 1.0))])
    tree.lines(View(today=DAY), NOW)

    assert summary_of(tree).endswith("≤ $6.00 today")


def test_a_view_that_is_open_at_midnight_knows_the_cost_until_then() -> None:
    tree = SessionTree([session("a", usage=usage(1, 5.0)), session("b", usage=usage(1, 1.0))])
    tree.lines(View(today=DAY), NOW)
    midnight = NOW + 60
    tree.lines(View(today=midnight), midnight + 5)
    assert tree.totals.today == 0

    tree.put(session("a", last_activity=midnight + 10, usage=usage(1, 7.5)))
    tree.reset(tree.sessions.values())
    tree.lines(View(today=midnight), midnight + 11)
    assert (tree.totals.today, tree.totals.older) == (2.5, 0)


def summary_of(tree: SessionTree) -> str:
    return "".join(text for text, _ in summary(tree.totals, 100, "")).rstrip()


def test_columns_without_data_leave_their_room_to_the_names() -> None:
    plain = [session("a", title="A title that needs its room", state=Working("Edit"), model=MODELS[0])]

    assert shown(plain, cells=96)[-1] == (
        "   ● working     10s   A title that needs its room       Edit                   opus-4-8   1h00m"
    )


def test_a_folded_line_counts_what_it_hides() -> None:
    assert shown(sample_sessions(), View(folds=FoldState(all_open=False)))[4:] == [
        " ▸ fairlead !1  1 needs you, 1 idle, 1 stale                               $2.45",
        " ▸ webshop !1  main  1 needs you, 1 working                                $4.95",
    ]


def test_a_filter_shows_what_matches_with_the_lines_above_and_below() -> None:
    assert [line for line in shown(sample_sessions(), View(filter="explore GREP")) if line] == [
        " ▾ webshop !1  main                                                        $4.95",
        "   ● working     10m ▾ Find the slow query        Edit src/orders/…  83%   $3.75",
        "   ● working   1m35s   └ Explore: who calls load… Grep               31k",
    ]


def test_an_empty_view_says_why_and_what_to_do() -> None:
    over = [session("a", ended=NOW - 5), session("b", ended=NOW - 5)]

    assert shown([])[0] == " no sessions yet"
    assert any("fairlead hooks install" in line for line in shown([]))
    assert shown(over) == [" all 2 sessions have ended; e shows them"]
    assert shown(over[:1]) == [" the only session has ended; e shows it"]
    assert shown(sample_sessions(), View(filter="nobody")) == [" no session matches the filter; Esc clears it"]
    assert shown(sample_sessions(), View(project="/elsewhere"))[0].startswith(" no session in this project")


def test_one_project_can_be_selected() -> None:
    lines = SessionTree(sample_sessions(), LOCATIONS).lines(View(project=LEAD), NOW)

    assert {line.id for line in lines if line.kind in ("project", "worktree")} == {LEAD, TREE}
    assert [line.id for line in lines if line.kind == "attention"] == ["c0ffee00-3333"]


def test_sorts() -> None:
    some = [
        session("a", started=1, last_activity=NOW - 5, usage=usage(10, 3.0)),
        session("b", started=2, last_activity=NOW - 9, usage=usage(90, 1.0), state=Working()),
        session("c", started=3, last_activity=NOW - 1, usage=usage(50, 2.0), state=AttentionNeeded("x")),
    ]
    orders = {}
    for sort in SORTS:
        lines = SessionTree(some, LOCATIONS).lines(View(sort=sort), NOW)
        orders[sort] = "".join(line.id for line in lines if line.kind == "session")

    assert orders == {"start": "abc", "state": "cba", "activity": "cab", "cost": "acb", "context": "bca"}
    for sort, order in orders.items():
        lines = SessionTree(some, LOCATIONS).lines(View(sort=sort, is_reversed=True), NOW)
        assert "".join(line.id for line in lines if line.kind == "session") == order[::-1]


def test_ended_and_stale_sessions_come_last_in_a_reversed_order_too() -> None:
    some = [
        session("a", started=1),
        session("b", started=2),
        session("c", started=3, ended=NOW - 5),
        session("d", started=4, last_activity=NOW - 9 * 3600),
    ]
    lines = SessionTree(some, LOCATIONS).lines(View(is_reversed=True, show_ended=True), NOW)
    assert "".join(line.id for line in lines if line.kind == "session") == "badc"


@pytest.mark.parametrize(
    ("sort", "cells", "heading"),
    [
        ("start", 120, "age▼"),
        ("start", 80, "session▼"),
        ("state", 80, "state▼"),
        ("activity", 120, "last event▼"),
        ("activity", 80, "activity▼"),
        ("cost", 80, "cost▼"),
        ("context", 120, "context▼"),
        ("context", 80, "ctx▼"),
    ],
)
def test_the_column_that_is_sorted_by_has_a_mark(sort: Sort, cells: int, heading: str) -> None:
    text = column_headings(columns(cells), View(sort=sort))
    assert (heading in text, text.count("▼"), cell_width(text)) == (True, 1, cells)
    assert heading.replace("▼", "▲") in column_headings(columns(cells), View(sort=sort, is_reversed=True))


def test_what_needs_the_user_stands_in_the_columns_of_the_other_rows() -> None:
    for cells in (80, 120, 200):
        heading = column_headings(columns(cells), View())
        lines = shown(sample_sessions(), cells=cells)
        for text in ("Permission for", "Question: which"):
            assert {line.index(text) for line in lines if text in line} == {heading.index("activity")}
        assert lines[1].index("webshop") == heading.index("session")


def test_a_filter_matches_what_is_shown_and_not_the_insides_of_ids() -> None:
    one = session("abc-def-123", title="Pay", first_prompt="pay by invoice", cwd=SHOP, transcript="/t/secret.jsonl")
    for word in ("pay", "webshop", "main", "idle"):
        assert any("Pay" in line for line in shown([one], View(filter=word))), word
    for word in ("abc", "def", "123", "invoice", "secret", "code"):
        assert shown([one], View(filter=word)) == [" no session matches the filter; Esc clears it"], word


def test_a_working_subagent_of_an_ended_one_stands_below_the_nearest_that_runs() -> None:
    family = [
        session("m", title="Main", state=Working("Explore in background")),
        session("m/a", parent="m", agent_id="a", agent_type="coder", ended=NOW - 5, started=NOW - 50),
        session("m/b", parent="m/a", agent_id="b", agent_type="Explore", state=Working("Grep"), started=NOW - 40),
    ]
    assert shown(family)[1:] == [
        "   ● working     10s ▾ Main                               Explore in background",
        "   ● working     10s   └ Explore                          Grep",
    ]
    assert [line.split()[0:2] for line in shown(family, View(show_ended=True))[1:]] == [
        ["●", "working"],
        ["x", "ended"],
        ["●", "working"],
    ]


def test_the_name_of_a_session_is_its_title_else_its_latest_prompt() -> None:
    assert display_name(session("abcdefghij")) == "abcdefgh"
    assert display_name(session("a", first_prompt="one", last_prompt="two")) == "two"
    assert display_name(session("a", first_prompt="one", last_prompt="two", title="Three")) == "Three"


def test_the_file_of_the_call_that_runs_is_shown_and_not_that_of_one_that_failed() -> None:
    evidence = Evidence("PostToolUseFailure", NOW - 2, "Read", f"{SHOP}/missing")
    calls = {"t1": OpenCall("Read", NOW - 3, f"{SHOP}/there")}
    assert activity_text(session("a", state=Working("Read"), evidence=evidence, calls=calls)) == "Read there"


def test_the_header_tells_what_the_account_has_used_and_how_fast() -> None:
    def limits(percent: float, resets: float, week: float | None = None) -> Usage:
        return Usage(five_hour_percent=percent, five_hour_resets=resets, seven_day_percent=week)

    def whole(*usages: Usage) -> str:
        return quota_texts(usages, NOW)[0]

    now, hour = NOW, 3600.0
    assert quota_texts([], now) == []
    assert whole(Usage(five_hour_percent=42.0)) == "5 h 42%"
    assert whole(limits(40, now + 3 * hour, 7)) == "5 h 40% +20%/h · 7 d 7%"
    newest = [limits(90, now - hour), limits(20, now + hour), limits(30, now + hour)]
    assert whole(*newest) == "5 h 30% +8%/h", "of a window that is over nothing is left"
    assert whole(limits(60, now + 3 * hour)) == "5 h 60% +30%/h full 15:33"
    assert whole(limits(1, now + 4.9 * hour)) == "5 h 1%", "too early for a rate"
    one = session("a", usage=limits(60, now + 3 * hour, 12))
    headers = [plain_view([one], View(), now, cells)[0] for cells in (120, 75, 65, 50)]
    shortened = ["5 h 60% +30%/h full 15:33 · 7 d 12%", "5 h 60% +30%/h full 15:33", "5 h 60% +30%/h", "○ 1 idle"]
    assert [header.endswith(text) for header, text in zip(headers, shortened, strict=True)] == [True] * 4, headers
    assert quota_texts([limits(40, now + 3 * hour, 95)], now)[1:] == ["7 d 95%", "7 d 95%"], "the one to look out for"


def test_a_subagent_stands_alone_until_its_parent_arrives() -> None:
    tree = SessionTree([session("p/1", parent="p", agent_type="coder")], LOCATIONS)
    assert tree.lines(View(), NOW)[-1] == Line("session", "p/1")

    tree.put(session("p"))
    assert tree.lines(View(), NOW)[-2:] == [Line("session", "p", has_fold=True), Line("session", "p/1", 1)]

    tree.drop("p")
    assert tree.lines(View(), NOW)[-1] == Line("session", "p/1")


def test_sessions_that_are_each_others_parents_are_shown_once() -> None:
    tree = SessionTree([session("a", parent="b"), session("b", parent="a"), session("c", parent="b")])

    assert sorted(line.id for line in tree.lines(View(), NOW) if line.kind == "session") == ["a", "b", "c"]


ELSEWHERE = Location(SHOP, "/code/webshop-two", "other")
IDS = st.sampled_from(["a", "b", "a/1", "a/2", "b/1", "a/1/x", "z"])
STATES = st.sampled_from([Idle(), Working("Edit"), AttentionNeeded("Permission")])
CHANGE = st.one_of(
    IDS,
    st.sampled_from([ELSEWHERE, LOCATIONS[LEAD]]),
    st.builds(
        lambda name, parent, state, cwd, ended: session(
            name, parent=parent, state=state, cwd=cwd, ended=ended, evidence=Evidence("Stop", NOW)
        ),
        IDS,
        st.one_of(st.just(""), IDS),
        STATES,
        st.sampled_from([SHOP, LEAD, TREE, ""]),
        st.sampled_from([None, None, NOW - 1]),
    ),
)
VIEWS = st.builds(
    View,
    show_ended=st.booleans(),
    sort=st.sampled_from(["start", "state", "activity"]),
    filter=st.sampled_from(["", "edit", "a/1", "issue permission"]),
    folds=st.builds(FoldState, st.booleans(), st.frozensets(st.tuples(st.just("session"), IDS), max_size=2)),
    project=st.sampled_from(["", "", LEAD]),
)


@settings(deadline=None, max_examples=150)
@given(st.lists(st.tuples(CHANGE, VIEWS), max_size=25))
def test_the_lines_do_not_depend_on_the_order_of_changes(steps: list[tuple[object, View]]) -> None:
    """After every change, and in any view, the lines are those of a new tree with the same sessions."""
    tree, places = SessionTree((), LOCATIONS), dict(LOCATIONS)
    for change, view in steps:
        if isinstance(change, Session):
            tree.put(change)
        elif isinstance(change, Location):
            places[LEAD] = change
            tree.set_location(LEAD, change)
        else:
            tree.drop(str(change))
        lines, fresh = tree.lines(view, NOW), SessionTree(tree.sessions.values(), places)
        assert lines == fresh.lines(view, NOW)
        assert tree.totals == fresh.totals
        assert [tree.data(line) for line in lines] == [fresh.data(line) for line in lines]
        everything = replace(view, show_ended=True, filter="", folds=FoldState(), project="")
        found = [line.id for line in tree.lines(everything, NOW) if line.kind == "session"]
        assert sorted(found) == sorted(tree.sessions)


HOSTILE = [
    "\x1b[31mred\x1b[0m",
    "[bold]markup[/] [@click=app.quit]x[/]",
    "a\nb\tc\r\x00\x07",
    "\u202eright to left\u2066\u200f",
    "zero\u200b\u200d\ufeffwidth",
    "日本語のとても長い題名です",
    "👨‍👩‍👧 family ❤️ 🇩🇪",
    "Z̶̧̢̛͖͓̲̦̬͒̎͊̕a̷l̵g̶o̷" * 9,
    "\ud800 half",
    "x" * 5000,
    "",
]


def test_hostile_texts_never_change_the_width_of_a_row() -> None:
    for text in HOSTILE:
        child = {"parent": "p", "agent_type": text, "description": text, "state": Working(text)}
        evidence = Evidence(text, NOW, text, f"/tmp/{text}")
        sessions = [
            session("p", title=text, cwd=f"/x/{text}", state=AttentionNeeded(text or "?"), evidence=evidence),
            session("p/1", evidence=evidence, model=text, **child),
        ]
        tree = SessionTree(sessions)
        for cells in (1, 5, 20, 43, 60, 80, 120, 200):
            for line in tree.lines(View(), NOW):
                cols = columns(cells, has_usage=bool(len(text) % 2))
                row = "".join(part for part, _ in layout_row(make_row(tree.data(line), NOW), cols))
                assert cell_width(row) == cells == cell_width(column_headings(cols, View()))
                assert not set(row) & set("\x1b\n\r\t\x00\x07\u202e\u2066\u200f\u200b\u200d\ufeff\ufe0f\ud800")


@pytest.mark.parametrize("kind", ["attention", "session"])
def test_a_line_can_be_drawn_although_its_session_has_just_gone(kind: Literal["attention", "session"]) -> None:
    """Lines are made anew a moment after a session has gone, and a tick may come before that."""
    row = make_row(SessionTree([]).data(Line(kind, "gone")), NOW)
    assert "".join(text for text, _ in layout_row(row, columns(80))).rstrip() == " gone"
