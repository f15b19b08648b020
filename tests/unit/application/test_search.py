"""``recall``: what is found, what is said of it, and what happens where something is missing."""

import pytest

from refold.application.errors import EmbedderError
from refold.application.ports.search_backend import BackendHit
from refold.application.recall.hits import Recalled
from refold.application.recall.ranking import words_of
from refold.application.runtime.memory_settings import RecallMode
from refold.domain.errors import ConversationGone
from refold.domain.events import (
    ConversationErased,
    MessagesCondensed,
    ShortenedPart,
    ToolContentOffloaded,
)
from tests.support.builders import (
    assistant,
    calls,
    coverage,
    history,
    performed,
    requested,
    results,
    talk,
    text,
    tool_result,
    tool_use,
    user,
)
from tests.support.recall_scenes import ListedVectors, Scene, ScriptedBackend, TopicEmbedder

PORTS = (
    user("Which port does postgres use?"),
    assistant("Postgres listens on 5433 here."),
    user("And the cache?"),
    assistant("Redis is on 6379."),
    user("Thanks, let us go on with the retry policy."),
    assistant("Three tries, then it gives up."),
)
COVERED = (requested(4), performed(4))


def positions(found: Recalled) -> list[int]:
    return [hit.position for hit in found]


def test_the_best_hit_says_where_it_stands_and_what_stands_beside_it() -> None:
    found = Scene(*history(*PORTS)).conversation.recall("Redis 6379")
    best = found[0]
    assert (best.thread_id, best.position, best.message_id) == ("t", 3, "m3")
    assert (best.address, best.role, best.kind, best.tool) == (
        "refold://t/3",
        "assistant",
        "text",
        None,
    )
    assert best.text == "Redis is on 6379."
    assert (best.start, best.stop, best.score) == (0, 17, 1.0)
    assert best.at == "2026-01-02T00:04:00.000000Z"
    assert [(n.position, n.role, n.text) for n in best.neighbours] == [
        (2, "user", "And the cache?"),
        (4, "user", "Thanks, let us go on with the retry policy."),
    ]
    assert (found.mode, found.notice, found.left_out) == ("keyword", None, 0)


def test_a_hit_reads_back_to_the_same_words() -> None:
    conversation = Scene(*history(*PORTS)).conversation
    for hit in conversation.recall("postgres port redis retry policy tries", limit=50):
        assert conversation.read(hit.address).text[hit.start : hit.stop] == hit.text


def test_what_a_summary_stands_for_is_marked_as_that_and_what_is_live_as_in_context() -> None:
    found = Scene(*history(*PORTS), *COVERED).conversation.recall("postgres policy", limit=50)
    by_position = {hit.position: hit for hit in found}
    assert (by_position[1].fate, by_position[1].in_context) == ("summarised", False)
    assert (by_position[4].fate, by_position[4].in_context) == ("full", True)


def test_what_the_context_shows_is_left_out_and_counted() -> None:
    scene = Scene(*history(*PORTS), *COVERED)
    both = scene.conversation.recall("postgres retry policy", limit=50)
    kept = scene.conversation.recall("postgres retry policy", limit=50, in_context="leave_out")
    assert {hit.in_context for hit in both} == {True, False}
    assert kept.hits
    assert not any(hit.in_context for hit in kept)
    assert kept.left_out == sum(hit.in_context for hit in both)
    assert kept[0].score == 1.0


def test_nothing_that_the_context_shows_takes_the_place_of_what_it_does_not() -> None:
    loud = [user("postgres " * 3 + str(n)) for n in range(80)]
    scene = Scene(
        *history(user("postgres said it once, long ago"), assistant("yes"), *loud),
        requested(2),
        performed(2),
    )
    found = scene.conversation.recall("postgres", limit=1, in_context="leave_out")
    assert positions(found) == [0]
    assert found.left_out == 1


OFFLOADED = ToolContentOffloaded(
    parts=(ShortenedPart(position=2, call_id="a", side="result", tokens_freed=60),),
    head=10,
    tail=10,
)
LONG = "The secret port is 7777. " + "noise " * 200 + "The end."


def offloaded_scene() -> Scene:
    both = user(tool_result("a", LONG), tool_result("b", "The public port is 8888."))
    return Scene(
        *history(user("Look it up."), calls("a", "b"), both, assistant("Done.")), OFFLOADED
    )


