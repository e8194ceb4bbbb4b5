/** Which model the local host loads. */

import * as vscode from "vscode";

import type { Preferences } from "./preferences";

const OTHER = "Another one…";
const MODELS: readonly vscode.QuickPickItem[] = [
  { label: "offline", description: "Qwen2.5-Coder 0.5B as installed, downloads nothing" },
  { label: "0.5b", description: "Qwen2.5-Coder 0.5B" },
  { label: "1.5b", description: "Qwen2.5-Coder 1.5B: good on a fast CPU" },
  { label: "3b", description: "Qwen2.5-Coder 3B" },
  { label: "7b", description: "Qwen2.5-Coder 7B: for a GPU with 24 GB" },
  { label: "14b", description: "Qwen2.5-Coder 14B" },
  { label: "32b", description: "Qwen2.5-Coder 32B: for a GPU with 80 GB" },
  { label: OTHER, description: "a hub id, a folder or a .gguf file" },
];

/** Asks for a model; whether another one was chosen. */
export async function chooseModel(preferences: Preferences): Promise<boolean> {
  if (preferences.hostUrl !== "") {
    await vscode.window.showInformationMessage(
      `${preferences.hostUrl} decides which model it runs. Use this machine to choose one.`,
    );
    return false;
  }
  const former = preferences.model;
  const placeHolder = former === "" ? "The offline model is in use" : `${former} is in use`;
  const chosen = await vscode.window.showQuickPick(MODELS, { placeHolder });
  const model = chosen?.label === OTHER ? await askForModel(former) : chosen?.label;
  if (model === undefined || model === former) {
    return false;
  }
  await preferences.setModel(model);
  return true;
}

async function askForModel(former: string): Promise<string | undefined> {
  return vscode.window.showInputBox({
    title: "Model",
    value: former,
    prompt: "A hub id (owner/name), a local folder or a .gguf file",
  });
}
