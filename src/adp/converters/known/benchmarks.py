"""What benchmarks, harnesses and environments write."""

from __future__ import annotations

from adp.converters.known.signature import (
    CHAT,
    TEXT,
    KnownFormat,
    either,
    first,
    has,
    kept_as,
    some,
    values,
)

FORMATS: tuple[KnownFormat, ...] = (
    KnownFormat(
        "openhands_llm_log",
        "an OpenHands model log",
        first(has("messages", "kwargs", "latency_sec", response=has())),
        outranks=CHAT,
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
        "mind2web", "Mind2Web tasks", first(has("annotation_id", "actions", "confirmed_task"))
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
