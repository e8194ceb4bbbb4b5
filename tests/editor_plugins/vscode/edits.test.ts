/** Edits as the extension works them out, without an editor. */

import assert from "node:assert/strict";
import { test } from "node:test";

import {
  blockOf,
  hunksOf,
  insertedAt,
  marksOf,
  smallest,
  type Hunk,
  type Lines,
} from "../../../editor_plugins/vscode/src/editChange";
import {
  withEdits,
  type Edit,
} from "../../../editor_plugins/vscode/src/textEdits";

function edit(line: number, from: number, to: number, newText: string): Edit {
  return {
    range: { start: { line, character: from }, end: { line, character: to } },
    newText,
  };
}

test("all edits are made at their places in the text before them", () => {
  const edits = [edit(0, 0, 1, "first"), edit(1, 2, 3, "\u{1f600}\n")];
  assert.equal(
    withEdits("a\n\u{1f600}b\n", edits),
    "first\n\u{1f600}\u{1f600}\n\n",
  );
});

test("new lines end as the text's own", () => {
  assert.equal(
    withEdits("a\r\nb", [edit(1, 0, 1, "c\nd\r\n")]),
    "a\r\nc\r\nd\r\n",
  );
});

test("an edit at the end of a text adds to it", () => {
  assert.equal(withEdits("a\n", [edit(1, 0, 0, "b")]), "a\nb");
});

function linesOf(text: string): Lines {
  const all = text.split("\n");
  return { count: all.length, at: (line) => all[line] ?? "" };
}

function block(text: string, change: Edit): Hunk {
  return blockOf(change, linesOf(text));
}

test("the smallest edit leaves out what stays and cuts no character", () => {
  const rename = block(
    "a\nprice = \u{1f600}\n",
    edit(1, 0, 10, "price = \u{1f601}"),
  );
  assert.deepEqual(smallest(rename), edit(1, 8, 10, "\u{1f601}"));
  assert.equal(smallest(block("a\nb\nc", edit(1, 0, 1, "b"))), undefined);
});

test("a text is ghost text where the cursor stands at it and nothing else changes", () => {
  const added = block("if a:\n    b", edit(1, 0, 0, "    c\n"));
  assert.equal(insertedAt({ line: 0, character: 5 }, added), "\n    c");
  assert.equal(insertedAt({ line: 1, character: 0 }, added), "    c\n");
  assert.equal(insertedAt({ line: 1, character: 2 }, added), "  c\n  ");
  assert.equal(insertedAt({ line: 0, character: 2 }, added), undefined);
  assert.equal(insertedAt({ line: 9, character: 0 }, added), undefined);
  const replaced = block("a = b", edit(0, 4, 5, "c"));
  assert.equal(insertedAt({ line: 0, character: 4 }, replaced), undefined);
});

test("what goes is struck, what comes stands behind it, and further lines stand below", () => {
  const change = block("a\nold = 1\nsame\ngone\nz", {
    range: { start: { line: 1, character: 0 }, end: { line: 3, character: 4 } },
    newText: "new = 1\nmore = 2\nsame",
  });
  assert.deepEqual(marksOf(hunksOf(change)), {
    struck: [
      { line: 1, start: 0, end: 3 },
      { line: 3, start: 0, end: 4 },
    ],
    inserted: [{ line: 1, character: 3, text: "new" }],
    added: [{ below: 1, lines: ["more = 2"] }],
  });
});

test("a line is compared with the one that it resembles", () => {
  const wrapped = block(
    "a = 1\nreturn a",
    edit(1, 0, 8, "if b:\n    a = 2\nreturn a + b"),
  );
  assert.deepEqual(marksOf(hunksOf(wrapped)), {
    struck: [],
    inserted: [{ line: 1, character: 8, text: " + b" }],
    added: [{ below: 0, lines: ["if b:", "    a = 2"] }],
  });
});

test("an empty line that goes is marked, too", () => {
  const joined = block("a\n\nb\nc", {
    range: { start: { line: 0, character: 1 }, end: { line: 2, character: 1 } },
    newText: "",
  });
  assert.deepEqual(marksOf(hunksOf(joined)).struck, [
    { line: 1, start: 0, end: 0 },
    { line: 2, start: 0, end: 1 },
  ]);
});
