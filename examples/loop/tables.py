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


def markdown(value):
    """Success and faults per task, as a table."""
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


def summary_markdown(summary):
    """Means over the seeds with their intervals, as two tables."""
    lines = [
        "| model | success | clean | redundant per task | malformed per task |",
        "|---|---|---|---|---|",
    ]
    for title, result in summary["main"].items():
        cells = [_share(result["success"]), _share(result["clean"])]
        cells += [_amount(result["redundant"]), _amount(result["malformed"])]
        lines.append(f"| {title} | " + " | ".join(cells) + " |")
    for title, result in summary["change"].items():
        cells = [_points(result["success"]), _points(result["clean"])]
        cells += [_change(result["redundant"], 1, 2), _change(result["malformed"], 1, 2)]
        lines.append(f"| {title} | " + " | ".join(cells) + " |")
    lines += [
        "",
        "| trained on | success | on fresh tasks | success, temperature 1 | against curated "
        "| malformed, temperature 1 | against curated |",
        "|---|---|---|---|---|---|---|",
    ]
    for name, result in summary["arms"].items():
        if result:
            cells = [_share(result[part]) for part in ("held_out success", "fresh success")]
            cells += [_share(result["sampled success"]), _points(result.get("success difference"))]
            cells += [_amount(result["sampled malformed"])]
            cells += [_change(result.get("malformed difference"), 1, 2)]
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
    seeds = sorted(results["runs"], key=int)
    cpu = [
        sum(value["cpu_s"] for value in run["costs"].values()) for run in results["runs"].values()
    ]
    arms = [sorted(result, key=int) for result in results["arms"].values()]
    statement = f"Seeds {', '.join(seeds)}" if len(seeds) > 1 else f"Seed {seeds[0]}"
    statement += (
        "; 300 tasks each. In brackets: 95 % intervals over seeds. Shares in percent. A run takes "
    )
    statement += f"about {max(cpu) / 60:.0f} minutes of one core.\n"
    if any(arm != seeds for arm in arms):
        statement += "Not all arms have all seeds yet.\n"
    return f"{before}{BEGIN}\n{statement}\n{summary_markdown(results['summary'])}{END}{after}"


def main(results, file):
    """Write the numbers into a page."""
    path = Path(file)
    path.write_text(page(path.read_text(), json.loads(Path(results).read_text())))


if __name__ == "__main__":
    main(*sys.argv[1:])
