/** What an edit changes, line by line, and how to mark that in the text. No editor. */

import type { Edit, Place } from "./textEdits";

/** Lines of a document from `line` on, and what they become. */
export interface Hunk {
  readonly line: number;
  readonly old: readonly string[];
  readonly new: readonly string[];
}

/**
 * Marks of one line, in UTF-16 units. Of an empty line that goes the span is empty; a text is inserted
 * where its `character` is.
 */
export interface Span {
  readonly line: number;
  readonly start: number;
  readonly end: number; // not in it
}
export interface Insertion extends Place {
  readonly text: string;
}
export interface Marks {
  readonly struck: readonly Span[];
  readonly inserted: readonly Insertion[];
  readonly added: readonly { readonly below: number; readonly lines: readonly string[] }[];
}

/** A document's lines. */
export interface Lines {
  readonly count: number;
  at(line: number): string;
}

/** The lines of an edit, with one line on each side, so that it may insert a line there. */
export function blockOf({ range, newText }: Edit, lines: Lines): Hunk {
  const { start, end } = range;
  const line = Math.max(0, start.line - 1);
  const last = Math.min(lines.count - 1, end.line + 1);
  const old = Array.from({ length: last + 1 - line }, (_, place) => lines.at(line + place));
  const above = old.slice(0, start.line - line);
  const below = old.slice(end.line + 1 - line);
  const head = lines.at(start.line).slice(0, start.character);
  const changed = head + newText + lines.at(end.line).slice(end.character);
  return { line, old, new: [...above, ...changed.split(/\r?\n/), ...below] };
}

/** The smallest edit of one range that does the same; undefined where nothing changes. */
export function smallest(block: Hunk): Edit | undefined {
  const [old, made] = [block.old.join("\n"), block.new.join("\n")];
  const { start, end, text } = middle(old, made);
  if (start === end && text === "") {
    return undefined;
  }
  const range = { start: placeAt(block, start), end: placeAt(block, end) };
  return { range, newText: text };
}

/** The text that the block gets at the cursor and nowhere else. */
export function insertedAt({ line, character }: Place, block: Hunk): string | undefined {
  const row = line - block.line;
  const at = block.old[row];
  if (at === undefined) {
    return undefined;
  }
  const head = [...block.old.slice(0, row), at.slice(0, character)].join("\n");
  const tail = [at.slice(character), ...block.old.slice(row + 1)].join("\n");
  const made = block.new.join("\n");
  const isInserted = made.startsWith(head) && made.slice(head.length).endsWith(tail);
  return isInserted ? made.slice(head.length, made.length - tail.length) : undefined;
}

/** The parts of a block that differ, from the top down. */
export function hunksOf({ line, old, new: made }: Hunk): Hunk[] {
  const common = commonAfter(old, made);
  const hunks: Hunk[] = [];
  let [row, other] = [0, 0];
  while (row < old.length || other < made.length) {
    const [from, start] = [row, other];
    while (!isSame(old, made, row, other) && (row < old.length || other < made.length)) {
      const isDeleted = (common[row + 1]?.[other] ?? -1) >= (common[row]?.[other + 1] ?? -1);
      [row, other] = isDeleted ? [row + 1, other] : [row, other + 1];
    }
    if (row > from || other > start) {
      hunks.push({ line: line + from, old: old.slice(from, row), new: made.slice(start, other) });
    }
    [row, other] = [row + 1, other + 1]; // the line that both have, or the end
  }
  return hunks;
}

/** Lines that become others are marked in place; further ones are struck, or added below. */
export function marksOf(hunks: readonly Hunk[]): Marks {
  const struck: Span[] = [];
  const inserted: Insertion[] = [];
  const added: Marks["added"][number][] = [];
  for (const { line: first, old, new: made } of hunks) {
    const { above, below } = alike(old, made);
    for (const [row, text] of old.entries()) {
      const isBelow = row >= old.length - below;
      const other = isBelow ? made.length - old.length + row : row;
      const isGone = row >= above && !isBelow;
      const cut = middle(text, isGone ? "" : (made[other] ?? ""));
      const line = first + row;
      if (cut.end > cut.start || isGone) {
        struck.push({ line, start: cut.start, end: cut.end });
      }
      if (cut.text !== "") {
        inserted.push({ line, character: cut.end, text: cut.text });
      }
    }
    if (made.length > old.length) {
      const lines = made.slice(above, made.length - below);
      added.push({ below: Math.max(0, first + above - 1), lines });
    }
  }
  return { struck, inserted, added };
}

/** How many lines at the start and at the end become others, so that most of them stays. */
function alike(old: readonly string[], made: readonly string[]): { above: number; below: number } {
  const both = Math.min(old.length, made.length);
  const kept = (row: number, other: number): number => {
    const { start, end } = middle(old[row] ?? "", made[other] ?? "");
    return (old[row] ?? "").length - (end - start);
  };
  const score = (above: number): number => {
    let sum = 0;
    for (let row = 0; row < above; row++) {
      sum += kept(row, row);
    }
    for (let tail = 1; tail <= both - above; tail++) {
      sum += kept(old.length - tail, made.length - tail);
    }
    return sum;
  };
  let above = both;
  for (let fewer = both - 1; fewer >= 0; fewer--) {
    above = score(fewer) > score(above) ? fewer : above;
  }
  return { above, below: both - above };
}

/** Where two texts differ: `text` replaces the first one's part. No character is cut. */
function middle(old: string, made: string): { start: number; end: number; text: string } {
  const limit = Math.min(old.length, made.length);
  let start = 0;
  while (start < limit && old[start] === made[start]) {
    start++;
  }
  start -= isHalf(old[start - 1]) ? 1 : 0;
  let tail = 0;
  while (tail < limit - start && old[old.length - 1 - tail] === made[made.length - 1 - tail]) {
    tail++;
  }
  tail -= tail > 0 && isSecondHalf(old[old.length - tail]) ? 1 : 0;
  return { start, end: old.length - tail, text: made.slice(start, made.length - tail) };
}

function isHalf(unit: string | undefined): boolean {
  return unit !== undefined && unit >= "\ud800" && unit <= "\udbff";
}

function isSecondHalf(unit: string | undefined): boolean {
  return unit !== undefined && unit >= "\udc00" && unit <= "\udfff";
}

function isSame(old: readonly string[], made: readonly string[], row: number, other: number) {
  return row < old.length && other < made.length && old[row] === made[other];
}

/** How many lines two texts have in common, in order, from a row of each on. */
function commonAfter(old: readonly string[], made: readonly string[]): number[][] {
  const common = Array.from({ length: old.length + 1 }, () =>
    Array<number>(made.length + 1).fill(0),
  );
  for (let row = old.length - 1; row >= 0; row--) {
    for (let other = made.length - 1; other >= 0; other--) {
      const [here, below] = [common[row] ?? [], common[row + 1] ?? []];
      const longest = Math.max(below[other] ?? 0, here[other + 1] ?? 0);
      here[other] = old[row] === made[other] ? (below[other + 1] ?? 0) + 1 : longest;
    }
  }
  return common;
}

function placeAt({ line, old }: Hunk, offset: number): Place {
  const before = old.join("\n").slice(0, offset).split("\n");
  return { line: line + before.length - 1, character: (before.at(-1) ?? "").length };
}
