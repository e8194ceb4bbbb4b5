/** Languages as people call them: by the names that extensions give them. */

import * as vscode from "vscode";

import type { Language } from "./status";

interface Manifest {
  readonly contributes?: {
    readonly languages?: readonly { readonly id: string; readonly aliases?: readonly string[] }[];
  };
}

/** The language of the text that is looked at. */
export function activeLanguage(): Language | undefined {
  const id = vscode.window.activeTextEditor?.document.languageId;
  return id === undefined ? undefined : { id, title: titleOf(id) };
}

function titleOf(id: string): string {
  const declared = vscode.extensions.all
    .flatMap(({ packageJSON }) => (packageJSON as Manifest).contributes?.languages ?? [])
    .find((one) => one.id === id && one.aliases?.[0] !== undefined);
  return declared?.aliases?.[0] ?? (id === "plaintext" ? "Plain Text" : id); // VS Code's own
}
