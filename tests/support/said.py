"""A progress that remembers what it was told."""

from engine.progress import NoProgress


class Said(NoProgress):
    """The tasks, the sentences, and both in their order."""

    def __init__(self) -> None:
        self.tasks, self.sentences, self.all = list[str](), list[str](), list[str]()

    def begin(self, task: str, total: int) -> None:
        """Remember the task."""
        self.tasks.append(task)
        self.all.append(task)

    def tell(self, sentence: str) -> None:
        """Remember the sentence."""
        self.sentences.append(sentence)
        self.all.append(sentence)