def test_a_result_that_was_offloaded_leads_to_its_stored_original() -> None:
    scene = offloaded_scene()
    (hit, *_) = scene.conversation.recall("secret port 7777")
    assert (hit.position, hit.role, hit.kind, hit.tool) == (2, "tool", "result", "bash")
    assert (hit.fate, hit.in_context) == ("offloaded", False)
    assert "7777" in scene.conversation.read(hit.address).text


def test_of_a_message_that_is_cut_in_part_the_other_part_is_in_the_context() -> None:
    found = offloaded_scene().conversation.recall("public 8888")
    assert (found[0].fate, found[0].in_context) == ("offloaded", True)
    assert found[0].text == "The public port is 8888."
    left = offloaded_scene().conversation.recall("public 8888", in_context="leave_out")
    assert "8888" not in "".join(hit.text for hit in left)
    assert left.left_out > 0


def test_a_condensed_result_is_not_in_the_context() -> None:
    condensed = MessagesCondensed(parts=OFFLOADED.parts, characters=5)
    messages = (user("Go."), calls("a"), user(tool_result("a", LONG)), assistant("Done."))
    (hit, *_) = Scene(*history(*messages), condensed).conversation.recall("secret port")
    assert (hit.fate, hit.in_context) == ("condensed", False)


def test_erased_neighbours_are_named_and_erased_messages_are_not_found() -> None:
    scene = Scene(*history(*PORTS))
    scene.conversation.erase(1)
    found = scene.conversation.recall("port postgres 5433 cache", limit=50)
    assert 1 not in positions(found)
    beside = {n.position: n for hit in found for n in hit.neighbours}
    assert beside[1].erased
    assert "5433" not in str(found.hits)


def test_a_message_that_is_erased_while_it_is_looked_for_is_named_without_its_words() -> None:
    scene = Scene(*history(*PORTS))
    conversation = scene.conversation
    scene.index.before_answering = lambda: conversation.erase(3)
    found = conversation.recall("Redis 6379")
    erased = next(hit for hit in found if hit.position == 3)
    assert (erased.fate, erased.text, erased.in_context) == ("erased", "", False)
    assert (erased.start, erased.stop) == (0, 0)
    assert erased.why == ("its content was erased since",)
    assert "6379" not in str(found.hits)


def test_a_conversation_that_is_erased_while_it_is_asked_is_gone() -> None:
    scene = Scene(*history(*PORTS))
    memory, conversation = scene.memory, scene.conversation
    scene.index.before_answering = lambda: memory.erase_conversation("t")
    with pytest.raises(ConversationGone):
        conversation.recall("Redis 6379")
    scene = Scene(*history(*PORTS))
    memory = scene.memory
    scene.index.before_answering = lambda: memory.erase_conversation("t")
    assert memory.search("Redis 6379").hits == ()


def test_a_conversation_that_vanishes_while_it_is_asked_gives_no_hits() -> None:
    scene = Scene(*history(*PORTS))
    scene.index.before_answering = lambda: scene.log.streams.clear()
    assert scene.memory.search("Redis 6379").hits == ()


def test_an_index_that_points_elsewhere_gives_no_foreign_words() -> None:
    scene = Scene(*history(*PORTS))

    def replaced() -> None:
        scene.log.streams["t"] = history(*[user(f"Redis other {n}") for n in range(6)])

    scene.index.before_answering = replaced
    assert scene.conversation.recall("Redis 6379").hits == ()


def test_an_erased_conversation_is_gone_and_an_unknown_one_has_nothing() -> None:
    with pytest.raises(ConversationGone):
        Scene(*history(*PORTS), ConversationErased()).conversation.recall("postgres")
    nothing = Scene(*history(*PORTS)).memory.conversation("new").recall("postgres")
    assert nothing.hits == ()
    assert nothing.notice == "there is no conversation 'new' in this log"


@pytest.mark.parametrize("query", ["", "   ", "\n", "?!", "--", "\x00", "🙂"])
def test_a_question_without_words_finds_nothing_and_says_so(query: str) -> None:
    found = Scene(*history(*PORTS)).conversation.recall(query)
    assert found.hits == ()
    assert found.notice == "the question has no words to look for"


def test_hits_of_one_conversation_are_of_that_one_and_a_search_reaches_all() -> None:
    scene = Scene(*history(*PORTS))
    scene.log.streams["u"] = history(user("Redis elsewhere: 6380"), assistant("Noted."))
    assert {hit.thread_id for hit in scene.conversation.recall("Redis", limit=50)} == {"t"}
    found = scene.memory.search("Redis", limit=50)
    assert {hit.thread_id for hit in found} == {"t", "u"}
    assert {hit.address for hit in found} >= {"refold://t/3", "refold://u/0"}


