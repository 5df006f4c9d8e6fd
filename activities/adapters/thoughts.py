"""Takes a model's thoughts (`<think>…</think>`) out of a text that arrives in pieces cut anywhere. Pure."""

OPEN, CLOSE = "<think>", "</think>"


class ThoughtFilter:
    """Feed pieces, get what is not thought. `inside` tells whether a thought is still open."""

    def __init__(self) -> None:
        self.inside = False
        self._held = ""

    def feed(self, piece: str) -> str:
        """The text that is certainly no thought; a possible beginning of a mark is held back."""
        self._held += piece
        said = []
        while True:
            mark = CLOSE if self.inside else OPEN
            before, found, after = self._held.partition(mark)
            keep = 0 if found else _overlap(before, mark)
            if not self.inside:
                said.append(before[: len(before) - keep])
            if not found:
                self._held = before[len(before) - keep :]
                return "".join(said)
            self._held, self.inside = after, not self.inside

    def finish(self) -> str:
        """What was held back and turned out to be text."""
        rest, self._held = ("" if self.inside else self._held), ""
        return rest


def _overlap(text: str, mark: str) -> int:
    """Length of the longest end of `text` that begins `mark`."""
    return next((size for size in range(min(len(mark) - 1, len(text)), 0, -1) if text.endswith(mark[:size])), 0)
