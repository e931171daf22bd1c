"""Write the table of options in docs/training.md from the declared options.

Run it as `python scripts/make_option_tables.py` after an option has changed. A test runs
`with_table` too, and fails where the page differs.
"""

from __future__ import annotations

from pathlib import Path

from bpe_beam.settings.jobs import JOBS

PAGE = Path(__file__).parents[1] / "docs" / "training.md"
BEGIN = "<!-- the table of the options of train: python scripts/make_option_tables.py -->\n"
END = "<!-- the end of the table -->\n"


def option_table(job: str, group: str) -> str:
    """Return the options of a job under one heading as a Markdown table.

    Args:
        job: The job, such as "train".
        group: The heading of its help.
    """
    lines = ["| option | models | does |", "|---|---|---|"]
    for option in JOBS[job].options.values():
        if option.group == group:
            usage = f"{option.flag} {option.metavar}".rstrip().replace("|", r"\|")
            models = ", ".join(f"`{model}`" for model in option.models) or "all"
            lines.append(f"| `{usage}` | {models} | {_escaped(option.full_help)} |")
    return "\n".join(lines) + "\n"


def _escaped(text: str) -> str:
    return text.replace("|", r"\|").replace("<", "&lt;").replace(">", "&gt;")


def with_table(page: str) -> str:
    """Return the page with its table written anew."""
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    return before + BEGIN + "\n" + option_table("train", "training") + "\n" + END + after


if __name__ == "__main__":
    PAGE.write_text(with_table(PAGE.read_text("utf-8")), "utf-8")
