/** A next edit that inserts text at the cursor: ghost text, which VS Code asks us for. */

import * as vscode from "vscode";
import type { Command } from "vscode-languageclient/node";

import { cursorOf, isAt } from "./documents";

export interface Ghost {
  readonly document: vscode.TextDocument;
  readonly version: number;
  readonly position: vscode.Position;
  readonly text: string;
  readonly command: Command | undefined; // to run when it is accepted
}

export class NextGhost implements vscode.Disposable {
  private readonly disposable: vscode.Disposable;
  private ghost: Ghost | undefined;

  /** `ignored`: told of one that was neither taken nor dismissed. */
  constructor(private readonly ignored: (ghost: Ghost) => void) {
    this.disposable = vscode.Disposable.from(
      vscode.workspace.onDidChangeTextDocument((change) => {
        if (change.contentChanges.length > 0 && change.document === this.ghost?.document) {
          this.follow(this.ghost, change);
        }
      }),
      vscode.window.onDidChangeTextEditorSelection(({ textEditor }) => {
        if (textEditor === vscode.window.activeTextEditor) {
          this.leaveUnlessAt(cursorOf(textEditor));
        }
      }),
      vscode.window.onDidChangeActiveTextEditor(() => {
        this.leaveUnlessAt(undefined);
      }),
    );
  }

  /** Takes it from the screen; returns what it was, if there was one. */
  async dismiss(): Promise<Ghost | undefined> {
    const { ghost } = this;
    if (ghost !== undefined) {
      this.keep(undefined);
      await vscode.commands.executeCommand("editor.action.inlineSuggest.hide");
    }
    return ghost;
  }

  async show(ghost: Ghost): Promise<void> {
    this.keep(ghost);
    await vscode.commands.executeCommand("editor.action.inlineSuggest.trigger");
  }

  /** What stands at a place; undefined where it is another's to say. */
  at(
    document: vscode.TextDocument,
    position: vscode.Position,
  ): vscode.InlineCompletionItem[] | undefined {
    const { ghost } = this;
    const isThere = ghost?.document === document && isAt(document, ghost.version);
    if (!isThere || !ghost.position.isEqual(position)) {
      return undefined;
    }
    const item = new vscode.InlineCompletionItem(ghost.text, new vscode.Range(position, position));
    return [Object.assign(item, ghost.command && { command: ghost.command })];
  }

  private follow(ghost: Ghost, change: vscode.TextDocumentChangeEvent): void {
    const rest = along(ghost, change);
    if (rest === undefined) {
      this.leave(ghost);
    } else {
      this.keep(rest.text === "" ? undefined : rest);
    }
  }

  /** VS Code shows it only where the cursor stands at it. */
  private leaveUnlessAt(cursor: vscode.Position | undefined): void {
    const { ghost } = this;
    if (ghost !== undefined && cursor?.isEqual(ghost.position) !== true) {
      this.leave(ghost);
    }
  }

  private leave(ghost: Ghost): void {
    this.keep(undefined);
    this.ignored(ghost);
  }

  /** The key that dismisses it depends on it. */
  private keep(ghost: Ghost | undefined): void {
    this.ghost = ghost;
    const name = "foregram.isNextEditGhost";
    void vscode.commands.executeCommand("setContext", name, ghost !== undefined);
  }

  dispose(): void {
    this.disposable.dispose();
  }
}

/** What is left of it when a person types or takes it; undefined for another text. */
function along(ghost: Ghost, change: vscode.TextDocumentChangeEvent): Ghost | undefined {
  const [typed, ...others] = change.contentChanges;
  const { document, position, text } = ghost;
  if (typed === undefined || others.length > 0 || typed.rangeLength > 0) {
    return undefined;
  }
  const taken = typed.text.replaceAll("\r\n", "\n");
  if (!typed.range.start.isEqual(position) || !text.startsWith(taken)) {
    return undefined;
  }
  const next = document.positionAt(document.offsetAt(position) + typed.text.length);
  const rest = text.slice(taken.length);
  return { ...ghost, version: document.version, position: next, text: rest };
}
