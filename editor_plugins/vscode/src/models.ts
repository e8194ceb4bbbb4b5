/** Which model the local host loads. */

import * as vscode from "vscode";

import { warningOf } from "./hostUse";
import { isChecked, MODELS, objectionTo, questionFor, titleOf } from "./modelNames";
import type { Preferences } from "./preferences";

const OTHER: vscode.QuickPickItem = {
  label: "Another one…",
  description: "a hub id, a folder or a .gguf file",
};

const RESTART = "Restart";

/** A command of the server; undefined where there is none, or an older one. */
export type Execute = (command: string, ...args: unknown[]) => Promise<unknown>;

/** Asks for a model, beside the one that runs; undefined where none was chosen. */
export async function askForModel(
  preferences: Preferences,
  running: string | undefined,
  execute: Execute,
): Promise<string | undefined> {
  if (preferences.hostUrl !== "") {
    await vscode.window.showInformationMessage(
      `The model is set on the remote host ${preferences.hostUrl}.`,
    );
    return undefined;
  }
  const placeHolder = questionFor(running, preferences.model);
  const chosen = await vscode.window.showQuickPick([...MODELS, OTHER], { placeHolder });
  return chosen === OTHER ? askForName(preferences.model, execute) : chosen?.label;
}

/** What to do with a model that is set already; whether its host starts again. */
export async function wantsRestart(model: string): Promise<boolean> {
  const sentence = `Already set: ${titleOf(model)}. Restart it?`;
  return (await vscode.window.showInformationMessage(sentence, RESTART)) === RESTART;
}

/** Asks before a host that others use, or may use, is ended; `button` says what for. */
export async function mayEndHost(button: string, execute: Execute): Promise<boolean> {
  const detail = warningOf(await execute("foregram.hostUse"));
  if (detail === undefined) {
    return true;
  }
  const question = `${button} for all who share this machine's model?`;
  const options = { modal: true, detail };
  return (await vscode.window.showWarningMessage(question, options, button)) === button;
}

async function askForName(former: string, execute: Execute): Promise<string | undefined> {
  const name = await vscode.window.showInputBox({
    title: "Model",
    value: former,
    prompt: "A hub id (owner/name), a local folder or a .gguf file",
    ignoreFocusOut: true,
    validateInput: async (text) => {
      const wanted = text.trim();
      const told = wanted === "" ? undefined : await execute("foregram.checkModel", wanted);
      return isChecked(told) ? objectionTo(told) : undefined; // without a server: when it is there
    },
  });
  return name?.trim();
}
