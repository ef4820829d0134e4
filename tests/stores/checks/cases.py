"""For every check on trajectories: runs that it finds something in, and runs that are fine."""

from __future__ import annotations

import base64
import json

from tests.stores.checks.runs import (
    DONE,
    Run,
    agent,
    call,
    image,
    link,
    result,
    run,
    system,
    user,
)


def tools(*names: str, **arguments: dict[str, object]) -> str:
    """A list of tools that take these arguments; those without a default are required."""
    schema = {"type": "object", "properties": arguments, "required": list(arguments)[:1]}
    return json.dumps(
        [
            {"type": "function", "function": {"name": n, "description": "d", "parameters": schema}}
            for n in names
        ]
    )


def calling(*calls: tuple[str, dict[str, object]], **columns: object) -> Run:
    """A run with these calls, each answered, whose tool ``look`` takes ``at`` and ``n``."""
    offer = tools("look", at={"type": "string"}, n={"type": ["integer", "null"]})
    items = [
        item
        for name, arguments in calls
        for item in (agent(), call(name, json.dumps(arguments)), result())
    ]
    return run(user(), *items, agent("Done."), tools=columns.get("tools", offer))


BLOB = base64.b64encode(bytes(range(256))).decode()
ESCAPE = "\x1b[31mred\x1b[0m"
TASK = (
    "Count the files in the folder and tell me how many there are, and nothing else at all, please."
)
TURNS = (agent(), call(), user("On the desk is a lamp."))

