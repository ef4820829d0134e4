"""How stores and rows show themselves, and a store as a collection."""

import re
from html.parser import HTMLParser

import pytest

import adp
from adp_schema import StoreError, UsageError

HOSTILE = '<script>alert(1)</script><img src=x onerror="x">&amp;'


@pytest.fixture
def store(tmp_path):
    call = adp.ToolCall(call=0, step=1, name=HOSTILE, arguments='{"a": "</td><b>"}')
    result = adp.Observation(step=1, order=0, text=HOSTILE)
    steps = [
        adp.Step(step=0, source="user", text=HOSTILE * 100),
        adp.Step(step=1, source="agent", text="x", calls=[call], observations=[result]),
    ]
    with adp.grow(tmp_path / "store") as growing:
        for name in ("one", "two", HOSTILE):
            growing.append(
                adp.Trajectory(dataset="d", source_id=name, agent_model=HOSTILE, steps=steps)
            )
    return adp.seal(tmp_path / "store")


class Tags(HTMLParser):
    def __init__(self):
        super().__init__()
        self.names = set()

    def handle_starttag(self, tag, attrs):
        self.names.add(tag)


def test_a_store_is_a_collection(store, tmp_path):
    assert len(store) == 3
    assert [item.trajectory_id for item in store] == ["d/one", "d/two", f"d/{HOSTILE}"]
    adp.grow(tmp_path / "none").close()
    empty = adp.seal(tmp_path / "none")
    assert (len(empty), list(empty), bool(empty)) == (0, [], True)


def test_get_takes_a_part_of_the_id(store):
    assert store.get("one") == store.get("d/one") == store.get("d/o")
    with pytest.raises(StoreError, match="did you mean d/one"):
        store.get("onne")
    with pytest.raises(UsageError, match="names 3 trajectories"):
        store.get("d/")
    with pytest.raises(StoreError, match="no trajectory 'one'"):
        store.get("one", exact=True)


def test_reprs_are_short(store):
    assert repr(store) == f"<Store {store.root}: 3 trajectories>"
    trajectory = store.get("one")
    assert re.fullmatch(r"Trajectory\(trajectory_id='d/one', .*, steps=2\)", repr(trajectory))
    rows = [trajectory, *trajectory.steps, *trajectory.steps[1].calls]
    rows.append(adp.Media(media_id="m", data=b"x" * 10_000_000))
    assert max(len(repr(row)) for row in rows) < 600


def test_html_holds_no_html_of_a_trace(store):
    trajectory = store.get("one")
    step = trajectory.steps[1]
    for shown in (store, trajectory, step, step.calls[0], adp.show(store, "one")):
        tags = Tags()
        tags.feed(shown._repr_html_())
        assert tags.names <= {"p", "table", "tr", "th", "td", "pre"}
        assert "alert" in shown._repr_html_()
        assert len(shown._repr_html_()) < 12_000


def test_show(store):
    shown = adp.show(store.root, "one", kinds=["call"])
    assert repr(shown) == str(shown)
    assert shown.startswith("d/one\n")
    assert adp.show(store.get("one"), kinds=["call"]) == shown
    assert "x\n" not in adp.show(store, "one", steps=slice(0, 1))
    with pytest.raises(UsageError, match="say which"):
        adp.show(store)
    with pytest.raises(UsageError, match="did you mean call"):
        adp.show(store, "one", kinds=["cal"])
