/** A change that is asked for in words, with its progress: the server's `foregram.edit`. */

import * as vscode from "vscode";
import {
  ErrorCodes,
  LSPErrorCodes,
  WorkDoneProgress,
  type TextEdit,
} from "vscode-languageclient/node";

import type { ForegramClient } from "./client";

/** What to change; its lines belong to that version of the document. */
export interface EditRequest {
  readonly uri: string;
  readonly version: number;
  readonly range: object;
  readonly instruction: string;
}

type Report = vscode.Progress<{ readonly increment: number }>;

const REFUSALS = new Set<unknown>([LSPErrorCodes.RequestFailed, ErrorCodes.InvalidParams]);

let numAsked = 0; // names the progress of each

/** The edits; undefined where a person has cancelled them, or where `say` has told why not. */
export async function requestEdit(
  client: ForegramClient | undefined,
  asked: EditRequest,
  say: (sentence: string) => void,
): Promise<readonly TextEdit[] | undefined> {
  if (client === undefined) {
    say("the server does not run");
    return undefined;
  }
  const location = vscode.ProgressLocation.Notification;
  const options = { location, title: `foregram: ${asked.instruction}`, cancellable: true };
  return vscode.window.withProgress(options, async (report, token) => {
    const workDoneToken = `foregram.edit ${++numAsked}`;
    const following = follow(client, workDoneToken, report);
    const given = [{ ...asked, preview: true, workDoneToken }];
    const params = { command: "foregram.edit", arguments: given };
    try {
      const method = "workspace/executeCommand";
      const { edits } = await client.sendRequest<{ edits: TextEdit[] }>(method, params, token);
      return edits;
    } catch (error) {
      const { code, message } = error as { readonly code?: unknown; readonly message: string };
      if (code !== LSPErrorCodes.RequestCancelled) {
        say(REFUSALS.has(code) ? message : "the server gave no answer, and its log may say why");
      }
      return undefined;
    } finally {
      following.dispose();
    }
  });
}

function follow(client: ForegramClient, name: string, report: Report): vscode.Disposable {
  let reached = 0; // percent
  return client.onProgress(WorkDoneProgress.type, name, (value) => {
    const percentage = "percentage" in value ? (value.percentage ?? reached) : reached;
    report.report({ increment: percentage - reached });
    reached = percentage;
  });
}