def test_a_search_tells_of_each_conversation_what_its_own_context_shows() -> None:
    scene = Scene(*history(*PORTS), *COVERED)
    scene.log.streams["u"] = history(user("Redis elsewhere: 6380"), assistant("Noted."))
    shown = {hit.thread_id: hit.in_context for hit in scene.memory.search("Redis", limit=2)}
    assert shown == {"t": False, "u": True}
    kept = scene.memory.search("Redis", limit=2, in_context="leave_out")
    assert {hit.thread_id for hit in kept} == {"t"}
    assert kept.left_out == 1


def test_the_same_words_come_twice_at_most_as_long_as_there_are_others() -> None:
    same = [user("Run the tests of the parser.")] * 6
    other = [user("The parser tests fail."), user("A parser for dates.")]
    conversation = Scene(*history(*same, *other)).conversation
    texts = [hit.text for hit in conversation.recall("parser tests", limit=4)]
    assert len(set(texts)) == 3
    assert len(conversation.recall("parser tests", limit=8)) == 8


def test_scores_fall_and_a_least_score_cuts_them_off() -> None:
    conversation = Scene(*history(*PORTS)).conversation
    scores = [hit.score for hit in conversation.recall("postgres port cache", limit=50)]
    assert scores == sorted(scores, reverse=True)
    assert scores[0] == 1.0
    best = conversation.recall("postgres port cache", limit=50, min_score=1.0)
    assert {hit.score for hit in best} == {1.0}


TOOLS = (
    user("What is in the file?"),
    assistant(text("I will read the port file."), tool_use("a", path="port.txt")),
    user(tool_result("a", "port = 1234")),
    assistant("The port is 1234."),
)


def test_filters_let_only_through_what_was_asked_for() -> None:
    conversation = Scene(*history(*TOOLS)).conversation
    assert {hit.role for hit in conversation.recall("port", roles="tool", limit=50)} == {"tool"}
    assert {hit.kind for hit in conversation.recall("port", kinds=["call"], limit=50)} == {"call"}
    assert {hit.tool for hit in conversation.recall("port", tools=["bash"], limit=50)} == {"bash"}
    nothing = conversation.recall("port", tools="python")
    assert nothing.hits == ()
    assert nothing.notice == "no tool python was used; there are: bash"
    late = conversation.recall("port", since="2026-01-02T00:04:00Z", limit=50)
    assert positions(late) == [3]
    early = conversation.recall("port", until="2026-01-02T01:03:00+01:00", limit=50)
    assert {1} <= set(positions(early)) <= {0, 1}


def with_vectors(scene: Scene, embedder: TopicEmbedder) -> ListedVectors:
    scene.equipped(embedder=embedder)
    vectors = scene.core.recall.vectors
    assert isinstance(vectors, ListedVectors)
    passages = scene.index.passages()
    words = words_of(scene.core, passages)
    vectors.texts = {p.digest: words[p.number] for p in passages}
    return vectors


def test_by_meaning_other_words_are_found() -> None:
    scene = Scene(*history(*PORTS))
    with_vectors(scene, TopicEmbedder("Redis cache store", "retry tries"))
    found = scene.conversation.recall("an in-memory store", mode="vector")
    assert set(positions(found)) == {2, 3}
    assert found.mode == "vector"
    assert found.notice is None
    assert all("meaning" in hit.why[0] for hit in found)


def test_with_an_embedder_words_and_meaning_are_searched_without_asking() -> None:
    scene = Scene(*history(*PORTS))
    with_vectors(scene, TopicEmbedder("Redis cache store", "retry tries"))
    found = scene.conversation.recall("which store, and postgres?", limit=50)
    assert found.mode == "hybrid"
    assert {1, 3} <= set(positions(found))
    assert scene.conversation.recall("which store?", mode="keyword").mode == "keyword"


@pytest.mark.parametrize("mode", ["vector", "hybrid"])
@pytest.mark.parametrize(
    "error", [EmbedderError("timeout", "no answer in 30 s"), RuntimeError("no answer in 30 s")]
)
def test_an_embedder_that_fails_leaves_the_search_by_words(
    mode: RecallMode, error: Exception
) -> None:
    scene = Scene(*history(*PORTS))
    with_vectors(scene, TopicEmbedder("Redis", fails=error))
    found = scene.conversation.recall("Redis 6379", mode=mode)
    assert found.mode == "keyword"
    assert found.notice is not None
    assert "no answer in 30 s" in found.notice
    assert found[0].position == 3


