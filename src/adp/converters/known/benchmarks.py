"""What benchmarks, harnesses and environments write."""

from __future__ import annotations

from adp.converters.known.signature import (
    CHAT,
    TEXT,
    KnownFormat,
    both,
    either,
    ends,
    every,
    first,
    flat,
    has,
    kept_as,
    lacks,
    no,
    some,
    values,
    word,
)

_V0_EVENT = both(
    has(source=TEXT),
    either(
        has("action", "args"),
        has("action", "content"),
        has("observation", "extras"),
    ),
)
_V0_HISTORY = flat(
    both(some(either(has("action"), has("observation"))), no(some(has("message_type"))))
)
"""The events of an evaluation's history: a list, or pairs of action and observation."""

_V1_KIND = either(ends("Event"), word("Condensation", "UserRejectObservation"))
_V1_SOURCE = word("agent", "user", "environment", "hook")


FORMATS: tuple[KnownFormat, ...] = (
    KnownFormat(
        "openhands_v0",
        "OpenHands events (version 0)",
        either(every(_V0_EVENT), some(has(trajectory=some(_V0_EVENT)))),
    ),
    KnownFormat(
        "openhands_v0_output",
        "OpenHands evaluation output",
        first(
            both(
                either(has("instance_id"), has("issue", "git_patch")),
                has(history=_V0_HISTORY),
            )
        ),
    ),
    KnownFormat(
        "openhands_llm_log",
        "an OpenHands model log",
        first(has("messages", "kwargs", "latency_sec", response=has())),
        outranks=CHAT,
    ),
    KnownFormat(
        "openhands_v1",
        "OpenHands events (version 1)",
        some(has("id", "timestamp", kind=_V1_KIND, source=_V1_SOURCE)),
    ),
    KnownFormat(
        "swe_agent",
        "a SWE-agent trajectory",
        kept_as(
            "object",
            first(
                either(
                    has(
                        trajectory=first(
                            both(has("action", "observation", "response"), lacks("source"))
                        )
                    ),
                    has(history=first(has("role", "agent", "message_type"))),
                )
            ),
        ),
    ),
    KnownFormat(
        "swe_agent_rows",
        "SWE-agent trajectories as rows",
        first(has("instance_id", trajectory=first(has("role", "text", "system_prompt")))),
    ),
    KnownFormat(
        "tau_bench_few_shot", "tau-bench examples as text", first(has(messages_display=TEXT))
    ),
    KnownFormat(
        "fireact",
        "FireAct runs",
        kept_as("object", first(values(some(has("traj", "em", "f1", "pred"))))),
    ),
    KnownFormat(
        "bfcl_results",
        "BFCL model outputs",
        first(
            either(
                has("id", "model", "result", "category"),
                has("id", "result", "input_token_count", "latency"),
            )
        ),
    ),
    KnownFormat(
        "webshop_log",
        "a WebShop session of a person",
        first(has(page=TEXT, url=TEXT, goal=has("instruction_text"))),
    ),
    KnownFormat(
        "mind2web", "Mind2Web tasks", first(has("annotation_id", "actions", "confirmed_task"))
    ),
    KnownFormat(
        "nnetnav",
        "NNetNav steps, one row each",
        first(has("messages", task_name=TEXT, prompt=TEXT, output=TEXT)),
        outranks=CHAT,
    ),
    KnownFormat(
        "android_control",
        "AndroidControl episodes",
        first(has("episode_id", "goal", "screenshots", "actions")),
    ),
    KnownFormat(
        "aitw",
        "Android in the Wild frames, one row each",
        first(has("episode_id", "step_id", "results/action_type")),
    ),
    KnownFormat("omniact", "OmniACT tasks", first(has("task", "image", "ocr", "box"))),
)
