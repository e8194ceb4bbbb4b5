/**
 * Ghost text for what the server had to leave unanswered while there was no model: when the server
 * says that it is ready, the editor asks again at the place where the cursor stands then.
 */

import * as vscode from "vscode";

import { DOCUMENTS } from "./client";
import type { Provide } from "./feedback";
import type { Preferences } from "./preferences";

/** Where the last ghost text was offered. */
interface Offered {
  readonly document: vscode.TextDocument;
  readonly version: number;
  readonly position: vscode.Position;
}

export class AskAgain implements vscode.Disposable {
  private readonly disposable: vscode.Disposable;
  private isOwed = false; // no text of ours was looked at when the server was ready
  private isAsking = false;
  private offered: Offered | undefined;

  constructor(private readonly preferences: Preferences) {
    const { onDidChangeActiveTextEditor, onDidChangeWindowState } = vscode.window;
    const askIfOwed = (): void => {
      if (this.isOwed) {
        void this.ask();
      }
    };
    this.disposable = vscode.Disposable.from(
      onDidChangeActiveTextEditor(askIfOwed),
      onDidChangeWindowState(askIfOwed),
    );
  }

  /** VS Code can be made to ask only as if a person had; on its way such a request is mended. */
  readonly provide: Provide = async (document, position, context, token, next) => {
    const triggerKind = this.isAsking
      ? vscode.InlineCompletionTriggerKind.Automatic
      : context.triggerKind;
    const answer = await next(document, position, { ...context, triggerKind }, token);
    const items = Array.isArray(answer) ? answer : (answer?.items ?? []);
    if (!token.isCancellationRequested) {
      this.offered =
        items.length > 0 ? { document, version: document.version, position } : undefined;
    }
    return answer;
  };

  /** Asks where the cursor stands, or as soon as a text of ours is looked at again. */
  async ask(): Promise<void> {
    const editor = lookedAt();
    this.isOwed = editor === undefined;
    if (editor === undefined || !this.isWanted(editor)) {
      return;
    }
    this.isAsking = true;
    try {
      await vscode.commands.executeCommand("editor.action.inlineSuggest.trigger");
    } finally {
      this.isAsking = false;
    }
  }

  private isWanted({ document, selections }: vscode.TextEditor): boolean {
    const [selection, ...others] = selections;
    const cursor =
      selection?.isEmpty === true && others.length === 0 ? selection.active : undefined;
    return (
      cursor !== undefined &&
      this.preferences.isCompleted(document) &&
      !this.isOffered(document, cursor)
    );
  }

  /** What was offered here is on the screen, or a person has dismissed it. */
  private isOffered(document: vscode.TextDocument, cursor: vscode.Position): boolean {
    return (
      this.offered?.document === document &&
      this.offered.version === document.version &&
      this.offered.position.isEqual(cursor)
    );
  }

  dispose(): void {
    this.disposable.dispose();
  }
}

function lookedAt(): vscode.TextEditor | undefined {
  const { activeTextEditor: editor, state } = vscode.window;
  const isOurs = editor !== undefined && vscode.languages.match(DOCUMENTS, editor.document) > 0;
  return state.focused && isOurs ? editor : undefined;
}
