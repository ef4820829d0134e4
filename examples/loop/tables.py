"""The result of a run as a table."""

ROWS = (
    ("before", "untrained", None),
    ("after_sft", "after SFT", "greedy"),
    ("after_dpo", "after DPO", "greedy"),
    ("after_control", "control: SFT on the chosen steps", "greedy"),
    ("after_sft", "after SFT, temperature 1", "sampled"),
    ("after_dpo", "after DPO, temperature 1", "sampled"),
    ("after_control", "control, temperature 1", "sampled"),
)


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
