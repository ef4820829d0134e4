"""What is said of files that no format reads: the reason, the kind, the price of forcing one."""

import json

import pytest

from adp.converters.files.limits import ConvertLimits
from adp.converters.frames import Frame
from adp.converters.registry import formats
from adp.converters.run import ConvertOptions, convert
from adp.converters.unread_files import advice, attempt
from adp.core.progress import Silent
from adp.stores.checks.kept_text import STEPS, KeptAsText, kept_as_text
from adp_schema.errors import InputError
from tests.converters.containers import chat, lines

LFS = b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n"
EPISODE = {"episode_id": 1, "goal": "open it", "screenshots": ["a.png"], "actions": ["tap"]}
PATCH = {"instance_id": "a__b-1", "model_name_or_path": "m", "model_patch": "diff"}


def refusal(tmp_path, name, data):
    path = tmp_path / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    with pytest.raises(InputError) as error:
        convert([str(path)], str(tmp_path / "never"))
    return str(error.value)


@pytest.mark.parametrize(
    ("data", "output"),
    [
        (LFS, "a Git LFS pointer, not the data; get the data with: git lfs pull"),
        (b"/annex/objects/SHA256E-s12--ab.json\n", "a git-annex pointer"),
        (b"<!DOCTYPE html>\n<html><body>Sign in</body></html>", "a web page, not the data"),
        (b"", "the file is empty"),
        (b" \n", "the file is empty"),
        (b"[]", "an empty list, with no record"),
        (b"{}", "objects without a key"),
        (b"[1, 2]", "texts or numbers"),
        (b"[[1], [2]]", "its records are lists, and no objects"),
        (b"[[], []]", "empty lists"),
        (b'[[{"cmd": "ls", "image": "a.png"}], [{"cmd": "cat"}]]', "objects with the keys cmd, im"),
    ],
)
@pytest.mark.parametrize("name", ["a.json", "b.parquet"])
def test_each_kind_of_wrong_file_has_a_reason_of_its_own(tmp_path, name, data, output):
    message = refusal(tmp_path, name, data)
    assert output in message
    assert "--from" not in message
    assert "no JSON object" not in message


def test_lines_that_are_bare_lists_of_messages_of_other_roles(tmp_path):
    messages = [[{"role": "narrator", "content": "It was a dark night."}]] * 2
    message = refusal(tmp_path, "a.jsonl", lines(messages))
    assert 'bare lists of messages; write each as {"messages": [...]}' in message


def test_a_pointer_in_a_folder_is_counted_with_its_reason(tmp_path):
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.jsonl").write_bytes(lines([chat(1)]))
    (tmp_path / "in" / "b.parquet").write_bytes(LFS)
    manifest = convert([str(tmp_path / "in")], str(tmp_path / "s"))
    assert (manifest.counts.used, manifest.counts.rejected) == (1, 1)
    assert "Git LFS pointer" in next(iter(manifest.reasons))


def test_keys_that_no_format_reads_get_no_advice(tmp_path):
    message = refusal(tmp_path, "a.jsonl", lines([{"traj": "x", "thought": "y"}] * 3))
    assert message.endswith("no format recognises it (the first record has the keys traj, thought)")


def heads(*rows):
    return [
        Frame(data := json.dumps(row).encode(), number, 0, len(data))
        for number, row in enumerate(rows, 1)
    ]


def test_the_price_of_a_forced_format_is_measured():
    blocks = {"messages": [
        {"role": "user", "content": "x"},
        {"role": "assistant", "content": [
            {"type": "text", "text": "a"},
            {"type": "tool_use", "id": "1", "name": "f", "input": {}},
        ]},
        {"role": "user", "content": [
            {"type": "tool_result", "tool_use_id": "1", "content": "r"},
        ]},
    ]}  # fmt: skip
    chats = [formats.get("openai_chat")]
    assert advice(chats, heads(blocks, blocks, {"messages": 3}), ConvertLimits()) == (
        "; --from openai_chat reads it all the same: 4 texts, 0 calls, 4 parts left without words "
        "or calls, 1 rejected out of the first 3 records"
    )
    worthless = {"messages": [{"role": "user", "content": [{"type": "text", "value": "hi"}]}]}
    assert attempt(chats[0], heads(worthless), ConvertLimits()).opaque == 1
    assert advice(chats, heads(worthless), ConvertLimits()) == ""
    assert advice(formats.all(), heads({"a": 1}), ConvertLimits()) == ""


