/** Texts with edits of the protocol, whose positions count UTF-16 units of a line. No editor. */

export interface Place {
  readonly line: number;
  readonly character: number;
}

export interface Range {
  readonly start: Place;
  readonly end: Place; // not in it
}

export interface Edit {
  readonly range: Range;
  readonly newText: string;
}

/** The text with all edits, which do not overlap; new lines end as its first one does. */
export function withEdits(text: string, edits: readonly Edit[]): string {
  const starts = lineStarts(text);
  const eol = /\r?\n/.exec(text)?.[0] ?? "\n";
  const offset = ({ line, character }: Place): number => (starts[line] ?? text.length) + character;
  const cuts = edits.map(({ range, newText }) => ({
    start: offset(range.start),
    end: offset(range.end),
    newText: newText.replace(/\r?\n/g, eol),
  }));
  return cuts
    .sort((one, other) => other.start - one.start) // from the end on: earlier offsets stay
    .reduce(
      (made, { start, end, newText }) => made.slice(0, start) + newText + made.slice(end),
      text,
    );
}

function lineStarts(text: string): number[] {
  return [0, ...[...text.matchAll(/\r\n|\r|\n/g)].map(({ 0: end, index }) => index + end.length)];
}
