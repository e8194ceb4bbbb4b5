"""Orders as the shop's CSV export lists them."""

import csv
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date
from decimal import Decimal, InvalidOperation
from pathlib import Path


class OrderError(ValueError):
    """A row that is no order; the message names the line."""


@dataclass(frozen=True)
class Order:
    """One line of the export."""

    number: str
    customer: str
    placed: date
    total: Decimal
    paid: bool = False


def read_orders(path: Path) -> list[Order]:
    """Read every order of a CSV file. Raises OrderError at the first bad row."""
    orders = []
    with path.open(newline="", encoding="utf-8") as file:
        for line, row in enumerate(csv.DictReader(file), start=2):
            try:
                order = Order(
                    number=row["number"].strip(),
                    customer=row["customer"].strip(),
                    placed=date.fromisoformat(row["placed"]),
                    total=Decimal(row["total"]),
                    paid=row["paid"].lower() == "yes",
                )
            except (KeyError, ValueError, InvalidOperation) as error:
                raise OrderError(f"{path}:{line}: {error}") from error
            orders.append(order)
    return orders


def write_orders(path: Path, orders: Iterable[Order]) -> None:
    """Write orders as a CSV file with a header."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["number", "customer", "placed", "total", "paid"])
        for order in orders:
            writer.writerow(
                [
                    order.number,
                    order.customer,
                    order.placed.isoformat(),
                    str(order.total),
                    "yes" if order.paid else "no",
                ]
            )


def total_by_customer(orders: Iterable[Order]) -> dict[str, Decimal]:
    """What each customer has ordered, in all."""
    totals: dict[str, Decimal] = {}
    for order in orders:
        totals[order.customer] = totals.get(order.customer, Decimal(0)) + order.total
    return totals
