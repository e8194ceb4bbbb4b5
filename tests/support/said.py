"""A progress that records its calls."""

from engine.progress import Progress


class Said(Progress):
    """Tasks, their totals and advance, sentences, and tasks and sentences in order."""

    def __init__(self) -> None:
        self.tasks, self.sentences, self.all = list[str](), list[str](), list[str]()
        self.totals = list[int]()
        self.advanced = self.num_ended = 0

    def begin(self, task: str, total: int) -> None:
        self.tasks.append(task)
        self.totals.append(total)
        self.all.append(task)

    def advance(self, amount: int) -> None:
        self.advanced += amount

    def end(self) -> None:
        self.num_ended += 1

    def tell(self, sentence: str) -> None:
        self.sentences.append(sentence)
        self.all.append(sentence)
