/**
 * What the server hears of its completions: parts that were taken, and which document is looked at.
 * That one is shown or refused, VS Code's stable API does not tell.
 */

import * as vscode from "vscode";
import type { LanguageClientOptions } from "vscode-languageclient/node";

import { DOCUMENTS, type ForegramClient } from "./client";
import { acceptedLength, type OfferedItem } from "./partialAccept";

export type Provide = NonNullable<
  NonNullable<LanguageClientOptions["middleware"]>["provideInlineCompletionItems"]
>;

interface Offer {
  readonly item: OfferedItem;
  readonly document: vscode.TextDocument;
  readonly start: vscode.Position;
}

export class Feedback implements vscode.Disposable {
  private readonly disposables: vscode.Disposable[];
  private offers: readonly Offer[] = [];

  constructor(private readonly client: () => ForegramClient | undefined) {
    const { onDidChangeActiveTextEditor, onDidChangeWindowState } = vscode.window;
    const tell = (): void => {
      this.tellFocus();
    };
    this.disposables = [onDidChangeActiveTextEditor(tell), onDidChangeWindowState(tell)];
  }

  /** Notes what is offered on its way to the editor. */
  readonly provide: Provide = async (document, position, context, token, next) => {
    const answer = await next(document, position, context, token);
    const items = Array.isArray(answer) ? answer : (answer?.items ?? []);
    if (!token.isCancellationRequested) {
      const offers = items.flatMap((item) => offerOf(item, document, position));
      this.offers = offers.length > 0 ? offers : this.offers; // the former may be shown still
    }
    return answer;
  };

  /** Runs one of the editor's commands that take a part of the ghost text. */
  async acceptPart(command: string): Promise<void> {
    const offers = this.offers; // what follows is asked for while the command runs
    await vscode.commands.executeCommand(command);
    const editor = vscode.window.activeTextEditor;
    for (const { item, document, start } of offers) {
      if (editor?.document === document && start.isBefore(editor.selection.active)) {
        const taken = document.getText(new vscode.Range(start, editor.selection.active));
        const length = acceptedLength(item, taken);
        if (length > 0 && length === taken.replaceAll("\r\n", "\n").length) {
          await this.tell("textDocument/didPartiallyAcceptCompletion", {
            item,
            acceptedLength: length,
          });
        }
      }
    }
  }

  /** Which document is looked at: whenever that changes, and for each server that has started. */
  tellFocus(): void {
    const document = vscode.window.activeTextEditor?.document;
    const isOurs = document !== undefined && vscode.languages.match(DOCUMENTS, document) > 0;
    const params = isOurs ? { textDocument: { uri: document.uri.toString() } } : {};
    if (vscode.window.state.focused) {
      void this.tell("textDocument/didFocus", params);
    }
  }

  private async tell(method: string, params: object): Promise<void> {
    // A server that ends just now has no use for it.
    await this.client()
      ?.sendNotification(method, params)
      .catch(() => undefined);
  }

  dispose(): void {
    vscode.Disposable.from(...this.disposables).dispose();
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
