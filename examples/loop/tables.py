"""The results of runs as tables.

    python -m examples.loop.tables benchmarks/results/loop.json docs/loop.md

writes the tables of all seeds between the two marks of the page.
"""

import json
import sys
from pathlib import Path

from examples.loop.arms import ARMS
from examples.loop.methods import METHODS
from examples.loop.study import BASELINE

BEGIN, END = "<!-- numbers -->", "<!-- end of numbers -->"

ROWS = (
    ("before", "untrained", None),
    ("after_sft", "after SFT", "held_out"),
    ("after_dpo", "after DPO", "held_out"),
    ("after_control", "control: SFT on the chosen steps", "held_out"),
    ("after_grpo", "after GRPO in the environment", "held_out"),
    ("after_sft", "after SFT, greedy", "greedy"),
    ("after_dpo", "after DPO, greedy", "greedy"),
    ("after_control", "control, greedy", "greedy"),
    ("after_grpo", "after GRPO, greedy", "greedy"),
    ("after_sft", "after SFT, unseen tools", "unseen_tools"),
    ("after_sft", "after SFT, longer paths", "longer_paths"),
)


def markdown(value):
    """Success and faults per task of one run, as a table."""
    lines = [
        "| model | tasks | success | clean | redundant | wrong | malformed |",
        "|---|---|---|---|---|---|---|",
    ]
    for name, title, part in ROWS:
        result = value[name] if part is None else value[name][part]
        lines.append(
            f"| {title} | {result['tasks']} | {result['success']:.1%} | {result['clean']:.1%} "
            f"| {result['redundant']:.2f} | {result['wrong']:.2f} | {result['malformed']:.2f} |"
        )
    seconds = sum(cost["cpu_s"] for cost in value["costs"].values())
    lines += ["", f"Seed {value['seed']}; {seconds:.0f} s of CPU in all."]
    return "\n".join(lines) + "\n"


def study_markdown(summary):
    """All that the study has measured so far, as tables."""
    data = [name for name in summary if name == BASELINE or name in ARMS]
    methods = [name for name in summary if name == BASELINE or name in METHODS]
    sections = [("trained on", data)]
    sections += [("then trained by", methods)] if methods[1:] else []
    parts = [table(summary, names, title) for title, names in sections for table in TABLES]
    return "\n".join([*parts, _seeds(summary)])


def _primary(summary, names, title):
    lines = [
        f"| {title} | seeds | success, temperature 1 | against {BASELINE} | success, greedy "
        "| clean | redundant per task | malformed per task |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for name in names:
        row, figures = summary[name], summary[name]["figures"]
        cells = [str(len(row["seeds"])), _share(figures["held_out success"])]
        cells += [_points(row["differences"].get("held_out success"))]
        cells += [_share(figures["greedy success"]), _share(figures["held_out clean"])]
        cells += [_amount(figures[f"held_out {key}"]) for key in ("redundant", "malformed")]
        lines.append(f"| {_title(name, title)} | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def _secondary(summary, names, title):
    lines = [
        f"| {title} | unseen tools | against {BASELINE} | longer paths | against {BASELINE} "
        "| leaked tasks | leaked less held-out |",
        "|---|---|---|---|---|---|---|",
    ]
    for name in names:
        row, cells = summary[name], []
        for part in ("unseen_tools success", "longer_paths success"):
            cells += [_share(row["figures"][part]), _points(row["differences"].get(part))]
        cells += [_share(row["figures"]["leaked success"]), _points(row["leak"])]
        lines.append(f"| {_title(name, title)} | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


TABLES = (_primary, _secondary)


def _title(name, title):
    return "nothing more" if name == BASELINE and title == "then trained by" else name


def _seeds(summary):
    """The primary figure of each seed, and what was begun anew."""
    every = sorted({int(seed) for row in summary.values() for seed in row["seeds"]})
    lines = [
        "| success at temperature 1, each seed | " + " | ".join(map(str, every)) + " | begun anew "
        "| passes of tokens |",
        "|---|" + "---|" * (len(every) + 2),
    ]
    for name, row in summary.items():
        values = row["figures"]["held_out success"]["values"]
        known = dict(zip(map(int, row["seeds"]), values, strict=True))
        cells = [f"{100 * known[seed]:.1f}" if seed in known else "" for seed in every]
        passes = list(row["passes"].values())
        cells += [", ".join(f"seed {seed}" for seed in row["retries"]) or "none"]
        cells += [f"{sum(passes) / len(passes) / 1e6:.2f} million" if passes else ""]
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def _share(value):
    """A share in percent, with its interval, which cannot go beyond 0 and 100."""
    text = f"{100 * value['mean']:.1f}"
    if value["low"] is None:
        return text
    return f"{text} ({max(0, 100 * value['low']):.1f} to {min(100, 100 * value['high']):.1f})"


def _amount(value):
    text = f"{value['mean']:.2f}"
    if value["low"] is None:
        return text
    return f"{text} ({max(0, value['low']):.2f} to {value['high']:.2f})"


def _points(value):
    """A difference of shares in points."""
    return _change(value, 100, 1)


def _change(value, factor, digits):
    if value is None:
        return ""
    text = f"{factor * value['mean']:+.{digits}f}"
    if value["low"] is None:
        return text
    return f"{text} ({factor * value['low']:+.{digits}f} to {factor * value['high']:+.{digits}f})"


def page(text, results):
    """A page with the numbers between its marks.

    Args:
        text: the page.
        results: what `make loop-full` wrote.
    """
    before, rest = text.split(BEGIN)
    _, after = rest.split(END)
    summary = results["summary"]
    seeds = sorted({int(seed) for row in summary.values() for seed in row["seeds"]})
    statement = (
        f"Seeds {', '.join(map(str, seeds))}; 300 tasks in each set. In brackets: 95 % intervals "
        "over seeds. Shares in percent, differences in points.\n"
    )
    if any(len(row["seeds"]) < len(seeds) for row in summary.values()):
        statement += "Not all arms have all seeds yet.\n"
    return f"{before}{BEGIN}\n{statement}\n{study_markdown(summary)}{END}{after}"


def main(results, file):
    """Write the numbers into a page."""
    path = Path(file)
    path.write_text(page(path.read_text(), json.loads(Path(results).read_text())))


if __name__ == "__main__":
    main(*sys.argv[1:])
