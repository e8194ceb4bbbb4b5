"""A small shop: products, orders, prices and what happens to an order after checkout."""

from __future__ import annotations

import asyncio
import logging
import re
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from decimal import ROUND_HALF_UP, Decimal
from enum import Enum
from typing import Any

log = logging.getLogger(__name__)

SKU = re.compile(r"^(?P<brand>[A-Z]{2,4})-(?P<number>\d{3,6})(?:/(?P<size>S|M|L|XL))?$")
VAT = {"de": Decimal("0.19"), "fr": Decimal("0.20"), "ch": Decimal("0.081")}


class State(Enum):
    OPEN = "open"
    PAID = "paid"
    SENT = "sent"
    CANCELLED = "cancelled"


class ShopError(Exception):
    """Anything the customer should read about."""


@dataclass(frozen=True, slots=True)
class Product:
    sku: str
    title: str
    price: Decimal
    tags: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        if not (match := SKU.match(self.sku)):
            raise ShopError(f"{self.sku!r} isn't a stock number, e.g. 'AB-1234/M'")
        log.debug("brand=%s size=%s", match["brand"], match.group("size") or "any")


@dataclass
class Order:
    number: int
    country: str = "de"
    state: State = State.OPEN
    lines: list[tuple[Product, int]] = field(default_factory=list)
    notes: dict[str, Any] = field(default_factory=dict, repr=False)

    @property
    def net(self) -> Decimal:
        return sum((product.price * count for product, count in self.lines), Decimal(0))

    @property
    def gross(self) -> Decimal:
        rate = VAT.get(self.country.lower(), Decimal("0.19"))
        return (self.net * (1 + rate)).quantize(Decimal("0.01"), rounding=ROUND_HALF_UP)

    def add(self, product: Product, count: int = 1, *, note: str | None = None) -> Order:
        self.lines.append((product, max(1, min(count, 99))))
        if note is not None:
            self.notes[product.sku] = {"text": note.strip(), "at": len(self.lines) - 1}
        return self


class Warehouse:
    def __init__(self, stock: dict[str, int], delay: float = 0.01) -> None:
        self._stock = Counter(stock)
        self._delay = delay
        self._locks: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)

    @asynccontextmanager
    async def reserve(self, sku: str, count: int) -> AsyncIterator[int]:
        async with self._locks[sku]:
            if self._stock[sku] < count:
                raise ShopError(f"only {self._stock[sku]} of {sku} left, {count} wanted")
            self._stock[sku] -= count
            try:
                yield self._stock[sku]
            except ShopError:
                self._stock[sku] += count  # the customer's basket wasn't paid after all
                raise
            finally:
                await asyncio.sleep(self._delay)


def advance(order: Order, event: dict[str, Any]) -> Order:
    """The order after an event; an event that doesn't fit its state is refused."""
    match (order.state, event):
        case (State.OPEN, {"type": "payment", "amount": amount}) if amount >= order.gross:
            return replace(order, state=State.PAID)
        case (State.OPEN, {"type": "payment", "amount": amount}):
            raise ShopError(f"{order.gross - amount:.2f} EUR missing for order {order.number:05d}")
        case (State.PAID, {"type": "shipped", "parcel": str(parcel)}):
            return replace(order, state=State.SENT, notes={**order.notes, "parcel": parcel})
        case (State.OPEN | State.PAID, {"type": "cancel", **rest}):
            return replace(order, state=State.CANCELLED, notes=order.notes | rest)
        case (state, {"type": kind}):
            raise ShopError(f"cannot apply {kind!r} to an order that is {state.value}")
        case _:
            raise ShopError("an event needs a type")


def cheapest(
    products: Iterable[Product],
    limit: int = 3,
    key: Callable[[Product], Any] = lambda product: (product.price, product.title.lower()),
) -> dict[str, Decimal]:
    chosen = sorted(products, key=key)[:limit]
    return {product.sku: product.price for product in chosen if "hidden" not in product.tags}


async def checkout(order: Order, warehouse: Warehouse) -> Order:
    for product, count in order.lines:
        async with warehouse.reserve(product.sku, count) as left:
            log.info("%s: %d left%s", product.sku, left, " (reorder!)" if left < 5 else "")
    return advance(order, {"type": "payment", "amount": order.gross})


async def main() -> None:
    catalogue = [
        Product("TEA-1001", "Green tea, 100 g", Decimal("4.90"), frozenset({"tea", "loose"})),
        Product("TEA-1002", "Black tea, 250 g", Decimal("7.50"), tags=frozenset(["tea"])),
        Product("CUP-200/L", "Large cup", Decimal("12.00")),
    ]
    warehouse = Warehouse({product.sku: 10 for product in catalogue}, delay=0.0)
    orders = [
        Order(number=1).add(catalogue[0], 2).add(catalogue[2], note="a gift"),
        Order(number=2, country="CH").add(catalogue[1], count=12),
    ]
    results = await asyncio.gather(
        *(checkout(order, warehouse) for order in orders), return_exceptions=True
    )
    for order, result in zip(orders, results, strict=True):
        outcome = str(result) if isinstance(result, Exception) else f"paid {order.gross:>8}"
        print(f"{order.number:03d} {outcome} ({', '.join(p.title for p, _ in order.lines)})")
    print(cheapest(catalogue, limit=2))


if __name__ == "__main__":
    asyncio.run(main())
