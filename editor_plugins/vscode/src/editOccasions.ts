/** When a next edit is asked for: after a pause in typing, and when trouble appears near an edit. */

import * as vscode from "vscode";

import { troublesIn } from "./nextEditRequest";

const PAUSE_MS = 300; // after the last key
const NEAR_LINES = 10; // between an edit and a diagnostic that it may have caused
const SOON_MS = 10_000; // from an edit to such a diagnostic

interface LastEdit {
  readonly document: vscode.TextDocument;
  readonly line: number;
  readonly time: number;
  readonly troubles: ReadonlySet<string>; // what was known then
}

export class EditOccasions implements vscode.Disposable {
  private readonly disposable: vscode.Disposable;
  private timer: NodeJS.Timeout | undefined;
  private last: LastEdit | undefined;

  constructor(private readonly ask: () => void) {
    this.disposable = vscode.Disposable.from(
      vscode.workspace.onDidChangeTextDocument((change) => {
        this.changed(change);
      }),
      vscode.languages.onDidChangeDiagnostics(({ uris }) => {
        this.diagnosed(uris);
      }),
    );
  }

  /** Asks at once: an edit or a suggestion was accepted. */
  now(): void {
    this.stop();
    this.ask();
  }

  /** Asks no more until something changes. */
  stop(): void {
    clearTimeout(this.timer);
    this.last = undefined;
  }

  private changed({ document, contentChanges, reason }: vscode.TextDocumentChangeEvent): void {
    const [first] = contentChanges;
    if (first === undefined || document !== vscode.window.activeTextEditor?.document) {
      return;
    }
    this.stop();
    if (reason !== undefined) {
      return; // undone, or done again
    }
    const troubles = new Set(troublesIn(document).map(nameOf));
    this.last = { document, line: first.range.start.line, time: Date.now(), troubles };
    this.timer = setTimeout(this.ask, PAUSE_MS);
  }

  private diagnosed(uris: readonly vscode.Uri[]): void {
    const { last } = this;
    const isIts = ({ path }: vscode.Uri): boolean => path === last?.document.uri.path;
    if (last === undefined || !uris.some(isIts) || Date.now() - last.time > SOON_MS) {
      return;
    }
    const isNew = (one: vscode.Diagnostic): boolean =>
      !last.troubles.has(nameOf(one)) && Math.abs(one.range.start.line - last.line) <= NEAR_LINES;
    const troubles = troublesIn(last.document);
    if (troubles.some(isNew)) {
      this.last = { ...last, troubles: new Set(troubles.map(nameOf)) };
      clearTimeout(this.timer);
      this.timer = setTimeout(this.ask, PAUSE_MS);
    }
  }

  dispose(): void {
    this.stop();
    this.disposable.dispose();
  }
}

/** The same message moves along with its line. */
function nameOf({ message, source, severity }: vscode.Diagnostic): string {
  return `${severity} ${source ?? ""} ${message}`;
}
