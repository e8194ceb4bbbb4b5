/** Which model the local host loads. */

import * as vscode from "vscode";

import { areOffered, isChecked, objectionTo, questionFor } from "./modelNames";
import type { Preferences } from "./preferences";
import type { Server } from "./server";

const OTHER: vscode.QuickPickItem = {
  label: "Another one…",
  description: "a hub id, a folder or a .gguf file",
};

/** Asks for a model, beside the one that runs; undefined where none was chosen. */
export async function askForModel(
  preferences: Preferences,
  running: string | undefined,
  server: Server,
): Promise<string | undefined> {
  if (preferences.hostUrl !== "") {
    await vscode.window.showInformationMessage(
      `The model is set on the remote host ${preferences.hostUrl}.`,
    );
    return undefined;
  }
  const placeHolder = questionFor(running, preferences.model);
  const told = await server.running?.execute("foregram.models");
  const offered = (areOffered(told) ? told : []).map(({ name, description }) => ({
    label: name,
    description,
  }));
  const chosen = await vscode.window.showQuickPick([...offered, OTHER], { placeHolder });
  return chosen === OTHER ? askForName(preferences.model, server) : chosen?.label;
}

async function askForName(former: string, server: Server): Promise<string | undefined> {
  const name = await vscode.window.showInputBox({
    title: "Model",
    value: former,
    prompt: "A hub id (owner/name), a local folder or a .gguf file",
    ignoreFocusOut: true,
    validateInput: async (text) => {
      const wanted = text.trim();
      const client = wanted === "" ? undefined : server.running;
      const told = await client?.execute("foregram.checkModel", wanted);
      return isChecked(told) ? objectionTo(told) : undefined; // without a server: when it is there
    },
  });
  return name?.trim();
}
