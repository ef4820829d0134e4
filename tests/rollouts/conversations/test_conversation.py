"""A conversation is an episode in which a person says what comes next."""

from __future__ import annotations

import asyncio

import pytest

from adp.rollouts.collecting.actor import Alone
from adp.rollouts.collecting.episode import run_episode
from adp.rollouts.collecting.recorder import About
from adp.rollouts.conversations.conversation import ConversationPlan, InteractiveChat
from adp.rollouts.conversations.conversation_store import FOLDER, ConversationStore
from adp.rollouts.environment import CannotForkError
from adp.rollouts.policies.scripted import Scripted
from adp.rollouts.policy import InfrastructureError
from adp.rollouts.turns import Call, Turn
from adp.stores.transcript import as_json
from adp_schema.model import Task
from adp_schema.store import Store
from tests.rollouts.collecting.adder import Adder

ADD = Turn(text="I add.", calls=(Call("add", '{"a": 2, "b": 3}'),))
BAD = Turn(calls=(Call("add", '{"a": "x"'), Call("none", "{}")))
FIVE, BYE = Turn(text="5"), Turn(text="bye")


class Seen:
    """Keeps what a conversation tells."""

    def __init__(self):
        self.turns, self.outcomes, self.endings, self.used_up = [], [], [], []

    def turn(self, turn):
        self.turns.append(turn)

    def outcome(self, outcome):
        self.outcomes.append(outcome)

    def ended(self, columns):
        self.endings.append(columns)

    def turns_used_up(self, turns):
        self.used_up.append(turns)


def talk(script, *words, root=None, environments=Adder, max_turns=10, then=None):
    """Say words, ``undo`` undoes and ``reset`` resets; what was seen."""
    seen = Seen()

    async def all_of_it():
        store = None if root is None else ConversationStore(root)
        plan = ConversationPlan(Scripted(script), environments, "adder", max_turns)
        conversation = InteractiveChat(plan, seen, store)
        for word in words:
            if word == "undo":
                await conversation.undo()
            elif word == "reset":
                await conversation.reset()
            else:
                await conversation.say(word)
        if then is not None:
            await then(conversation)
        await conversation.reset()
        if store is not None:
            store.close()

    asyncio.run(all_of_it())
    return seen


def rows(trajectory):
    """Steps without what differs from run to run."""
    steps = as_json(trajectory)["steps"]
    for row in [*steps, *(child for step in steps for child in step["observations"])]:
        row.pop("timestamp", None)
        row.pop("duration_ms", None)
    return steps


def stored(root):
    return {item.trajectory_id: item for item in Store.open(str(root)).trajectories()}


def test_its_rows_are_those_of_an_episode(tmp_path):
    """The oracle is what `adp collect` writes of the same turns."""
    script = [ADD, BAD, FIVE]
    seen = talk(script, "What is 2 + 3?", root=tmp_path / "s")
    about = About("x", task=Task(task_id="t", instruction="What is 2 + 3?"), policy="scripted")
    episode = asyncio.run(run_episode(about, Adder(), Alone(Scripted(script))))
    (trajectory,) = stored(tmp_path / "s").values()
    assert rows(trajectory) == rows(episode)
    assert trajectory.tools == episode.tools
    assert trajectory.final_answer == episode.final_answer == "5"
    assert trajectory.success is None
    assert trajectory.reward is None
    assert (trajectory.terminated, trajectory.stop_reason) == (True, "user")
    assert [turn.text for turn in seen.turns] == ["I add.", "", "5"]
    assert [len(outcome.results) for outcome in seen.outcomes] == [1, 2, 0]


