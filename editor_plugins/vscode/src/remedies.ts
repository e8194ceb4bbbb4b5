/** What mends a state, by the names that the server and this extension give it. */

import * as vscode from "vscode";

import { showSettings } from "./preferences";
import type { Remedy } from "./status";

type Action = () => unknown;

export class Remedies {
  private readonly actions: ReadonlyMap<string, Action>;

  /** `own` are those that need more than one of the palette's commands. */
  constructor(own: Readonly<Record<string, Action>>) {
    this.actions = new Map(Object.entries({ ...COMMANDS, ...own }));
  }

  /** Whether there is a button for it; if not, its title is shown as text. */
  has({ action }: Remedy): boolean {
    return this.actions.has(action);
  }

  async run({ action }: Remedy): Promise<void> {
    await this.actions.get(action)?.();
  }
}

const COMMANDS: Readonly<Record<string, Action>> = {
  chooseModel: command("foregram.chooseModel"),
  install: command("foregram.install"),
  doctor: command("foregram.doctor"),
  showLogs: command("foregram.showLogs"),
  openSettings: command("foregram.openSettings"),
  chooseHost: command("foregram.chooseHost"),
  setToken: command("foregram.setToken"),
  trigger: async () => {
    await vscode.commands.executeCommand("workbench.action.focusActiveEditorGroup"); // a button had it
    await vscode.commands.executeCommand("foregram.trigger");
  },
  saveFile: command("workbench.action.files.save"),
  allowFile: setting("foregram.allowSecretFiles"),
  restartServer: command("foregram.restart"),
  showCommandSetting: setting("foregram.server.command"),
  showGhostTextSetting: setting("editor.inlineSuggest.enabled"),
};

function command(name: string): Action {
  return () => vscode.commands.executeCommand(name);
}

function setting(name: string): Action {
  return () => showSettings(name);
}
