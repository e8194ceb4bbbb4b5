/** What was changed a moment ago: whether it was much at once, as where a text is pasted. No editor. */

const WINDOW_MS = 1500;
const BULK_CHARS = 200; // in that time; nobody types so much
const BULK_LINES = 8;

export interface TextChange {
  readonly text: string;
  readonly rangeLength: number; // of what it replaces, in UTF-16 units
  readonly range: {
    readonly start: { readonly line: number };
    readonly end: { readonly line: number };
  };
}

interface Amount {
  readonly time: number; // in milliseconds
  readonly chars: number;
  readonly lines: number;
}

export class RecentEdits {
  private amounts: readonly Amount[] = [];

  note(changes: readonly TextChange[], time: number): void {
    const added = changes.map(({ text, rangeLength, range }) => ({
      time,
      chars: Math.max(text.length, rangeLength),
      lines: Math.max(text.split("\n").length - 1, range.end.line - range.start.line),
    }));
    this.amounts = [...this.amounts.filter((one) => time - one.time < WINDOW_MS), ...added];
  }

  isBulk(time: number): boolean {
    const recent = this.amounts.filter((one) => time - one.time < WINDOW_MS);
    const sum = (of: (one: Amount) => number): number =>
      recent.reduce((all, one) => all + of(one), 0);
    return sum((one) => one.chars) >= BULK_CHARS || sum((one) => one.lines) >= BULK_LINES;
  }

  /** A change that is one thing to a person, such as a suggestion that was accepted. */
  forget(): void {
    this.amounts = [];
  }
}
