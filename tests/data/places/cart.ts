/**
 * A shopping cart kept on the client and synchronised with the server.
 * Prices are whole cents, so that adding them up doesn't round.
 */
import { EventEmitter } from "node:events";
import type { Logger } from "./logger";

export type Currency = "EUR" | "USD" | "CHF";
export type Result<T, E extends Error = Error> = { ok: true; value: T } | { ok: false; error: E };
type Patch<T> = { readonly [K in keyof T]?: T[K] | null };
type Handler<A extends unknown[]> = (...args: A) => void | Promise<void>;

export interface Item {
  readonly id: string;
  title: string;
  cents: number;
  quantity: number;
  options?: Record<string, string | number>;
}

interface Coupon {
  code: `SAVE${number}`;
  percent: number;
  expires: Date | null;
}

enum Shipping {
  Standard = 490,
  Express = 990,
  Pickup = 0,
}

const CODE = /^SAVE(?<percent>\d{1,2})$/i;
const DEFAULTS = {
  currency: "EUR" as Currency,
  shipping: Shipping.Standard,
  freeFrom: 50_00,
} satisfies Partial<CartOptions>;

export interface CartOptions {
  currency: Currency;
  shipping: Shipping;
  freeFrom: number;
  log?: Logger;
}

export class CartError extends Error {
  constructor(message: string, readonly status: number = 400) {
    super(message);
    this.name = "CartError";
  }
}

export class Cart extends EventEmitter {
  private readonly items = new Map<string, Item>();
  private coupon?: Coupon;
  readonly options: CartOptions;

  constructor(private readonly baseUrl: string, options: Partial<CartOptions> = {}) {
    super();
    this.options = { ...DEFAULTS, ...options };
  }

  add({ id, quantity = 1, ...rest }: Omit<Item, "quantity"> & { quantity?: number }): this {
    const known = this.items.get(id);
    this.items.set(id, { ...rest, id, quantity: (known?.quantity ?? 0) + quantity });
    this.emit("change", { id, total: this.total() });
    return this;
  }

  update(id: string, patch: Patch<Item>): Result<Item, CartError> {
    const item = this.items.get(id);
    if (item === undefined) {
      return { ok: false, error: new CartError(`no item "${id}" in the cart`, 404) };
    }
    const entries = Object.entries(patch).filter(([, value]) => value != null);
    const value: Item = Object.assign({}, item, Object.fromEntries(entries));
    this.items.set(id, value);
    return { ok: true, value };
  }

  redeem(code: string, expires: Date | null = null): boolean {
    const percent = Number(CODE.exec(code.trim())?.groups?.percent ?? NaN);
    if (Number.isNaN(percent) || (expires !== null && expires.getTime() < Date.now())) return false;
    this.coupon = { code: code.toUpperCase() as Coupon["code"], percent, expires };
    return true;
  }

  total(shipping: Shipping = this.options.shipping): number {
    const goods = [...this.items.values()].reduce((sum, it) => sum + it.cents * it.quantity, 0);
    const reduced = this.coupon ? Math.round(goods * (1 - this.coupon.percent / 100)) : goods;
    return reduced >= this.options.freeFrom ? reduced : reduced + shipping;
  }

  async save(fetcher: typeof fetch = fetch, signal?: AbortSignal): Promise<Result<number>> {
    try {
      const response = await fetcher(`${this.baseUrl}/cart?currency=${this.options.currency}`, {
        method: "PUT",
        headers: { "Content-Type": "application/json", Accept: "application/json" },
        body: JSON.stringify({ items: [...this.items.values()], coupon: this.coupon?.code }),
        signal,
      });
      if (!response.ok) throw new CartError(`server said ${response.status}`, response.status);
      const { revision } = (await response.json()) as { revision: number };
      return { ok: true, value: revision };
    } catch (error) {
      this.options.log?.warn("couldn't save the cart", error);
      return { ok: false, error: error instanceof Error ? error : new Error(String(error)) };
    }
  }
}

export function groupBy<T, K extends string>(list: readonly T[], key: (each: T) => K) {
  return list.reduce<Partial<Record<K, T[]>>>((groups, each) => {
    (groups[key(each)] ??= []).push(each);
    return groups;
  }, {});
}

export function debounce<A extends unknown[]>(run: Handler<A>, milliseconds = 250): Handler<A> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  return (...args) => {
    clearTimeout(timer);
    timer = setTimeout(() => void run(...args), milliseconds);
  };
}

export const formatCents = (cents: number, currency: Currency = "EUR", locale = "de-DE"): string =>
  new Intl.NumberFormat(locale, { style: "currency", currency }).format(cents / 100);
