"""All invariants together: those that are judged after every step, and those at the end."""

from collections.abc import Callable

from refold.application.api.results import Context
from tests.support.invariants import (
    attempted,
    covered,
    erased,
    kept,
    noted,
    quoted,
    recalled,
    rendered,
    replayed,
    summarised,
    trusted,
)
from tests.support.witness import Witness, as_bytes

OF_WHAT_IS_SHOWN: tuple[Callable[[Witness, Context], None], ...] = (
    rendered.pairing_and_layout_are_legal,
    rendered.live_messages_are_shown_once_and_covered_ones_never,
    rendered.addresses_lead_to_the_originals,
    rendered.unanswered_messages_are_word_for_word,
    rendered.thinking_is_whole_or_absent,
    rendered.thinking_behind_a_changed_prefix_is_dropped,
    erased.stubs_are_shown_once,
    erased.what_is_erased_is_in_no_file,
    kept.pins_are_verbatim,
    kept.ledger_lines_are_sourced,
    kept.index_entries_are_sourced,
    kept.the_ledger_has_nothing_else,
    trusted.the_summary_speaks_as_nobody,
    trusted.nothing_speaks_but_those_who_spoke,
    trusted.the_system_text_is_the_callers_and_ours,
    noted.topics_are_of_what_is_covered,
    quoted.memories_are_verbatim_and_measured,
)
OF_WHAT_IS_STORED: tuple[Callable[[Witness], None], ...] = (
    covered.one_summary_is_active,
    covered.coverage_only_grows,
    covered.open_business_is_not_covered,
    covered.calls_and_results_share_one_fate,
    covered.every_message_is_readable,
    summarised.every_call_is_in_order,
    summarised.coverage_is_what_the_summariser_got,
    attempted.every_attempt_ends_once,
    attempted.only_good_texts_are_committed,
    attempted.a_summary_makes_the_request_smaller,
    attempted.a_failure_changes_nothing,
    attempted.nothing_is_attempted_without_growth,
    noted.notes_are_taken_once_a_cycle,
    noted.notes_are_lines_with_their_sources,
    quoted.memories_are_chosen_after_decisions,
    replayed.a_fresh_load_is_the_live_state,
)


def what_is_shown_holds(witness: Witness, shown: Context) -> None:
    """Judge a request. Recalled lines are judged first, and everything else without them."""
    recalled.lines_are_verbatim_and_measured(witness, shown)
    plain = recalled.without_lines(witness, shown)
    for holds_in in OF_WHAT_IS_SHOWN:
        holds_in(witness, plain)


def all_hold(witness: Witness) -> None:
    """Judge the newest version, and compare the one before with what it was."""
    shown = witness.shown()
    witness.seen[shown.version] = as_bytes(shown)
    witness.looked.append(witness.as_asked(shown))
    what_is_shown_holds(witness, shown)
    for holds in OF_WHAT_IS_STORED:
        holds(witness)
    replayed.every_version_is_rendered_as_it_was(witness, newest=2)


def all_hold_in_hindsight(witness: Witness) -> None:
    """Judge the whole history after a restart."""
    witness.restart()
    replayed.every_version_is_rendered_as_it_was(witness)
    if witness.erased:
        erased.contexts_before_lost_only_what_was_erased(witness)
        erased.nothing_shows_what_is_erased(witness)
    replayed.read_models_are_a_fold_of_the_log(witness)
    noted.compactions_left_nothing_unnoted(witness)
    noted.notes_are_listed_as_they_were_taken(witness)
    rendered.prefixes_are_stable_between_decisions(witness)
    rendered.signed_thinking_stays_valid(witness)
