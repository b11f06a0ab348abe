"""Rows of comma-separated values."""


def cells(line: str) -> list[str]:
    """The cells of a line; those in double quotes may have commas in them."""
    return [cell.strip('"') for cell in line.rstrip("\n").split(",")]


def table(text: str) -> list[dict[str, str]]:
    """Rows by the names in the first line."""
    first, *rest = text.splitlines()
    names = cells(first)
    return [dict(zip(names, cells(line), strict=True)) for line in rest]
