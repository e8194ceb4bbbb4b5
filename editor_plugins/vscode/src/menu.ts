/** The menu of the status item. */

import * as vscode from "vscode";

import type { Preferences } from "./preferences";
import type { Status } from "./status";

interface Entry extends vscode.QuickPickItem {
  readonly command?: string;
}

export async function showMenu(preferences: Preferences, status: Status): Promise<void> {
  const entries = [...switchEntries(preferences), ...ENTRIES];
  const placeHolder = `foregram: ${status.message}`;
  const chosen = await vscode.window.showQuickPick(entries, { placeHolder });
  if (chosen?.command !== undefined) {
    await vscode.commands.executeCommand(chosen.command);
  }
}

function switchEntries(preferences: Preferences): Entry[] {
  const { enable, languages } = preferences.switches;
  const language = vscode.window.activeTextEditor?.document.languageId;
  const entries: Entry[] = [
    { label: `${verb(enable)} here`, description: "this workspace", command: "foregram.toggle" },
    {
      label: `${verb(preferences.isEnabledEverywhere)} everywhere`,
      command: "foregram.toggleEverywhere",
    },
  ];
  if (language !== undefined) {
    const label = `${verb(languages[language] !== false)} for ${language}`;
    entries.push({ label, command: "foregram.toggleLanguage" });
  }
  return entries;
}

function verb(isEnabled: boolean): string {
  return isEnabled ? "$(circle-slash) Disable" : "$(check) Enable";
}

const ENTRIES: readonly Entry[] = [
  { label: "", kind: vscode.QuickPickItemKind.Separator },
  { label: "$(sparkle) Suggest now", command: "foregram.trigger" },
  { label: "$(question) Why no suggestion?", command: "foregram.showWhy" },
  { label: "", kind: vscode.QuickPickItemKind.Separator },
  { label: "$(chip) Choose model", command: "foregram.chooseModel" },
  { label: "$(remote) Use a local or a remote host", command: "foregram.chooseHost" },
  { label: "$(key) Set the remote host's token", command: "foregram.setToken" },
  { label: "", kind: vscode.QuickPickItemKind.Separator },
  { label: "$(debug-restart) Restart the server", command: "foregram.restart" },
  { label: "$(output) Show logs", command: "foregram.showLogs" },
  { label: "$(pulse) Doctor", command: "foregram.doctor" },
  { label: "$(cloud-download) Install or update the server", command: "foregram.install" },
];
