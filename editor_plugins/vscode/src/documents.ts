/** The documents that foregram completes in, places in them, and their languages. */

import * as vscode from "vscode";

import type { Language } from "./status";
import type { Range } from "./textEdits";

/** Files on this machine's disk, untitled ones, cells of notebooks. */
export const DOCUMENTS = [
  { scheme: "file" },
  { scheme: "untitled" },
  { scheme: "vscode-notebook-cell" },
];

export function isOurs(document: vscode.TextDocument): boolean {
  return vscode.languages.match(DOCUMENTS, document) > 0;
}

/** Undefined where text is selected, or where there are several cursors. */
export function cursorOf({ selections }: vscode.TextEditor): vscode.Position | undefined {
  const [selection, ...others] = selections;
  return selection?.isEmpty === true && others.length === 0 ? selection.active : undefined;
}

/** Whether a text is still the one of that version; a document opened again counts anew. */
export function isAt(document: vscode.TextDocument, version: number): boolean {
  return !document.isClosed && document.version === version;
}

/** A place as requests name it. */
export function placeIn(document: vscode.TextDocument, position: vscode.Position): object {
  const { line, character } = position;
  return { textDocument: { uri: document.uri.toString() }, position: { line, character } };
}

/** A range as the protocol writes it. */
export function plainRange({ start, end }: vscode.Range): Range {
  const { line, character } = start;
  return { start: { line, character }, end: { line: end.line, character: end.character } };
}

export function rangeOf({ start, end }: Range): vscode.Range {
  return new vscode.Range(start.line, start.character, end.line, end.character);
}

interface Manifest {
  readonly contributes?: { readonly languages?: readonly { id: string; aliases?: string[] }[] };
}

/** The language of the text that is looked at, by the name that its extension gives it. */
export function activeLanguage(): Language | undefined {
  const id = vscode.window.activeTextEditor?.document.languageId;
  const [title] = vscode.extensions.all
    .flatMap(({ packageJSON }) => (packageJSON as Manifest).contributes?.languages ?? [])
    .flatMap((one) => (one.id === id ? (one.aliases ?? []) : []));
  const own = id === "plaintext" ? "Plain Text" : id; // VS Code's own is no extension's
  return id === undefined ? undefined : { id, title: title ?? own ?? id };
}