def test_without_an_embedder_or_vectors_words_are_searched_and_that_is_said() -> None:
    found = Scene(*history(*PORTS)).conversation.recall("Redis", mode="hybrid")
    assert found.mode == "keyword"
    assert "no embedder is configured" in str(found.notice)
    scene = Scene(*history(*PORTS))
    with_vectors(scene, TopicEmbedder("Redis")).texts = {}
    found = scene.conversation.recall("Redis", mode="vector")
    assert found[0].position == 3
    assert "no vector was made yet" in str(found.notice)


def test_vectors_that_cannot_be_searched_leave_the_search_by_words() -> None:
    scene = Scene(*history(*PORTS))
    with_vectors(scene, TopicEmbedder("Redis")).broken = True
    found = scene.conversation.recall("Redis")
    assert (found.mode, found[0].position) == ("keyword", 3)
    assert "another dimension" in str(found.notice)


def test_what_a_search_program_finds_is_read_from_the_log() -> None:
    backend = ScriptedBackend(
        BackendHit("t", 1, 4.0),
        BackendHit("t", 3, 8.0),
        BackendHit("t", 99, 7.0),
        BackendHit("u", 1, 7.5),
        BackendHit("t", 2, 0.0),
    )
    scene = Scene(*history(*PORTS)).equipped(backend=backend)
    scene.log.streams["u"] = history(*PORTS)
    found = scene.conversation.recall("the cache, please")
    assert [(hit.position, hit.text) for hit in found] == [
        (3, "Redis is on 6379."),
        (1, "Postgres listens on 5433 here."),
    ]
    assert [hit.score for hit in found] == [1.0, 0.5]
    assert found[0].why == ("found by scripted",)
    assert backend.asked == [("the cache, please", "keyword", "t")]


def test_a_search_program_that_fails_is_named_and_the_built_in_search_answers() -> None:
    scene = Scene(*history(*PORTS)).equipped(backend=ScriptedBackend(fails="no answer in 30 s"))
    found = scene.conversation.recall("Redis")
    assert found[0].position == 3
    assert "scripted" in str(found.notice)
    assert "no answer in 30 s" in str(found.notice)


def test_neighbours_are_found_behind_whatever_happened_in_between() -> None:
    before, after = history(*PORTS)[:4], history(*PORTS)[4:]
    (hit, *_) = Scene(*before, *COVERED, *after).conversation.recall(
        "Redis 6379", neighbours=2, limit=1
    )
    assert [n.position for n in hit.neighbours] == [1, 2, 4, 5]


def test_where_there_is_little_room_there_are_fewer_hits_rather_than_scraps() -> None:
    conversation = Scene(
        *history(*[user(f"needle {n} " + "words " * 60) for n in range(6)])
    ).conversation
    assert len(conversation.recall("needle", max_tokens=50, limit=6)) == 1
    assert len(conversation.recall("needle", max_tokens=130, limit=6)) == 3


def test_an_answer_keeps_to_its_room_and_never_loses_the_best_hit() -> None:
    filler = " ".join(f"word{n}" for n in range(250))
    said = [user(f"{filler} The needle{n} is here. {filler}") for n in range(6)]
    scene = Scene(*history(*said, *talk(2)))
    for room in (50, 100, 400, 1_000, 4_000):
        found = scene.conversation.recall("needle0 needle3 is here", max_tokens=room)
        assert found.hits
        assert found.tokens <= room
        count = scene.core.counter.count_text
        texts = [t for hit in found for t in (hit.text, *(n.text for n in hit.neighbours))]
        assert found.tokens == sum(map(count, texts))
        assert "needle" in found[0].text
        for hit in found:
            assert scene.conversation.read(hit.position).text[hit.start : hit.stop] == hit.text


def test_results_of_tools_and_neighbours_that_bring_them_are_said_by_the_tool() -> None:
    messages = (user("Go."), calls("a"), results("a"), assistant("It is zirconium."))
    (hit, *_) = Scene(*history(*messages)).conversation.recall("zirconium", neighbours=2)
    assert [(n.position, n.role) for n in hit.neighbours] == [(1, "assistant"), (2, "tool")]


def test_a_compaction_that_was_covered_twice_follows_the_active_summary() -> None:
    scene = Scene(
        *history(*PORTS),
        requested(2),
        performed(2),
        requested(4, "a2", supersedes="s1"),
        performed(4, "a2", summary_id="s2", coverage=coverage(4, exclusions=(1,))),
    )
    shown = {
        hit.position: hit.in_context for hit in scene.conversation.recall("postgres Redis", limit=9)
    }
    assert shown[3] is False
