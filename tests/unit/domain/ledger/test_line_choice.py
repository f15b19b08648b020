"""Which of the ledger's lines are shown, and which are merged."""

from refold.domain.ledger import LedgerLine, LineKind
from refold.domain.ledger.line import Gathered, merge_lines
from refold.domain.ledger.line_choice import MOST_HIDDEN, Costs, Fitted, choose_lines, merge_ledger
from refold.domain.value import replace

COSTS = Costs(lambda line: len(line.text), lambda line: len(line.kind))


def line(kind: LineKind, text: str, position: int = 0, **more: object) -> LedgerLine:
    return LedgerLine.model_validate({"kind": kind, "text": text, "position": position, **more})


def shown(fitted: Fitted) -> list[str]:
    return [kept.text for kept in fitted.lines[: fitted.shown]]


def values(number: int, **more: object) -> list[LedgerLine]:
    return [line("value", f"{n}.5 GB of memory", n, **more) for n in range(number)]


def test_values_never_push_out_what_the_user_asked_and_forbade() -> None:
    rules = [line("rule", f"never touch part {n}") for n in range(3)]
    asked = [line("request", f"please add part {n}") for n in range(3)]
    fitted = choose_lines([*values(300, count=9), *rules, *asked], 400, COSTS)
    assert {r.text for r in (*rules, *asked)} <= set(shown(fitted))


def test_a_modified_file_comes_before_files_that_were_read() -> None:
    read = [line("read", f"src/file_{n}.py", 50 + n) for n in range(30)]
    fitted = choose_lines([*read, line("modified", "src/main.py")], 60, COSTS)
    assert "src/main.py" in shown(fitted)


def test_newest_and_most_used_come_first() -> None:
    often, new = line("value", "a.py", 1, count=6), line("value", "b.py", 90)
    old = [line("value", f"old{n}.py", n) for n in range(30)]
    fitted = choose_lines([*old, often, new], 80, COSTS)
    assert {"a.py", "b.py"} <= set(shown(fitted))
    assert "old0.py" not in shown(fitted)


def test_beside_an_index_words_come_before_files_and_commands() -> None:
    asked = [line("request", f"please add part {n}", n) for n in range(20)]
    used = [line("command", f"make part_{n}", n) for n in range(20)]
    alone = shown(choose_lines([*asked, *used], 300, COSTS))
    beside = shown(choose_lines([*asked, *used], 300, COSTS, has_index=True))
    assert any(text.startswith("make") for text in alone)
    assert len(beside) > 10
    assert all(text.startswith("please") for text in beside)


def test_an_item_of_a_long_list_matters_less_than_a_value_by_itself() -> None:
    crowd = [line("value", f"{n}.25 ms", 7) for n in range(40)]
    alone = line("value", "99.75 ms", 7 - 1)
    assert "99.75 ms" in shown(choose_lines([*crowd, alone], 40, COSTS))


def test_what_a_shown_line_says_is_not_said_again() -> None:
    fitted = choose_lines([line("rule", "keep 3.5 GB free"), line("value", "3.5 GB")], 500, COSTS)
    assert shown(fitted) == ["keep 3.5 GB free"]
    assert len(fitted.lines) == 2


def test_no_more_failures_than_allowed_are_kept() -> None:
    failures = [line("failure", f"E{n}", n) for n in range(20)]
    fitted = choose_lines(failures, 1_000, COSTS, failures=8)
    assert [kept.text for kept in fitted.lines] == [f"E{n}" for n in range(12, 20)]


def test_a_failure_that_was_overcome_goes_first() -> None:
    overcome = line("failure", "E1", 9, note="make; later ok")
    fitted = choose_lines([overcome, line("failure", "E2", 3)], 1_000, COSTS, failures=1)
    assert shown(fitted) == ["E2"]


def test_without_room_what_is_known_is_kept_hidden_and_bounded() -> None:
    fitted = choose_lines([*values(500), line("rule", "never")], 0, COSTS)
    assert fitted.shown == 0
    assert line("rule", "never") in fitted.lines
    assert len(fitted.lines) == MOST_HIDDEN["value"] + 1


def test_a_later_request_and_the_first_one_are_kept_before_those_between() -> None:
    asked = [line("request", f"{n}: something about it") for n in range(40)]
    asked = [replace(a, position=n) for n, a in enumerate(asked)]
    kept = shown(choose_lines(asked, 200, COSTS))
    assert {asked[0].text, asked[-1].text} <= set(kept)


def test_what_is_used_again_counts_on_and_stands_in_the_newest_message() -> None:
    before = [line("command", "make", 3, count=2, note="failed")]
    [kept] = merge_ledger(before, Gathered((line("command", "make", 9, note="ok"),)))
    assert kept == line("command", "make", 9, count=3, note="ok")


def test_a_read_file_becomes_a_modified_one() -> None:
    before = [line("read", "a.py", 3), line("value", "a.py", 2)]
    assert merge_ledger(before, Gathered((line("modified", "a.py", 9),))) == (
        line("modified", "a.py", 9, count=3),
    )


def test_an_echo_counts_only_what_is_known() -> None:
    fresh = Gathered((), (line("value", "3 GB", 9), line("value", "4 GB", 9)))
    assert merge_ledger([line("value", "3 GB", 2)], fresh) == (line("value", "3 GB", 9, count=2),)


def test_a_failure_says_that_its_call_worked_later() -> None:
    failed = line("failure", "boom", 3, note="make x")
    [kept] = merge_ledger([failed], Gathered(succeeded={"make x": 5}))
    assert kept.note == "make x; later ok"
    assert merge_ledger([kept], Gathered(succeeded={"make x": 7})) == (kept,)
    assert merge_ledger([failed], Gathered(succeeded={"make x": 2})) == (failed,)


def test_two_uses_in_one_message_count_once() -> None:
    assert merge_lines([line("value", "3 GB"), line("value", "3 GB", said_by="user")]) == (
        line("value", "3 GB", said_by="user"),
    )


def test_a_line_that_does_not_fit_any_more_is_not_shown() -> None:
    fitted = choose_lines([line("rule", "x" * 10), line("request", "y" * 10)], 20, COSTS)
    assert shown(fitted) == ["x" * 10]


def test_lines_of_one_message_stay_in_its_order() -> None:
    said = [line("request", f"{n}. please do this", 3) for n in (1, 2, 3)]
    assert choose_lines(said, 1_000, COSTS).lines == tuple(said)
