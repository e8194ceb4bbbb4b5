/** Where the model runs: on this machine, or on a host with an address and a token. */

import * as vscode from "vscode";

import { objectionToAddress } from "./hostUse";
import type { Preferences } from "./preferences";

export async function chooseHost(preferences: Preferences): Promise<void> {
  const local = { label: "$(vm) This machine", description: "shared by all windows" };
  const remote = { label: "$(remote) A remote host", description: preferences.hostUrl };
  const placeHolder = "Choose Where the Model Runs";
  const chosen = await vscode.window.showQuickPick([local, remote], { placeHolder });
  if (chosen === local) {
    await preferences.set("hostUrl", "");
  } else if (chosen === remote) {
    await chooseRemote(preferences);
  }
}

async function chooseRemote(preferences: Preferences): Promise<void> {
  const url = await vscode.window.showInputBox({
    title: "Address of the Remote Host",
    value: preferences.hostUrl,
    placeHolder: "https://gpu.example:8012",
    ignoreFocusOut: true,
    validateInput: (text) => objectionToAddress(text, preferences.allowsPlainHttp),
  });
  if (url === undefined) {
    return;
  }
  const isKnown = (await preferences.token(url)) !== undefined;
  if (isKnown || (await askForToken(preferences, url))) {
    await preferences.set("hostUrl", url); // last: the host is used as soon as it is named
  }
}

/** Asks for the token of the host at hand. */
export async function setToken(preferences: Preferences): Promise<void> {
  if (preferences.hostUrl === "") {
    await vscode.window.showInformationMessage(
      "The model on this machine needs no token. Choose a remote host first.",
    );
    return;
  }
  await askForToken(preferences, preferences.hostUrl);
}

/** Whether it was answered. */
async function askForToken(preferences: Preferences, url: string): Promise<boolean> {
  const token = await vscode.window.showInputBox({
    title: `Token for ${url}`,
    prompt:
      "It is kept in VS Code's secret storage and sent to this address alone. Leave empty if the host needs none.",
    password: true,
    ignoreFocusOut: true,
  });
  if (token !== undefined) {
    await preferences.setToken(url, token.trim());
  }
  return token !== undefined;
}