def test_what_the_user_says_is_in_the_prompt_and_in_the_steps(tmp_path):
    asked = []

    def answer(request):
        asked.append([(message["role"], message["content"]) for message in request.messages])
        return Turn(text=f"answer {len(asked)}")

    talk(answer, "one", "two", root=tmp_path / "s")
    assert asked[1] == [("user", "one"), ("assistant", "answer 1"), ("user", "two")]
    (trajectory,) = stored(tmp_path / "s").values()
    steps = [(step.source, step.turn, step.text) for step in trajectory.steps]
    assert steps == [
        ("user", 0, "one"), ("agent", 0, "answer 1"), ("user", 1, "two"), ("agent", 1, "answer 2"),
    ]  # fmt: skip


def test_what_is_undone_is_kept_and_what_follows_is_its_branch(tmp_path):
    talk([FIVE, BYE, ADD, FIVE], "one", "two", "undo", "three", "undo", root=tmp_path / "s")
    result = stored(tmp_path / "s")
    first, second = result.values()
    assert (first.stop_reason, second.stop_reason) == ("undone", "undone")
    assert second.parent_id == first.trajectory_id
    assert second.parent_step == 2
    assert [step.text for step in second.steps] == ["three", "bye"]
    whole = Store.open(str(tmp_path / "s")).get(second.trajectory_id, resolve=True)
    assert [step.text for step in whole.steps] == ["one", "5", "three", "bye"]
    assert second.attempt == 1


def test_undoing_the_first_message_begins_anew(tmp_path):
    talk([FIVE], "one", "undo", "one", root=tmp_path / "s")
    result = stored(tmp_path / "s").values()
    assert [(item.attempt, item.stop_reason) for item in result] == [(0, "undone"), (1, "user")]
    assert all(item.parent_id is None for item in result)


def test_an_environment_that_cannot_be_copied_cannot_undo():
    class Rigid(Adder):
        def fork(self):
            raise CannotForkError("no")

    with pytest.raises(CannotForkError):
        talk([FIVE, BYE], "one", "two", "undo", environments=Rigid)


def test_reset_and_the_same_words_are_another_attempt(tmp_path):
    talk([FIVE], "one", "reset", "one", root=tmp_path / "s")
    talk([FIVE], "one", root=tmp_path / "s")
    assert [item.attempt for item in stored(tmp_path / "s").values()] == [0, 1, 2]
    assert len({item.task_id for item in stored(tmp_path / "s").values()}) == 1


def test_a_policy_that_never_answers_gives_the_word_back():
    seen = talk(lambda _: ADD, "go on", "and on", max_turns=3)
    assert len(seen.turns) == 6
    assert seen.used_up == [3, 3]


def test_a_turn_that_breaks_leaves_the_conversation(tmp_path):
    calls = []

    def answer(request):
        calls.append(len(request.messages))
        if len(calls) == 2:
            raise InfrastructureError("connection", "the server is gone")
        return FIVE

    seen = talk(answer, "one", "two", "three", root=tmp_path / "s")
    assert [columns["error_message"] for columns in seen.endings] == ["the server is gone"]
    assert calls == [1, 3, 4]
    (trajectory,) = stored(tmp_path / "s").values()
    assert trajectory.error_type is None
    assert [step.text for step in trajectory.steps] == ["one", "5", "two", "three", "5"]


def test_the_last_message_broke(tmp_path):
    def answer(request):
        raise InfrastructureError("connection", "the server is gone")

    talk(answer, "one", root=tmp_path / "s")
    (trajectory,) = stored(tmp_path / "s").values()
    assert (trajectory.error_type, trajectory.stop_reason) == ("infrastructure", "connection")


def test_an_environment_that_cannot_begin():
    class Closed(Adder):
        def reset(self, task=None, *, seed=None):
            raise ValueError("closed on sundays")

    seen = talk([FIVE], "one", "two", environments=Closed)
    assert ["closed on sundays" in columns["error_message"] for columns in seen.endings] == [
        True
    ] * 2


