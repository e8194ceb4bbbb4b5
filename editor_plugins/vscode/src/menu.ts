/** The menu of the status item. */

import * as vscode from "vscode";

import { activeLanguage } from "./documents";
import { menuEntries, type MenuEntry } from "./menuEntries";
import type { Preferences } from "./preferences";
import type { Remedies } from "./remedies";
import type { Status } from "./status";

export async function showMenu(
  preferences: Preferences,
  remedies: Remedies,
  status: Status,
): Promise<void> {
  const here = {
    switches: preferences.switches(),
    isEnabledEverywhere: preferences.isEnabledEverywhere,
    isRemote: preferences.hostUrl !== "",
    language: activeLanguage(),
  };
  const entries = menuEntries(status, here, (remedy) => remedies.has(remedy));
  const placeHolder = `foregram: ${status.message}`;
  const chosen = await vscode.window.showQuickPick(entries.map(asItem), { placeHolder });
  if (chosen?.remedy !== undefined) {
    await remedies.run(chosen.remedy);
  } else if (chosen?.command !== undefined) {
    await vscode.commands.executeCommand(`foregram.${chosen.command}`);
  }
}

function asItem(entry: MenuEntry): MenuEntry & vscode.QuickPickItem {
  const isParting = entry.command === undefined && entry.remedy === undefined;
  const { Default, Separator } = vscode.QuickPickItemKind;
  return { ...entry, kind: isParting ? Separator : Default };
}
