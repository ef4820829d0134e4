"""Messages that are added at once get the rows that `RowBuilder` makes one by one."""

from hypothesis import given
from hypothesis import strategies as st

from adp_schema.builder import Origin, RowBuilder
from adp_schema.message_rows import MessageRows, add_messages

SOURCES = ("system", "user", "agent", "environment")
MESSAGES = st.lists(
    st.one_of(
        st.tuples(st.sampled_from(SOURCES), st.integers(0, 2)),
        st.tuples(st.just("result"), st.integers(0, 9)),
    ),
    min_size=1,
    max_size=12,
)


def one_by_one(builder, messages):
    calls = 0
    for source, number in messages:
        if source == "result":
            builder.observation({"source": "environment"}, answers=f"c{number}")
            continue
        builder.step({"source": source})
        for _ in range(number):
            builder.call({"call_id": f"c{calls}"})
            calls += 1


def at_once(builder, messages):
    rows = MessageRows({"source": []}, {"call_id": []}, {"source": []})
    for source, number in messages:
        steps = len(rows.steps["source"])
        if source == "result":
            rows.observations["source"].append("environment")
            rows.after.append(steps)
            rows.answers.append(f"c{number}")
            continue
        rows.steps["source"].append(source)
        for _ in range(number):
            rows.calls["call_id"].append(f"c{len(rows.callers)}")
            rows.callers.append(steps)
    add_messages(builder, rows)


@given(MESSAGES)
def test_both_ways_make_the_same_rows(messages):
    tables = []
    for add in (one_by_one, at_once):
        builder = RowBuilder()
        for seq in range(2):
            builder.begin(Origin(seq=seq, dataset="d", columns={"source_hash": "h"}))
            builder.trajectory({})
            add(builder, messages)
            assert builder.next_step == sum(source != "result" for source, _ in messages)
            builder.finish()
        tables.append(builder.tables())
    assert tables[0] == tables[1]


def test_a_record_that_fails_leaves_nothing():
    builder = RowBuilder()
    builder.begin(Origin(seq=0, dataset="d", columns={"source_hash": "h"}))
    builder.trajectory({})
    at_once(builder, [("user", 0), ("agent", 2), ("result", 0)])
    builder.rollback()
    assert not any(rows.size for rows in builder.rows.values())
