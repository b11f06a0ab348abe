"""How much memory everything that identity remembers takes together."""


class Ledger:
    """Bytes accounted for; every index of every tenant adds what it keeps and takes off what it forgets."""

    __slots__ = ("bytes",)

    def __init__(self) -> None:
        self.bytes = 0
