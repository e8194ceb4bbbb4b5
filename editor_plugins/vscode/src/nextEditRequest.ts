/** The likely next change of a document: Copilot's `textDocument/copilotInlineEdit`. */

import * as vscode from "vscode";
import { ErrorCodes, type Command } from "vscode-languageclient/node";

import type { ForegramClient } from "./client";
import { placeIn, plainRange } from "./documents";
import type { Edit, Range } from "./textEdits";

const { Error: ERROR, Warning: WARNING } = vscode.DiagnosticSeverity;

/** An edit of a document in the version that it was asked for. */
export interface NextEdit extends Edit {
  readonly version: number;
  readonly command: Command | undefined; // to run when it has been applied
  readonly isHint: boolean; // farther away only its place is shown
}

interface Answer {
  readonly edits?: readonly {
    readonly text: string;
    readonly range: Range;
    readonly textDocument: { readonly uri: string; readonly version: number };
    readonly command?: Command;
  }[];
  readonly isHint?: boolean;
}

const without = new WeakSet<ForegramClient>(); // servers that know no next edits

/** Undefined where there is none, or none for this version of the document. */
export async function requestNextEdit(
  client: ForegramClient,
  document: vscode.TextDocument,
  position: vscode.Position,
  token: vscode.CancellationToken,
): Promise<NextEdit | undefined> {
  if (without.has(client)) {
    return undefined;
  }
  const { version } = document;
  const uri = document.uri.toString();
  const params = {
    ...placeIn(document, position),
    textDocument: { uri, version },
    context: { triggerKind: 2 },
    diagnostics: troublesIn(document).map(({ message, range }) => ({
      message,
      range: plainRange(range),
    })),
  };
  try {
    const method = "textDocument/copilotInlineEdit";
    const answer = await client.sendRequest<Answer | null>(method, params, token);
    const edit = answer?.edits?.find(
      ({ textDocument }) => textDocument.uri === uri && textDocument.version === version,
    );
    const isHint = answer?.isHint === true;
    return edit && { ...edit, version, newText: edit.text, command: edit.command, isHint };
  } catch (error) {
    if ((error as { code?: unknown }).code === ErrorCodes.MethodNotFound) {
      without.add(client);
    }
    return undefined; // cancelled, or logged by the client
  }
}

/** Errors and warnings. */
export function troublesIn(document: vscode.TextDocument): vscode.Diagnostic[] {
  const all = vscode.languages.getDiagnostics(document.uri);
  return all.filter(({ severity }) => severity === ERROR || severity === WARNING);
}
