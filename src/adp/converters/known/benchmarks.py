"""What benchmarks, harnesses and environments write."""

from __future__ import annotations

from adp.converters.known.signature import (
    CHAT,
    KnownFormat,
    either,
    first,
    has,
)

FORMATS: tuple[KnownFormat, ...] = (
    KnownFormat(
        "openhands_llm_log",
        "an OpenHands model log",
        first(has("messages", "kwargs", "latency_sec", response=has())),
        outranks=CHAT,
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
