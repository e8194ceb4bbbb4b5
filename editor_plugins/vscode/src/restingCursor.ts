/**
 * Tells the server where the cursor rests, so that the prompt of that place is read before a key is
 * typed there. VS Code itself asks for ghost text behind keys alone.
 */

import * as vscode from "vscode";

import { DOCUMENTS, type ForegramClient } from "./client";

const REST_MS = 400; // longer than between two arrow keys

export class RestingCursor implements vscode.Disposable {
  private readonly disposable: vscode.Disposable;
  private timer: NodeJS.Timeout | undefined;

  constructor(private readonly client: () => ForegramClient | undefined) {
    this.disposable = vscode.window.onDidChangeTextEditorSelection(({ textEditor }) => {
      clearTimeout(this.timer);
      this.timer = setTimeout(() => void this.tell(textEditor), REST_MS);
    });
  }

  private async tell({ document, selections }: vscode.TextEditor): Promise<void> {
    const [selection, ...others] = selections;
    const isCursor = selection?.isEmpty === true && others.length === 0;
    if (!isCursor || document.isClosed || vscode.languages.match(DOCUMENTS, document) === 0) {
      return;
    }
    const { line, character } = selection.active;
    const params = {
      textDocument: { uri: document.uri.toString() },
      position: { line, character },
    };
    // A server that ends just now has no use for it.
    await this.client()
      ?.sendNotification("foregram/cursor", params)
      .catch(() => undefined);
  }

  dispose(): void {
    clearTimeout(this.timer);
    this.disposable.dispose();
  }
}
