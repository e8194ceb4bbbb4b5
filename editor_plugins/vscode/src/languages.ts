/** The language of the text that is looked at, by the name that its extension gives it. */

import * as vscode from "vscode";

import type { Language } from "./status";

interface Manifest {
  readonly contributes?: { readonly languages?: readonly { id: string; aliases?: string[] }[] };
}

export function activeLanguage(): Language | undefined {
  const id = vscode.window.activeTextEditor?.document.languageId;
  const [title] = vscode.extensions.all
    .flatMap(({ packageJSON }) => (packageJSON as Manifest).contributes?.languages ?? [])
    .flatMap((one) => (one.id === id ? (one.aliases ?? []) : []));
  const own = id === "plaintext" ? "Plain Text" : id; // VS Code's own is no extension's
  return id === undefined ? undefined : { id, title: title ?? own ?? id };
}
