/** Reports as documents that cannot be edited: to read, to search and to copy from. */

import * as vscode from "vscode";

import { ReportTexts } from "./reportTexts";

const SCHEME = "foregram-report";

export class ReportDocuments implements vscode.TextDocumentContentProvider, vscode.Disposable {
  private readonly changed = new vscode.EventEmitter<vscode.Uri>();
  readonly onDidChange = this.changed.event;
  private readonly texts = new ReportTexts((path) => {
    this.changed.fire(uriOf(path));
  });
  private readonly registration: vscode.Disposable;

  constructor() {
    this.registration = vscode.workspace.registerTextDocumentContentProvider(SCHEME, this);
  }

  provideTextDocumentContent(uri: vscode.Uri): string {
    return this.texts.of(uri.path);
  }

  /** Opens the report of this title with these lines; the function adds one. */
  async open(title: string, lines: readonly string[] = []): Promise<(line: string) => void> {
    const uri = uriOf(`/${title}`);
    const add = this.texts.begin(uri.path, lines);
    await vscode.window.showTextDocument(await vscode.workspace.openTextDocument(uri));
    return add;
  }

  dispose(): void {
    vscode.Disposable.from(this.registration, this.changed).dispose();
  }
}

function uriOf(path: string): vscode.Uri {
  return vscode.Uri.from({ scheme: SCHEME, path });
}