BAD: dict[str, list[Run]] = {
    "recorded-losses": [run(*DONE, losses='[{"path":"$.a","reason":"no place"}]')],
    "invalid-json": [
        run(*DONE, extra='{"a":NaN}'),
        run(user(), agent(extra="{"), call(), result()),
        run(user(extra=r'{"a":"\ud800"}'), agent()),
    ],
    "repeated-source-id": [run(*DONE, source_id="again"), run(*DONE, source_id="again")],
    "duplicate-record": [run(*DONE, source_hash="ab"), run(*DONE, source_hash="ab")],
    "missing-parent": [run(agent(), parent_id="made/nowhere", parent_step=1)],
    "missing-subagent": [run(*DONE, link("subagent", "away"))],
    "history-cut": [run(*DONE, link("continuation", "gone")), run(*DONE, link("fork", "gone"))],
    "contents-not-captured": [run(user(), agent(None), agent("Done."))],
    "dangling-call": [
        run(user(), agent(), call(), agent("Then that.")),
        run(user(), agent(), call(call_id="a"), call(call_id="b"), result(answers="b"), agent()),
    ],
    "orphan-result": [
        run(user(), agent(), call(), result(), result("more", linked=False), agent()),
        run(user(), agent("Action: look"), result(linked=False)),
    ],
    "unknown-call-id": [run(user(), agent(), call(call_id="a"), result(answers="b"), agent())],
    "result-before-call": [
        run(user(), agent(), result(answers="a"), agent(), call(call_id="a"), agent())
    ],
    "several-results": [
        run(user(), agent(), call(call_id="a"), result(answers="a"), result(answers="a"), agent())
    ],
    "duplicate-call-id": [
        run(user(), agent(), call(call_id="a"), call(call_id="a"), result(), result(), agent())
    ],
    "missing-call-id": [run(user(), agent(), call(), result(), agent())],
    "user-before-result": [
        run(user(), agent(), call(call_id="a"), user("Well?"), result(answers="a"), agent())
    ],
    "late-result": [
        run(user(), agent(), call(call_id="a"), agent("On."), result(answers="a"), agent())
    ],
    "empty-trajectory": [run()],
    "no-agent-step": [run(user()), run(system(), user())],
    "no-user-step": [run(system("Do it."), agent())],
    "early-result": [run(result("A page.", linked=False), user(), agent())],
    "agent-begins": [run(system(), agent("Open the app."), user("screen"), agent())],
    "ends-on-call": [run(user(), agent(), call())],
    "ends-on-result": [run(user(), agent(), call(), result())],
    "ends-on-user": [run(user(), agent(), user("And now?"))],
    "cut-turn": [run(user(), agent("Once upon", stop_reason="length"))],
    "cut-run": [run(*DONE, truncated=True), run(*DONE, stop_reason="max_tokens")],
    "cut-result": [run(user(), agent(), call(), result("abc", truncated=True), agent())],
    "empty-step": [run(user(), agent(""), agent()), run(user(None), agent())],
    "observation-only-step": [run(user(), agent(None), result("A page.", linked=False), agent())],
    "environment-as-user": [
        run(user(), agent(), call(), user("OBSERVATION:\na lamp"), agent()),
        run(user(), agent("Action: look[desk]"), user("Observation: a lamp"), agent()),
        run(user(), *TURNS, *TURNS, *TURNS, agent()),
        run(user(), agent("<solution> 4 </solution>"), user("Observation: wrong"), agent()),
        run(user(), agent("Final Answer: 4"), user("Observation: wrong"), agent()),
    ],
    "unknown-role": [
        run(
            user(),
            (
                "step",
                {
                    "source": "environment",
                    "kind": "message",
                    "text": "over",
                    "extra": '{"$shape":{"role":"exit"}}',
                },
            ),
            agent(),
        )
    ],
    "text-in-call-turn": [
        run(user(), agent("No call.", extra='{"$shape":{"role":"function_call"}}'))
    ],
    "same-source-twice": [
        run(user(), user("And that."), agent()),
        run(user(), agent(), agent("b")),
    ],
    "copied-context": [run(user(), agent(is_copied_context=True), user(), agent())],
    "call-left-in-text": [
        run(user(), agent(text), user(), agent())
        for text in (
            "I look.\n<function=bash>\n<parameter=command>ls</parameter>\n</function>",
            '<tool_call>\n{"name": "look"}\n</tool_call>',
            "Thought: look\nAction: search[lamp]",
            "Think: look\n\nAct: bash\n\n```bash\nls\n```",
            '{"name": "look", "arguments": {"at": "desk"}}',
            "[look(at='desk'), look(at='bed')]",
            "I list.\n\n```bash\nls -l\n```",
            "The next action I will perform is ```click [12]```",
            '<functioncall> {"name": "look"}',
            '{"analysis": "Dark.", "commands": []}',
        )
    ]
    + [
        run(
            user(),
            agent("I look.", extra='{"$parsed":{"dialect":"react","left":"no tool has the name"}}'),
            call(),
            result(),
            agent(),
        )
    ],
    "nameless-call": [run(user(), agent(), call(None), result(), agent())],
    "calls-without-tools": [run(*DONE), run(*DONE, tools="[]")],
    "unreadable-tools": [
        run(*DONE, tools='[{"type":"function","function":{"description":"d"}}]'),
        run(*DONE, tools='"look"'),
        run(*DONE, tools=tools("look", "look")),
    ],
    "undescribed-tool": [run(*DONE, tools='[{"name":"look"}]')],
    "invalid-arguments": [
        run(
            user(),
            agent(),
            call(arguments=None, arguments_raw='{"at": ', arguments_kind="invalid"),
            result(),
            agent(),
        )
    ],
    "double-encoded-arguments": [run(user(), agent(), call("look", r'"{\"at\": 1}"'), result())],
    "arguments-not-object": [
        run(user(), agent(), call("look", text), result(), agent()) for text in ("[1]", '"a"', "1")
    ],
    "quoted-string": [
        calling(("look", {"at": '"desk"'})),
        calling(("look", {"at": "'desk'"}), ("look", {"at": "'bed'"})),
        calling(("search", {"query": '"red shoes"'}), ("click", {"element": '"B07"'})),
    ],
    "unknown-tool": [calling(("peek", {"at": "desk"}))],
    "missing-argument": [calling(("look", {"n": 1}))],
    "unknown-argument": [calling(("look", {"at": "desk", "on": True}))],
    "unfit-argument": [
        calling(("look", {"at": 7})),
        calling(("look", {"at": "desk", "n": 1.5})),
        calling(("look", {"at": "up"}), tools=tools("look", at={"enum": ["left", "right"]})),
    ],
    "escape-codes": [
        run(user(), agent(), call(), result(ESCAPE), agent()),
        run(user(ESCAPE), agent()),
    ],
    "control-characters": [run(user("a\x00b"), agent()), run(user(), agent(reasoning="\x07"))],
    "replacement-character": [run(user("b\ufffdd"), agent())],
    "base64-in-text": [
        run(user(f"See {BLOB}"), agent()),
        run(user("See data:image/png;base64," + "QUJD" * 12), agent()),
    ],
    "template-tokens": [run(user("<|im_start|>user\nhi<|im_end|>"), agent())],
    "reasoning-in-text": [run(user(), agent("<think>\nHm.\n</think>\nDone."))],
    "orphan-think-end": [run(user(), agent("Hm.\n</think>\nDone."))],
    "local-media-path": [
        run(image(uri), agent())
        for uri in ("/home/me/a.png", "file:///tmp/a.png", "C:\\shots\\a.png")
    ],
    "media-not-stored": [run(image("shots/a.png"), agent()), run(image("https://x.io/a"), agent())],
    "missing-media": [
        run(user(content='[{"type":"media","media_id":"' + "0" * 32 + '"}]'), agent())
    ],
    "empty-page": [run(user(), agent(), call(), result(None, url="https://x.io"), agent())],
    "incomplete-page": [run(user(), agent(), call(), result(None, axtree="[1] link"), agent())],
    "two-tasks": [
        run(user(), agent(), user("Now, I will start a new problem in a new OS."), agent()),
        run(user(TASK), agent(), user(TASK), agent()),
        run(system(), user(), agent(), system(), user("That too."), agent()),
        run(user(), agent("<finish> 3 </finish>"), user("And the bed?"), agent()),
        run(user(), agent(), call("submit"), user("Not yet."), agent(), call(), result()),
    ],
    "synthetic-ending": [
        run(
            user(),
            agent(),
            call(),
            user("Well done, the task is solved!"),
            agent("<finish> I did it. </finish>"),
        )
    ],
    "no-metadata": [run(user(), agent(), agent_model=None, extra='{"details":{}}')],
    "number-as-string": [run(*DONE, extra='{"details":{"score":"0.5"}}')],
    "no-license": [run(*DONE, license=None)],
}
"""Check -> runs with something to find; each of them must be found."""