def test_a_stopped_turn_leaves_what_was_said(tmp_path):
    started = asyncio.Event()

    class Slow(Scripted):
        async def act(self, request):
            if request.turn == 1 and len(request.messages) == 3:
                started.set()
                await asyncio.sleep(60)
            return await super().act(request)

    seen = Seen()

    async def run():
        store = ConversationStore(tmp_path / "s")
        plan = ConversationPlan(Slow([FIVE, BYE]), Adder)
        conversation = InteractiveChat(plan, seen, store)
        await conversation.say("one")
        turn = asyncio.create_task(conversation.say("two"))
        await started.wait()
        turn.cancel()
        with pytest.raises(asyncio.CancelledError):
            await turn
        assert await conversation.say("three")
        await conversation.reset()
        store.close()

    asyncio.run(run())
    (trajectory,) = stored(tmp_path / "s").values()
    assert [step.text for step in trajectory.steps] == ["one", "5", "two", "three", "bye"]


def test_a_stopped_call_is_a_result_with_an_error():
    class Waiting(Adder):
        async def step(self, turn):
            await asyncio.sleep(60)

        async def reset(self, task=None, *, seed=None):
            return Adder.reset(self, task, seed=seed)

        async def score(self, trajectory):
            return None

        async def close(self):
            pass

    seen = Seen()

    async def run():
        plan = ConversationPlan(Scripted([ADD]), Waiting)
        conversation = InteractiveChat(plan, seen, None)
        turn = asyncio.create_task(conversation.say("one"))
        while not seen.turns:
            await asyncio.sleep(0.01)
        turn.cancel()
        assert await turn
        await conversation.reset()

    asyncio.run(run())
    (outcome,) = seen.outcomes
    assert [str(result.error) for result in outcome.results] == ["execution"]
    assert len(seen.turns) == 1


def test_a_draft_lies_beside_the_store_and_is_taken_over(tmp_path):
    """What a process that was killed would leave: its draft, and a lock that nobody holds."""
    root = tmp_path / "s"
    kept = []

    async def keep_the_draft(conversation):
        (draft,) = (root / FOLDER).glob("*.json")
        kept.append(draft.read_bytes())

    talk([ADD, FIVE], "What is 2 + 3?", root=root, then=keep_the_draft)
    (before,) = stored(root).values()
    assert not (root / FOLDER).exists()

    other = tmp_path / "other"
    ConversationStore(other).close()
    (other / FOLDER).mkdir()
    (other / FOLDER / "1-a.json").write_bytes(kept[0])
    (other / FOLDER / "1-b.json").write_bytes(b'{"steps": \xff')
    store = ConversationStore(other)
    assert store.recovered == [before.trajectory_id]
    assert [path.name for path in store.damaged] == ["1-b.json"]
    store.close()
    (after,) = stored(other).values()
    assert rows(after) == rows(before)
    assert (after.stop_reason, after.truncated) == ("killed", True)


def test_the_draft_of_a_process_that_lives_is_left_alone(tmp_path):
    first = ConversationStore(tmp_path / "s")

    async def begin(store):
        plan = ConversationPlan(Scripted([FIVE]), Adder)
        conversation = InteractiveChat(plan, Seen(), store)
        await conversation.say("one")
        return conversation

    asyncio.run(begin(first))
    second = ConversationStore(tmp_path / "s")
    assert second.recovered == []
    second.close()
    assert list((tmp_path / "s" / FOLDER).glob("*.json"))
    first.close()
    third = ConversationStore(tmp_path / "s")
    assert len(third.recovered) == 1
    third.close()


def test_two_that_begin_with_the_same_words_at_once(tmp_path):
    async def run():
        stores = [ConversationStore(tmp_path / "s") for _ in range(2)]
        plan = ConversationPlan(Scripted([FIVE]), Adder)
        talks = [InteractiveChat(plan, Seen(), store) for store in stores]
        for item in talks:
            await item.say("one")
        await talks[1].say("two")
        for item, store in zip(talks, stores, strict=True):
            await item.reset()
            store.close()

    asyncio.run(run())
    assert [name.rpartition("attempt-")[2] for name in stored(tmp_path / "s")] == ["0", "0#2"]
