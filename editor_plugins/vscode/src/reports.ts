/** What foregram can say of itself: why there is no suggestion, its logs, its doctor. */

import { basename } from "node:path";
import * as vscode from "vscode";

import { isWhy, linesOf, told, type Told, type Why } from "./answers";
import { DOCUMENTS, type ForegramClient } from "./client";
import type { ServerCommand } from "./command";
import { run } from "./process";
import type { Remedies } from "./remedies";
import type { ReportDocuments } from "./reportDocuments";
import type { Status } from "./status";

const SHOW_ALL = "Show All";

/** Says why nothing is shown where the cursor stands, and offers what mends it. */
export async function showWhy(
  client: ForegramClient | undefined,
  status: Status,
  remedies: Remedies,
  documents: ReportDocuments,
): Promise<void> {
  const editor = vscode.window.activeTextEditor;
  const name = editor === undefined ? "" : basename(editor.document.fileName);
  const isOurs = editor !== undefined && vscode.languages.match(DOCUMENTS, editor.document) > 0;
  const why = isOurs ? await askWhy(client, editor) : undefined;
  const { sentence, remedy } = isOurs ? toldIn(editor, why, status) : notOurs(name, status);
  const button = remedy !== undefined && remedies.has(remedy) ? remedy : undefined;
  const advice = remedy !== undefined && button === undefined ? `. ${remedy.title}` : "";
  const labels = [...(button ? [button.title] : []), ...(why?.answers.length ? [SHOW_ALL] : [])];
  const message = `foregram: ${sentence}${advice}`;
  const chosen = await vscode.window.showInformationMessage(message, ...labels);
  if (chosen === SHOW_ALL && why) {
    await documents.open(`why no suggestion in ${name}`, linesOf(why, name));
  } else if (chosen !== undefined && button !== undefined) {
    await remedies.run(button);
  }
}

function toldIn(
  { document, selection }: vscode.TextEditor,
  why: Why | undefined,
  status: Status,
): Told {
  const place = { name: basename(document.fileName), line: selection.active.line + 1 };
  return told(why, place, status);
}

/** A report, say, or a file as it was in a former version. */
function notOurs(name: string, status: Status): Told {
  return name === ""
    ? { sentence: `no text is open; ${status.message}`, remedy: status.remedy }
    : { sentence: `${name}: files of this kind are not completed` };
}

/** Undefined where there is nobody to ask. */
async function askWhy(
  client: ForegramClient | undefined,
  editor: vscode.TextEditor,
): Promise<Why | undefined> {
  const { document, selection } = editor;
  const { line, character } = selection.active;
  const asked = {
    textDocument: { uri: document.uri.toString() },
    position: { line, character },
  };
  const answer = await client?.execute("foregram.why", asked);
  return isWhy(answer) ? answer : client && { now: null, answers: [] };
}

/** Runs one of foregram's own commands and shows what it prints as it comes. */
export async function showPrinted(
  command: ServerCommand,
  words: readonly string[],
  environment: Readonly<Record<string, string>>,
  onLine: (line: string) => void,
): Promise<void> {
  const title = `foregram ${words.join(" ")}`;
  const location = vscode.ProgressLocation.Window;
  await vscode.window.withProgress({ location, title }, async () => {
    await run(command.program, [...command.args, ...words], { environment, onLine });
  });
}
