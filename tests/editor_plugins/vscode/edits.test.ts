/** Edits as the extension works them out, without an editor. */

import assert from "node:assert/strict";
import { test } from "node:test";

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
