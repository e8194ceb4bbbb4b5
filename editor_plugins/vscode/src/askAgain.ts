/**
 * Ghost text that comes without a key. When the server says that it is ready, the editor asks again
 * at the place where the cursor stands then. When it says that a suggestion has become longer, the
 * longer one takes the place of the one on the screen.
 */

import * as vscode from "vscode";
import type { LanguageClientOptions } from "vscode-languageclient/node";

import type { Completions, ForegramClient } from "./client";
import { cursorOf, DOCUMENTS, isOurs } from "./documents";
import type { Feedback } from "./feedback";
import type { Preferences } from "./preferences";

export type Provide = NonNullable<
  NonNullable<LanguageClientOptions["middleware"]>["provideInlineCompletionItems"]
>;

/** Where the last ghost text was offered. */
interface Offered {
  readonly document: vscode.TextDocument;
  readonly version: number;
  readonly position: vscode.Position;
  readonly context: vscode.InlineCompletionContext;
}

/** The version of a document for which there is longer text. */
export interface MoreText {
  readonly uri: string;
  readonly version: number;
}

function isSamePlace(one: Offered, other: Offered | undefined): boolean {
  const isIts = one.document === other?.document && one.version === other.version;
  return isIts && one.position.isEqual(other.position);
}

function itemsOf(answer: Completions): readonly vscode.InlineCompletionItem[] {
  return Array.isArray(answer) ? answer : (answer?.items ?? []);
}

export class AskAgain implements vscode.Disposable {
  private readonly disposable: vscode.Disposable;
  private isOwed = false; // no text of ours was looked at when the server was ready
  private isAsking = false;
  private offered: Offered | undefined;
  private dismissed: Offered | undefined;

  constructor(
    private readonly client: () => ForegramClient | undefined,
    private readonly extensionId: string,
    private readonly preferences: Preferences,
    private readonly feedback: Feedback,
  ) {
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
    const asked = { ...context, triggerKind };
    const answer = await next(document, position, asked, token);
    const items = itemsOf(answer);
    if (!token.isCancellationRequested) {
      const { version } = document;
      this.offered = items.length > 0 ? { document, version, position, context: asked } : undefined;
      this.feedback.noteOffered(items, document, position);
    }
    return answer;
  };

  /** Asks where the cursor stands, or as soon as a text of ours is looked at again. */
  async ask(): Promise<void> {
    const { activeTextEditor: editor, state } = vscode.window;
    this.isOwed = !state.focused || editor === undefined || !isOurs(editor.document);
    if (editor !== undefined && !this.isOwed && this.isWanted(editor)) {
      await this.trigger();
    }
  }

  /** Replaces what is on the screen at this version of a document. */
  async showMore({ uri, version }: MoreText): Promise<void> {
    const editor = vscode.window.activeTextEditor;
    const { offered } = this;
    const isThere = editor?.document.uri.toString() === uri && editor.document.version === version;
    if (!isThere || offered === undefined || !this.mayGrow(editor, offered)) {
      return;
    }
    const { document, position, context } = offered;
    const never = new vscode.CancellationTokenSource().token;
    const longer = await this.client()?.complete(document, position, context, never);
    if (itemsOf(longer).length === 0 || !this.mayGrow(editor, offered)) {
      return;
    }
    // VS Code asks twice at one place only a provider that is new to it, and else leaves the shorter
    // text first of two. Versions that ignore the arguments go on showing the shorter one.
    const again = vscode.languages.registerInlineCompletionItemProvider(DOCUMENTS, {
      provideInlineCompletionItems: (asked) =>
        asked === document && asked.version === version ? longer : undefined,
    });
    try {
      await this.trigger({ providerId: `${this.extensionId}:*`, explicit: false });
    } finally {
      again.dispose();
    }
  }

  /** Takes the ghost text away, so that no longer one brings it back. */
  async dismiss(): Promise<void> {
    this.dismissed = this.offered;
    await vscode.commands.executeCommand("editor.action.inlineSuggest.hide");
  }

  /** Whether what was offered here is on the screen, or was dismissed. */
  isOffered(editor: vscode.TextEditor): boolean {
    const { document } = editor;
    const { offered } = this;
    const isIts = offered?.document === document && offered.version === document.version;
    return isIts && cursorOf(editor)?.isEqual(offered.position) === true;
  }

  private mayGrow(editor: vscode.TextEditor, offered: Offered): boolean {
    const isInvoked = offered.context.triggerKind === vscode.InlineCompletionTriggerKind.Invoke;
    return !isInvoked && this.isOffered(editor) && !isSamePlace(offered, this.dismissed);
  }

  private async trigger(how?: object): Promise<void> {
    this.isAsking = true;
    try {
      await vscode.commands.executeCommand("editor.action.inlineSuggest.trigger", how);
    } finally {
      this.isAsking = false;
    }
  }

  private isWanted(editor: vscode.TextEditor): boolean {
    const isCursor = cursorOf(editor) !== undefined;
    return isCursor && !this.isOffered(editor) && this.preferences.isCompleted(editor.document);
  }

  dispose(): void {
    this.disposable.dispose();
  }
}
