/** What foregram can say of itself: why there is no suggestion, its logs, its doctor. */

import { basename } from "node:path";
import * as vscode from "vscode";

import type { ForegramClient } from "./client";
import type { ServerCommand } from "./command";
import { run } from "./process";

const GIVEN_UP = ["cancelled", "superseded"];

interface EmptyAnswer {
  readonly file: string;
  readonly reason: string;
  readonly sentence: string;
  readonly time_s: number;
}

/** Says why the last answer was empty; all of them on demand. */
export async function showWhy(
  client: ForegramClient | undefined,
  status: string,
  output: vscode.LogOutputChannel,
): Promise<void> {
  const answers = await emptyAnswers(client);
  const last = lastOf(answers, vscode.window.activeTextEditor?.document.fileName);
  const sentence =
    last === undefined
      ? `no empty answer is known; ${status}`
      : `${last.file}: ${last.sentence} (${last.reason})`;
  const actions = answers.length > 1 ? ["Show All"] : [];
  const chosen = await vscode.window.showInformationMessage(`foregram: ${sentence}`, ...actions);
  if (chosen !== undefined) {
    for (const answer of answers) {
      const time = new Date(answer.time_s * 1000).toLocaleTimeString();
      output.info(`${time}  ${answer.file}: ${answer.sentence} (${answer.reason})`);
    }
    output.show();
  }
}

/** The last answer of the file at hand, else of any; a request that was given up says nothing. */
function lastOf(answers: readonly EmptyAnswer[], file = ""): EmptyAnswer | undefined {
  const telling = answers.filter(({ reason }) => !GIVEN_UP.includes(reason));
  const name = basename(file);
  return telling.findLast((answer) => basename(answer.file) === name) ?? telling.at(-1);
}

async function emptyAnswers(client: ForegramClient | undefined): Promise<readonly EmptyAnswer[]> {
  const command = { command: "foregram.why" };
  return (await client?.sendRequest<EmptyAnswer[]>("workspace/executeCommand", command)) ?? [];
}

/** Runs one of foregram's own commands and shows what it prints. */
export async function showPrinted(
  command: ServerCommand,
  words: readonly string[],
  environment: Readonly<Record<string, string>>,
  output: vscode.LogOutputChannel,
): Promise<void> {
  output.show();
  const title = `foregram ${words.join(" ")}`;
  const location = vscode.ProgressLocation.Window;
  await vscode.window.withProgress({ location, title }, async () => {
    const onLine = (line: string): void => {
      output.info(line);
    };
    await run(command.program, [...command.args, ...words], { environment, onLine });
  });
}
