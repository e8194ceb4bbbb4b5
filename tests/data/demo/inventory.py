"""The shop's inventory as its CSV export lists it."""

import csv
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date
from decimal import Decimal, InvalidOperation
from pathlib import Path


class ItemError(ValueError):
    """A row that is no item; the message names the line."""


@dataclass(frozen=True)
class Item:
    """One line of the export."""

    sku: str
    name: str
    counted: date
    price: Decimal
    quantity: int = 0


def read_items(path: Path) -> list[Item]:
    """Read every item of a CSV file. Raises ItemError at the first bad row."""
    items = []
    with path.open(newline="", encoding="utf-8") as file:


def write_items(path: Path, items: Iterable[Item]) -> None:
    """Write items as a CSV file with a header."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["sku", "name", "counted", "price", "quantity"])
        for item in items:
            writer.writerow(
                [
                    item.sku,
                    item.name,
                    item.counted.isoformat(),
                    str(item.price),
                    str(item.quantity),
                ]
            )


def worth(items: Iterable[Item]) -> Decimal:
    """What all items cost together."""
    return sum((item.price * item.quantity for item in items), Decimal(0))