def test_a_folder_of_unread_files_is_summed_up_by_kind(tmp_path):
    folder = tmp_path / "in"
    folder.mkdir()
    for number in range(9):
        (folder / f"c{number}.jsonl").write_bytes(lines([EPISODE, EPISODE]))
    (folder / "a.jsonl").write_bytes(lines([PATCH]))
    (folder / "x.json").write_bytes(lines([{"k": 1}]))
    (folder / "y.json").write_bytes(lines([{"l": 1}]))
    with pytest.raises(InputError) as error:
        convert([str(folder)], str(tmp_path / "s"))
    text = str(error.value)
    nine = "9 files (c0.jsonl, c1.jsonl, c2.jsonl, ...): it looks like AndroidControl episodes"
    assert text.index(nine) < text.index("2 files (x.json, y.json): no format recognises it")
    assert "1 file: a.jsonl: it looks like patches" in text
    (folder / "ok.jsonl").write_bytes(lines([chat(1)]))
    notes = []
    progress = Silent()
    progress.note = notes.append
    convert([str(folder)], str(tmp_path / "s"), progress=progress)
    assert "1 file: openai_chat (recognised by its shape)" in notes
    assert f"rejected: {nine}, which this version cannot read yet" in notes


def test_files_of_other_endings_are_looked_at(tmp_path):
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.episode").write_text(json.dumps(EPISODE), "utf-8")
    with pytest.raises(InputError, match=r"a\.episode: it looks like AndroidControl episodes"):
        convert([str(tmp_path / "in")], str(tmp_path / "s"))


def test_a_folder_without_data_says_what_it_holds(tmp_path):
    for name in ("a.md", "b.md", "c.toml", "LICENSE"):
        (tmp_path / name).write_text("x", "utf-8")
    with pytest.raises(InputError, match=r"but 2 with \.md, 1 with \.toml, 1 with no ending;"):
        convert([str(tmp_path)], str(tmp_path / "s"))


# ---- calls that were kept as text ----------------------------------------------------------------


def talk(*turns):
    roles = ("user", "assistant")
    output = [{"role": roles[at % 2], "content": text} for at, text in enumerate(turns)]
    return {"messages": output}


def kept(tmp_path, *rows):
    (tmp_path / "a.jsonl").write_bytes(lines(list(rows)))
    out = tmp_path / "s"
    manifest = convert(
        [str(tmp_path / "a.jsonl")], str(out), options=ConvertOptions(workers=1, dialect="none")
    )
    return kept_as_text(str(out), manifest)


def test_calls_and_outputs_that_were_kept_as_text_are_counted(tmp_path):
    acted = talk(
        "do it", "Thought: x\nAction: ls[]", "Observation: a b", "Action: cat[a]", "thanks"
    )
    assert kept(tmp_path, acted, talk("hi", "ho")) == KeptAsText(7, True, 2, 1)


def test_plain_chats_and_parsed_calls_are_not_counted(tmp_path):
    call = {"id": "1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    parsed = {"messages": [
        {"role": "user", "content": "Observation: the sky is blue"},
        {"role": "assistant", "content": "<tool_call>", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "1", "content": "Observation: done"},
    ]}  # fmt: skip
    assert kept(tmp_path, parsed, talk("hi", "ho")) == KeptAsText(4, True, 0, 0)


def test_only_the_first_steps_are_looked_at(tmp_path):
    rows = [talk("x", "Action: ls[]")] * STEPS
    assert kept(tmp_path, *rows) == KeptAsText(STEPS, False, STEPS // 2, 0)
