/**
 * What the editor asks for when the server says so, not at a key: where nothing could be answered
 * while there was no model, and where the text is longer by now than the part that was offered.
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
  readonly isInMenu: boolean; // it continues an item that is selected in the editor's menu
}

/** Of which document, and of which version of it, there is more. */
export interface More {
  readonly textDocument: { readonly uri: string; readonly version: number };
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
      const isInMenu = context.selectedCompletionInfo !== undefined;
      this.offered =
        items.length > 0 ? { document, version: document.version, position, isInMenu } : undefined;
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
    await this.trigger();
  }

  /** Asks for the rest of what was offered, where nothing has changed since. */
  async askForMore({ textDocument: { uri, version } }: More): Promise<void> {
    const editor = lookedAt();
    const isHere = editor?.document.uri.toString() === uri && editor.document.version === version;
    const cursor = isHere ? onlyCursor(editor) : undefined;
    const isOffered = cursor !== undefined && editor && this.isOffered(editor.document, cursor);
    if (isOffered && this.offered?.isInMenu === false) {
      await this.trigger();
    }
  }

  private async trigger(): Promise<void> {
    this.isAsking = true;
    try {
      await vscode.commands.executeCommand("editor.action.inlineSuggest.trigger");
    } finally {
      this.isAsking = false;
    }
  }

  private isWanted(editor: vscode.TextEditor): boolean {
    const cursor = onlyCursor(editor);
    return (
      cursor !== undefined &&
      this.preferences.isCompleted(editor.document) &&
      !this.isOffered(editor.document, cursor)
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

/** Where a person types, unless a text is selected or there are several cursors. */
function onlyCursor({ selections }: vscode.TextEditor): vscode.Position | undefined {
  const [selection, ...others] = selections;
  return selection?.isEmpty === true && others.length === 0 ? selection.active : undefined;
}

function lookedAt(): vscode.TextEditor | undefined {
  const { activeTextEditor: editor, state } = vscode.window;
  const isOurs = editor !== undefined && vscode.languages.match(DOCUMENTS, editor.document) > 0;
  return state.focused && isOurs ? editor : undefined;
}
