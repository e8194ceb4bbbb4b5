"""The shop's inventory and its deliveries, as its CSV exports list them."""

import csv
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date
from decimal import Decimal, InvalidOperation
from pathlib import Path


class RowError(ValueError):
    """A row that cannot be read; the message names the line."""


@dataclass(frozen=True)
class Item:
    """One line of the inventory."""

    sku: str
    name: str
    counted: date
    price: Decimal
    quantity: int = 0


@dataclass(frozen=True)
class Delivery:
    """One line of the deliveries."""

    number: str
    sku: str
    arrived: date
    cost: Decimal
    quantity: int = 0


def read_items(path: Path) -> list[Item]:
    """Read every item of a CSV file. Raises RowError at the first bad row."""
    items = []
    with path.open(newline="", encoding="utf-8") as file:
        for line, row in enumerate(csv.DictReader(file), start=2):
            try:
                item = Item(
                    sku=row["sku"].strip(),
                    name=row["name"].strip(),
                    counted=date.fromisoformat(row["counted"]),
                    price=Decimal(row["price"]),
                    quantity=int(row["quantity"]),
                )
            except (KeyError, ValueError, InvalidOperation) as error:
                raise RowError(f"{path}:{line}: {error}") from error
            items.append(item)
    return items


def read_deliveries(path: Path) -> list[Delivery]:
    """Read every delivery of a CSV file. Raises RowError at the first bad row."""


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
