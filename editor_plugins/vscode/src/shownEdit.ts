/** A next edit in an editor: where it is, what it changes, which key takes it. */

import * as vscode from "vscode";

import { isAt, rangeOf } from "./documents";
import { blockOf, hunksOf, insertedAt, marksOf, smallest, type Hunk } from "./editChange";
import type { Drawing } from "./editDrawing";
import type { NextEdit } from "./nextEditRequest";

const NEAR_LINES = 2; // around a change: from there nothing has to be gone to

export class ShownEdit {
  private constructor(
    readonly editor: vscode.TextEditor,
    readonly edit: NextEdit,
    private readonly block: Hunk, // whole lines around the change
    private readonly range: vscode.Range,
    private readonly text: string,
  ) {}

  /** Undefined where it changes nothing, or names places that the document does not have. */
  static of(editor: vscode.TextEditor, edit: NextEdit): ShownEdit | undefined {
    const { document } = editor;
    const range = rangeOf(edit.range);
    if (!document.validateRange(range).isEqual(range)) {
      return undefined;
    }
    const at = (line: number): string => document.lineAt(line).text;
    const block = blockOf(edit, { count: document.lineCount, at });
    const change = smallest(block);
    return change && new ShownEdit(editor, edit, block, rangeOf(change.range), change.newText);
  }

  /** The text that it inserts at the cursor, if it does nothing else. */
  insertedAt(cursor: vscode.Position): string | undefined {
    return insertedAt(cursor, this.block);
  }

  get isNear(): boolean {
    const { line } = this.editor.selection.active;
    const { start, end } = this.range;
    return line >= start.line - NEAR_LINES && line <= end.line + NEAR_LINES;
  }

  /** Before the first word of a line Tab indents, unless the change is just there. */
  takesTab(cursor: vscode.Position): boolean {
    const before = this.editor.document.lineAt(cursor.line).text.slice(0, cursor.character);
    return before.trim() !== "" || cursor.isEqual(this.range.start);
  }

  drawing(cursor: vscode.Position): Drawing {
    const { line } = this.range.start;
    const text = `${this.takesTab(cursor) ? "Tab: " : ""}line ${line + 1}`;
    const hint = this.isNear ? undefined : { line: cursor.line, text };
    const marks = this.isNear || !this.edit.isHint ? marksOf(hunksOf(this.block)) : undefined;
    return { marks, hint, arrow: line };
  }

  goTo(): void {
    const { start } = this.range;
    this.editor.selection = new vscode.Selection(start, start);
    const where = vscode.TextEditorRevealType.InCenterIfOutsideViewport;
    this.editor.revealRange(this.range, where);
  }

  /** Applies it as one step of undo; false where the document has changed, or cannot be. */
  async apply(): Promise<boolean> {
    const { document } = this.editor;
    if (!isAt(document, this.edit.version)) {
      return false;
    }
    const undo = { undoStopBefore: true, undoStopAfter: true };
    const replace = (edit: vscode.TextEditorEdit): void => {
      edit.replace(this.range, this.text);
    };
    const isDone = await this.editor.edit(replace, undo);
    if (!isDone || isAt(document, this.edit.version)) {
      return false; // VS Code calls it done in a read-only editor, too
    }
    const lines = this.text.split("\n");
    const { line, character } = this.range.start;
    const last = (lines.at(-1) ?? "").length + (lines.length === 1 ? character : 0);
    const end = new vscode.Position(line + lines.length - 1, last);
    this.editor.selection = new vscode.Selection(end, end);
    return true;
  }
}
