"""The results of runs as tables.

    python -m examples.loop.tables benchmarks/results/loop.json docs/loop.md

writes the tables of all seeds between the two marks of the page.
"""

import json
import sys
from pathlib import Path

BEGIN, END = "<!-- numbers -->", "<!-- end of numbers -->"

ROWS = (
    ("before", "untrained", None),
    ("after_sft", "after SFT", "greedy"),
    ("after_dpo", "after DPO", "greedy"),
    ("after_control", "control: SFT on the chosen steps", "greedy"),
    ("after_sft", "after SFT, temperature 1", "sampled"),
    ("after_dpo", "after DPO, temperature 1", "sampled"),
    ("after_control", "control, temperature 1", "sampled"),
)


CHANGES = (("change by DPO", "greedy"), ("change by DPO, temperature 1", "sampled"))


def markdown(found):
    """Success and faults per task, as a table."""
    lines = [
        "| model | tasks | success | clean | redundant | wrong | malformed |",
        "|---|---|---|---|---|---|---|",
    ]
    for name, title, part in ROWS:
        one = found[name] if part is None else found[name][part]
        lines.append(
            f"| {title} | {one['tasks']} | {one['success']:.1%} | {one['clean']:.1%} "
            f"| {one['redundant']:.2f} | {one['wrong']:.2f} | {one['malformed']:.2f} |"
        )
    seconds = sum(cost["cpu_s"] for cost in found["costs"].values())
    lines += ["", f"Seed {found['seed']}; {seconds:.0f} s of CPU in all."]
    return "\n".join(lines) + "\n"


def summary_markdown(summary):
    """Means over the seeds with their intervals, as two tables."""
    lines = [
        "| model | success | clean | redundant per task | malformed per task |",
        "|---|---|---|---|---|",
    ]
    for title, one in summary["main"].items():
        cells = [_share(one["success"]), _share(one["clean"])]
        cells += [_amount(one["redundant"]), _amount(one["malformed"])]
        lines.append(f"| {title} | " + " | ".join(cells) + " |")
    for title, one in summary["change"].items():
        cells = [_points(one["success"]), _points(one["clean"])]
        cells += [_change(one["redundant"], 1, 2), _change(one["malformed"], 1, 2)]
        lines.append(f"| {title} | " + " | ".join(cells) + " |")
    lines += [
        "",
        "| trained on | success | on fresh tasks | success, temperature 1 | against curated "
        "| malformed, temperature 1 | against curated |",
        "|---|---|---|---|---|---|---|",
    ]
    for name, one in summary["arms"].items():
        if one:
            cells = [_share(one[part]) for part in ("held_out success", "fresh success")]
            cells += [_share(one["sampled success"]), _points(one.get("success difference"))]
            cells += [_amount(one["sampled malformed"])]
            cells += [_change(one.get("malformed difference"), 1, 2)]
            lines.append(f"| {name} | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def _share(one):
    """A share in percent, with its interval, which cannot go beyond 0 and 100."""
    text = f"{100 * one['mean']:.1f}"
    if one["low"] is None:
        return text
    return f"{text} ({max(0, 100 * one['low']):.1f} to {min(100, 100 * one['high']):.1f})"


def _amount(one):
    text = f"{one['mean']:.2f}"
    if one["low"] is None:
        return text
    return f"{text} ({max(0, one['low']):.2f} to {one['high']:.2f})"


def _points(one):
    """A difference of shares in points."""
    return _change(one, 100, 1)


def _change(one, factor, digits):
    if one is None:
        return ""
    text = f"{factor * one['mean']:+.{digits}f}"
    if one["low"] is None:
        return text
    return f"{text} ({factor * one['low']:+.{digits}f} to {factor * one['high']:+.{digits}f})"


def page(text, results):
    """A page with the numbers between its marks.

    Args:
        text: the page.
        results: what `make loop-full` wrote.
    """
    before, rest = text.split(BEGIN)
    _, after = rest.split(END)
    seeds = sorted(results["runs"], key=int)
    cpu = [sum(one["cpu_s"] for one in run["costs"].values()) for run in results["runs"].values()]
    arms = [sorted(one, key=int) for one in results["arms"].values()]
    said = f"Seeds {', '.join(seeds)}" if len(seeds) > 1 else f"Seed {seeds[0]}"
    said += (
        "; 300 tasks each. In brackets: 95 % intervals over seeds. Shares in percent. A run takes "
    )
    said += f"about {max(cpu) / 60:.0f} minutes of one core.\n"
    if any(one != seeds for one in arms):
        said += "Not all arms have all seeds yet.\n"
    return f"{before}{BEGIN}\n{said}\n{summary_markdown(results['summary'])}{END}{after}"


def main(results, file):
    """Write the numbers into a page."""
    path = Path(file)
    path.write_text(page(path.read_text(), json.loads(Path(results).read_text())))


if __name__ == "__main__":
    main(*sys.argv[1:])
