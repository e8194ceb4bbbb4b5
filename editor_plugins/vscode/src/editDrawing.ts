/** A proposed edit on the screen: what goes is struck, what comes stands beside it. */

import * as vscode from "vscode";

import type { Marks } from "./editChange";

const ARROW =
  '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 16 16">' +
  '<path fill="none" stroke="COLOR" stroke-width="1.6" d="M3 8h9M8.5 4.5 12 8l-3.5 3.5"/></svg>';

const GAP = 2; // columns between a text and a line that is drawn beside it
const WIDE = /[\u1100-\ud7ff\uf900-\uffff]/g; // characters of two columns, roughly
const MOST_RIGHT = 80; // columns; a longer text is covered

/** What is drawn: the marks of a change, a hint at the end of a line, an arrow in the gutter. */
export interface Drawing {
  readonly marks?: Marks | undefined;
  readonly hint?: { readonly line: number; readonly text: string } | undefined;
  readonly arrow: number; // the line
}

export class EditDrawing implements vscode.Disposable {
  private readonly struck = vscode.window.createTextEditorDecorationType({
    textDecoration: "line-through",
    backgroundColor: new vscode.ThemeColor("diffEditor.removedTextBackground"),
    rangeBehavior: vscode.DecorationRangeBehavior.ClosedClosed,
  });
  private readonly gone = vscode.window.createTextEditorDecorationType({
    isWholeLine: true, // nothing of an empty line can be struck
    backgroundColor: new vscode.ThemeColor("diffEditor.removedTextBackground"),
  });
  private readonly text = vscode.window.createTextEditorDecorationType({
    rangeBehavior: vscode.DecorationRangeBehavior.ClosedClosed,
  });
  private readonly arrow = vscode.window.createTextEditorDecorationType({
    light: { gutterIconPath: arrowIn("#0063d3") },
    dark: { gutterIconPath: arrowIn("#59a4f9") },
    overviewRulerColor: new vscode.ThemeColor("editorOverviewRuler.modifiedForeground"),
  });
  private readonly types = [this.struck, this.gone, this.text, this.arrow];
  private editor: vscode.TextEditor | undefined;

  draw(editor: vscode.TextEditor, { marks, hint, arrow }: Drawing): void {
    this.clear();
    this.editor = editor;
    const struck = marks?.struck ?? [];
    const spans = struck.map(({ line, start, end }) => new vscode.Range(line, start, line, end));
    const texts = marks === undefined ? [] : textsOf(marks, editor);
    const hints = hint === undefined ? [] : [atEnd(editor, hint.line, hintStyle(hint.text))];
    editor.setDecorations(this.struck, spans);
    editor.setDecorations(
      this.gone,
      spans.filter(({ isEmpty }) => isEmpty),
    );
    editor.setDecorations(this.text, [...texts, ...hints]);
    editor.setDecorations(this.arrow, [new vscode.Range(arrow, 0, arrow, 0)]);
  }

  clear(): void {
    for (const type of this.types) {
      this.editor?.setDecorations(type, []);
    }
    this.editor = undefined;
  }

  dispose(): void {
    vscode.Disposable.from(...this.types).dispose();
  }
}

function textsOf(
  { inserted, added }: Marks,
  editor: vscode.TextEditor,
): vscode.DecorationOptions[] {
  const tab = " ".repeat(Number(editor.options.tabSize));
  const drawn = (text: string): string => text.replaceAll("\t", tab).replaceAll(" ", "\u00a0");
  const width = (line: number): number => {
    const more = inserted.filter((one) => one.line === line).map(({ text }) => text);
    return drawn([editor.document.lineAt(line).text, ...more].join("")).replace(WIDE, "##").length;
  };
  const beside = inserted.map(({ line, character, text }) => ({
    range: new vscode.Range(line, character, line, character),
    renderOptions: { after: { ...INSERTED, contentText: drawn(text) } },
  }));
  const below = added.flatMap(({ below: line, lines }) => {
    const last = Math.min(editor.document.lineCount, line + lines.length);
    const covered = Array.from({ length: last - line }, (_, row) => width(line + row));
    const right = Math.min(MOST_RIGHT, Math.max(...covered)) + GAP;
    return lines.map((text, row) => atEnd(editor, line, addedStyle(drawn(text), row, right)));
  });
  return [...beside, ...below];
}

function atEnd(
  editor: vscode.TextEditor,
  line: number,
  after: vscode.ThemableDecorationAttachmentRenderOptions,
): vscode.DecorationOptions {
  const { end } = editor.document.lineAt(line).range;
  return { range: new vscode.Range(end, end), renderOptions: { after } };
}

const INSERTED: vscode.ThemableDecorationAttachmentRenderOptions = {
  color: new vscode.ThemeColor("editor.foreground"),
  backgroundColor: new vscode.ThemeColor("diffEditor.insertedTextBackground"),
};

/**
 * Lines cannot be put between others: each is drawn so many rows below the line above it, in the
 * column where the text that stands there has ended.
 */
function addedStyle(
  text: string,
  rows: number,
  columns: number,
): vscode.ThemableDecorationAttachmentRenderOptions {
  const place = `left: ${columns}ch; top: calc(${rows} * 1lh)`;
  return {
    contentText: `+\u00a0${text}`,
    color: new vscode.ThemeColor("editor.foreground"),
    backgroundColor: new vscode.ThemeColor("editorHoverWidget.background"),
    textDecoration: `none; position: absolute; z-index: 1; ${place}`,
  };
}

function hintStyle(text: string): vscode.ThemableDecorationAttachmentRenderOptions {
  const color = new vscode.ThemeColor("editorGhostText.foreground");
  return { contentText: text, color, margin: "0 0 0 2em" };
}

function arrowIn(color: string): vscode.Uri {
  const content = encodeURIComponent(ARROW.replace("COLOR", color));
  return vscode.Uri.parse(`data:image/svg+xml,${content}`);
}
