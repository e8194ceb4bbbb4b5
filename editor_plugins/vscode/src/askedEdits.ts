/** Changes that are asked for in words: shown as a difference, then applied or discarded. */

import { basename } from "node:path";
import * as vscode from "vscode";
import type { TextEdit } from "vscode-languageclient/node";

import type { ForegramClient } from "./client";
import { isAt, isOurs, plainRange, rangeOf } from "./documents";
import { requestEdit, type EditRequest } from "./editRequest";
import { withEdits } from "./textEdits";

const SCHEME = "foregram-edit"; // of documents that show a text with its change

/** A change that waits to be accepted. */
interface Proposal {
  readonly document: vscode.TextDocument;
  readonly version: number; // of the document that the change was made for
  readonly edits: readonly TextEdit[];
  readonly shownAs: vscode.Uri;
}

export class AskedEdits implements vscode.TextDocumentContentProvider, vscode.Disposable {
  private readonly disposable: vscode.Disposable;
  private readonly texts = new Map<string, string>();
  private proposal: Proposal | undefined;
  private numAsked = 0; // each change is shown as a document of its own
  private instruction = ""; // the last one, to be changed a little

  constructor(private readonly client: () => ForegramClient | undefined) {
    this.disposable = vscode.Disposable.from(
      vscode.workspace.registerTextDocumentContentProvider(SCHEME, this),
      vscode.window.tabGroups.onDidChangeTabs(({ closed }) => {
        if (closed.some((tab) => this.isShownIn(tab))) {
          this.forget();
        }
      }),
    );
  }

  provideTextDocumentContent(uri: vscode.Uri): string | undefined {
    return this.texts.get(uri.toString());
  }

  /** Asks what to change in the selected lines, or in the line of the cursor, and shows it. */
  async ask(): Promise<void> {
    const editor = vscode.window.activeTextEditor;
    if (editor === undefined || !isOurs(editor.document)) {
      say("open a file, and select the lines to change");
      return;
    }
    const { document, selection } = editor;
    const { version } = document;
    const instruction = await askFor(selection, this.instruction);
    if (instruction !== undefined) {
      this.instruction = instruction;
      const range = plainRange(selection);
      await this.make({ uri: document.uri.toString(), version, range, instruction });
    }
  }

  /** Shows the change that is asked for, by a person or by one of the server's code actions. */
  async make(asked: EditRequest): Promise<void> {
    const { textDocuments } = vscode.workspace;
    const document = textDocuments.find(({ uri }) => uri.toString() === asked.uri);
    const edits = document && (await requestEdit(this.client(), asked, say));
    if (document === undefined || edits === undefined) {
      return; // closed meanwhile, or a person knows why
    }
    if (isAt(document, asked.version)) {
      await this.show(document, edits);
    } else {
      say(changed(document));
    }
  }

  /** Applies the change that is shown as one step of undo, unless its document has changed. */
  async accept(): Promise<void> {
    const { proposal } = this;
    if (proposal === undefined) {
      return;
    }
    const { document, version, edits } = proposal;
    if (!isAt(document, version) || !(await applied(document, edits))) {
      say(changed(document));
      return;
    }
    await this.discard();
    await vscode.window.showTextDocument(document);
  }

  /** Takes the change that is shown from the screen. */
  async discard(): Promise<void> {
    const tabs = vscode.window.tabGroups.all.flatMap((group) => group.tabs);
    await vscode.window.tabGroups.close(tabs.filter((tab) => this.isShownIn(tab)));
    this.forget();
  }

  private async show(document: vscode.TextDocument, edits: readonly TextEdit[]): Promise<void> {
    await this.discard(); // one at a time
    const { uri, version } = document;
    const query = `${++this.numAsked}`;
    const shownAs = vscode.Uri.from({ scheme: SCHEME, path: uri.path, query });
    this.texts.set(shownAs.toString(), withEdits(document.getText(), edits));
    this.proposal = { document, version, edits, shownAs };
    await setShown(true);
    const shown = await vscode.workspace.openTextDocument(shownAs);
    await vscode.languages.setTextDocumentLanguage(shown, document.languageId);
    const title = `${basename(document.fileName)}: edit`;
    await vscode.commands.executeCommand("vscode.diff", uri, shownAs, title, { preview: false });
  }

  private isShownIn({ input }: vscode.Tab): boolean {
    const shownAs = this.proposal?.shownAs.toString();
    return input instanceof vscode.TabInputTextDiff && input.modified.toString() === shownAs;
  }

  private forget(): void {
    this.proposal = undefined;
    this.texts.clear();
    void setShown(false);
  }

  dispose(): void {
    this.disposable.dispose();
  }
}

async function askFor(selection: vscode.Selection, value: string): Promise<string | undefined> {
  const { start, end, isEmpty } = selection;
  const first = start.line + 1;
  const last = end.line + (end.character > 0 || isEmpty ? 1 : 0); // as the server sees it
  const lines = first === last ? `line ${first}` : `lines ${first} to ${last}`;
  const placeHolder = "add type hints";
  const prompt = `What to change in ${lines}`;
  const options = { title: "foregram: Edit", prompt, placeHolder, value };
  const given = await vscode.window.showInputBox(options);
  return given?.trim() === "" ? undefined : given;
}

/** Whether VS Code has applied them, which it refuses where the document has changed. */
async function applied(
  document: vscode.TextDocument,
  edits: readonly TextEdit[],
): Promise<boolean> {
  const change = new vscode.WorkspaceEdit();
  for (const { range, newText } of edits) {
    change.replace(document.uri, rangeOf(range), newText);
  }
  return vscode.workspace.applyEdit(change);
}

function changed(document: vscode.TextDocument): string {
  return `${basename(document.fileName)} has changed meanwhile: ask again`;
}

function say(sentence: string): void {
  void vscode.window.showInformationMessage(`foregram: ${sentence}`);
}

async function setShown(isShown: boolean): Promise<void> {
  await vscode.commands.executeCommand("setContext", "foregram.isEditShown", isShown);
}