_CLEAN = run(*DONE, tools=tools("look", at={"type": "string"}))

GOOD: dict[str, list[Run]] = {
    "invalid-json": [run(*DONE, extra=r'{"a":"NaN, Infinity and \ud83d\ude00"}')],
    "repeated-source-id": [
        run(*DONE, source_id="trunk"),
        run(agent(), source_id="trunk", parent_id="made/trunk", parent_step=1),
    ],
    "missing-subagent": [run(*DONE, link("subagent", "here"), source_id="here"), run(*DONE)],
    "history-cut": [run(*DONE, link("continuation", "there"), source_id="there")],
    "contents-not-captured": [
        run(user(), agent(None), call(), result(), agent(None, stop_reason="aborted")),
        run(user(), agent(None, reasoning="Hm."), agent(None, tokens_out=0)),
    ],
    "missing-parent": [
        run(*DONE, source_id="root"),
        run(agent(), parent_id="made/root", parent_step=1),
    ],
    "dangling-call": [
        run(user(), agent(), call("finish"), user("Thanks."), agent("You are welcome.")),
        run(user(), agent(), call("say", kind="message"), user()),
        run(user(), agent(), call()),
    ],
    "orphan-result": [
        run(result("A page.", linked=False), user(), agent()),
        run(user(), agent(), result(None, axtree="[1]", url="https://x.io", linked=False), agent()),
    ],
    "unknown-call-id": [run(agent(), parent_id="made/root", parent_step=1)],
    "several-results": [
        run(
            user(),
            agent(),
            call(call_id="a"),
            call(call_id="b"),
            result(answers="b"),
            result(answers="a"),
            agent(),
        )
    ],
    "duplicate-call-id": [
        run(user(), agent(), call(call_id="a", native_id="item_7"), result(answers="a"), agent())
    ],
    "no-user-step": [run(agent(), parent_id="made/root", parent_step=1)],
    "agent-begins": [run(result("A page.", linked=False), agent(), user())],
    "ends-on-call": [run(user(), agent(), call("submit"))],
    "ends-on-result": [run(user(), agent(), call("finish"), result("bye"))],
    "empty-step": [run(image(), agent(None), call(), result(), agent())],
    "environment-as-user": [
        run(user(), agent(), user("Observation: you forgot the lamp."), agent()),
        run(user(), *TURNS, *TURNS, agent()),
        run(user("OBSERVATION: begin"), agent()),
    ],
    "unknown-role": [run(system(extra='{"$shape":{"role":"developer"}}'), user(), agent())],
    "text-in-call-turn": [
        run(user(), agent(extra='{"$shape":{"role":"function_call"}}'), call(), result())
    ],
    "same-source-twice": [
        run(user(), agent(), call(), result(), agent("b")),
        run(user(), agent(), ("step", {"source": "user", "kind": "event"}), user("x"), agent()),
    ],
    "copied-context": [
        run(user(is_copied_context=True), agent(is_copied_context=True, loss_weight=0.0))
    ],
    "call-left-in-text": [
        run(user(), agent("<function=bash>ls</function>"), call(), result(), agent()),
        run(user("<tool_call> is a tag"), agent("Our action: wait."), user(), agent()),
        run(user(), agent("Run this:\n```bash\nls\n```")),
        run(user(), agent('{"name": "Ann", "age": 7}'), user(), agent("[link](https://x.io/a(b))")),
    ],
    "nameless-call": [
        run(
            user(),
            agent(),
            call(None, None, kind="code", arguments_raw="ls", arguments_kind="text"),
            result(),
        )
    ],
    "calls-without-tools": [run(user(), agent(), call("python", None, kind="code"), result())],
    "unreadable-tools": [run(*DONE, tools='[{"type":"web_search"},{"name":"look"}]')],
    "invalid-arguments": [
        run(
            user(),
            agent(),
            call("python", None, kind="code", arguments_raw="ls(", arguments_kind="text"),
            result(),
        )
    ],
    "double-encoded-arguments": [run(user(), agent(), call("look", '"desk"'), result())],
    "arguments-not-object": [
        run(user(), agent(), call("look", r'"{\"at\": 1}"'), result()),
        run(user(), agent(), call("sql", "[1]", kind="code"), result()),
    ],
    "quoted-string": [
        calling(("look", {"at": '"desk" or "bed"'})),
        calling(("look", {"at": '"desk"'}), ("look", {"at": "bed"})),
        calling(("search", {"query": '"an exact phrase"'})),
    ],
    "unknown-tool": [calling(("peek", {}), tools="[]"), run(*DONE)],
    "missing-argument": [calling(("look", {"at": "desk"}))],
    "unknown-argument": [
        calling(("look", {"on": 1}), tools='[{"name":"look"}]'),
        calling(
            ("look", {"on": 1}),
            tools='[{"name":"look","input_schema":{"type":"object","properties":{},'
            '"additionalProperties":true}}]',
        ),
    ],
    "unfit-argument": [
        calling(("look", {"at": "desk", "n": None})),
        calling(("look", {"at": "desk", "n": 2.0})),
        calling(("look", {"at": 7}), tools=tools("look", at={"type": "any"})),
        calling(("look", {"at": 7}), tools='[{"name":"look","parameters":{"at":{"type":"int"}}}]'),
    ],
    "escape-codes": [run(user("\\x1b[31m is red"), agent())],
    "control-characters": [run(user("a\tb\r\nc\fd\x1b"), agent("naïve 世界"))],
    "base64-in-text": [
        run(user("/usr/share/Lib3" * 30), agent("a" * 300)),
        run(user("0f" * 150), agent("Wörter " * 60)),
    ],
    "template-tokens": [run(user("a <| b |> c, [INST"), agent())],
    "reasoning-in-text": [run(user("<think>hm</think>"), agent("The tag `<think>` is old."))],
    "orphan-think-end": [run(user(), agent("<think>Hm.</think>"))],
    "local-media-path": [run(image("shots/a.png"), agent()), run(image("https://x.io/a"), agent())],
    "media-not-stored": [run(image(), agent())],
    "missing-media": [run(image(), agent())],
    "empty-page": [
        run(user(), agent(), call(), result(None, url="https://x.io", html="<p>"), agent()),
        run(user(), agent(), call(), result(None), agent()),
    ],
    "incomplete-page": [
        run(user(), agent(), call(), result(None, url="https://x.io", html="<p>"), agent())
    ],
    "two-tasks": [
        run(user("Solve a new problem."), agent(), user("yes"), agent(), user("yes"), agent()),
        run(user(), agent(), system("Note: it is late."), agent()),
        run(user(), agent("<finish> 3 </finish>")),
        run(user(), agent(), call("submit"), user("Well done!"), agent("<finish> bye </finish>")),
    ],
    "synthetic-ending": [
        run(user(), agent("Which one?"), user("Is this correct?"), agent("<finish> yes </finish>"))
    ],
    "no-metadata": [run(user(), agent(), agent_model=None, extra='{"details":{"a":1}}')],
    "number-as-string": [
        run(*DONE, extra='{"details":{"score":0.5,"task_id":"17","zip":"007"},"$shape":{"a":"1"}}')
    ],
}
"""Check -> runs that look a little like the bad ones, but are fine; `_CLEAN` is fine for all."""

for check in BAD:
    GOOD.setdefault(check, []).append(_CLEAN)
