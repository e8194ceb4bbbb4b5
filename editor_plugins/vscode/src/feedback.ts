/**
 * What the server hears of a person: parts of completions that were taken, which document is looked
 * at, where the cursor rests. That one is shown or refused, VS Code's stable API does not tell.
 */

import * as vscode from "vscode";

import type { ForegramClient } from "./client";
import { cursorOf, isOurs, placeIn } from "./documents";
import { acceptedLength, type OfferedItem } from "./partialAccept";

const REST_MS = 400; // longer than between two arrow keys

interface Offer {
  readonly item: OfferedItem;
  readonly document: vscode.TextDocument;
  readonly start: vscode.Position;
}

export class Feedback implements vscode.Disposable {
  private readonly disposable: vscode.Disposable;
  private offers: readonly Offer[] = [];
  private resting: NodeJS.Timeout | undefined;

  constructor(private readonly client: () => ForegramClient | undefined) {
    this.disposable = vscode.Disposable.from(
      vscode.window.onDidChangeActiveTextEditor(this.tellFocus),
      vscode.window.onDidChangeWindowState(this.tellFocus),
      vscode.window.onDidChangeTextEditorSelection(({ textEditor }) => {
        clearTimeout(this.resting);
        this.resting = setTimeout(() => void this.tellCursor(textEditor), REST_MS);
      }),
    );
  }

  /** Notes what is on its way to the editor. */
  noteOffered(
    items: readonly vscode.InlineCompletionItem[],
    document: vscode.TextDocument,
    position: vscode.Position,
  ): void {
    const offers = items.flatMap((item) => offerOf(item, document, position));
    this.offers = offers.length > 0 ? offers : this.offers; // the former may be shown still
  }

  /** Runs one of the editor's commands that take a part of the ghost text. */
  async acceptPart(command: string): Promise<void> {
    const offers = this.offers; // what follows is asked for while the command runs
    await vscode.commands.executeCommand(command);
    const editor = vscode.window.activeTextEditor;
    for (const { item, document, start } of offers) {
      if (editor?.document === document && start.isBefore(editor.selection.active)) {
        const taken = document.getText(new vscode.Range(start, editor.selection.active));
        const params = { item, acceptedLength: acceptedLength(item, taken) };
        if (params.acceptedLength > 0) {
          await this.client()?.tell("textDocument/didPartiallyAcceptCompletion", params);
        }
      }
    }
  }

  /** Which document is looked at: whenever that changes, and for each server that has started. */
  readonly tellFocus = (): void => {
    const document = vscode.window.activeTextEditor?.document;
    const uri = document !== undefined && isOurs(document) ? document.uri.toString() : undefined;
    if (vscode.window.state.focused) {
      void this.client()?.tell("textDocument/didFocus", uri ? { textDocument: { uri } } : {});
    }
  };

  /**
   * Where the cursor rests, so that what follows is computed before a key is typed there.
   * VS Code itself asks for ghost text behind keys alone.
   */
  private async tellCursor(editor: vscode.TextEditor): Promise<void> {
    const cursor = cursorOf(editor);
    if (cursor !== undefined && !editor.document.isClosed && isOurs(editor.document)) {
      await this.client()?.tell("foregram/cursor", placeIn(editor.document, cursor));
    }
  }

  dispose(): void {
    clearTimeout(this.resting);
    this.disposable.dispose();
  }
}

function offerOf(
  item: vscode.InlineCompletionItem,
  document: vscode.TextDocument,
  position: vscode.Position,
): Offer[] {
  const { insertText, command, range } = item;
  if (typeof insertText !== "string" || command === undefined) {
    return [];
  }
  const told = { command: command.command, arguments: command.arguments ?? [] };
  return [{ item: { insertText, command: told }, document, start: range?.start ?? position }];
}
