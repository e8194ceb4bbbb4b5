/** Says why there is no suggestion. */

import { basename } from "node:path";
import * as vscode from "vscode";

import { isWhy, linesOf, told, type Told, type Why } from "./answers";
import type { ForegramClient } from "./client";
import { isOurs, placeIn } from "./documents";
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
  const looked = editor !== undefined && isOurs(editor.document) ? editor : undefined;
  const why = looked && (await askWhy(client, looked));
  const { sentence, remedy } = looked
    ? told(why, { name, line: looked.selection.active.line + 1 }, status)
    : notOurs(name, status);
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

/** A report, say, or a file as it was in a former version. */
function notOurs(name: string, status: Status): Told {
  return name === ""
    ? { sentence: `no text is open; ${status.message}`, remedy: status.remedy }
    : { sentence: `${name}: files of this kind are not completed` };
}

/** Undefined where there is nobody to ask. */
async function askWhy(
  client: ForegramClient | undefined,
  { document, selection }: vscode.TextEditor,
): Promise<Why | undefined> {
  const asked = placeIn(document, selection.active);
  const answer = await client?.execute("foregram.why", asked);
  return isWhy(answer) ? answer : client && { now: null, answers: [] };
}
